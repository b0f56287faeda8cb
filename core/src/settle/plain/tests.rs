use proptest::prelude::*;

use super::*;
use crate::delay::HoldTtl;
use crate::table::{Table, Value};
use crate::topology::{
    DeadLetter, Delay, DelayPlan, ExchangeName, PlainQueue, QueueName, RoutingKey, Subscription,
};

const SECOND: Duration = Duration::from_secs(1);

fn subscription() -> Subscription {
    Subscription::new(PlainQueue::new("orders").unwrap())
}

fn dead() -> DeadLetter {
    DeadLetter::to_queue(&QueueName::new("orders.dead").unwrap())
}

fn plan(subscription: &Subscription) -> SubscriptionPlan {
    subscription.plan().unwrap()
}

fn retry(delay: Option<Duration>) -> Outcome {
    Outcome::Retry { delay, error: "smtp is down".to_owned() }
}

fn retried(count: impl Into<Value>) -> Properties {
    let headers = Table::new().with(HeaderKey::RETRY_COUNT.as_short().clone(), count);
    Properties { headers, ..Properties::default() }
}

fn decided(plan: &SubscriptionPlan, properties: Option<&Properties>, outcome: &Outcome) -> Decision {
    let (queue, routing_key) = (ShortString::from_static("orders"), ShortString::from_static("order.new"));
    let body = Bytes::from_static(b"\xff\x00 any bytes");
    let delivery = PlainDelivery { queue: &queue, routing_key: &routing_key, properties, body: &body };
    let decision = decide_plain(plan, &delivery, outcome);
    if let Decision::Publish(successor) = &decision {
        assert_eq!(successor.message.body, body);
        assert_eq!(successor.message.properties.delivery_mode, Some(DeliveryMode::Persistent));
    }
    decision
}

fn successor(decision: Decision) -> Successor {
    match decision {
        Decision::Publish(successor) => *successor,
        other => panic!("{other:?}"),
    }
}

fn header<'a>(successor: &'a Successor, name: &str) -> Option<&'a Value> {
    successor.message.properties.headers.get(name)
}

fn count(successor: &Successor) -> Option<&str> {
    header(successor, "x-ruststream-retry-count").and_then(Value::as_str)
}

#[test]
fn what_needs_no_copy_is_as_for_jobs() {
    let plan = plan(&subscription());
    let reason = || "no longer wanted".to_owned();
    assert_eq!(decided(&plan, None, &Outcome::Done), Decision::Acknowledge);
    assert_eq!(decided(&plan, None, &Outcome::Requeue), Decision::Requeue);
    assert_eq!(
        decided(&plan, None, &Outcome::Drop { reason: reason() }),
        Decision::Drop { reason: reason() }
    );
    let rejected = decided(&plan, None, &Outcome::DeadLetter { reason: reason() });
    assert_eq!(rejected, Decision::Reject { reason: reason() });
}

#[test]
fn a_retry_is_counted_in_digits_and_waits_in_a_hold() {
    let plan = plan(&subscription());
    let first = successor(decided(&plan, None, &retry(Some(SECOND))));
    assert_eq!(first.kind, SuccessorKind::Retry { attempt: 2, delay: SECOND });
    assert_eq!(first.target, Target::Hold(HoldTtl::from_millis(1_000).unwrap()));
    assert_eq!((first.message.exchange.as_str(), first.message.mandatory), ("", true));
    assert_eq!(first.message.routing_key, "orders.deferred.1000");
    assert_eq!(count(&first), Some("1"));
    // Others may have written it as an integer.
    let third = successor(decided(&plan, Some(&retried(2_u32)), &retry(Some(SECOND))));
    assert_eq!(count(&third), Some("3"));
    assert_eq!(third.kind, SuccessorKind::Retry { attempt: 4, delay: SECOND });
}

#[test]
fn a_copy_can_be_sent_into_a_larger_hold_of_its_subscription() {
    let plan = plan(&subscription());
    let Some(DelayPlan::Holds(holds)) = plan.delay() else { panic!("holds are the default") };
    let mut again = successor(decided(&plan, None, &retry(Some(SECOND))));
    let larger = HoldTtl::from_millis(2_000).unwrap();
    again.aim_at_hold(holds, larger);
    assert_eq!((again.target, &again.message.routing_key), (Target::Hold(larger), &holds.name(larger)));
}

