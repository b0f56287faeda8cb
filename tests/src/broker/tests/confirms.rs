//! Confirms, returns and refused publishes.

use std::time::Duration;

use amq_protocol::protocol::{AMQPClass, BasicProperties, basic, channel};

use super::world::{Peer, World, int, publish_bytes, text};
use crate::broker::{BrokerConfig, ConfirmStyle};

/// What a publisher is told.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Ack(u64),
    AckUpTo(u64),
    Nack(u64),
    Returned,
    ChannelClosed(u16),
}

fn told(world: &mut World, peer: &mut Peer) -> Vec<Told> {
    let tell = |(_, method)| match method {
        AMQPClass::Basic(basic::AMQPMethod::Ack(ack)) if ack.multiple => {
            Some(Told::AckUpTo(ack.delivery_tag))
        }
        AMQPClass::Basic(basic::AMQPMethod::Ack(ack)) => Some(Told::Ack(ack.delivery_tag)),
        AMQPClass::Basic(basic::AMQPMethod::Nack(nack)) => Some(Told::Nack(nack.delivery_tag)),
        AMQPClass::Basic(basic::AMQPMethod::Return(_)) => Some(Told::Returned),
        AMQPClass::Channel(channel::AMQPMethod::Close(close)) => Some(Told::ChannelClosed(close.reply_code)),
        _ => None,
    };
    world.methods(peer).into_iter().filter_map(tell).collect()
}

fn publisher(style: ConfirmStyle) -> (World, Peer) {
    let mut world = World::with(BrokerConfig::default().confirms(style));
    let mut peer = world.connect_publisher();
    world.make(&mut peer, "q", &[]);
    (world, peer)
}

fn mandatory(queue: &str) -> Vec<u8> {
    publish_bytes("", queue, true, BasicProperties::default(), b"job")
}

#[test]
fn one_by_one_each_publish_is_acknowledged_before_the_next_is_read() {
    let (mut world, mut peer) = publisher(ConfirmStyle::Immediate);
    world.write(&mut peer, &[mandatory("q"), mandatory("missing"), mandatory("q")].concat());
    assert_eq!(told(&mut world, &mut peer), [Told::Ack(1), Told::Returned, Told::Ack(2), Told::Ack(3)]);
}

#[test]
fn a_burst_is_acknowledged_together_and_returns_come_before_it() {
    let (mut world, mut peer) = publisher(ConfirmStyle::default());
    world.write(&mut peer, &[mandatory("q"), mandatory("missing"), mandatory("q")].concat());
    assert_eq!(told(&mut world, &mut peer), [Told::Returned, Told::AckUpTo(3)]);
    world.write(&mut peer, &mandatory("q"));
    assert_eq!(told(&mut world, &mut peer), [Told::Ack(4)]);
}

#[test]
fn a_return_names_the_cause_and_brings_the_message_back() {
    let (mut world, mut peer) = publisher(ConfirmStyle::default());
    let properties = BasicProperties::default().with_message_id("m1".into());
    world.write(&mut peer, &publish_bytes("", "missing", true, properties.clone(), b"job"));
    let [returned] = &world.contents(&mut peer)[..] else { panic!("one return") };
    let basic::AMQPMethod::Return(method) = &returned.method else { panic!("{returned:?}") };
    assert_eq!((method.reply_code, method.reply_text.as_str()), (312, "NO_ROUTE"));
    assert_eq!((method.exchange.as_str(), method.routing_key.as_str()), ("", "missing"));
    assert_eq!((&returned.properties, returned.text()), (&properties, "job"));
}

#[test]
fn what_is_not_mandatory_and_not_routed_is_acknowledged_and_gone() {
    let (mut world, mut peer) = publisher(ConfirmStyle::default());
    world.publish(&mut peer, "missing", "job");
    assert_eq!(told(&mut world, &mut peer), [Told::Ack(1)]);
}

