use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::topology::check::routes::Graph;

/// Few names, so that descriptions meet.
fn names() -> impl Strategy<Value = String> {
    "(a|b|q|q\\.dead|q\\.retry|q\\.deferred\\.5000|q\\.held\\.5000|amq\\.topic|amq\\.x|)"
        .prop_map(String::from)
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::I64),
        (-2..300_i64).prop_map(Value::I64),
        any::<i32>().prop_map(Value::I32),
        any::<bool>().prop_map(Value::Bool),
        any::<f64>().prop_map(Value::F64),
        names().prop_map(Value::from),
        "(classic|quorum|stream|at-least-once|reject-publish|drop-head)".prop_map(Value::from),
        Just(Value::Void),
    ]
}

fn tables() -> impl Strategy<Value = Table> {
    const ARGUMENTS: [&str; 13] = [
        "x-queue-type",
        "x-max-priority",
        "x-message-ttl",
        "x-expires",
        "x-max-length",
        "x-overflow",
        "x-dead-letter-exchange",
        "x-dead-letter-routing-key",
        "x-dead-letter-strategy",
        "x-delivery-limit",
        "x-single-active-consumer",
        "alternate-exchange",
        "x-other",
    ];
    let argument = (0..ARGUMENTS.len()).prop_map(|at| ShortString::from_static(ARGUMENTS[at]));
    proptest::collection::vec((argument, values()), 0..6).prop_map(|fields| fields.into_iter().collect())
}

fn kinds() -> impl Strategy<Value = ExchangeKind> {
    prop_oneof![
        Just(ExchangeKind::Direct),
        Just(ExchangeKind::Topic),
        Just(ExchangeKind::Fanout),
        Just(ExchangeKind::Headers),
        Just(ExchangeKind::ConsistentHash),
        Just(ExchangeKind::Delayed { routes: DelayedRouting::Topic }),
        names().prop_map(|name| ExchangeKind::Custom(short(&name))),
    ]
}

fn queues() -> impl Strategy<Value = Declaration> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.1));
    (names(), flags, tables()).prop_map(|(name, (durable, exclusive, auto_delete, passive), arguments)| {
        Declaration::Queue(QueueDeclaration {
            name: short(&name),
            passive,
            durable,
            exclusive,
            auto_delete,
            arguments,
        })
    })
}

fn exchanges() -> impl Strategy<Value = Declaration> {
    (names(), kinds(), prop::bool::weighted(0.1), tables()).prop_map(|(name, kind, passive, arguments)| {
        let plain = ExchangeDeclaration::durable(exchange_name(&name), kind);
        Declaration::Exchange(ExchangeDeclaration { passive, arguments, ..plain })
    })
}

fn bindings() -> impl Strategy<Value = Declaration> {
    (names(), names(), any::<bool>(), "[a#*.]{0,4}", tables()).prop_map(
        |(source, to, queue, pattern, arguments)| {
            let destination = match queue {
                true => BindingDestination::Queue(short(&to)),
                false => BindingDestination::Exchange(exchange_name(&to)),
            };
            let source = exchange_name(&source);
            Declaration::Binding(Binding { source, destination, routing_key: key(&pattern), arguments })
        },
    )
}

fn declarations() -> impl Strategy<Value = Vec<Declaration>> {
    proptest::collection::vec(prop_oneof![queues(), exchanges(), bindings()], 0..25)
}

fn delays() -> impl Strategy<Value = Option<Delay>> {
    prop_oneof![
        Just(None),
        Just(Some(Delay::holds())),
        Just(Some(Delay::replicated_holds([Duration::from_secs(5)]))),
        Just(Some(Delay::waiting_queue())),
        Just(Some(Delay::delayed_exchange())),
        Just(Some(Delay::named(queue_name("q")))),
    ]
}

