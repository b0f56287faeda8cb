//! Quorum queues: the delivery limit, the lease, dead-lettering at least once.

use amq_protocol::types::AMQPValue;

use super::world::{World, dead_letter_to, int, text};
use crate::broker::{BrokerEvent, DeathReason};

fn quorum<const N: usize>(more: [(&'static str, AMQPValue); N]) -> Vec<(&'static str, AMQPValue)> {
    [("x-queue-type", text("quorum"))].into_iter().chain(more).collect()
}

#[test]
fn a_limit_of_n_allows_n_and_one_deliveries_and_then_buries_the_message() {
    let mut world = World::new();
    let mut peer = world.connect();
    let [exchange, key] = dead_letter_to("dead");
    world.make(&mut peer, "dead", &quorum([]));
    world.make(&mut peer, "q", &quorum([("x-delivery-limit", int(2)), exchange, key]));
    world.consume(&mut peer, "q", "c", 1);
    world.publish(&mut peer, "q", "poison");
    for deliveries in 0..3 {
        let [delivery] = &world.contents(&mut peer)[..] else { panic!("one delivery") };
        let headers = delivery.properties.headers().clone().unwrap_or_default();
        let count = headers.inner().get("x-delivery-count").and_then(AMQPValue::as_long_long_int);
        assert_eq!(count, (deliveries > 0).then_some(deliveries), "absent on the first delivery");
        let tag = delivery.tag();
        world.refuse(&mut peer, tag, true);
    }
    assert_eq!(world.waiting("q"), Some(vec![]));
    assert_eq!(world.waiting("dead"), Some(vec!["poison".to_owned()]));
    let died = |event: &BrokerEvent| {
        matches!(event, BrokerEvent::DeadLettered { reason: DeathReason::DeliveryLimit, queues: 1, .. })
    };
    assert!(world.events().iter().any(died));
}

#[test]
fn a_declaration_does_not_renew_the_lease_of_a_quorum_queue() {
    let mut world = World::new();
    let mut peer = world.connect();
    let lease = quorum([("x-expires", int(3_000))]);
    world.make(&mut peer, "q", &lease);
    world.pass_ms(2_000);
    world.make(&mut peer, "q", &lease);
    world.pass_ms(1_000);
    assert!(world.broker.queue("q").is_none());
}

#[test]
fn a_message_that_is_handed_over_at_least_once_waits_for_its_target() {
    let mut world = World::new();
    let mut peer = world.connect();
    let [exchange, key] = dead_letter_to("work");
    let strategy = ("x-dead-letter-strategy", text("at-least-once"));
    let ttl = ("x-message-ttl", int(1_000));
    let hold = quorum([
        exchange.clone(),
        key.clone(),
        strategy,
        ("x-overflow", text("reject-publish")),
        ttl.clone(),
    ]);
    world.make(&mut peer, "held", &hold);
    // Without `reject-publish` the strategy is at most once, and nobody says so.
    let once = quorum([exchange, key, ("x-dead-letter-strategy", text("at-least-once")), ttl]);
    world.make(&mut peer, "once", &once);
    world.publish(&mut peer, "held", "kept");
    world.publish(&mut peer, "once", "lost");
    world.pass_ms(5_000);
    world.make(&mut peer, "work", &quorum([]));
    assert_eq!(world.waiting("work"), Some(vec!["kept".to_owned()]));
}

#[test]
fn what_quorum_queues_do_not_have_is_refused() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.declare(&mut peer, "q", &quorum([("x-max-priority", int(10))]));
    let (code, why) = world.channel_error(&mut peer);
    assert_eq!(code, 406);
    assert!(why.contains("'x-max-priority'") && why.contains("rabbit_quorum_queue"), "{why}");
}
