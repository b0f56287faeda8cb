//! Peers that are no servers, or bad ones: each ends in a typed error, soon, and without a panic.

use super::*;

/// What a client makes of these bytes as the first ones.
fn first_bytes(bytes: &[u8], then_eof: bool) -> ConnectionError {
    let mut pair = Pair::new(config());
    pair.sent();
    pair.feed(bytes);
    if then_eof {
        assert!(!pair.client.is_closed(), "{bytes:?} are too few to tell");
        pair.client.handle_eof(pair.now);
    }
    assert!(pair.sent().is_empty(), "nothing is said to a stranger");
    pair.end()
}

/// What a client with channel 1 open makes of these bytes, and what it answers.
fn in_session(bytes: impl AsRef<[u8]>) -> (ConnectionError, Vec<String>) {
    let mut pair = Pair::confirming(1, config());
    pair.feed(bytes);
    let sent = pair.sent();
    (pair.end(), sent)
}

#[test]
fn a_web_server_a_tls_server_and_noise_are_not_amqp() {
    let error = first_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n", false);
    assert_eq!(error, ConnectionError::NotAmqp { peer: ForeignPeer::Http, beginning: b"HTTP/1.1".to_vec() });
    assert!(error.to_string().contains("web server") && error.is_permanent());
    let error = first_bytes(b"\x15\x03\x03\x00\x02\x02\x46", true);
    assert!(error.to_string().contains("TLS"), "{error}");
    assert!(matches!(first_bytes(b"hello, world", false), ConnectionError::NotAmqp { .. }));
    assert!(matches!(first_bytes(b"220", true), ConnectionError::NotAmqp { .. }));
}

#[test]
fn another_version_of_amqp_is_named() {
    let error = first_bytes(b"AMQP\x00\x01\x00\x00", false);
    assert!(error.to_string().contains("AMQP 1-0-0"), "{error}");
    let offered = ProtocolVersion { id: 3, major: 1, minor: 0, revision: 0 };
    assert_eq!(first_bytes(b"AMQP\x03\x01\x00\x00", false), ConnectionError::VersionMismatch { offered });
}

#[test]
fn a_claimed_length_is_never_waited_for() {
    for (claimed, bytes) in [(u32::MAX, u64::from(u32::MAX) + 8), (131_065, 131_073)] {
        let mut head = vec![1, 0, 0];
        head.extend_from_slice(&claimed.to_be_bytes());
        let expected = ProtocolError::FrameTooLarge { bytes, limit: 131_072 };
        assert_eq!(first_bytes(&head, false), ConnectionError::Protocol(expected));
        let (error, sent) = in_session(&head);
        assert_eq!(error, ConnectionError::Protocol(expected));
        assert_eq!(sent, ["0 close 501"]);
    }
}

#[test]
fn frames_that_are_none_are_answered_with_501() {
    for kind in [0, 4, 9, b'A'] {
        let (error, sent) = in_session(script::raw(kind, 0, b""));
        assert_eq!(error, ConnectionError::Protocol(ProtocolError::UnknownFrameType { found: kind }));
        assert_eq!(sent, ["0 close 501"]);
    }
    let mut frame = script::heartbeat();
    *frame.last_mut().unwrap() = 0;
    let (error, sent) = in_session(frame);
    assert_eq!(error, ConnectionError::Protocol(ProtocolError::BadFrameEnd { found: 0 }));
    assert_eq!(sent, ["0 close 501"]);
    let (error, _) = in_session(script::raw(8, 1, b""));
    assert_eq!(error, ConnectionError::Protocol(ProtocolError::HeartbeatOnChannel { channel: 1 }));
}

#[test]
fn frames_of_a_channel_that_is_not_open_are_answered_with_504() {
    for frame in [
        script::deliver(2, "tag", 1),
        script::header(2, 1, None),
        script::body(2, b"x"),
        script::channel_close(2, 404, "what?"),
        script::channel_close_ok(2),
    ] {
        let (error, sent) = in_session(frame);
        assert_eq!(error, ConnectionError::Protocol(ProtocolError::UnknownChannel { channel: 2 }));
        assert_eq!(sent, ["0 close 504"]);
    }
}