prop_compose! {
    fn subscriptions()(
        name in names(),
        (quorum, exclusive, durable) in any::<(bool, bool, bool)>(),
        arguments in tables(),
        (routes, kind) in (names(), kinds()),
        delay in delays(),
        attempts in proptest::option::of(any::<u32>()),
        target in proptest::option::of(names()),
        (prefetch, lanes) in (0..9_u16, 0..9_u16),
    ) -> Subscription {
        let mut queue = PlainQueue::new(&name).unwrap_or_else(|_| PlainQueue::server_named());
        if quorum {
            queue = queue.quorum();
        }
        queue = queue.exclusive(exclusive).durable(durable);
        for (argument, value) in arguments.iter() {
            queue = queue.argument(argument.clone(), value.clone());
        }
        let exchange = Exchange::new(exchange_name(&routes), kind);
        let mut subscription = Subscription::new(queue).bind(exchange).prefetch(prefetch).lanes(lanes);
        if let Some(delay) = delay {
            subscription = subscription.delay(delay);
        }
        if let Some(attempts) = attempts {
            subscription = subscription.max_attempts(attempts);
        }
        if let Some(target) = target {
            subscription = subscription.dead_letter(DeadLetter::to_exchange(exchange_name(&target)));
        }
        subscription
    }
}

fn topologies() -> impl Strategy<Value = Topology> {
    (declarations(), proptest::collection::vec(subscriptions(), 0..4)).prop_map(
        |(declarations, subscriptions)| {
            let topology = declarations.into_iter().fold(Topology::new(), Topology::declaration);
            let topology = subscriptions.iter().fold(topology, Topology::subscription);
            topology.job_queue(&Queue::new("q").unwrap().plan().unwrap())
        },
    )
}

/// The names that are there once a declaration has been made, and whether all it refers to was there before.
fn refers_back(there: &mut BTreeSet<(bool, ShortString)>, declaration: &Declaration) -> bool {
    match declaration {
        Declaration::Exchange(exchange) => there.insert((true, exchange.name.as_short().clone())),
        Declaration::Queue(queue) => there.insert((false, queue.name.clone())) || queue.name.is_empty(),
        Declaration::Binding(binding) => {
            let to = match &binding.destination {
                BindingDestination::Queue(name) => (false, name.clone()),
                BindingDestination::Exchange(name) => (true, name.as_short().clone()),
            };
            there.contains(&(true, binding.source.as_short().clone())) && there.contains(&to)
        }
    }
}

/// Whether all that bindings refer to is declared at all.
fn is_closed(topology: &Topology) -> bool {
    !topology.check().iter().any(|finding| {
        matches!(
            finding.problem,
            Problem::SourceUnknown | Problem::DestinationUnknown | Problem::BindsDefaultExchange
        )
    })
}

proptest! {
    #[test]
    fn a_check_answers_for_every_topology_and_the_same_every_time(topology in topologies()) {
        let found = topology.check();
        prop_assert_eq!(format!("{found:?}"), format!("{:?}", topology.clone().check()));
        for (finding, next) in found.iter().zip(found.iter().skip(1)) {
            prop_assert!(finding.severity() >= next.severity(), "the refused come first");
            prop_assert!(!finding.to_string().is_empty());
        }
    }

    #[test]
    fn every_name_is_declared_once_and_everything_that_is_referred_to_before(topology in topologies()) {
        let closed = is_closed(&topology);
        let mut there: BTreeSet<(bool, ShortString)> =
            ["amq.topic", "amq.x", ""].map(|name| (true, short(name))).into();
        for declaration in topology.declarations() {
            let is_binding = matches!(declaration, Declaration::Binding(_));
            let name_again = matches!(&declaration, Declaration::Exchange(exchange) if exchange.name.is_predeclared());
            let refers_back = refers_back(&mut there, &declaration);
            prop_assert!(refers_back || name_again || is_binding && !closed, "{declaration:?}");
        }
    }

    #[test]
    fn a_plan_declares_nothing_that_a_check_refuses(subscription in subscriptions()) {
        let Ok(plan) = subscription.plan() else { return Ok(()) };
        prop_assert!(plan.prefetch().get() >= plan.lanes().lanes().get());
        let topology = plan.declarations().iter().cloned().fold(Topology::new(), Topology::declaration);
        let refused: Vec<String> = topology
            .check()
            .into_iter()
            .filter(|finding| finding.severity() == Severity::Refused)
            .map(|finding| finding.to_string())
            .collect();
        prop_assert_eq!(refused, Vec::<String>::new());
    }

    #[test]
    fn a_circle_of_any_length_is_found_and_a_chain_is_none(length in 1..40_usize, close: bool) {
        let name = |at: usize| format!("q{at}");
        let mut topology = Topology::new();
        for at in 0..length {
            let next = if close { (at + 1) % length } else { at + 1 };
            let queue = plain(&name(at)).message_ttl(Duration::from_secs(1)).dead_letter(to(&name(next)));
            topology = topology.queue(&queue);
        }
        let found = topology.queue(&plain(&name(length))).check();
        if close {
            prop_assert_eq!(found.len(), 1);
            let Problem::DeadLetterCycle { queues, certain: true } = &found[0].problem else {
                return Err(TestCaseError::fail(format!("{found:?}")));
            };
            prop_assert_eq!(queues.len(), length);
        } else {
            prop_assert_eq!(found, []);
        }
    }
}

