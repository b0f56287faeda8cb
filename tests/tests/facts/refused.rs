//! What `Topology::check` refuses, the broker refuses too, or takes without a word for something else.

use std::time::Duration;

use leveret_core::table::Value;
use leveret_core::text::ShortString;
use leveret_core::topology::{DeadLetter, PlainQueue, QueueName, Severity, Topology};
use leveret_testkit::rabbitmq::unique_name;

use super::everywhere;

/// What a description says of a queue.
type Says = fn(PlainQueue) -> PlainQueue;

/// A queue that dead-letters into itself, which nobody refuses to declare.
fn dead_letters(queue: PlainQueue) -> PlainQueue {
    let target = queue.name().cloned().unwrap_or_else(|| QueueName::new("q").expect("a good name"));
    queue.dead_letter(DeadLetter::to_queue(&target))
}

fn argument(queue: PlainQueue, name: &'static str, value: impl Into<Value>) -> PlainQueue {
    queue.argument(ShortString::from_static(name), value)
}

/// Whether a check of the queue alone refuses it.
fn is_refused(queue: &PlainQueue) -> bool {
    let found = Topology::new().queue(queue).check();
    found.iter().any(|finding| finding.severity() == Severity::Refused)
}

#[test]
fn what_a_check_refuses_the_broker_refuses_too_and_the_near_miss_is_fine_with_both() {
    let pairs: [(&str, Says, Says); 7] = [
        ("x-max-priority on quorum", |q| q.quorum().max_priority(5), |q| q.max_priority(5)),
        ("x-delivery-limit on classic", |q| q.delivery_limit(5), |q| q.quorum().delivery_limit(5)),
        (
            "x-dead-letter-strategy on classic",
            |q| argument(dead_letters(q), "x-dead-letter-strategy", "at-most-once"),
            |q| argument(dead_letters(q).quorum(), "x-dead-letter-strategy", "at-most-once"),
        ),
        (
            "x-max-priority",
            |q| argument(q, "x-max-priority", 256_i64),
            |q| argument(q, "x-max-priority", 255_i64),
        ),
        ("x-expires", |q| q.expires(Duration::ZERO), |q| q.expires(Duration::from_secs(60))),
        ("x-message-ttl", |q| argument(q, "x-message-ttl", -1_i64), |q| q.message_ttl(Duration::ZERO)),
        ("x-dead-letter-routing-key", |q| argument(q, "x-dead-letter-routing-key", "dead"), dead_letters),
    ];
    everywhere(|client, place| {
        for (what, refused, fine) in pairs {
            let name = unique_name("fact");
            let described = |says: Says| says(PlainQueue::new(&name).expect("a good name"));
            let answer = client.declare(&described(refused).declaration());
            assert_eq!(answer.map_err(|reason| reason.code), Err(406), "{what} on {place}");
            assert!(is_refused(&described(refused)), "{what}");
            assert_eq!(client.declare(&described(fine).declaration()), Ok(()), "{what} on {place}");
            assert!(!is_refused(&described(fine)), "{what}");
            client.delete(&name);
        }
    });
}

/// So a check is the only one that says it.
#[test]
fn at_least_once_that_would_be_at_most_once_is_taken_without_a_word() {
    everywhere(|client, place| {
        let name = unique_name("fact");
        let queue = dead_letters(PlainQueue::new(&name).expect("a good name").quorum());
        let queue = argument(queue, "x-dead-letter-strategy", "at-least-once");
        assert_eq!(client.declare(&queue.declaration()), Ok(()), "{place}");
        assert!(is_refused(&queue));
        client.delete(&name);
    });
}
