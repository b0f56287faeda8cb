//! Facts that the ways to delay a message rest on: replicated holds and the waiting queue.

use std::time::Duration;

use leveret_core::delay::{ExactDelays, Granularity};
use leveret_core::topology::{
    Declaration, DelayPlan, HoldPlan, Mismatch, Queue, QueueName, Suffixes, WaitingQueuePlan,
};

use super::{
    Message, QueueDeclaration, ShortString, Table, Verdict, bare, everywhere, queue, unique_name, wait,
};

fn quorum(name: &str, arguments: &[(&'static str, i64)]) -> QueueDeclaration {
    let mut declaration = queue(name, arguments);
    declaration.arguments.insert(ShortString::from_static("x-queue-type"), "quorum");
    declaration
}

/// A message that a plan has addressed so that it waits for so long.
fn after(plan: &DelayPlan, delay: Duration, body: &'static str) -> Message {
    let mut message = bare("", body);
    plan.place(delay).expect("it can be kept").address(&mut message);
    message
}

#[test]
fn a_replicated_hold_releases_on_time_and_each_of_its_arguments_must_be_the_same() {
    everywhere(|client, place| {
        let name = QueueName::new(unique_name("fact")).expect("a good name");
        let holds = HoldPlan::new(name.clone(), Suffixes::DEFAULT, Granularity::default());
        let plan = DelayPlan::from(holds.replicated(ExactDelays::default()));
        client.declare(&quorum(name.as_str(), &[])).expect("it is new");
        let placement = plan.place(Duration::from_secs(1)).expect("it can be kept");
        let hold = plan.declare_before(&placement).expect("a hold");
        client.declare(&hold).expect("it is new");
        assert_eq!(client.declare(&hold), Ok(()), "a second time on {place}");
        let held = after(&plan, Duration::from_secs(1), "held");
        assert_eq!(client.publish(&held), Ok(Verdict::Ok), "{place}");
        wait(500);
        assert_eq!(client.ready(name.as_str()), Some(0), "early on {place}");
        wait(2_500);
        assert_eq!(client.take(name.as_str(), 1), ["held"], "{place}");

        for argument in ["x-dead-letter-strategy", "x-overflow", "x-message-ttl"] {
            let mut other = hold.clone();
            other.arguments.remove(argument);
            let refused = client.declare(&other).expect_err("it differs");
            let mismatch = Mismatch::from_reply_text(&refused.text).expect("the text is understood");
            assert_eq!((refused.code, &*mismatch.argument), (406, argument), "{place}");
        }
        client.delete(&hold.name);
        client.delete(name.as_str());
    });
}

#[test]
fn a_quorum_queue_takes_no_highest_priority_and_keeps_its_delivery_limit() {
    everywhere(|client, place| {
        let name = unique_name("fact");
        let refused = client.declare(&quorum(&name, &[("x-max-priority", 10)]));
        assert_eq!(refused.map_err(|reason| reason.code), Err(406), "{place}");
        let described = Queue::new(&name).expect("a good name").quorum().plan().expect("a good description");
        for declaration in described.declarations().collect::<Vec<_>>().into_iter().rev() {
            assert_eq!(client.declare(&declaration), Ok(()), "{} on {place}", declaration.name);
        }
        let limit = Queue::new(&name).expect("a good name").quorum().delivery_limit(7);
        let refused = client.declare(&limit.plan().expect("a good description").work());
        let refused = refused.map_err(|reason| (reason.code, reason.text.to_string()));
        assert!(
            matches!(&refused, Err((406, text)) if text.contains("x-delivery-limit")),
            "{refused:?} {place}"
        );
        client.delete(&name);
        client.delete(&described.dead_name());
    });
}

#[test]
fn a_waiting_queue_releases_a_short_wait_only_behind_the_long_one_in_front_of_it() {
    everywhere(|client, place| {
        let name = QueueName::new(unique_name("fact")).expect("a good name");
        client.declare(&QueueDeclaration::durable(name.as_short().clone(), Table::new())).expect("it is new");
        let step = Granularity::new(Duration::from_millis(100)).expect("in range");
        let plan = DelayPlan::from(WaitingQueuePlan::new(name.clone(), name.waiting(), step));
        for declaration in plan.declarations() {
            let Declaration::Queue(waiting) = declaration else { continue };
            client.declare(&waiting).expect("it is new");
        }
        for (millis, body) in [(1_500, "long"), (100, "short")] {
            let message = after(&plan, Duration::from_millis(millis), body);
            assert_eq!(client.publish(&message), Ok(Verdict::Ok), "{place}");
        }
        wait(700);
        assert_eq!(client.ready(name.as_str()), Some(0), "its time is over, and it is not the head: {place}");
        wait(1_500);
        assert_eq!(client.take(name.as_str(), 2), ["long", "short"], "{place}");
        client.delete(&name.waiting());
        client.delete(name.as_str());
    });
}