/// A chain in which each queue expires into the next one, through one topic exchange.
fn chain(queues: usize, bound_with: impl Fn(usize) -> String) -> Topology {
    let mut topology = Topology::new().exchange(&topic("x"));
    for at in 0..queues {
        let target = DeadLetter::to_exchange(exchange_name("x")).routing_key(key(&format!("to.{}", at + 1)));
        let queue = plain(&format!("q{at}")).message_ttl(Duration::from_secs(1)).dead_letter(target);
        topology = topology.queue(&queue).binding(bind("x", &format!("q{at}"), &bound_with(at)));
    }
    topology
}

#[test]
fn thousands_of_queues_in_one_chain_are_checked_without_a_deep_recursion() {
    let found = chain(5_000, |at| format!("to.{at}")).check();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].to_string().starts_with("queue \"q4999\": it dead-letters to exchange \"x\""),
        "{}",
        found[0]
    );
}

#[test]
fn where_too_many_patterns_meet_too_many_keys_a_circle_cannot_be_excluded() {
    let pattern = |at: usize| format!("#.{at}");
    let found = chain(900, pattern).check();
    assert_eq!(found.len(), 1, "{found:?}");
    let found = chain(1_500, pattern).check();
    let circles = found.iter().filter(|finding| matches!(finding.problem, Problem::DeadLetterCycle { .. }));
    assert!(circles.count() == 1 && found.iter().all(|finding| finding.severity() == Severity::Warned));
}

/// As many exchanges, each of which hands on to the next, and as many keys at the first of them.
fn keys_through_exchanges(count: usize, hand_on: impl Fn(Topology, &str, &str) -> Topology) -> Topology {
    let (mut topology, first) = (Topology::new(), exchange_name("x0"));
    for at in 0..count {
        topology = hand_on(topology, &format!("x{at}"), &format!("x{}", at + 1));
        let target = DeadLetter::to_exchange(first.clone()).routing_key(key(&format!("k{at}")));
        topology = topology.queue(&plain(&format!("q{at}")).dead_letter(target));
    }
    topology
}

#[test]
fn keys_do_not_multiply_by_exchanges_beyond_the_bound() {
    let alternates = keys_through_exchanges(100, |topology, at, next| {
        topology.exchange(&topic(at).alternate(exchange_name(next)))
    });
    let bound = keys_through_exchanges(100, |topology, at, next| {
        let fanout = Exchange::new(exchange_name(at), ExchangeKind::Fanout);
        let destination = BindingDestination::Exchange(exchange_name(next));
        topology.exchange(&fanout).binding(Binding { destination, ..bind(at, "", "") })
    });
    for topology in [alternates, bound] {
        let nodes = |comparisons| Graph::within(&topology, comparisons).edges.len();
        assert!(nodes(usize::MAX) > 10_000);
        assert!(nodes(1_000) < 2_000, "{}", nodes(1_000));
    }
}

#[test]
fn thousands_of_descriptions_of_one_queue_are_each_told_once() {
    let described = |topology: Topology, messages| topology.queue(&plain("q").max_length(messages));
    let topology = (0..40_000).chain(1..40_000).fold(Topology::new(), described);
    assert_eq!(topology.check().len(), 39_999);
}
