//! Who gets which message, when, and what happens to it when it comes back.

use amq_protocol::frame::AMQPFrame;
use amq_protocol::protocol::{AMQPClass, BasicProperties, basic, channel};
use amq_protocol::types::FieldTable;

use super::world::{Content, Handshake, Peer, World, int, publish_bytes};
use crate::broker::BrokerConfig;

fn consumer(world: &mut World, queue: &str, prefetch: u16) -> Peer {
    let mut peer = world.connect();
    world.consume(&mut peer, queue, "c", prefetch);
    peer
}

fn world_with_queue(bodies: &[&str]) -> (World, Peer) {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[]);
    for body in bodies {
        world.publish(&mut peer, "q", body);
    }
    (world, peer)
}

fn nack(tag: u64, multiple: bool) -> basic::AMQPMethod {
    basic::AMQPMethod::Nack(basic::Nack { delivery_tag: tag, multiple, requeue: true })
}

fn ack_up_to(tag: u64) -> basic::AMQPMethod {
    basic::AMQPMethod::Ack(basic::Ack { delivery_tag: tag, multiple: true })
}

fn summary(contents: &[Content]) -> Vec<(u64, &str, bool)> {
    contents.iter().map(|content| (content.tag(), content.text(), content.redelivered())).collect()
}

#[test]
fn a_consumer_holds_no_more_than_its_prefetch() {
    let (mut world, _) = world_with_queue(&["1", "2", "3", "4"]);
    let mut peer = consumer(&mut world, "q", 2);
    assert_eq!(world.bodies(&mut peer), ["1", "2"]);
    world.ack(&mut peer, 1);
    assert_eq!(world.bodies(&mut peer), ["3"]);
    let view = world.broker.queue("q").unwrap();
    assert_eq!((view.ready, view.unacked, view.consumers), (1, 2, 1));
}

#[test]
fn the_prefetch_of_a_consumer_is_the_one_it_was_started_with() {
    let (mut world, _) = world_with_queue(&["1", "2", "3"]);
    let mut peer = consumer(&mut world, "q", 1);
    let qos = basic::Qos { prefetch_count: 0, global: false };
    world.basic(&mut peer, basic::AMQPMethod::Qos(qos));
    assert_eq!(world.bodies(&mut peer), ["1"]);
}

#[test]
fn consumers_take_turns() {
    let (mut world, mut publisher) = world_with_queue(&[]);
    let mut one = consumer(&mut world, "q", 0);
    let mut two = consumer(&mut world, "q", 0);
    for body in ["1", "2", "3", "4"] {
        world.publish(&mut publisher, "q", body);
    }
    assert_eq!(world.bodies(&mut one), ["1", "3"]);
    assert_eq!(world.bodies(&mut two), ["2", "4"]);
}

#[test]
fn a_busy_consumer_is_passed_over() {
    let (mut world, mut publisher) = world_with_queue(&[]);
    let mut busy = consumer(&mut world, "q", 1);
    let mut idle = consumer(&mut world, "q", 0);
    for body in ["1", "2", "3", "4"] {
        world.publish(&mut publisher, "q", body);
    }
    assert_eq!(world.bodies(&mut busy), ["1"]);
    assert_eq!(world.bodies(&mut idle), ["2", "3", "4"]);
}

#[test]
fn a_message_that_is_handed_back_stands_where_it_stood_and_is_marked() {
    let (mut world, _) = world_with_queue(&["1", "2", "3"]);
    let mut peer = consumer(&mut world, "q", 2);
    assert_eq!(summary(&world.contents(&mut peer)), [(1, "1", false), (2, "2", false)]);
    world.basic(&mut peer, nack(2, true));
    assert_eq!(summary(&world.contents(&mut peer)), [(3, "1", true), (4, "2", true)]);
}

