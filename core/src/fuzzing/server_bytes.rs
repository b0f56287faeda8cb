//! Whatever a server may send, to a connection in any of its states.

use std::time::Duration;

use crate::connection::{
    ChannelId, Connection, ConnectionConfig, ConsumeOptions, Credentials, Event, ReadOutcome, SendBuf,
};
use crate::text::ShortString;
use crate::time::Instant;
use bytes::{Buf, BytesMut};

/// What a RabbitMQ says until the connection is open: start, tune, open-ok.
pub(super) const HANDSHAKE: [&[u8]; 3] = [
    b"\x01\0\0\0\0\0\x1c\0\x0a\0\x0a\0\x09\0\0\0\0\0\0\0\x05PLAIN\0\0\0\x05en_US\xce",
    b"\x01\0\0\0\0\0\x0c\0\x0a\0\x1e\x07\xff\0\x02\0\0\0\x3c\xce",
    b"\x01\0\0\0\0\0\x05\0\x0a\0\x29\0\xce",
];
/// The `frame_max` of the tune above.
const FRAME_MAX: usize = 131_072;
/// More calls than the bytes can ask for is a busy loop.
const MAX_READS: usize = 100_000;

/// The state that the bytes find, by the remainder of the first byte by eight:
///
/// | remainder | the connection |
/// |---|---|
/// | 0 to 2 | is within its handshake, after so many steps |
/// | 3 | is open, with a channel that has something of everything under way |
/// | 4 | is open, with a channel that works in transactions |
/// | 5 | is open, and takes bodies of ten bytes only |
/// | 6 | is open, and closes its channel |
/// | 7 | closes |
///
/// An eighth of the first byte says how the rest is cut into reads; the rest is what the server sends. No input makes the
/// connection panic, spin or keep more than one frame of what it was given; it ends with one event.
///
/// # Panics
///
/// Where that does not hold.
pub fn body(bytes: &[u8]) {
    let Some((&choice, sent)) = bytes.split_first() else { return };
    let state = choice % 8;
    let mut now = Instant::from_origin(Duration::from_secs(1));
    let mut config = ConnectionConfig::new(Credentials::default());
    if state == 5 {
        config.max_message_bytes = 10;
    }
    let mut connection = Connection::new(config, now);
    let mut input = BytesMut::new();
    let mut ends = 0;
    for step in HANDSHAKE.iter().take(usize::from(state)) {
        feed(&mut connection, now, &mut input, step, &mut ends);
    }
    assert_eq!(connection.is_open(), state >= 3, "the handshake above is a whole one");
    if connection.is_open() {
        use_a_channel(&mut connection, state == 4);
    }
    match state {
        6 => drop(ChannelId::new(1).map(|channel| connection.close_channel(channel))),
        7 => connection.close(now, 200, "bye"),
        _ => {}
    }
    let piece = 1 + usize::from(choice / 8);
    for part in sent.chunks(piece) {
        feed(&mut connection, now, &mut input, part, &mut ends);
    }
    connection.handle_eof(now);
    now += Duration::from_secs(3_600);
    connection.handle_timeout(now);
    feed(&mut connection, now, &mut input, b"", &mut ends);
    assert!(connection.is_closed());
    assert_eq!(ends, 1, "it ends once");
}

fn feed(connection: &mut Connection, now: Instant, input: &mut BytesMut, bytes: &[u8], ends: &mut usize) {
    input.extend_from_slice(bytes);
    for _ in 0..MAX_READS {
        let outcome = connection.handle_read(now, input);
        let mut out = SendBuf::default();
        connection.poll_transmit(now, &mut out);
        assert!(out.remaining() <= 1 << 20, "one read does not make a megabyte of output");
        while let Some(event) = connection.poll_event() {
            assert_eq!(*ends, 0, "nothing comes after the end: {event:?}");
            *ends += usize::from(matches!(event, Event::Closed(_)));
            if let Event::Delivery(delivery) | Event::Got { delivery, .. } = event {
                let (channel, tag) = (delivery.channel(), delivery.delivery_tag());
                // Refused where it needs no settlement, or its channel has ended since.
                let _ = connection.ack(channel, tag, false);
                assert!(connection.ack(channel, tag, false).is_err(), "a delivery is settled once");
            }
        }
        assert!(connection.unsent_bytes() <= 4_096, "{} bytes wait to be sent", connection.unsent_bytes());
        if outcome == ReadOutcome::Idle {
            assert!(input.len() < FRAME_MAX, "more is kept than the beginning of a frame");
            return;
        }
    }
    assert!(connection.is_closed(), "it reads for ever");
}

/// A channel with something of everything under way, so that every answer can be meant for something.
fn use_a_channel(connection: &mut Connection, transactional: bool) {
    let queue = ShortString::from_static("q");
    let Ok(channel) = connection.open_channel() else { return };
    let message = crate::message::Message {
        exchange: ShortString::EMPTY,
        routing_key: queue.clone(),
        mandatory: true,
        properties: crate::message::Properties::default(),
        body: bytes::Bytes::from_static(b"body"),
    };
    // Each is taken on a fresh channel; a refusal would only make the input less interesting.
    let _ = if transactional { connection.tx_select(channel) } else { connection.confirm_select(channel) };
    let _ = connection.consume(channel, &queue, &ShortString::from_static("c"), &ConsumeOptions::default());
    let _ = connection.get(channel, &queue, false);
    let _ = connection.recover(channel);
    let _ = connection.tx_rollback(channel);
    let _ = connection.publish(channel, &message);
    let _ = connection.publish(channel, &message);
}
