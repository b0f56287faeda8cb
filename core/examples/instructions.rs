//! So many messages through one connection, with no socket and nothing else: what `benches/instructions.sh` counts.
//!
//! `instructions publish COUNT`: confirmed publishes of 256 bytes, a hundred in flight, each confirmed by itself.
//! `instructions consume COUNT`: deliveries of 256 bytes that are acknowledged, with a prefetch of 200.
#![expect(clippy::expect_used, clippy::panic, reason = "a program that measures ends where it cannot")]

use std::hint::black_box;

use bytes::{Buf, Bytes, BytesMut};
use leveret_core::connection::{
    ChannelId, Connection, ConnectionConfig, ConsumeOptions, Credentials, Event, ReadOutcome, SendBuf,
    Verdict,
};
use leveret_core::message::{Message, Properties};
use leveret_core::text::ShortString;
use leveret_core::time::Instant;

const BODY: Bytes = Bytes::from_static(&[7; 256]);
const IN_FLIGHT: usize = 100;
const PREFETCH: usize = 200;
/// Bytes of a frame that confirms.
const CONFIRM: usize = 21;
/// Where its tag is.
const TAG: usize = 11;
const NOW: Instant = Instant::ORIGIN;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (work, count) = (arguments.next(), arguments.next());
    let count: u64 = count.and_then(|count| count.parse().ok()).expect("instructions publish|consume COUNT");
    let mut link = Link::open();
    let handled = match work.as_deref() {
        Some("publish") => link.publish(count),
        Some("consume") => link.consume(count),
        _ => panic!("instructions publish|consume COUNT"),
    };
    assert_eq!(handled, count, "every message is accounted for");
}

/// A connection and the two buffers that a driver has.
struct Link {
    connection: Connection,
    channel: ChannelId,
    input: BytesMut,
    out: SendBuf,
}

impl Link {
    fn open() -> Self {
        let mut connection = Connection::new(ConnectionConfig::new(Credentials::default()), NOW);
        let mut input = BytesMut::with_capacity(256 * 1024);
        let handshake = [
            frame(1, 0, b"\0\x0a\0\x0a\0\x09\0\0\0\0\0\0\0\x05PLAIN\0\0\0\x05en_US"),
            frame(1, 0, b"\0\x0a\0\x1e\x07\xff\0\x02\0\0\0\x3c"),
            frame(1, 0, b"\0\x0a\0\x29\0"),
        ];
        input.extend_from_slice(&handshake.concat());
        while connection.handle_read(NOW, &mut input) == ReadOutcome::More {}
        let channel = connection.open_channel().expect("it is open");
        let mut link = Self { connection, channel, input, out: SendBuf::default() };
        link.transmit();
        link.receive(&frame(1, 1, b"\0\x14\0\x0b\0\0\0\0"));
        while link.connection.poll_event().is_some() {}
        link
    }

    fn publish(&mut self, count: u64) -> u64 {
        self.connection.confirm_select(self.channel).expect("it is open");
        self.transmit();
        self.receive(&frame(1, 1, b"\0\x55\0\x0b"));
        // What the server and the application do is prepared, so that it is not counted for us.
        let message = Message::to_queue(ShortString::from_static("jobs"), Properties::default(), BODY);
        let mut confirms = frame(1, 1, b"\0\x3c\0\x50\0\0\0\0\0\0\0\0\0").repeat(IN_FLIGHT);
        let (mut confirmed, mut published) = (0, 0);
        while confirmed < count {
            let batch = IN_FLIGHT.min(usize::try_from(count - published).unwrap_or(IN_FLIGHT));
            for confirm in confirms.chunks_exact_mut(CONFIRM).take(batch) {
                published =
                    self.connection.publish(self.channel, black_box(&message)).expect("there is room");
                confirm[TAG..TAG + 8].copy_from_slice(&published.to_be_bytes());
            }
            self.transmit();
            self.receive(&confirms[..batch * CONFIRM]);
            while let Some(event) = self.connection.poll_event() {
                confirmed += u64::from(matches!(event, Event::Verdict { verdict: Verdict::Ok, .. }));
            }
        }
        confirmed
    }

    fn consume(&mut self, count: u64) -> u64 {
        let queue = ShortString::from_static("jobs");
        let tag =
            self.connection.consume(self.channel, &queue, &ShortString::EMPTY, &ConsumeOptions::default());
        assert_eq!(tag.expect("it is open").as_str(), "leveret-1");
        self.transmit();
        self.receive(&frame(1, 1, b"\0\x3c\0\x15\x09leveret-1"));
        let delivery = [
            frame(1, 1, b"\0\x3c\0\x3c\x09leveret-1\0\0\0\0\0\0\0\0\0\0\x04jobs"),
            frame(2, 1, b"\0\x3c\0\0\0\0\0\0\0\0\x01\0\x10\0\x02"),
            frame(3, 1, &BODY),
        ]
        .concat();
        let mut deliveries = delivery.repeat(PREFETCH);
        let (mut handled, mut sent) = (0, 0_u64);
        while handled < count {
            let batch = PREFETCH.min(usize::try_from(count - sent).unwrap_or(PREFETCH));
            for deliver in deliveries.chunks_exact_mut(delivery.len()).take(batch) {
                sent += 1;
                // The tag comes behind class, method and consumer tag.
                deliver[TAG + 10..TAG + 18].copy_from_slice(&sent.to_be_bytes());
            }
            self.receive(&deliveries[..batch * delivery.len()]);
            while let Some(event) = self.connection.poll_event() {
                if let Event::Delivery(delivery) = event {
                    black_box(delivery.content());
                    self.connection.ack(self.channel, delivery.delivery_tag(), false).expect("it is in hand");
                    handled += 1;
                }
            }
            self.transmit();
        }
        handled
    }

    /// What a driver writes to its socket.
    fn transmit(&mut self) {
        while self.connection.poll_transmit(NOW, &mut self.out) > 0 {
            self.out.advance(black_box(self.out.remaining()));
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while self.connection.handle_read(NOW, &mut self.input) == ReadOutcome::More {}
    }
}

fn frame(kind: u8, channel: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is small").to_be_bytes();
    [&[kind, 0, channel], &length[..], payload, &[0xCE]].concat()
}
