use std::time::Duration;

use super::*;
use crate::delay::{HoldKind, HoldTtl};

fn jobs(name: &str) -> QueuePlan {
    Queue::new(name).unwrap().plan().unwrap()
}

#[test]
fn two_descriptions_of_one_queue_that_differ() {
    let first = with(&plain("q"));
    finds(
        &first.clone().queue(&plain("q").max_priority(5)),
        &["refused, queue \"q\"", "x-max-priority is missing in the first and 5 in the other"],
    );
    finds(
        &first.clone().queue(&plain("q").auto_delete(true)),
        &["auto_delete is false in the first and true in the other", "twice alike"],
    );
    fine(&first.clone().queue(&plain("q")));
    assert_eq!(first.queue(&plain("q")).declarations().count(), 1);
}

#[test]
fn two_descriptions_of_one_exchange_that_differ() {
    let first = Topology::new().exchange(&topic("x"));
    let direct = Exchange::new(exchange_name("x"), ExchangeKind::Direct);
    finds(&first.clone().exchange(&direct), &["refused, exchange \"x\"", "type is \"topic\" in the first"]);
    finds(&first.clone().exchange(&topic("x").internal(true)), &["internal is false in the first"]);
    fine(&first.exchange(&topic("x")));
}

#[test]
fn a_queue_and_an_exchange_may_have_one_name() {
    fine(&with(&plain("x")).exchange(&topic("x")));
}

#[test]
fn two_descriptions_of_one_job_queue_that_differ_in_what_is_not_declared() {
    let other = Queue::new("q").unwrap().prefetch(7).plan().unwrap();
    finds(&Topology::new().job_queue(&jobs("q")).job_queue(&other), &["refused", "differ in prefetch"]);
    fine(&Topology::new().job_queue(&jobs("q")).job_queue(&jobs("q")));
}

#[test]
fn a_job_queue_that_is_the_dead_letter_queue_of_another() {
    let both = Topology::new().job_queue(&jobs("q")).job_queue(&jobs("q.dead"));
    finds(&both, &["refused, queue \"q.dead\"", "the dead-letter queue of \"q\" by its name"]);
    let alike = |name| Queue::new(name).unwrap().max_priority(0).plan().unwrap();
    finds(
        &Topology::new().job_queue(&alike("q.dead")).job_queue(&alike("q")),
        &["the dead-letter queue of \"q\""],
    );
    let keeps_none = Queue::new("q").unwrap().dead_letters(false).plan().unwrap();
    fine(&Topology::new().job_queue(&keeps_none).job_queue(&jobs("q.dead")));
    fine(&Topology::new().job_queue(&jobs("q")).job_queue(&jobs("q.deadline")));
    // Reading dead letters is what they are kept for.
    let reader = Subscription::new(plain("q.dead"));
    fine(&Topology::new().job_queue(&jobs("q")).subscription(&reader));
}

#[test]
fn a_job_queue_that_is_a_hold_of_another_by_the_suffixes_of_that() {
    let suffixes = Suffixes::DEFAULT.with_hold(HoldKind::Expiring, "-wait").unwrap();
    let other = Queue::new("q").unwrap().suffixes(suffixes).plan().unwrap();
    let found = texts(&Topology::new().job_queue(&other).job_queue(&jobs("q-wait.5000")));
    assert!(found.iter().any(|text| text.contains("a hold queue of \"q\" by its name")), "{found:?}");
    fine(&Topology::new().job_queue(&jobs("q")).job_queue(&jobs("q-wait.5000")));
}

#[test]
fn a_waiting_queue_that_is_named_like_a_work_queue() {
    let waits = Subscription::new(plain("q")).delay(Delay::waiting_queue());
    let words = ["refused, queue \"q.retry\"", "two descriptions differ"];
    finds(&Topology::new().subscription(&waits).job_queue(&jobs("q.retry")), &words);
    finds(&Topology::new().job_queue(&jobs("q.retry")).subscription(&waits), &words);
    let holds = Subscription::new(plain("q"));
    fine(&Topology::new().subscription(&holds).job_queue(&jobs("q.retry")));
}

#[test]
fn a_hold_queue_that_is_not_what_its_name_says() {
    let ttl = HoldTtl::from_millis(5_000).unwrap();
    let declared = |queue| Topology::new().declaration(Declaration::Queue(queue)).job_queue(&jobs("q"));
    let hold = jobs("q").hold(ttl);
    fine(&declared(hold.clone()));

    let longer = |value: i64| {
        let mut hold = hold.clone();
        hold.arguments.insert(short("x-message-ttl"), value);
        declared(hold)
    };
    let words = [
        "refused, queue \"q.deferred.5000\"",
        "a hold queue of \"q\"",
        "x-message-ttl is 6000, and must be 5000",
    ];
    finds(&longer(6_000), &words);
    fine(&longer(5_000));

    let mut untyped = hold.clone();
    untyped.arguments.remove("x-queue-type");
    finds(&declared(untyped), &["x-queue-type is missing, and must be \"classic\""]);
    finds(&declared(QueueDeclaration { durable: false, exclusive: true, ..hold }), &["durable is false"]);

    let replicated =
        Queue::new("q").unwrap().replicated_holds([Duration::from_secs(5)]).plan().unwrap().hold(ttl);
    assert_eq!(replicated.name, "q.held.5000");
    fine(&declared(replicated.clone()));
    let mut at_most_once = replicated;
    at_most_once.arguments.remove("x-dead-letter-strategy");
    finds(&declared(at_most_once), &["x-dead-letter-strategy is missing, and must be \"at-least-once\""]);
}

#[test]
fn a_binding_that_is_described_twice_is_declared_once() {
    let bindings = |topology: &Topology| {
        topology.declarations().filter(|declaration| matches!(declaration, Declaration::Binding(_))).count()
    };
    let bound = with(&plain("q")).binding(bind("amq.headers", "q", "k"));
    assert_eq!(bindings(&bound.clone().binding(bind("amq.headers", "q", "k"))), 1);
    let with_header =
        Binding { arguments: Table::new().with(short("shop"), 1_i64), ..bind("amq.headers", "q", "k") };
    assert_eq!(bindings(&bound.clone().binding(with_header)), 2);
    assert_eq!(bindings(&bound.clone().binding(bind("amq.headers", "q", "other"))), 2);
    let to_exchange = BindingDestination::Exchange(exchange_name("q"));
    let to_exchange = Binding { destination: to_exchange, ..bind("amq.headers", "", "k") };
    assert_eq!(bindings(&bound.binding(to_exchange)), 2);
}

#[test]
fn a_passive_declaration_yields_to_a_real_one() {
    let asks = Declaration::Queue(QueueDeclaration::passive(short("q")));
    for topology in [
        Topology::new().declaration(asks.clone()).queue(&plain("q").max_priority(5)),
        with(&plain("q").max_priority(5)).declaration(asks),
    ] {
        fine(&topology);
        let declared: Vec<Declaration> = topology.declarations().collect();
        assert_eq!(declared, [Declaration::Queue(plain("q").max_priority(5).declaration())]);
    }
}
