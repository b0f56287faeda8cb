//! Messages that are larger than we take.

use super::*;

/// A client that takes bodies of ten bytes, with the consumer `tag` and a `basic.get` under way on channel 1.
fn small() -> Pair {
    let mut config = config();
    config.max_message_bytes = 10;
    let mut pair = Pair::confirming(1, config);
    pair.client.consume(id(1), &short("q"), &short("tag"), &ConsumeOptions::default()).unwrap();
    pair.client.get(id(1), &short("q"), false).unwrap();
    pair.sent();
    pair.feed(script::consume_ok(1, "tag"));
    pair.events();
    pair
}

fn delivery(tag: u64, size: usize) -> Vec<u8> {
    [script::deliver(1, "tag", tag), script::header(1, size as u64, None), script::body(1, &vec![1; size])]
        .concat()
}

#[test]
fn a_message_above_the_limit_comes_without_its_body_and_the_next_one_with() {
    let mut pair = small();
    pair.feed([delivery(1, 10), delivery(2, 11), delivery(3, 3)].concat());
    let bodies: Vec<_> = pair
        .events()
        .iter()
        .map(|event| {
            let Event::Delivery(delivery) = event else { panic!("{event:?}") };
            assert!(delivery.must_settle());
            assert_eq!(delivery.content().properties().unwrap().content_type, Some(short("text/plain")));
            delivery.content().body().map(Bytes::len)
        })
        .collect();
    assert_eq!(bodies, [Ok(10), Err(Oversized { bytes: 11, limit: 10 }), Ok(3)]);
    assert!(pair.sent().is_empty(), "nobody but the application settles it");
    pair.client.ack(id(1), 1, false).unwrap();
    pair.client.ack(id(1), 3, false).unwrap();
    assert_eq!(pair.sent(), ["1 ack 1", "1 ack 3"]);
    pair.client.reject(id(1), 2, false).unwrap();
    assert_eq!(pair.sent(), ["1 reject 2"]);
}

#[test]
fn the_answer_to_a_get_may_be_too_large_as_well() {
    let mut pair = small();
    pair.feed([script::get_ok(1, 1), script::header(1, 11, None), script::body(1, &[1; 11])].concat());
    let events = pair.events();
    let [Event::Got { delivery, messages: 7 }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(delivery.content().body(), Err(Oversized { bytes: 11, limit: 10 }));
    pair.client.nack(id(1), 1, false, true).unwrap();
    assert_eq!(pair.sent(), ["1 nack 1"]);
}

#[test]
fn a_return_that_is_too_large_is_a_return_all_the_same() {
    let mut pair = small();
    pair.publish(1, "0123456789").unwrap();
    pair.sent();
    let returned = script::returned(1, Some(1));
    let method = frame::peek(&returned, u32::MAX).unwrap().unwrap().len();
    pair.feed([&returned[..method], &script::header(1, 11, Some(1)), &script::body(1, &[1; 11])].concat());
    pair.feed(script::ack(1, 1, false));
    assert_eq!(verdicts(pair.events()), [(1, unroutable())]);
}

#[test]
fn what_is_skipped_is_not_kept_however_much_is_announced() {
    let mut pair = small();
    pair.feed([script::deliver(1, "tag", 1), script::header(1, u64::MAX, None)].concat());
    let body = script::body(1, &[1; 100_000]);
    for _ in 0..100 {
        pair.feed(&body);
        assert!(pair.input.is_empty());
    }
    assert!(pair.client.is_open() && pair.client.wants_read());
    let kept = format!("{:?}", pair.client.channels.get(id(1)).unwrap().assembly);
    assert!(kept.len() < 500, "{} bytes", kept.len());
    // The connection goes on around it.
    pair.feed(script::heartbeat());
    pair.feed(script::channel_close(1, 406, "x"));
    assert!(matches!(pair.events()[..], [Event::ChannelClosed { .. }]));
}

#[test]
fn more_than_was_announced_is_too_much_also_when_it_is_skipped() {
    let mut pair = small();
    pair.feed(
        [script::deliver(1, "tag", 1), script::header(1, 11, None), script::body(1, &[1; 12])].concat(),
    );
    let expected = ProtocolError::BodyTooLong { channel: 1, announced: 11 };
    assert_eq!(pair.end(), ConnectionError::Protocol(expected));
}