#[test]
fn nothing_comes_on_a_channel_before_its_open_has_left() {
    for frame in [
        script::channel_open_ok(2),
        script::channel_flow(2, false),
        script::deliver(2, "tag", 1),
        script::header(2, 1, None),
        script::channel_close(2, 404, "what?"),
    ] {
        let mut pair = Pair::confirming(1, config());
        assert_eq!(pair.client.open_channel(), Ok(id(2)));
        pair.feed(frame);
        assert_eq!(pair.sent(), ["0 close 504"], "an open is not sent on a connection that has ended");
        assert_eq!(pair.end(), ConnectionError::Protocol(ProtocolError::UnknownChannel { channel: 2 }));
    }
}

#[test]
fn content_out_of_order_is_answered_with_505() {
    for frames in [
        vec![script::header(1, 1, None)],
        vec![script::body(1, b"x")],
        vec![script::deliver(1, "tag", 1), script::body(1, b"x")],
        vec![script::deliver(1, "tag", 1), script::deliver(1, "tag", 2)],
        vec![script::deliver(1, "tag", 1), script::header(1, 5, None), script::ack(1, 1, false)],
        vec![script::deliver(1, "tag", 1), script::header(1, 5, None), script::header(1, 5, None)],
    ] {
        let (error, sent) = in_session(frames.concat());
        assert_eq!(error, ConnectionError::Protocol(ProtocolError::UnexpectedFrame { channel: 1 }));
        assert_eq!(sent, ["0 close 505"]);
    }
    let (error, _) = in_session(script::body(0, b"x"));
    assert_eq!(error, ConnectionError::Protocol(ProtocolError::UnexpectedFrame { channel: 0 }));
}

#[test]
fn more_body_than_announced_is_answered_with_501() {
    let frames = [script::deliver(1, "tag", 1), script::header(1, 5, None), script::body(1, b"123456")];
    let (error, sent) = in_session(frames.concat());
    assert_eq!(error, ConnectionError::Protocol(ProtocolError::BodyTooLong { channel: 1, announced: 5 }));
    assert_eq!(sent, ["0 close 501"]);
}

#[test]
fn a_delivery_tag_that_does_not_grow_is_answered_with_502() {
    let delivery = |tag| [script::deliver(1, "tag", tag), script::header(1, 0, None)].concat();
    for (frames, found) in [(delivery(0), 0), ([delivery(5), delivery(5)].concat(), 5)] {
        let (error, sent) = in_session(frames);
        assert_eq!(error, ConnectionError::Protocol(ProtocolError::DeliveryTag { channel: 1, found }));
        assert_eq!(sent, ["0 close 502"]);
    }
    let mut pair = Pair::confirming(1, config());
    pair.deliver(1, [3, 1_000, u64::MAX]);
    pair.client.ack(id(1), 0, true).unwrap();
    assert_eq!(pair.sent(), [format!("1 ack {} multiple", u64::MAX)], "gaps are fine, and cost nothing");
}

#[test]
fn answers_to_nothing_and_unreadable_methods_are_told_apart() {
    for (frame, code) in [
        (script::declare_ok(1, "q"), 503),
        (script::channel_open_ok(1), 503),
        (script::channel_close_ok(1), 503),
        (script::open_ok(), 503),
        (script::channel_flow_ok(1, true), 503),
        (script::purge_ok(1), 503),
        (script::get_ok(1, 1), 503),
        (script::get_empty(1), 503),
        (script::done(1, script::Done::ExchangeDeclare), 503),
        (script::done(1, script::Done::QueueBind), 503),
        (script::done(1, script::Done::Recover), 503),
        (script::done(1, script::Done::TxCommit), 503),
        (script::raw(1, 1, &[0, 90, 0, 10]), 503),
        (script::raw(1, 1, &[0, 60, 0, 80, 1]), 502),
        (script::raw(1, 1, &[0]), 502),
        (script::raw(2, 1, &[0, 60]), 505),
    ] {
        let (error, sent) = in_session(frame);
        assert!(matches!(error, ConnectionError::Protocol(_)), "{error}");
        assert_eq!(sent, [format!("0 close {code}")], "{error}");
    }
}