#[test]
fn a_retry_without_a_delay_joins_the_back_of_its_queue_and_needs_no_holds() {
    let named = plan(&subscription());
    let unnamed = plan(&Subscription::new(PlainQueue::server_named()));
    for plan in [named, unnamed] {
        let again = successor(decided(&plan, None, &retry(None)));
        assert_eq!((again.target, again.message.routing_key.as_str()), (Target::Work, "orders"));
    }
}

#[test]
fn past_the_limit_a_message_goes_to_the_dead_letter_target_and_says_why() {
    let target = DeadLetter::to_exchange(ExchangeName::new("graves").unwrap());
    let plan = plan(&subscription().max_attempts(3).dead_letter(target));
    let last = successor(decided(&plan, Some(&retried("1")), &retry(None)));
    assert_eq!(count(&last), Some("2"), "the handler runs three times");
    let dead = successor(decided(&plan, Some(&retried("2")), &retry(None)));
    assert_eq!(dead.target, Target::Dead);
    assert_eq!((dead.message.exchange.as_str(), dead.message.routing_key.as_str()), ("graves", "order.new"));
    assert!(dead.message.mandatory);
    assert_eq!(
        header(&dead, "x-death-reason").unwrap().as_str(),
        Some("attempt 3 of 3 failed: smtp is down")
    );
    assert_eq!(header(&dead, "x-original-queue").unwrap().as_str(), Some("orders"));
    assert_eq!(header(&dead, "x-attempts"), Some(&Value::I64(3)));
}

#[test]
fn past_the_limit_without_a_target_a_message_is_rejected() {
    let plan = plan(&subscription().max_attempts(1));
    let reason = "attempt 1 of 1 failed: smtp is down".to_owned();
    assert_eq!(decided(&plan, None, &retry(Some(SECOND))), Decision::Reject { reason });
}

#[test]
fn on_a_quorum_queue_the_count_of_the_header_goes_on_beside_the_brokers() {
    let queue = PlainQueue::new("orders").unwrap().quorum();
    let plan = plan(&Subscription::new(queue).max_attempts(2).dead_letter(dead()));
    let again = successor(decided(&plan, None, &retry(Some(SECOND))));
    assert_eq!(count(&again), Some("1"));
    let dead = successor(decided(&plan, Some(&retried("1")), &retry(Some(SECOND))));
    assert_eq!((dead.target, dead.message.routing_key.as_str()), (Target::Dead, "orders.dead"));
}

#[test]
fn a_deferral_keeps_the_count_and_never_comes_back_at_once() {
    let plan = plan(&subscription().max_attempts(1));
    let defer = Outcome::Defer { delay: Duration::ZERO, reason: "429".to_owned() };
    let first = successor(decided(&plan, Some(&retried("0")), &defer));
    assert_eq!(first.target, Target::Hold(HoldTtl::from_millis(1_000).unwrap()));
    assert_eq!(first.kind, SuccessorKind::Deferral { deferrals: 1, delay: Duration::ZERO });
    assert_eq!(count(&first), Some("0"));
    let second = successor(decided(&plan, Some(&first.message.properties), &defer));
    assert_eq!(second.kind, SuccessorKind::Deferral { deferrals: 2, delay: Duration::ZERO });
}

#[test]
fn a_waiting_queue_takes_the_delay_as_expiration_and_a_delayed_exchange_as_header() {
    let waiting = plan(&subscription().delay(Delay::waiting_queue()));
    let again = successor(decided(&waiting, None, &retry(Some(SECOND))));
    assert_eq!((again.target, again.message.routing_key.as_str()), (Target::Waiting, "orders.retry"));
    assert_eq!(again.message.properties.expiration.as_deref(), Some("1000"));

    let delayed = plan(&subscription().delay(Delay::delayed_exchange()));
    let again = successor(decided(&delayed, None, &retry(Some(SECOND))));
    assert_eq!((again.target, again.message.exchange.as_str()), (Target::Waiting, "orders.delay"));
    assert_eq!(header(&again, "x-delay"), Some(&Value::I64(1_000)));
    assert!(!again.message.mandatory, "the plugin returns every mandatory message");
}

