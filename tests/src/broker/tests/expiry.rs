//! Messages whose time is over.

use amq_protocol::protocol::BasicProperties;
use proptest::prelude::*;

use super::world::{World, dead_letter_to, int};

fn expiring(ms: &str) -> BasicProperties {
    BasicProperties::default().with_expiration(ms.into())
}

fn prioritised(priority: u8, ms: &str) -> BasicProperties {
    expiring(ms).with_priority(priority)
}

#[test]
fn a_message_is_released_when_its_time_is_over_and_not_before() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "work", &[]);
    let [exchange, key] = dead_letter_to("work");
    world.make(&mut peer, "hold", &[exchange, key, ("x-message-ttl", int(1000))]);
    world.publish(&mut peer, "hold", "job");
    world.pass_ms(999);
    assert_eq!(world.waiting("work"), Some(vec![]));
    world.pass_ms(1);
    assert_eq!(world.waiting("work"), Some(vec!["job".to_owned()]));
}

#[test]
fn a_short_time_waits_behind_a_long_one() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "work", &[]);
    world.make(&mut peer, "waiting", &dead_letter_to("work"));
    world.publish_with(&mut peer, "waiting", expiring("10000"), "long");
    world.publish_with(&mut peer, "waiting", expiring("1000"), "short");
    world.pass_ms(9999);
    assert_eq!(world.waiting("work"), Some(vec![]));
    world.pass_ms(1);
    assert_eq!(world.waiting("work"), Some(vec!["long".to_owned(), "short".to_owned()]));
}

#[test]
fn a_low_priority_waits_behind_a_high_one_that_lasts_longer() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[("x-max-priority", int(10))]);
    world.publish_with(&mut peer, "q", prioritised(0, "1000"), "low");
    world.publish_with(&mut peer, "q", prioritised(5, "5000"), "high");
    world.pass_ms(4999);
    assert_eq!(world.broker.queue("q").unwrap().ready, 2);
    world.pass_ms(1);
    assert_eq!(world.broker.queue("q").unwrap().ready, 0);
}

#[test]
fn the_shorter_of_queue_and_message_time_counts() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[("x-message-ttl", int(2000))]);
    world.publish_with(&mut peer, "q", expiring("500"), "own time");
    world.publish_with(&mut peer, "q", expiring("9000"), "the queue's time");
    world.pass_ms(500);
    assert_eq!(world.waiting("q"), Some(vec!["the queue's time".to_owned()]));
    world.pass_ms(1500);
    assert_eq!(world.waiting("q"), Some(vec![]));
}

#[test]
fn no_time_at_all_means_to_a_consumer_at_once_or_never() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[]);
    world.publish_with(&mut peer, "q", expiring("0"), "nobody is there");
    assert_eq!(world.waiting("q"), Some(vec![]));
    world.consume(&mut peer, "q", "c", 1);
    world.publish_with(&mut peer, "q", expiring("0"), "somebody is there");
    assert_eq!(world.bodies(&mut peer), ["somebody is there"]);
    world.publish_with(&mut peer, "q", expiring("0"), "somebody is busy");
    assert_eq!(world.waiting("q"), Some(vec![]));
}

#[test]
fn a_jump_of_hours_gives_what_waiting_would_have_given() {
    let mut world = World::new();
    let mut peer = world.connect();
    // Two holds in a row, and a work queue whose lease starts only when it is used.
    world.make(&mut peer, "work", &[]);
    let [exchange, key] = dead_letter_to("work");
    world.make(&mut peer, "second", &[exchange, key, ("x-message-ttl", int(1000)), ("x-expires", int(4000))]);
    let [exchange, key] = dead_letter_to("second");
    world.make(&mut peer, "first", &[exchange, key, ("x-message-ttl", int(1000)), ("x-expires", int(2000))]);
    world.publish(&mut peer, "first", "job");
    world.now += std::time::Duration::from_secs(3600);
    world.broker.handle_timeout(world.now);
    assert_eq!(world.waiting("work"), Some(vec!["job".to_owned()]));
    assert!(world.broker.queue("first").is_none() && world.broker.queue("second").is_none());
}

#[test]
fn an_expiration_that_is_no_number_of_milliseconds_closes_the_channel() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[("x-message-ttl", int(60_000))]);
    for wrong in ["-1", "", "1.5", "abc", "100000000000000"] {
        world.publish_with(&mut peer, "q", expiring(wrong), "job");
        let (code, text) = world.channel_error(&mut peer);
        assert_eq!(code, 406);
        let start = format!("PRECONDITION_FAILED - invalid expiration '{wrong}'");
        assert!(text.starts_with(&start), "{text}");
    }
    world.publish_with(&mut peer, "q", expiring("4294967296"), "more than 32 bits is fine");
    assert_eq!(world.broker.queue("q").unwrap().ready, 1);
}

proptest! {
    /// Whatever the times, no message leaves a queue early, and the head never stays too long.
    #[test]
    fn nothing_leaves_early_and_no_head_stays_late(
        times in prop::collection::vec(0_u64..50, 1..20),
        steps in prop::collection::vec(1_u64..20, 1..20),
    ) {
        let mut world = World::new();
        let mut peer = world.connect();
        world.make(&mut peer, "work", &[]);
        world.make(&mut peer, "waiting", &dead_letter_to("work"));
        for (n, ms) in times.iter().enumerate() {
            world.publish_with(&mut peer, "waiting", expiring(&ms.to_string()), &n.to_string());
        }
        let mut passed = 0;
        for step in steps {
            world.pass_ms(step);
            passed += step;
            // First in, first out: a message is released when all before it have been.
            let released = times.iter().take_while(|ms| **ms <= passed).count();
            prop_assert_eq!(world.broker.queue("work").unwrap().ready, released);
        }
    }
}
