use std::time::Duration;

use super::*;
use crate::table::Value;

fn plan(queue: &Queue) -> QueuePlan {
    queue.plan().unwrap()
}

fn text(declaration: &QueueDeclaration) -> String {
    assert!(declaration.durable && !declaration.passive);
    assert!(!declaration.exclusive && !declaration.auto_delete);
    format!("{} {:?}", declaration.name, declaration.arguments)
}

#[test]
fn the_queues_of_a_family_are_declared_with_the_arguments_of_the_wire_format() {
    let plan = plan(&Queue::new("q").unwrap());
    assert_eq!(text(&plan.work()), r#"q {"x-queue-type": "classic", "x-max-priority": 10}"#);
    assert_eq!(text(&plan.dead().unwrap()), r#"q.dead {"x-queue-type": "classic"}"#);
    assert_eq!(
        text(&plan.hold(HoldTtl::from_millis(5_000).unwrap())),
        r#"q.deferred.5000 {"x-queue-type": "classic", "x-message-ttl": 5000, "#.to_owned()
            + r#""x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-expires": 10000}"#
    );
}

#[test]
fn every_integer_is_sent_as_64_bits_also_the_largest() {
    let hold = plan(&Queue::new("q").unwrap()).hold(HoldTtl::MAX);
    assert_eq!(hold.arguments.get("x-message-ttl"), Some(&Value::I64(2_147_483_647)));
    assert_eq!(hold.arguments.get("x-expires"), Some(&Value::I64(4_294_967_294)));
}

#[test]
fn what_a_hold_looks_like_depends_on_its_name_alone() {
    let ttl = HoldTtl::from_millis(1_000).unwrap();
    let plain = plan(&Queue::new("q").unwrap());
    let other = plan(&Queue::new("q").unwrap().max_priority(0).prefetch(1).dead_letters(false));
    assert_ne!(plain, other);
    assert_eq!(plain.hold(ttl), other.hold(ttl));
}

#[test]
fn a_queue_without_priorities_declares_none_and_one_without_dead_letters_has_no_queue_for_them() {
    let plan = plan(&Queue::new("q").unwrap().max_priority(0).dead_letters(false));
    assert_eq!(text(&plan.work()), r#"q {"x-queue-type": "classic"}"#);
    assert_eq!(plan.top_priority(), None);
    assert_eq!(plan.dead(), None);
}

#[test]
fn two_descriptions_differ_in_a_setting_that_has_a_name() {
    let queue = || Queue::new("q").unwrap();
    let step = Granularity::new(Duration::from_millis(100)).unwrap();
    let others = [
        (Queue::new("p").unwrap(), "name"),
        (queue().prefetch(7), "prefetch"),
        (queue().max_priority(7), "max_priority"),
        (queue().retry(RetryPolicy::none()), "retry"),
        (queue().granularity(step), "granularity"),
        (queue().deferral_granularity(step), "deferral_granularity"),
        (queue().max_deferrals(7), "max_deferrals"),
        (queue().dead_letters(false), "dead_letters"),
    ];
    assert_eq!(queue().differs_in(&queue()), None);
    for (other, setting) in others {
        assert_eq!(queue().differs_in(&other), Some(setting));
    }
}

#[test]
fn a_prefetch_of_zero_is_refused_because_it_would_mean_unlimited() {
    let error = Queue::new("q").unwrap().prefetch(0).plan().unwrap_err();
    assert!(error.to_string().contains("unlimited"), "{error}");
}

#[test]
fn a_retry_that_no_hold_can_keep_is_found_before_any_job_fails() {
    let days = |days: u64| Duration::from_secs(days * 86_400);
    let queue = |retry| Queue::new("q").unwrap().retry(retry).plan();
    assert!(matches!(queue(RetryPolicy::fixed(2, days(25))), Err(QueueError::RetryTooLong { .. })));
    assert!(queue(RetryPolicy::fixed(1, days(25))).is_ok());
    let growing = RetryPolicy::exponential(30).max(Duration::MAX);
    assert!(matches!(queue(growing), Err(QueueError::RetryTooLong { .. })));
    assert!(queue(growing.max(days(24))).is_ok());
}
