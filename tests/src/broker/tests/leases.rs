//! The lease of a queue with `x-expires`, as it was measured on RabbitMQ 3.10 and 4.0.

use amq_protocol::protocol::{basic, queue};
use amq_protocol::types::AMQPValue;

use super::world::{World, dead_letter_to, declaration, int};
use crate::broker::{BrokerEvent, DeleteCause};

fn lease(ms: i64) -> [(&'static str, AMQPValue); 1] {
    [("x-expires", int(ms))]
}

#[test]
fn a_publish_does_not_renew_the_lease() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &lease(3000));
    for _ in 0..5 {
        world.publish(&mut peer, "q", "job");
        world.pass_ms(500);
    }
    assert!(world.broker.queue("q").is_some());
    world.pass_ms(499);
    assert!(world.broker.queue("q").is_some());
    world.pass_ms(1);
    assert!(world.broker.queue("q").is_none());
}

#[test]
fn a_declaration_renews_the_lease_also_a_passive_one() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &lease(3000));
    for passive in [false, true] {
        world.pass_ms(2999);
        world.queue(
            &mut peer,
            queue::AMQPMethod::Declare(queue::Declare { passive, ..declaration("q", &lease(3000)) }),
        );
    }
    world.pass_ms(2999);
    assert!(world.broker.queue("q").is_some());
}

#[test]
fn a_declaration_without_an_answer_does_not_renew_the_lease() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &lease(3000));
    world.pass_ms(2000);
    let declare = queue::Declare { nowait: true, ..declaration("q", &lease(3000)) };
    world.queue(&mut peer, queue::AMQPMethod::Declare(declare));
    world.pass_ms(1000);
    assert!(world.broker.queue("q").is_none());
}

#[test]
fn reading_one_message_renews_the_lease() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &lease(3000));
    world.pass_ms(2000);
    world.basic(&mut peer, basic::AMQPMethod::Get(basic::Get { queue: "q".into(), no_ack: true }));
    world.pass_ms(2999);
    assert!(world.broker.queue("q").is_some());
}

#[test]
fn consumers_keep_a_queue_alive_and_the_lease_starts_when_the_last_one_leaves() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &lease(3000));
    world.consume(&mut peer, "q", "c", 1);
    world.pass_ms(60_000);
    let cancel = basic::Cancel { consumer_tag: "c".into(), nowait: true };
    world.basic(&mut peer, basic::AMQPMethod::Cancel(cancel));
    world.pass_ms(2999);
    assert!(world.broker.queue("q").is_some());
    world.pass_ms(1);
    assert!(world.broker.queue("q").is_none());
}

#[test]
fn a_queue_that_expires_drops_its_messages_although_it_has_a_dead_letter_target() {
    let mut world = World::new();
    let mut peer = world.connect_publisher();
    world.make(&mut peer, "work", &[]);
    let [exchange, key] = dead_letter_to("work");
    world.make(&mut peer, "hold", &[exchange, key, ("x-expires", int(1000))]);
    world.publish(&mut peer, "hold", "job");
    world.events();
    world.pass_ms(1000);
    assert_eq!(world.waiting("hold"), None);
    assert_eq!(world.waiting("work"), Some(vec![]));
    let gone = BrokerEvent::QueueDeleted {
        queue: leveret_core::text::ShortString::from_static("hold"),
        cause: DeleteCause::Expired,
        messages: 1,
    };
    assert_eq!(world.events(), [gone]);
}

/// A hold with a TTL of 1 s and a lease of 2 s, declared at 0, that gets its message at 1.5 s.
fn hold_with_a_late_message() -> (World, super::world::Peer, [(&'static str, AMQPValue); 4]) {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "work", &[]);
    let [exchange, key] = dead_letter_to("work");
    let hold = [exchange, key, ("x-message-ttl", int(1000)), ("x-expires", int(2000))];
    world.make(&mut peer, "hold", &hold);
    world.pass_ms(1500);
    world.publish(&mut peer, "hold", "job");
    (world, peer, hold)
}

#[test]
fn a_declaration_before_the_lease_ends_saves_a_message_that_came_late() {
    let (mut world, mut peer, hold) = hold_with_a_late_message();
    world.pass_ms(300);
    world.make(&mut peer, "hold", &hold);
    world.pass_ms(700);
    assert_eq!(world.waiting("work"), Some(vec!["job".to_owned()]));
}

#[test]
fn a_declaration_after_the_lease_ended_makes_a_new_empty_queue() {
    let (mut world, mut peer, hold) = hold_with_a_late_message();
    world.pass_ms(700);
    world.make(&mut peer, "hold", &hold);
    assert_eq!(world.waiting("hold"), Some(vec![]));
    world.pass_ms(5000);
    assert_eq!(world.waiting("work"), Some(vec![]));
}
