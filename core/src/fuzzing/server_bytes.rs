//! Whatever a server may send, to a connection in any of its states.

use std::time::Duration;

use crate::connection::{
    Connection, ConnectionConfig, ConsumeOptions, Credentials, Event, ReadOutcome, SendBuf,
};
use crate::text::ShortString;
use crate::time::Instant;
use bytes::{Buf, BytesMut};

/// What a RabbitMQ says until the connection is open: start, tune, open-ok.
const HANDSHAKE: [&[u8]; 3] = [
    b"\x01\0\0\0\0\0\x1c\0\x0a\0\x0a\0\x09\0\0\0\0\0\0\0\x05PLAIN\0\0\0\x05en_US\xce",
    b"\x01\0\0\0\0\0\x0c\0\x0a\0\x1e\x07\xff\0\x02\0\0\0\x3c\xce",
    b"\x01\0\0\0\0\0\x05\0\x0a\0\x29\0\xce",
];
/// More calls than the bytes can ask for is a busy loop.
const MAX_READS: usize = 100_000;

/// The first byte says how much of the handshake has gone well and how the rest is cut into reads; the rest is what the
/// server sends. No input makes the connection panic, spin or keep more than it was given; it ends with one event.
///
/// # Panics
///
/// Where that does not hold.
pub fn body(bytes: &[u8]) {
    let Some((&choice, sent)) = bytes.split_first() else { return };
    let mut now = Instant::from_origin(Duration::from_secs(1));
    let mut connection = Connection::new(ConnectionConfig::new(Credentials::default()), now);
    let mut input = BytesMut::new();
    let mut ends = 0;
    for step in HANDSHAKE.iter().take(usize::from(choice % 4)) {
        feed(&mut connection, now, &mut input, step, &mut ends);
    }
    assert_eq!(connection.is_open(), choice % 4 == 3, "the handshake above is a whole one");
    if connection.is_open() {
        use_a_channel(&mut connection);
    }
    let piece = 1 + usize::from(choice / 4);
    for part in sent.chunks(piece) {
        feed(&mut connection, now, &mut input, part, &mut ends);
    }
    assert!(input.len() <= sent.len() + 64, "more is kept than was sent");
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
        if outcome == ReadOutcome::Idle {
            return;
        }
    }
    assert!(connection.is_closed(), "it reads for ever");
}

/// A channel with something of everything under way, so that every answer can be meant for something.
fn use_a_channel(connection: &mut Connection) {
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
    let _ = connection.confirm_select(channel);
    let _ = connection.consume(channel, &queue, &ShortString::from_static("c"), &ConsumeOptions::default());
    let _ = connection.get(channel, &queue, false);
    let _ = connection.recover(channel);
    let _ = connection.publish(channel, &message);
    let _ = connection.publish(channel, &message);
}