#[test]
fn a_header_that_cannot_be_read_spoils_one_delivery_and_not_the_connection() {
    let mut table = vec![0, 0, 0, 0];
    for _ in 0..6_000 {
        let mut outer = u32::try_from(table.len() + 3).unwrap().to_be_bytes().to_vec();
        outer.extend_from_slice(b"\x01aF");
        outer.extend_from_slice(&table);
        table = outer;
    }
    let mut deep = vec![0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x20, 0];
    deep.extend_from_slice(&table);
    let not_utf8 = b"\0\x3c\0\0\0\0\0\0\0\0\0\x01\x20\0\0\0\0\x04\x01\xFFt\x01".to_vec();

    for (header, expected) in
        [(deep, PropertiesError::TooDeep { limit: MAX_TABLE_DEPTH }), (not_utf8, PropertiesError::Malformed)]
    {
        let mut pair = Pair::confirming(1, config());
        pair.feed([script::deliver(1, "tag", 1), script::raw(2, 1, &header), script::body(1, b"x")].concat());
        pair.feed([script::deliver(1, "tag", 2), script::header(1, 0, None)].concat());
        let events = pair.events();
        let [Event::Delivery(bad), Event::Delivery(good)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(bad.content().properties(), Err(expected));
        assert_eq!(bad.content().body().unwrap(), "x");
        assert_eq!(good.content().properties().unwrap().content_type, Some(short("text/plain")));
        assert!(pair.client.is_open());
    }
}

#[test]
fn a_start_with_a_deep_table_is_refused_and_does_not_overflow_the_stack() {
    let mut table = vec![0, 0, 0, 0];
    for _ in 0..6_000 {
        let mut outer = u32::try_from(table.len() + 3).unwrap().to_be_bytes().to_vec();
        outer.extend_from_slice(b"\x01aF");
        outer.extend_from_slice(&table);
        table = outer;
    }
    let start = [&[0, 10, 0, 10, 0, 9][..], &table, b"\0\0\0\x05PLAIN\0\0\0\0"].concat();
    let error = first_bytes(&script::raw(1, 0, &start), false);
    let expected = ProtocolError::MalformedMethod { channel: 0, class: 10, method: 10 };
    assert_eq!(error, ConnectionError::Protocol(expected));
}

#[test]
fn a_server_that_asks_without_end_makes_nothing_grow() {
    let mut pair = Pair::confirming(1, config());
    for _ in 0..1_000 {
        pair.feed([script::channel_flow(1, false), script::channel_flow(1, true)].concat());
        pair.feed(script::cancel(1, "nobody", false));
    }
    assert_eq!(pair.sent(), ["1 flow-ok true"]);

    for _ in 0..1_000 {
        pair.feed([script::blocked("disk"), script::unblocked()].concat());
    }
    assert!(!pair.client.wants_read());
    assert_eq!(pair.events().len(), 1_024);
    pair.read();
    assert_eq!(pair.events().len(), 2_000 - 1_024);
    assert!(pair.client.wants_read());
}

#[test]
fn deliveries_that_are_all_headers_stop_the_reading_as_well() {
    let mut pair = Pair::confirming(1, config());
    let mut header = vec![0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header.resize(100_000, 0);
    let header = script::raw(2, 1, &header);
    for tag in 1..=200 {
        pair.feed([&script::deliver(1, "tag", tag)[..], &header].concat());
    }
    assert!(!pair.client.wants_read());
    assert_eq!(pair.events().len(), 84, "some 8 MiB");
}

#[test]
fn after_the_end_bytes_are_dropped() {
    let mut pair = Pair::confirming(1, config());
    pair.feed(script::raw(9, 0, b""));
    pair.events();
    pair.feed(script::ack(1, 1, false));
    assert!(pair.input.is_empty() && pair.events().is_empty());
    pair.client.handle_eof(pair.now);
    pair.client.handle_timeout(pair.now);
    pair.client.close(pair.now, 200, "");
    assert!(pair.events().is_empty());
    assert_eq!(pair.publish(1, "x"), Err(PublishError::NotOpen));
}

#[test]
fn methods_that_nobody_listens_for_are_taken_and_change_nothing() {
    let mut pair = Pair::confirming(1, config());
    for frame in [
        script::returned(1, None),
        script::returned(1, Some(7)),
        script::ack(1, 7, true),
        script::nack(1, 7, false),
        script::cancel(1, "nobody", false),
        script::cancel(1, "nobody", true),
        script::channel_flow(1, true),
        script::unblocked(),
        script::update_secret_ok(),
        script::heartbeat(),
    ] {
        pair.feed(frame);
        assert!(pair.events().is_empty());
    }
    assert_eq!(pair.sent(), ["1 flow-ok true"], "the one that asks for an answer");
    assert_eq!(pair.client.unmatched(), Unmatched { confirms: 2, returns: 2 });
    assert!(pair.client.is_open());
}