#[test]
fn what_a_lost_connection_held_is_delivered_again() {
    let (mut world, _) = world_with_queue(&["1", "2", "3"]);
    let mut lost = consumer(&mut world, "q", 2);
    world.contents(&mut lost);
    world.ack(&mut lost, 1);
    world.broker.handle_eof(world.now, lost.conn);
    let mut next = consumer(&mut world, "q", 0);
    assert_eq!(summary(&world.contents(&mut next)), [(1, "2", true), (2, "3", true)]);
}

#[test]
fn deliveries_that_never_left_the_broker_come_back_after_a_cut_too() {
    let (mut world, _) = world_with_queue(&["1"]);
    let mut lost = consumer(&mut world, "q", 1);
    world.broker.cut(world.now, lost.conn);
    assert!(world.frames(&mut lost).is_empty());
    assert!(world.is_closed(&lost));
    let mut next = consumer(&mut world, "q", 0);
    assert_eq!(summary(&world.contents(&mut next)), [(1, "1", true)]);
}

#[test]
fn closing_a_channel_gives_its_messages_back() {
    let (mut world, _) = world_with_queue(&["1"]);
    let mut peer = consumer(&mut world, "q", 1);
    let close = channel::Close { reply_code: 200, reply_text: "".into(), class_id: 0, method_id: 0 };
    world.send(&mut peer, 1, AMQPClass::Channel(channel::AMQPMethod::Close(close)));
    let view = world.broker.queue("q").unwrap();
    assert_eq!((view.ready, view.unacked, view.consumers), (1, 0, 0));
    assert!(view.messages[0].redelivered);
}

#[test]
fn recover_hands_everything_back() {
    let (mut world, _) = world_with_queue(&["1", "2"]);
    let mut peer = consumer(&mut world, "q", 2);
    world.contents(&mut peer);
    world.basic(&mut peer, basic::AMQPMethod::Recover(basic::Recover { requeue: true }));
    let bodies = world.bodies(&mut peer);
    assert_eq!(bodies, ["1", "2"]);
}

#[test]
fn a_tag_that_is_not_outstanding_closes_the_channel() {
    for wrong in [
        basic::AMQPMethod::Ack(basic::Ack { delivery_tag: 1, multiple: false }),
        basic::AMQPMethod::Reject(basic::Reject { delivery_tag: 99, requeue: true }),
        ack_up_to(1),
    ] {
        let (mut world, _) = world_with_queue(&["1", "2"]);
        let mut peer = consumer(&mut world, "q", 2);
        world.contents(&mut peer);
        world.ack(&mut peer, 1);
        world.basic(&mut peer, wrong);
        let (code, text) = world.channel_error(&mut peer);
        assert_eq!(code, 406);
        assert!(text.starts_with("PRECONDITION_FAILED - unknown delivery tag"), "{text}");
    }
}

#[test]
fn multiple_needs_its_own_tag_also_where_lower_ones_are_outstanding() {
    let (mut world, _) = world_with_queue(&["1", "2", "3"]);
    let mut peer = consumer(&mut world, "q", 0);
    world.contents(&mut peer);
    world.ack(&mut peer, 2);
    world.basic(&mut peer, ack_up_to(2));
    assert_eq!(world.channel_error(&mut peer).0, 406);
    // The messages went back and one consumer less is there.
    assert_eq!(world.waiting("q"), Some(vec!["1".to_owned(), "3".to_owned()]));
}

#[test]
fn multiple_covers_all_lower_tags_and_zero_means_all() {
    let (mut world, _) = world_with_queue(&["1", "2", "3", "4"]);
    let mut peer = consumer(&mut world, "q", 0);
    world.contents(&mut peer);
    world.basic(&mut peer, ack_up_to(3));
    assert_eq!(world.broker.queue("q").unwrap().unacked, 1);
    world.basic(&mut peer, ack_up_to(0));
    assert_eq!(world.broker.queue("q").unwrap().unacked, 0);
}

