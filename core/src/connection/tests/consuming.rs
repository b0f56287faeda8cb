//! Declaring, consuming, settling.

use std::num::NonZeroU16;

use super::*;
use crate::table::Table;
use crate::topology::QueueDeclaration;

fn queue(name: &'static str) -> QueueDeclaration {
    QueueDeclaration {
        name: short(name),
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        arguments: Table::new(),
    }
}

/// A client with the consumer `tag` on channel 1.
fn consuming() -> Pair {
    let mut pair = Pair::confirming(1, config());
    pair.client.consume(id(1), &short("q"), &short("tag"), &ConsumeOptions::default()).unwrap();
    pair.sent();
    pair.feed(script::consume_ok(1, "tag"));
    pair.events();
    pair
}

#[test]
fn from_a_declaration_to_the_first_acknowledgement() {
    let mut pair = Pair::open(config());
    let channel = pair.client.open_channel().unwrap();
    pair.client.declare_queue(channel, &queue("q")).unwrap();
    pair.client.set_prefetch(channel, NonZeroU16::new(32).unwrap()).unwrap();
    pair.client.consume(channel, &short("q"), &short("tag"), &ConsumeOptions::default()).unwrap();
    assert_eq!(pair.sent(), ["1 open", "1 declare q", "1 qos 32", "1 consume q as tag"]);

    pair.feed(script::channel_open_ok(1));
    pair.feed(script::declare_ok(1, "q"));
    pair.feed(script::qos_ok(1));
    pair.feed(script::consume_ok(1, "tag"));
    pair.feed([script::deliver(1, "tag", 1), script::header(1, 5, None), script::body(1, b"hello")].concat());
    let mut events = pair.events();
    let Some(Event::Delivery(delivery)) = events.pop() else { panic!("no delivery") };
    assert_eq!(
        events,
        [
            Event::ChannelOpened { channel },
            Event::QueueDeclared { channel, name: short("q"), messages: 2, consumers: 1 },
            Event::PrefetchSet { channel },
            Event::ConsumeStarted { channel, consumer_tag: short("tag") },
        ]
    );
    assert_eq!((delivery.channel(), delivery.delivery_tag(), delivery.redelivered()), (channel, 1, true));
    assert_eq!((delivery.consumer_tag().as_str(), delivery.content().routing_key().as_str()), ("tag", "q"));
    assert_eq!(delivery.content().body().unwrap(), "hello");
    assert_eq!(delivery.content().properties().unwrap().content_type, Some(short("text/plain")));

    pair.deliver(1, 2..=3);
    pair.client.ack(channel, 1, false).unwrap();
    pair.client.nack(channel, 2, true, false).unwrap();
    pair.client.reject(channel, 3, true).unwrap();
    pair.client.delete_queue(channel, &short("q"), DeleteIf::ALWAYS).unwrap();
    assert_eq!(pair.sent(), ["1 ack 1", "1 nack 2 multiple", "1 reject 3", "1 delete q"]);
    pair.feed(script::delete_ok(1));
    assert_eq!(pair.events(), [Event::QueueDeleted { channel, messages: 2 }]);
}

#[test]
fn answers_to_later_commands_may_come_before_those_of_a_consume_or_a_cancel() {
    let mut pair = consuming();
    let prefetch = NonZeroU16::new(32).unwrap();
    pair.client.consume(id(1), &short("q"), &short("other"), &ConsumeOptions::default()).unwrap();
    pair.client.cancel(id(1), &short("tag")).unwrap();
    pair.client.set_prefetch(id(1), prefetch).unwrap();
    pair.client.declare_queue(id(1), &queue("q")).unwrap();
    pair.sent();
    pair.feed([script::qos_ok(1), script::cancel_ok(1, "tag"), script::declare_ok(1, "q")].concat());
    pair.feed(script::consume_ok(1, "other"));
    let events = pair.events();
    assert!(
        matches!(
            events[..],
            [
                Event::PrefetchSet { .. },
                Event::ConsumerCancelled { by_server: false, .. },
                Event::QueueDeclared { .. },
                Event::ConsumeStarted { .. }
            ]
        ),
        "{events:?}"
    );

    pair.client.set_prefetch(id(1), prefetch).unwrap();
    pair.client.declare_queue(id(1), &queue("q")).unwrap();
    pair.sent();
    pair.feed(script::declare_ok(1, "q"));
    let expected = ProtocolError::UnexpectedMethod { channel: 1, class: 50, method: 11 };
    assert_eq!(pair.end(), ConnectionError::Protocol(expected), "nothing else may be overtaken");
}

#[test]
fn an_empty_message_may_be_followed_at_once() {
    let mut pair = consuming();
    pair.feed(
        [
            script::deliver(1, "tag", 1),
            script::header(1, 0, None),
            script::deliver(1, "tag", 2),
            script::header(1, 0, None),
        ]
        .concat(),
    );
    assert!(matches!(pair.events()[..], [Event::Delivery(_), Event::Delivery(_)]));
}

