use super::*;
use crate::delay::{ExactDelaysError, HoldKind, HoldTtl};
use crate::topology::QueueDeclaration;

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
    assert_eq!(plan.hold(HoldTtl::from_millis(5_000).unwrap()).name, "q.deferred.5000");
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
        (queue().suffixes(Suffixes::DEFAULT.with_dead("-dead").unwrap()), "suffixes"),
        (queue().quorum(), "quorum"),
        (queue().delivery_limit(7), "delivery_limit"),
        (queue().message_ttl(step.step().as_duration()), "message_ttl"),
        (queue().coarse_delays(true), "coarse_delays"),
        (queue().replicated_holds([]), "replicated_holds"),
        (queue().expiring_holds(), "expiring_holds"),
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

#[test]
fn a_quorum_queue_says_its_delivery_limit_and_where_the_broker_puts_what_goes_past_it() {
    let plan = plan(&Queue::new("q").unwrap().quorum());
    assert_eq!(
        text(&plan.work()),
        r#"q {"x-queue-type": "quorum", "x-delivery-limit": 20, "x-dead-letter-exchange": "", "#.to_owned()
            + r#""x-dead-letter-routing-key": "q.dead"}"#
    );
    // A dead letter may be looked at and put back any number of times.
    assert_eq!(
        text(&plan.dead().unwrap()),
        r#"q.dead {"x-queue-type": "quorum", "x-delivery-limit": 2147483647}"#
    );
    assert_eq!(plan.holds().kind(), HoldKind::Replicated);
    assert_eq!(plan.hold_name(HoldTtl::from_millis(5_000).unwrap()), "q.held.5000");
    assert_eq!(plan.top_priority(), Some(9));
}

#[test]
fn a_quorum_queue_without_dead_letters_has_no_target_for_them() {
    let plan = plan(&Queue::new("q").unwrap().quorum().delivery_limit(3).max_priority(0).dead_letters(false));
    assert_eq!(text(&plan.work()), r#"q {"x-queue-type": "quorum", "x-delivery-limit": 3}"#);
    assert_eq!((plan.dead(), plan.top_priority()), (None, None));
}

#[test]
fn the_kind_of_the_holds_is_a_choice_of_its_own() {
    let classic = plan(&Queue::new("q").unwrap().replicated_holds([]));
    let quorum = plan(&Queue::new("q").unwrap().quorum().expiring_holds().coarse_delays(true));
    assert_eq!((classic.holds().kind(), quorum.holds().kind()), (HoldKind::Replicated, HoldKind::Expiring));
    let seconds =
        |plan: &QueuePlan| plan.holds().place(Duration::from_secs(101)).unwrap().routing_key().clone();
    assert_eq!((&*seconds(&classic), &*seconds(&quorum)), ("q.held.120000", "q.deferred.110000"));
}

#[test]
fn the_suffixes_of_the_description_name_everything_that_belongs_to_the_queue() {
    let suffixes = Suffixes::DEFAULT.with_dead("-graveyard").unwrap();
    let suffixes = suffixes.with_hold(HoldKind::Replicated, "-held").unwrap();
    let plan = plan(&Queue::new("q").unwrap().quorum().suffixes(suffixes));
    assert_eq!(plan.dead().unwrap().name, "q-graveyard");
    let target = plan.work();
    assert_eq!(target.arguments.get("x-dead-letter-routing-key").unwrap().as_str(), Some("q-graveyard"));
    assert_eq!(plan.hold(HoldTtl::from_millis(5_000).unwrap()).name, "q-held.5000");
}

#[test]
fn a_ttl_of_the_work_queue_is_declared_on_either_kind() {
    let hour = Duration::from_secs(3_600);
    for queue in [Queue::new("q").unwrap(), Queue::new("q").unwrap().quorum()] {
        let work = plan(&queue.message_ttl(hour)).work();
        assert_eq!(work.arguments.get("x-message-ttl").unwrap().as_i64(), Some(3_600_000));
    }
}

#[test]
fn what_the_broker_would_refuse_or_ignore_is_refused_before_it_is_asked() {
    let queue = || Queue::new("q").unwrap();
    let suffixes = Suffixes::DEFAULT.with_hold(HoldKind::Expiring, "-later").unwrap();
    let refused = [
        (queue().quorum().max_priority(5), "leave it out"),
        (queue().delivery_limit(5), "make it a quorum queue"),
        (queue().message_ttl(Duration::ZERO), "from 1ms to 4294967.295s"),
        (queue().message_ttl(Duration::from_micros(1_500)), "whole milliseconds"),
        (queue().message_ttl(Duration::from_millis(4_294_967_296)), "whole milliseconds"),
        (queue().message_ttl(Duration::MAX), "whole milliseconds"),
        (queue().quorum().coarse_delays(true), "expiring holds"),
        (queue().replicated_holds([]).coarse_delays(true), "expiring holds"),
        (queue().replicated_holds([Duration::MAX]), "whole milliseconds"),
        (queue().replicated_holds((1..99).map(Duration::from_secs)), "list fewer"),
        (Queue::new("q-later.1000").unwrap().suffixes(suffixes), "choose another name"),
    ];
    for (queue, advice) in refused {
        let error = queue.plan().unwrap_err().to_string();
        assert!(error.contains(advice) && error.contains(queue.name().as_str()), "{error}");
    }
    let error = queue().replicated_holds([Duration::ZERO]).plan().unwrap_err();
    let cause = ExactDelaysError::OutOfRange { delay: Duration::ZERO };
    assert_eq!(error, QueueError::ExactDelays { queue: queue().name().clone(), cause });
    assert!(queue().message_ttl(Duration::from_millis(u32::MAX.into())).plan().is_ok());
}
