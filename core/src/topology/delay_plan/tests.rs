use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::delay::{Confirmed, ExactDelays, Granularity, HoldKind, HoldTtl};
use crate::message::{Message, Properties};
use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::time::Instant;
use crate::topology::{ExchangeName, QueueName, Suffixes, Wait};

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn holds() -> HoldPlan {
    HoldPlan::new(queue(), Suffixes::DEFAULT, Granularity::default())
}

fn waiting() -> WaitingQueuePlan {
    WaitingQueuePlan::new(queue(), queue().waiting(), Granularity::default())
}

fn exchange() -> DelayedExchangePlan {
    let exchange = ExchangeName::new(queue().delayed_exchange()).unwrap();
    DelayedExchangePlan::new(queue(), exchange, Granularity::default())
}

fn ttl(millis: u32) -> HoldTtl {
    HoldTtl::from_millis(millis).unwrap()
}

fn text(declaration: &Declaration) -> String {
    match declaration {
        Declaration::Queue(queue) => {
            assert!(queue.durable && !queue.passive && !queue.exclusive && !queue.auto_delete);
            format!("{} {:?}", queue.name, queue.arguments)
        }
        Declaration::Exchange(exchange) => {
            assert!(exchange.durable && !exchange.passive && !exchange.internal && !exchange.auto_delete);
            format!("{} {} {:?}", exchange.name, exchange.kind, exchange.arguments)
        }
        Declaration::Binding(binding) => {
            format!("{} -> {:?} by {:?}", binding.source, binding.destination, binding.routing_key.as_str())
        }
    }
}

/// A message that carries what made it wait before.
fn message() -> Message {
    let headers = Table::new()
        .with(ShortString::from_static("x-delay"), 60_000_i64)
        .with(ShortString::from_static("mine"), "kept");
    let expiration = Some(ShortString::from_static("60000"));
    let properties = Properties { expiration, headers, ..Properties::default() };
    Message {
        exchange: ShortString::from_static("elsewhere"),
        routing_key: ShortString::from_static("elsewhere"),
        mandatory: false,
        properties,
        body: Bytes::from_static(b"body"),
    }
}

fn addressed(placement: &Placement) -> Message {
    let mut message = message();
    placement.address(&mut message);
    assert_eq!(message.properties.headers.get("mine").unwrap().as_str(), Some("kept"));
    message
}

#[test]
fn an_expiring_hold_is_declared_with_the_arguments_that_other_systems_share() {
    assert_eq!(
        text(&Declaration::Queue(holds().declaration(ttl(5_000)))),
        r#"q.deferred.5000 {"x-queue-type": "classic", "x-message-ttl": 5000, "x-dead-letter-exchange": "", "#
            .to_owned() + r#""x-dead-letter-routing-key": "q", "x-expires": 10000}"#
    );
}

#[test]
fn a_replicated_hold_hands_over_at_least_once_and_never_expires() {
    let plan = holds().replicated(ExactDelays::default());
    assert_eq!(plan.kind(), HoldKind::Replicated);
    assert_eq!(
        text(&Declaration::Queue(plan.declaration(ttl(5_000)))),
        r#"q.held.5000 {"x-queue-type": "quorum", "x-message-ttl": 5000, "x-dead-letter-exchange": "", "#
            .to_owned()
            + r#""x-dead-letter-routing-key": "q", "x-dead-letter-strategy": "at-least-once", "x-overflow": "#
            + r#""reject-publish"}"#
    );
}

#[test]
fn every_integer_is_sent_as_64_bits_also_the_largest() {
    let hold = holds().declaration(HoldTtl::MAX);
    assert_eq!(hold.arguments.get("x-message-ttl"), Some(&Value::I64(2_147_483_647)));
    assert_eq!(hold.arguments.get("x-expires"), Some(&Value::I64(4_294_967_294)));
    let message =
        addressed(&exchange().place(HoldTtl::MAX.as_duration() - Duration::from_millis(647)).unwrap());
    assert_eq!(message.properties.headers.get("x-delay"), Some(&Value::I64(2_147_483_000)));
}