#[test]
fn a_body_of_several_frames_is_put_together() {
    let mut pair = consuming();
    let body: Vec<u8> = (0..20_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    pair.feed([script::deliver(1, "tag", 1), script::header(1, 20_000, None)].concat());
    for piece in [&body[..9_000], &[], &body[9_000..9_001], &body[9_001..]] {
        assert!(pair.events().is_empty());
        pair.feed(script::body(1, piece));
    }
    let events = pair.events();
    let [Event::Delivery(delivery)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(delivery.content().body().unwrap(), &body);
}

#[test]
fn a_large_body_is_a_slice_of_what_was_read_and_a_small_one_a_copy() {
    for (size, shared) in [(4_096, true), (4_095, false)] {
        let mut pair = consuming();
        pair.input.reserve(64 * 1024);
        let block = pair.input.as_ptr() as usize;
        let block = block..block + pair.input.capacity();
        let size_of_body = u64::try_from(size).unwrap();
        pair.feed(
            [
                script::deliver(1, "tag", 1),
                script::header(1, size_of_body, None),
                script::body(1, &vec![1; size]),
            ]
            .concat(),
        );
        let events = pair.events();
        let [Event::Delivery(delivery)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(block.contains(&(delivery.content().body().unwrap().as_ptr() as usize)), shared);
    }
}

#[test]
fn a_consumer_ends_once_whoever_ends_it() {
    let cancelled =
        |by_server| Event::ConsumerCancelled { channel: id(1), consumer_tag: short("tag"), by_server };
    let mut pair = consuming();
    pair.client.cancel(id(1), &short("tag")).unwrap();
    assert_eq!(pair.sent(), ["1 cancel tag"]);
    pair.feed([script::deliver(1, "tag", 1), script::header(1, 0, None)].concat());
    pair.feed(script::cancel_ok(1, "tag"));
    let events = pair.events();
    assert!(matches!(&events[0], Event::Delivery(_)), "deliveries before the answer are ours");
    assert_eq!(events[1..], [cancelled(false)]);

    let mut pair = consuming();
    pair.client.cancel(id(1), &short("tag")).unwrap();
    pair.sent();
    pair.feed(script::cancel(1, "tag", true));
    pair.feed(script::cancel_ok(1, "tag"));
    assert_eq!(pair.events(), [cancelled(true)]);
    assert!(pair.sent().is_empty());

    let mut pair = consuming();
    pair.feed(script::cancel(1, "tag", false));
    assert_eq!(pair.sent(), ["1 cancel-ok tag"]);
    assert_eq!(pair.events(), [cancelled(true)]);
}

#[test]
fn a_routing_key_that_is_not_utf8_is_no_reason_to_stop() {
    let mut pair = consuming();
    let mut deliver = vec![0, 60, 0, 60, 3];
    deliver.extend_from_slice(b"tag");
    deliver.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0xFF, b'k']);
    pair.feed([script::raw(1, 1, &deliver), script::header(1, 0, None)].concat());
    let events = pair.events();
    let [Event::Delivery(delivery)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(delivery.content().routing_key().as_str(), "\u{FFFD}k");
}

#[test]
fn arguments_that_cannot_be_sent_are_refused() {
    let mut pair = consuming();
    let mut large = queue("q");
    large.arguments = Table::new().with(short("h"), "h".repeat(200_000));
    assert!(matches!(
        pair.client.declare_queue(id(1), &large),
        Err(CommandError::TooLarge { bytes: 200_000.., limit: 131_072 })
    ));
    let mut deep = queue("q");
    deep.arguments = (0..100).fold(Table::new(), |inner, _| Table::new().with(short("t"), inner));
    assert_eq!(
        pair.client.declare_queue(id(1), &deep),
        Err(CommandError::TooDeep { limit: MAX_TABLE_DEPTH })
    );
    assert!(pair.sent().is_empty());
}

#[test]
fn an_empty_answer_to_a_get_and_an_empty_return_may_be_followed_at_once() {
    let mut pair = consuming();
    pair.client.get(id(1), &short("q"), false).unwrap();
    pair.publish(1, "").unwrap();
    pair.sent();
    pair.feed(
        [
            script::get_ok(1, 1),
            script::header(1, 0, None),
            script::returned(1, Some(1)),
            script::ack(1, 1, false),
            script::deliver(1, "tag", 2),
            script::header(1, 0, None),
        ]
        .concat(),
    );
    let events = pair.events();
    let [Event::Got { .. }, Event::Verdict { verdict, .. }, Event::Delivery(_)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*verdict, unroutable());
}

#[test]
fn a_delivery_for_a_consumer_that_nobody_knows_is_told_and_can_be_given_back() {
    let mut pair = consuming();
    pair.feed([script::deliver(1, "somebody else's", 1), script::header(1, 0, None)].concat());
    let events = pair.events();
    let [Event::Delivery(delivery)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(delivery.consumer_tag().as_str(), "somebody else's");
    assert!(delivery.must_settle(), "or it would be lost to everyone");
    pair.client.nack(id(1), 1, false, true).unwrap();
    assert_eq!(pair.sent(), ["1 nack 1"]);
}