#[test]
fn the_refused_of_a_batch_come_after_its_acknowledgements() {
    let (mut world, mut peer) = publisher(ConfirmStyle::Withheld);
    world.make(&mut peer, "full", &[("x-max-length", int(1)), ("x-overflow", text("reject-publish"))]);
    for queue in ["full", "q", "full", "q", "full"] {
        world.publish(&mut peer, queue, "job");
    }
    world.pass(Duration::from_secs(60));
    assert_eq!(told(&mut world, &mut peer), []);
    world.broker.release_confirms(world.now);
    let expected = [Told::AckUpTo(2), Told::Ack(4), Told::Nack(3), Told::Nack(5)];
    assert_eq!(told(&mut world, &mut peer), expected);
}

#[test]
fn a_batch_waits_for_its_time() {
    let (mut world, mut peer) = publisher(ConfirmStyle::Batched { delay: Duration::from_millis(20) });
    world.publish(&mut peer, "q", "1");
    world.pass_ms(19);
    world.publish(&mut peer, "q", "2");
    assert_eq!(told(&mut world, &mut peer), []);
    world.pass_ms(1);
    assert_eq!(told(&mut world, &mut peer), [Told::AckUpTo(2)]);
}

#[test]
fn acknowledgements_can_overtake_one_another_between_a_return_and_its_own() {
    let style = ConfirmStyle::OutOfOrder { delay: Duration::from_millis(5) };
    let (mut world, mut peer) = publisher(style);
    let burst: Vec<u8> = (0..20).flat_map(|_| [mandatory("q"), mandatory("missing")].concat()).collect();
    world.write(&mut peer, &burst);
    world.pass_ms(5);
    let told = told(&mut world, &mut peer);
    let (returns, acks) = told.split_at(20);
    assert!(returns.iter().all(|told| *told == Told::Returned));
    let tags: Vec<u64> = acks
        .iter()
        .map(|told| match told {
            Told::Ack(tag) | Told::AckUpTo(tag) => *tag,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(!tags.is_sorted(), "{tags:?}");
}

#[test]
fn after_a_refused_declaration_nothing_later_on_the_channel_is_done() {
    let (mut world, mut peer) = publisher(ConfirmStyle::default());
    let declare = super::world::declaration("q", &[("x-message-ttl", int(1))]);
    let method = AMQPClass::Queue(amq_protocol::protocol::queue::AMQPMethod::Declare(declare));
    let mut burst = mandatory("q");
    burst.extend(super::world::encoded(&amq_protocol::frame::AMQPFrame::Method(1, method)));
    burst.extend(mandatory("q"));
    world.write(&mut peer, &burst);
    // The earlier one is done, and not confirmed before the channel ends.
    assert_eq!(told(&mut world, &mut peer), [Told::ChannelClosed(406)]);
    assert_eq!(world.broker.queue("q").unwrap().ready, 1);
}

#[test]
fn a_publish_to_a_missing_exchange_closes_the_channel() {
    let (mut world, mut peer) = publisher(ConfirmStyle::default());
    world.write(&mut peer, &publish_bytes("nope", "q", true, BasicProperties::default(), b"job"));
    let expected = (404, "NOT_FOUND - no exchange 'nope' in vhost '/'".to_owned());
    assert_eq!(world.channel_error(&mut peer), expected);
}

#[test]
fn a_message_that_is_too_large_is_refused_by_the_size_that_its_header_says() {
    let mut world = World::with(BrokerConfig::default().max_message_bytes(2));
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[]);
    world.publish(&mut peer, "q", "ok");
    world.publish(&mut peer, "q", "not");
    let (code, text) = world.channel_error(&mut peer);
    assert_eq!(code, 406);
    assert_eq!(text, "PRECONDITION_FAILED - message size 3 is larger than configured max size 2");
    assert_eq!(world.broker.queue("q").unwrap().ready, 1);
}

#[test]
fn a_user_id_must_be_the_publishers_own() {
    let (mut world, mut peer) = publisher(ConfirmStyle::default());
    let own = BasicProperties::default().with_user_id("guest".into());
    world.publish_with(&mut peer, "q", own, "job");
    assert_eq!(told(&mut world, &mut peer), [Told::Ack(1)]);
    world.publish_with(&mut peer, "q", BasicProperties::default().with_user_id("root".into()), "job");
    assert_eq!(world.channel_error(&mut peer).0, 406);
}