#[test]
fn higher_priorities_go_first_and_what_is_too_high_is_the_highest() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[("x-max-priority", int(5))]);
    for (body, priority) in [("none", None), ("two", Some(2)), ("five", Some(5)), ("nine", Some(9))] {
        let properties =
            priority.map_or_else(BasicProperties::default, |it| BasicProperties::default().with_priority(it));
        world.publish_with(&mut peer, "q", properties, body);
    }
    world.consume(&mut peer, "q", "c", 0);
    assert_eq!(world.bodies(&mut peer), ["five", "nine", "two", "none"]);
}

#[test]
fn a_queue_without_priorities_keeps_the_order_of_arrival() {
    let (mut world, mut peer) = world_with_queue(&["1"]);
    world.publish_with(&mut peer, "q", BasicProperties::default().with_priority(9), "2");
    world.consume(&mut peer, "q", "c", 0);
    assert_eq!(world.bodies(&mut peer), ["1", "2"]);
}

#[test]
fn a_body_is_split_into_the_frames_that_the_client_agreed_to() {
    let mut world = World::new();
    let mut peer = world.accept();
    world.handshake(&mut peer, &Handshake { frame_max: 4096, ..Handshake::default() });
    world.frames(&mut peer);
    world.open_channel(&mut peer, 1);
    world.make(&mut peer, "q", &[]);
    let body = "x".repeat(10_000);
    let mut publisher = world.connect();
    world.publish(&mut publisher, "q", &body);
    world.consume(&mut peer, "q", "c", 0);
    let parts: Vec<usize> = world
        .frames(&mut peer)
        .into_iter()
        .filter_map(|frame| if let AMQPFrame::Body(_, part) = frame { Some(part.len()) } else { None })
        .collect();
    assert_eq!(parts, [4088, 4088, 1824]);
}

#[test]
fn an_empty_body_has_a_header_and_no_body_frame() {
    let (mut world, mut peer) = world_with_queue(&[""]);
    world.consume(&mut peer, "q", "c", 0);
    let kinds: Vec<bool> =
        world.frames(&mut peer).iter().map(|frame| matches!(frame, AMQPFrame::Body(..))).collect();
    assert_eq!(kinds.iter().filter(|is_body| **is_body).count(), 0);
    assert_eq!(world.broker.queue("q").unwrap().unacked, 1);
}

#[test]
fn a_client_that_does_not_read_is_not_sent_more_than_the_high_water_mark() {
    let mut world = World::with(BrokerConfig::default().outgoing_high_water(1000));
    let mut publisher = world.connect();
    world.make(&mut publisher, "q", &[]);
    for n in 0..100 {
        world.publish(&mut publisher, "q", &format!("{n:0>100}"));
    }
    let mut slow = consumer(&mut world, "q", 0);
    let before = world.broker.queue("q").unwrap().unacked;
    assert!((1..20).contains(&before), "{before} of 100 were sent");
    assert!(!world.broker.wants_read(slow.conn));
    // It does not stop others, and goes on when it reads.
    world.publish(&mut publisher, "q", "last");
    let bodies = world.bodies(&mut slow);
    assert_eq!(bodies.len(), 101);
    assert_eq!(bodies.last().map(String::as_str), Some("last"));
    assert!(world.broker.wants_read(slow.conn));
}

#[test]
fn a_consumer_whose_queue_is_deleted_is_told() {
    let (mut world, _) = world_with_queue(&["1"]);
    let mut peer = consumer(&mut world, "q", 0);
    world.contents(&mut peer);
    assert!(world.broker.delete_queue(world.now, "q"));
    let [(1, AMQPClass::Basic(basic::AMQPMethod::Cancel(cancel)))] = &world.methods(&mut peer)[..] else {
        panic!("no cancel");
    };
    assert_eq!(cancel.consumer_tag.as_str(), "c");
    // Its delivery is still its own to settle, although it is nobody's any more.
    world.ack(&mut peer, 1);
    assert!(world.frames(&mut peer).is_empty());
}