#[test]
fn holds_are_declared_on_demand_and_the_others_at_the_start() {
    assert_eq!(DelayPlan::from(holds()).declarations(), []);
    let waiting: Vec<String> = DelayPlan::from(waiting()).declarations().iter().map(text).collect();
    let arguments =
        r#"{"x-queue-type": "classic", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}"#;
    assert_eq!(waiting, [format!("q.retry {arguments}")]);
    let exchange: Vec<String> = DelayPlan::from(exchange()).declarations().iter().map(text).collect();
    assert_eq!(
        exchange,
        [r#"q.delay x-delayed-message {"x-delayed-type": "direct"}"#, r#"q.delay -> Queue("q") by "q""#]
    );
}

#[test]
fn a_message_for_a_hold_is_published_to_it_by_name_and_returned_where_it_is_missing() {
    let plan = DelayPlan::from(holds());
    let placement = plan.place(Duration::from_millis(4_001)).unwrap();
    assert_eq!(plan.declare_before(&placement), Some(holds().declaration(ttl(5_000))));
    let message = addressed(&placement);
    assert_eq!((&*message.exchange, &*message.routing_key, message.mandatory), ("", "q.deferred.5000", true));
    assert_eq!((message.properties.expiration, message.properties.headers.get("x-delay")), (None, None));
}

#[test]
fn a_message_for_the_waiting_queue_carries_its_expiration_in_decimal_milliseconds() {
    let plan = DelayPlan::from(waiting());
    let placement = plan.place(Duration::from_millis(4_001)).unwrap();
    assert_eq!(plan.declare_before(&placement), None);
    let message = addressed(&placement);
    assert_eq!((&*message.exchange, &*message.routing_key, message.mandatory), ("", "q.retry", true));
    assert_eq!(message.properties.expiration.as_deref(), Some("5000"));
    assert_eq!(message.properties.headers.get("x-delay"), None);
}

#[test]
fn a_message_for_the_delayed_exchange_carries_its_delay_and_is_not_mandatory() {
    let plan = DelayPlan::from(exchange());
    let placement = plan.place(Duration::from_millis(4_001)).unwrap();
    assert_eq!(plan.declare_before(&placement), None);
    let message = addressed(&placement);
    // The plugin answers every mandatory publish with a return.
    assert_eq!((&*message.exchange, &*message.routing_key, message.mandatory), ("q.delay", "q", false));
    assert_eq!(message.properties.headers.get("x-delay"), Some(&Value::I64(5_000)));
    assert_eq!(message.properties.expiration, None);
}

#[test]
fn names_come_from_the_suffixes() {
    let suffixes = Suffixes::DEFAULT.with_hold(HoldKind::Expiring, "-later").unwrap();
    let plan = HoldPlan::new(queue(), suffixes, Granularity::default());
    assert_eq!(plan.place_deferral(Duration::ZERO).unwrap().routing_key(), "q-later.1000");
    assert_eq!(plan.declaration(ttl(1_000)).name, "q-later.1000");
}

#[test]
fn the_order_in_which_holds_are_described_does_not_matter() {
    let step = Granularity::new(Duration::from_secs(5)).unwrap();
    let exact = || ExactDelays::new([Duration::from_secs(7)]).unwrap();
    assert_eq!(
        holds().deferral_granularity(step).replicated(exact()),
        holds().replicated(exact()).deferral_granularity(step)
    );
    assert_eq!(holds().deferral_granularity(step).coarse(), holds().coarse().deferral_granularity(step));
    assert_eq!(holds().replicated(exact()).coarse(), holds().coarse(), "the last choice counts");
}

fn plans() -> impl Strategy<Value = DelayPlan> {
    prop_oneof![
        Just(holds().into()),
        Just(holds().coarse().into()),
        Just(holds().replicated(ExactDelays::default()).into()),
        Just(waiting().into()),
        Just(exchange().into()),
    ]
}

fn wait_of(placement: &Placement) -> Duration {
    match placement.wait() {
        Wait::None => Duration::ZERO,
        Wait::Hold(ttl) | Wait::Expiration(ttl) | Wait::DelayHeader(ttl) => ttl.as_duration(),
    }
}

proptest! {
    #[test]
    fn no_plan_shortens_a_delay_or_sends_one_that_it_cannot_keep(
        plan in plans(),
        delay in prop_oneof![
            Just(Duration::ZERO),
            (0..100_000_000_000_u64).prop_map(Duration::from_micros),
            (2_147_480_000..2_147_490_000_u64).prop_map(Duration::from_millis),
            Just(Duration::MAX),
        ]
    ) {
        match (plan.place(delay), plan.place_deferral(delay)) {
            (Ok(placement), Ok(deferral)) => {
                prop_assert!(wait_of(&placement) >= delay);
                prop_assert!(wait_of(&deferral) >= delay.max(Duration::from_secs(1)));
                prop_assert_eq!(delay.is_zero(), placement.wait() == Wait::None);
                if delay.is_zero() {
                    prop_assert_eq!((&**placement.exchange(), &**placement.routing_key()), ("", "q"));
                }
                prop_assert_eq!(plan.declare_before(&placement).is_some(), placement.hold().is_some());
            }
            (Err(refused), Err(_)) => prop_assert!(delay > refused.longest.as_duration()),
            (placement, deferral) => prop_assert!(false, "{placement:?} but {deferral:?}"),
        }
    }
}

#[test]
fn retries_and_deferrals_are_on_the_same_kind_of_grid_whatever_their_steps() {
    let tenth = Granularity::new(Duration::from_millis(100)).unwrap();
    let delay = Duration::from_millis(100_900);
    let names = |plan: HoldPlan| {
        [plan.place(delay), plan.place_deferral(delay)].map(|place| place.unwrap().routing_key().to_string())
    };
    let steps = holds().deferral_granularity(tenth);
    assert_eq!(names(steps.clone()), ["q.deferred.101000", "q.deferred.100900"]);
    assert_eq!(names(steps.clone().coarse()), ["q.deferred.110000", "q.deferred.110000"]);
    let exact = ExactDelays::new([delay]).unwrap();
    assert_eq!(names(steps.replicated(exact)), ["q.held.100900", "q.held.100900"]);
}

#[test]
fn a_confirm_that_is_late_moves_a_message_by_the_finer_of_the_steps() {
    let step = |millis| Granularity::new(Duration::from_millis(millis)).unwrap();
    let of = |retries, deferrals| {
        HoldPlan::new(queue(), Suffixes::DEFAULT, step(retries)).deferral_granularity(step(deferrals))
    };
    for plan in [of(3_600_000, 100), of(100, 3_600_000)] {
        let (mut book, now) = (plan.book(), Instant::ORIGIN);
        book.declare_sent(now, ttl(100));
        let cover = book.publish_sent(now, ttl(100));
        book.declare_ok(now, ttl(100));
        let late = now + Duration::from_millis(300);
        assert_eq!(book.after_confirm(late, cover), Confirmed::PublishAgain(ttl(800)), "not an hour");
    }
}

#[test]
fn the_book_of_replicated_holds_takes_every_confirm_for_safe() {
    let (mut book, now) = (holds().replicated(ExactDelays::default()).book(), Instant::ORIGIN);
    book.declare_sent(now, ttl(1_000));
    let cover = book.publish_sent(now, ttl(1_000));
    assert_eq!(book.after_confirm(now + Duration::from_secs(86_400), cover), Confirmed::Safe);
}
