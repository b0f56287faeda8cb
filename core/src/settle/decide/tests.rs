use proptest::prelude::*;

use super::*;
use crate::delay::Granularity;
use crate::envelope::{JobId, JobType, Limits, RawPayload};
use crate::message::DeliveryMode;
use crate::retry::RetryPolicy;
use crate::settle::Settlement;
use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::time::UnixMillis;
use crate::topology::Queue;

fn queue() -> Queue {
    Queue::new("q").unwrap().retry(RetryPolicy::exponential(3).jitter(false))
}

fn plan(queue: &Queue) -> QueuePlan {
    queue.plan().unwrap()
}

/// A job whose envelope names another queue than the one it came from.
fn job() -> Envelope {
    let payload = RawPayload::from_serialize("hello").unwrap();
    let elsewhere = ShortString::from_static("elsewhere");
    Envelope::new(JobId::from_random(7), JobType::from_static("greet"), elsewhere, UnixMillis(1), payload)
}

fn retry(delay: Option<Duration>) -> Outcome {
    Outcome::Retry { delay, error: "smtp is down".to_owned() }
}

fn defer(delay: Duration) -> Outcome {
    Outcome::Defer { delay, reason: "429".to_owned() }
}

fn successor(decision: Decision) -> Successor {
    match decision {
        Decision::Publish(successor) => *successor,
        other => panic!("{other:?}"),
    }
}

fn envelope(successor: &Successor) -> Envelope {
    Envelope::decode(&successor.message.body, &Limits::default()).unwrap()
}