#[test]
fn a_delay_that_cannot_be_kept_gives_the_message_up_and_is_never_shortened() {
    let without = Subscription::new(PlainQueue::server_named()).dead_letter(dead());
    let dead = successor(decided(&plan(&without), None, &retry(Some(SECOND))));
    let reason = header(&dead, "x-death-reason").unwrap().as_str().unwrap();
    assert!(reason.contains("has no delays") && reason.contains("smtp is down"), "{reason}");
    assert_eq!(header(&dead, "x-attempts"), Some(&Value::I64(1)), "the attempt counts");

    let long = HoldTtl::MAX.as_duration() + SECOND;
    let defer = Outcome::Defer { delay: long, reason: "429".to_owned() };
    for outcome in [retry(Some(Duration::MAX)), retry(Some(long)), defer] {
        let decision = decided(&plan(&subscription()), None, &outcome);
        assert!(
            matches!(&decision, Decision::Reject { reason } if reason.contains("24.8 days")),
            "{decision:?}"
        );
    }
}

#[test]
fn a_copy_keeps_what_the_application_set_and_nothing_of_the_broker() {
    let properties = Properties {
        headers: Table::new()
            .with(ShortString::from_static("amqp-partition-key"), "ada")
            .with(ShortString::from_static("x-death"), "stamped")
            .with(ShortString::from_static("CC"), "elsewhere"),
        expiration: Some(ShortString::from_static("1000")),
        ..Properties::default()
    };
    let plan = plan(&subscription().dead_letter(dead().routing_key(RoutingKey::new("graves").unwrap())));
    let gone = Outcome::DeadLetter { reason: String::new() };
    for outcome in [retry(None), retry(Some(SECOND)), gone] {
        let next = successor(decided(&plan, Some(&properties), &outcome));
        assert_eq!(header(&next, "amqp-partition-key").unwrap().as_str(), Some("ada"));
        assert_eq!((header(&next, "x-death"), header(&next, "CC")), (None, None));
        assert_eq!(next.message.properties.expiration, None);
    }
}

proptest! {
    #[test]
    fn whatever_the_header_holds_a_message_is_given_up_after_as_many_runs_as_are_left(
        text in "\\PC{0,8}|[0-9]{1,12}|-[0-9]{1,3}", max in 0..6_u32
    ) {
        let plan = plan(&subscription().max_attempts(max).dead_letter(dead()));
        let mut properties = retried(text);
        let mut runs = 1;
        loop {
            let next = successor(decided(&plan, Some(&properties), &retry(None)));
            if next.target == Target::Dead {
                break;
            }
            prop_assert_eq!(next.target, Target::Work);
            properties = next.message.properties;
            runs += 1;
        }
        prop_assert!(runs <= max.max(1), "{runs} runs of {max}");
    }

    #[test]
    fn no_copy_comes_back_before_its_delay(delay in any::<Duration>()) {
        match decided(&plan(&subscription()), None, &retry(Some(delay))) {
            Decision::Publish(next) => match next.target {
                Target::Hold(ttl) => prop_assert!(ttl.as_duration() >= delay),
                target => prop_assert!(target == Target::Work && delay.is_zero(), "{target:?}"),
            },
            decision => prop_assert!(matches!(decision, Decision::Reject { .. }), "{decision:?}"),
        }
    }
}

#[test]
fn whatever_header_may_count_the_attempts_they_end_however_the_copies_wait() {
    let names =
        ["x-retries", "x-attempt", "cc", "x-delayed", "x-delay", "CC", "x-death", "x-attempts", "x-match"];
    let delays = [Delay::holds(), Delay::waiting_queue(), Delay::delayed_exchange()];
    let mut counted = 0;
    for (name, delay) in names.iter().flat_map(|name| delays.iter().map(move |delay| (name, delay))) {
        let subscription = subscription().max_attempts(3).dead_letter(dead()).delay(delay.clone());
        let Ok(plan) = subscription.retry_count_header(HeaderKey::new(name).unwrap()).plan() else {
            continue;
        };
        let mut properties = Properties::default();
        let mut runs = 0;
        loop {
            runs += 1;
            let next = successor(decided(&plan, Some(&properties), &retry(Some(SECOND))));
            if next.target == Target::Dead {
                break;
            }
            assert!(runs < 3, "{name}: {delay:?}");
            properties = next.message.properties;
        }
        assert_eq!(runs, 3, "{name}: {delay:?}");
        counted += 1;
    }
    assert_eq!(counted, 12, "four names, three delays");
}
