use std::time::Duration;

use super::*;
use crate::topology::*;

fn plain(name: &str) -> PlainQueue {
    PlainQueue::new(name).unwrap()
}

fn name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn exchange(name: &str, kind: ExchangeKind) -> Exchange {
    Exchange::new(ExchangeName::new(name).unwrap(), kind)
}

fn key(key: &str) -> RoutingKey {
    RoutingKey::new(key).unwrap()
}

/// Declarations in short.
fn texts(declarations: &[Declaration]) -> Vec<String> {
    declarations
        .iter()
        .map(|declaration| match declaration {
            Declaration::Exchange(exchange) => format!("exchange {} {}", exchange.name, exchange.kind),
            Declaration::Queue(queue) => format!("queue {} {:?}", queue.name, queue.arguments),
            Declaration::Binding(Binding { source, destination, routing_key, .. }) => {
                let BindingDestination::Queue(queue) = destination else { panic!("{destination:?}") };
                format!("bind {queue} to {source} by {routing_key}")
            }
        })
        .collect()
}

#[test]
fn what_a_subscription_needs_is_declared_in_the_order_in_which_it_refers_to_each_other() {
    let events = exchange("events", ExchangeKind::Topic);
    let subscription = Subscription::new(plain("q"))
        .bind(Route::from(events.clone()).routing_key(key("a.#")))
        .bind(Route::from(events).routing_key(key("b.#")))
        .bind(Route::from_existing(ExchangeName::new("amq.fanout").unwrap()))
        .delay(Delay::waiting_queue());
    assert_eq!(
        texts(subscription.plan().unwrap().declarations()),
        [
            "exchange events topic",
            r#"queue q {"x-queue-type": "classic"}"#,
            "bind q to events by a.#",
            "bind q to events by b.#",
            "bind q to amq.fanout by ",
            r#"queue q.retry {"x-queue-type": "classic", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}"#,
        ]
    );
}

#[test]
fn a_delayed_exchange_is_declared_and_bound_to_the_queue_by_its_name() {
    let plan = Subscription::new(plain("q")).delay(Delay::delayed_exchange()).plan().unwrap();
    assert_eq!(
        texts(plan.declarations()),
        [
            r#"queue q {"x-queue-type": "classic"}"#,
            "exchange q.delay x-delayed-message",
            "bind q to q.delay by q"
        ]
    );
}

#[test]
fn a_server_named_queue_is_bound_as_the_one_declared_last() {
    let subscription =
        Subscription::new(PlainQueue::server_named()).bind(exchange("events", ExchangeKind::Fanout));
    let plan = subscription.plan().unwrap();
    assert_eq!(plan.queue_name(), None);
    assert_eq!(texts(plan.declarations())[2], "bind  to events by ");
    let two = Topology::new().subscription(&subscription).subscription(&subscription);
    let declared: Vec<Declaration> = two.declarations().collect();
    assert_eq!(
        texts(&declared).iter().map(|text| &text[..4]).collect::<Vec<_>>(),
        ["exch", "queu", "bind", "queu", "bind"]
    );
}

#[test]
fn a_client_that_declares_nothing_declares_nothing_and_asks_for_the_target_of_its_delays() {
    let subscription =
        |delay| Subscription::new(plain("q")).bind(exchange("x", ExchangeKind::Fanout)).delay(delay);
    let plan = subscription(Delay::named(name("q.later"))).plan_existing().unwrap();
    assert_eq!(plan.declarations(), []);
    let asks = Declaration::Queue(QueueDeclaration::passive(name("q.later").into()));
    assert_eq!(plan.delay_check(), Some(asks));

    let plan = subscription(Delay::delayed_exchange()).plan_existing().unwrap();
    let Some(Declaration::Exchange(asks)) = plan.delay_check() else { panic!("{:?}", plan.delay_check()) };
    assert!(asks.passive && asks.name.as_str() == "q.delay");
    assert_eq!(subscription(Delay::waiting_queue()).plan().unwrap().delay_check(), None);
}