#[test]
fn a_cancelled_consumer_keeps_its_deliveries_and_gets_no_more() {
    let (mut world, mut publisher) = world_with_queue(&["1"]);
    let mut peer = consumer(&mut world, "q", 0);
    assert!(world.broker.cancel_consumer(world.now, "q"));
    world.publish(&mut publisher, "q", "2");
    assert_eq!(world.bodies(&mut peer), ["1"]);
    assert_eq!(world.broker.queue("q").unwrap().unacked, 1);
    world.ack(&mut peer, 1);
    assert_eq!(world.broker.queue("q").unwrap().unacked, 0);
}

#[test]
fn a_message_acknowledged_to_a_later_queue_of_that_name_does_no_harm() {
    let (mut world, mut publisher) = world_with_queue(&["old"]);
    let mut peer = consumer(&mut world, "q", 0);
    world.contents(&mut peer);
    world.broker.delete_queue(world.now, "q");
    world.make(&mut publisher, "q", &[]);
    world.publish(&mut publisher, "q", "new");
    world.refuse(&mut peer, 1, true);
    assert_eq!(world.waiting("q"), Some(vec!["new".to_owned()]));
}

#[test]
fn one_message_can_be_fetched_and_no_message_is_an_answer_too() {
    let (mut world, mut peer) = world_with_queue(&["1", "2"]);
    let get = || basic::AMQPMethod::Get(basic::Get { queue: "q".into(), no_ack: false });
    world.basic(&mut peer, get());
    let [got] = &world.contents(&mut peer)[..] else { panic!("one message") };
    let basic::AMQPMethod::GetOk(ok) = &got.method else { panic!("{got:?}") };
    assert_eq!((ok.delivery_tag, ok.message_count, got.text()), (1, 1, "1"));
    world.ack(&mut peer, 1);
    world.basic(&mut peer, get());
    world.contents(&mut peer);
    world.basic(&mut peer, get());
    assert!(matches!(world.methods(&mut peer)[..], [(1, AMQPClass::Basic(basic::AMQPMethod::GetEmpty(_)))]));
}

#[test]
fn an_exclusive_consumer_is_alone() {
    let (mut world, mut peer) = world_with_queue(&[]);
    let consume = |exclusive, tag: &str| {
        basic::AMQPMethod::Consume(basic::Consume {
            queue: "q".into(),
            consumer_tag: tag.into(),
            no_local: false,
            no_ack: true,
            exclusive,
            nowait: true,
            arguments: FieldTable::default(),
        })
    };
    world.basic(&mut peer, consume(true, "a"));
    world.basic(&mut peer, consume(false, "b"));
    let expected = (403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use".to_owned());
    assert_eq!(world.channel_error(&mut peer), expected);
    world.basic(&mut peer, consume(false, "a"));
    world.basic(&mut peer, consume(false, "a"));
    let expected = (530, "NOT_ALLOWED - attempt to reuse consumer tag 'a'".to_owned());
    assert_eq!(world.connection_error(&mut peer), expected);
}

#[test]
fn one_message_in_several_queues_is_settled_in_each_by_itself() {
    let (mut world, mut peer) = world_with_queue(&[]);
    world.make(&mut peer, "r", &[]);
    for queue in ["q", "r"] {
        let bind = amq_protocol::protocol::queue::Bind {
            queue: queue.into(),
            exchange: "amq.fanout".into(),
            routing_key: "".into(),
            nowait: true,
            arguments: FieldTable::default(),
        };
        world.queue(&mut peer, amq_protocol::protocol::queue::AMQPMethod::Bind(bind));
    }
    world.write(&mut peer, &publish_bytes("amq.fanout", "", true, BasicProperties::default(), b"job"));
    world.consume(&mut peer, "q", "c", 0);
    world.contents(&mut peer);
    world.ack(&mut peer, 1);
    assert_eq!(world.waiting("q"), Some(vec![]));
    assert_eq!(world.waiting("r"), Some(vec!["job".to_owned()]));
}