fn reason(successor: &Successor) -> &str {
    successor.message.properties.headers.get("x-death-reason").unwrap().as_str().unwrap()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_job_that_is_done_is_acknowledged_and_one_that_did_not_run_is_requeued() {
    let plan = plan(&queue());
    assert_eq!(decide(&plan, &job(), None, &Outcome::Done, 0), Decision::Acknowledge);
    assert_eq!(decide(&plan, &job(), None, &Outcome::Requeue, 0), Decision::Requeue);
}

#[test]
fn a_job_that_is_dropped_is_acknowledged_with_a_reason_whether_or_not_dead_letters_are_kept() {
    let dropped = Decision::Drop { reason: "no longer wanted".to_owned() };
    for kept in [true, false] {
        let plan = plan(&queue().dead_letters(kept));
        let outcome = Outcome::Drop { reason: "no longer wanted".to_owned() };
        let decision = decide(&plan, &job(), None, &outcome, 0);
        assert_eq!(decision, dropped);
        // A rejection would be caught by a dead-letter exchange.
        assert_eq!(Settlement::from(&decision), Settlement::Acknowledge);
    }
}

#[test]
fn a_retry_counts_the_attempt_and_waits_in_a_hold_of_the_queue_it_came_from() {
    let plan = plan(&queue());
    let again = successor(decide(&plan, &job().with_priority(10), None, &retry(None), 0));
    assert_eq!(again.kind, SuccessorKind::Retry { attempt: 2, delay: SECOND });
    assert_eq!(again.message.exchange, "");
    assert_eq!(again.message.routing_key, "q.deferred.1000");
    assert!(again.message.mandatory);
    assert_eq!(again.message.properties.priority, Some(0));
    assert_eq!(again.message.properties.delivery_mode, Some(DeliveryMode::Persistent));
    assert_eq!((envelope(&again).attempt(), envelope(&again).priority()), (2, 0));
    assert_eq!(envelope(&again).queue(), "elsewhere");
}

#[test]
fn a_retry_without_a_wait_goes_straight_to_the_work_queue_and_a_deferral_never_does() {
    let plan = plan(&queue());
    let again = successor(decide(&plan, &job(), None, &retry(Some(Duration::ZERO)), 0));
    assert_eq!((again.target, again.message.routing_key.as_str()), (Target::Work, "q"));
    let later = successor(decide(&plan, &job(), None, &defer(Duration::ZERO), 0));
    assert_eq!(later.target, Target::Hold(Granularity::default().step()));
}

#[test]
fn a_deferral_keeps_the_attempt_and_comes_back_at_the_top() {
    let plan = plan(&queue());
    let last_attempt = job().next_attempt().next_attempt();
    let later = successor(decide(&plan, &last_attempt, None, &defer(SECOND * 30), 0));
    assert_eq!(later.kind, SuccessorKind::Deferral { deferrals: 1, delay: SECOND * 30 });
    assert_eq!(later.message.routing_key, "q.deferred.30000");
    assert_eq!(later.message.properties.priority, Some(10));
    assert_eq!((envelope(&later).attempt(), envelope(&later).priority()), (3, 10));
}

#[test]
fn retries_and_deferrals_round_up_to_their_own_steps() {
    let step = |millis| Granularity::new(Duration::from_millis(millis)).unwrap();
    let plan = plan(&queue().granularity(step(5_000)).deferral_granularity(step(100)));
    let target = |outcome| successor(decide(&plan, &job(), None, &outcome, 0)).message.routing_key;
    assert_eq!(target(retry(Some(SECOND))), "q.deferred.5000");
    assert_eq!(target(defer(SECOND)), "q.deferred.1000");
}

#[test]
fn a_queue_without_priorities_sets_none() {
    let plan = plan(&queue().max_priority(0));
    for outcome in [retry(None), defer(SECOND)] {
        let next = successor(decide(&plan, &job(), None, &outcome, 0));
        assert_eq!((next.message.properties.priority, envelope(&next).priority()), (None, 0));
    }
}

#[test]
fn a_job_without_attempts_left_becomes_a_dead_letter_that_says_why() {
    let plan = plan(&queue());
    let last = job().next_attempt().next_attempt();
    let dead = successor(decide(&plan, &last, None, &retry(Some(SECOND)), 0));
    assert_eq!((dead.target, dead.message.routing_key.as_str()), (Target::Dead, "q.dead"));
    assert_eq!(reason(&dead), "attempt 3 of 3 failed: smtp is down");
    let headers = &dead.message.properties.headers;
    assert_eq!(headers.get("x-original-queue").unwrap().as_str(), Some("q"));
    assert_eq!(headers.get("x-attempts"), Some(&Value::I64(3)));
    assert_eq!(dead.message.properties.priority, None);
    assert_eq!(dead.message.properties.delivery_mode, Some(DeliveryMode::Persistent));
    assert_eq!(envelope(&dead), last);
}

#[test]
fn a_job_that_was_deferred_too_often_becomes_a_dead_letter() {
    let plan = plan(&queue().max_deferrals(1));
    let first = successor(decide(&plan, &job(), None, &defer(SECOND), 0));
    let second = successor(decide(&plan, &envelope(&first), None, &defer(SECOND), 0));
    assert_eq!(second.target, Target::Dead);
    assert_eq!(reason(&second), "deferred 1 times, the queue allows 1: 429");
}

#[test]
fn a_wait_that_no_hold_can_keep_becomes_a_dead_letter_and_is_never_shortened() {
    let plan = plan(&queue());
    for outcome in [retry(Some(Duration::MAX)), defer(HoldTtl::MAX.as_duration() + SECOND)] {
        let dead = successor(decide(&plan, &job(), None, &outcome, 0));
        assert_eq!(dead.target, Target::Dead);
        assert!(reason(&dead).contains("24.8 days"), "{}", reason(&dead));
        let attempts = dead.message.properties.headers.get("x-attempts");
        assert_eq!(attempts, Some(&Value::I64(1)), "the attempt that asked for it counts");
    }
}

#[test]
fn a_queue_that_keeps_no_dead_letters_rejects_them_and_poison_too() {
    let plan = plan(&queue().dead_letters(false));
    let outcome = Outcome::DeadLetter { reason: "no such user".to_owned() };
    let rejected = Decision::Reject { reason: "no such user".to_owned() };
    assert_eq!(decide(&plan, &job(), None, &outcome, 0), rejected);
    assert_eq!(aside(&plan, None, &Bytes::new(), "no such user"), rejected);
}

#[test]
fn a_long_reason_is_cut_at_a_character() {
    let plan = plan(&queue());
    let dead = successor(dead_letter(&plan, &job(), None, &"€".repeat(1_000)));
    assert_eq!(reason(&dead), "€".repeat(341));
}

#[test]
fn a_successor_keeps_the_headers_of_the_application_and_none_of_the_broker() {
    let plan = plan(&queue());
    let delivered = Properties {
        headers: Table::new()
            .with(ShortString::from_static("amqp-partition-key"), "ada")
            .with(ShortString::from_static("x-death"), Value::Array(Vec::new()))
            .with(ShortString::from_static("x-attempt"), 41_u32),
        reply_to: Some(ShortString::from_static("replies")),
        priority: Some(10),
        user_id: Some(ShortString::from_static("guest")),
        ..Properties::default()
    };
    for outcome in [retry(None), defer(SECOND), Outcome::DeadLetter { reason: String::new() }] {
        let next = successor(decide(&plan, &job(), Some(&delivered), &outcome, 0));
        let properties = &next.message.properties;
        assert_eq!(properties.headers.get("amqp-partition-key").unwrap().as_str(), Some("ada"));
        assert_eq!(properties.headers.get("x-death"), None);
        assert_eq!(
            properties.headers.get("x-attempt"),
            Some(&Value::from(envelope(&next).attempt())),
            "the envelope is the truth"
        );
        assert_eq!(properties.reply_to.as_deref(), Some("replies"));
        assert_eq!(properties.user_id, None);
        assert_eq!(properties.message_id.as_deref(), Some(job().job_id().to_string().as_str()));
    }
}

#[test]
fn poison_is_moved_aside_byte_for_byte() {
    let plan = plan(&queue());
    let body = Bytes::from_static(b"\xff\xfe{");
    let delivered = Properties {
        content_type: Some(ShortString::from_static("text/plain")),
        expiration: Some(ShortString::from_static("1000")),
        ..Properties::default()
    };
    let dead = successor(aside(&plan, Some(&delivered), &body, "not JSON"));
    assert_eq!((dead.message.routing_key.as_str(), &dead.message.body), ("q.dead", &body));
    assert_eq!(reason(&dead), "not JSON");
    assert_eq!(dead.message.properties.headers.get("x-attempts"), Some(&Value::I64(0)));
    assert_eq!(dead.message.properties.content_type.as_deref(), Some("text/plain"));
    assert_eq!(dead.message.properties.expiration, None);
}

#[test]
fn a_successor_can_be_sent_into_a_larger_hold() {
    let plan = plan(&queue());
    let mut again = successor(decide(&plan, &job(), None, &retry(None), 0));
    again.aim_at_hold(plan.holds(), HoldTtl::from_millis(2_000).unwrap());
    assert_eq!(again.target, Target::Hold(HoldTtl::from_millis(2_000).unwrap()));
    assert_eq!(again.message.routing_key, "q.deferred.2000");
}

proptest! {
    #[test]
    fn no_successor_comes_back_before_its_wait_and_none_is_lost(
        delay in any::<Option<Duration>>(), attempts in 0..5_u32, deferrals in any::<bool>(), random in any::<u64>()
    ) {
        let plan = plan(&queue());
        let mut job = job();
        for _ in 0..attempts {
            job = job.next_attempt();
        }
        let outcome = if deferrals { defer(delay.unwrap_or_default()) } else { retry(delay) };
        let next = successor(decide(&plan, &job, None, &outcome, random));
        match next.target {
            Target::Work => prop_assert_eq!(delay, Some(Duration::ZERO)),
            Target::Hold(ttl) => prop_assert!(ttl.as_duration() >= delay.unwrap_or_default()),
            Target::Waiting => prop_assert!(false, "jobs have no waiting queue"),
            Target::Dead => prop_assert!(reason(&next).contains("failed") || reason(&next).contains("too long")
                || reason(&next).contains("longest")),
        }
        prop_assert_eq!(envelope(&next).job_id(), job.job_id());
    }
}