#[test]
fn holds_are_the_default_where_they_can_be_declared_and_come_back() {
    let kind = |plan: &SubscriptionPlan| match plan.delay() {
        Some(DelayPlan::Holds(holds)) => Some(holds.kind()),
        _ => None,
    };
    let planned = |queue| Subscription::new(queue).plan().unwrap();
    assert_eq!(kind(&planned(plain("q"))), Some(crate::delay::HoldKind::Expiring));
    assert_eq!(kind(&planned(plain("q").quorum())), Some(crate::delay::HoldKind::Replicated));
    assert_eq!(planned(plain("q").auto_delete(true)).delay(), None);
    assert_eq!(planned(plain("q").max_length(10)).delay(), None);
    assert_eq!(planned(PlainQueue::server_named()).delay(), None);
    assert_eq!(Subscription::new(plain("q")).plan_existing().unwrap().delay(), None);

    let expiring = Subscription::new(plain("q").quorum()).delay(Delay::expiring_holds()).plan().unwrap();
    assert_eq!(kind(&expiring), Some(crate::delay::HoldKind::Expiring));
    let exact = Delay::replicated_holds([Duration::from_secs(7)]);
    let replicated = Subscription::new(plain("q")).delay(exact).plan().unwrap();
    let place = replicated.delay().unwrap().place(Duration::from_secs(7)).unwrap();
    assert_eq!(place.routing_key(), "q.held.7000");
}

#[test]
fn holds_of_a_client_that_declares_nothing_are_refused() {
    let error = Subscription::new(plain("q")).delay(Delay::holds()).plan_existing().unwrap_err();
    assert!(error.to_string().contains("declared on demand, and this client declares nothing"), "{error}");
}

#[test]
fn a_server_named_queue_is_there_only_for_a_client_that_declares_it() {
    let subscription = Subscription::new(PlainQueue::server_named());
    assert!(subscription.plan().is_ok());
    assert_eq!(subscription.plan_existing().unwrap_err(), SubscriptionError::ServerNamedUndeclared);
}

#[test]
fn a_quorum_queue_counts_attempts_and_allows_one_delivery_more_than_its_limit() {
    let subscription = Subscription::new(plain("q").quorum())
        .max_attempts(5)
        .dead_letter(DeadLetter::to_queue(&name("q.dead")));
    let plan = subscription.plan().unwrap();
    assert!(plan.broker_counts_attempts());
    assert_eq!(
        texts(plan.declarations()),
        [r#"queue q {"x-delivery-limit": 4, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q.dead", "#
            .to_owned()
            + r#""x-queue-type": "quorum"}"#]
    );
    let error = subscription.plan_existing().unwrap_err();
    assert!(error.to_string().contains("this client does not declare it"), "{error}");
    let once = subscription.max_attempts(0).plan().unwrap();
    assert_eq!(once.max_attempts().map(std::num::NonZeroU32::get), Some(1));
    assert!(texts(once.declarations())[0].contains(r#""x-delivery-limit": 0"#));
}

#[test]
fn a_classic_queue_leaves_the_counting_to_a_header() {
    let plan = Subscription::new(plain("q"))
        .max_attempts(5)
        .dead_letter(DeadLetter::to_queue(&name("q.dead")))
        .plan()
        .unwrap();
    assert!(!plan.broker_counts_attempts());
    assert_eq!(texts(plan.declarations()), [r#"queue q {"x-queue-type": "classic"}"#]);
    assert_eq!(plan.retry_count_header().as_str(), "x-ruststream-retry-count");
    let header = HeaderKey::new("x-tries").unwrap();
    let other = Subscription::new(plain("q")).retry_count_header(header.clone()).plan().unwrap();
    assert_eq!(other.retry_count_header(), &header);
}

#[test]
fn the_prefetch_is_never_unlimited_and_keeps_every_lane_busy() {
    let plan = |prefetch, lanes| Subscription::new(plain("q")).prefetch(prefetch).lanes(lanes).plan();
    assert!(plan(0, 1).unwrap_err().to_string().contains("unlimited"));
    assert!(matches!(plan(8, 0), Err(SubscriptionError::Lanes { .. })));
    let error = plan(7, 8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the subscription of queue q: 8 lanes need a prefetch count of at least 8 (better 32), found 7: raise it, or take \
         fewer lanes"
    );
    let fits = plan(8, 8).unwrap();
    assert_eq!((fits.prefetch().get(), fits.lanes().lanes().get()), (8, 8));
}

#[test]
fn what_the_topology_would_refuse_is_no_plan() {
    let error = Subscription::new(plain("q").quorum().max_priority(5)).plan().unwrap_err();
    assert!(error.to_string().starts_with("queue \"q\": x-max-priority is 5"), "{error}");
    let events = exchange("x", ExchangeKind::Topic);
    let other = exchange("x", ExchangeKind::Direct);
    let error = Subscription::new(plain("q")).bind(events).bind(other).plan().unwrap_err();
    assert!(error.to_string().starts_with("exchange \"x\": two descriptions differ"), "{error}");
    let exact = Delay::replicated_holds([Duration::from_millis(1)]);
    let error = Subscription::new(plain("q")).delay(exact).plan().unwrap_err();
    assert!(matches!(error, SubscriptionError::ExactDelays { .. }));
}
