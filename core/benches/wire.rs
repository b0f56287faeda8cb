//! What is encoded and decoded by hand beside amq-protocol's way, and what a message costs a whole connection.
//!
//! `cargo bench -p leveret-core --features fuzzing --bench wire`
#![expect(clippy::unwrap_used, reason = "what a benchmark sends is known to be valid")]

use std::hint::black_box;

use bytes::{Buf, Bytes, BytesMut};
use criterion::{Criterion, criterion_group, criterion_main};
use leveret_core::connection::{
    ChannelId, Connection, ConnectionConfig, ConsumeOptions, Credentials, Event, ReadOutcome, SendBuf,
};
use leveret_core::fuzzing::side_by_side;
use leveret_core::message::{DeliveryMode, Message, Properties};
use leveret_core::table::Table;
use leveret_core::text::ShortString;
use leveret_core::time::Instant;

const NOW: Instant = Instant::ORIGIN;
const BATCH: u64 = 100;

/// A job as leveret publishes it.
fn job() -> Message {
    let properties = Properties {
        content_type: Some(ShortString::from_static("application/json")),
        delivery_mode: Some(DeliveryMode::Persistent),
        priority: Some(0),
        message_id: Some(ShortString::from_static("0b6fb1f0-3f4b-4c39-9a2a-6b3ad1c2a9c1")),
        kind: Some(ShortString::from_static("send-email")),
        headers: Table::new()
            .with(ShortString::from_static("x-attempt"), 1_i64)
            .with(ShortString::from_static("x-deferrals"), 0_i64),
        ..Properties::default()
    };
    Message::to_queue(ShortString::from_static("emails"), properties, Bytes::from_static(&[7; 256]))
}

fn frame(kind: u8, channel: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[kind, 0, channel], &length[..], payload, &[0xCE]].concat()
}

fn deliver(tag: u64) -> Vec<u8> {
    [b"\0\x3c\0\x3c\x01c", &tag.to_be_bytes()[..], b"\0\0\x06emails"].concat()
}

fn ack(tag: u64) -> Vec<u8> {
    [b"\0\x3c\0\x50", &tag.to_be_bytes()[..], b"\0"].concat()
}

fn codec(c: &mut Criterion) {
    let job = job();
    let mut group = c.benchmark_group("wire/encode_publish");
    let mut out = BytesMut::with_capacity(4_096);
    group.bench_function("leveret", |b| {
        b.iter(|| {
            out.clear();
            side_by_side::encode_publish(black_box(&job), 7, &mut out)
        });
    });
    let mut out = Vec::with_capacity(4_096);
    group.bench_function("amq-protocol", |b| {
        b.iter(|| {
            out.clear();
            out = side_by_side::encode_publish_oracle(black_box(&job), std::mem::take(&mut out));
        });
    });
    group.finish();

    let mut group = c.benchmark_group("wire/encode_ack");
    let mut out = BytesMut::with_capacity(4_096);
    group.bench_function("leveret", |b| {
        b.iter(|| {
            out.clear();
            side_by_side::encode_ack(black_box(7), &mut out);
        });
    });
    let mut out = Vec::with_capacity(4_096);
    group.bench_function("amq-protocol", |b| {
        b.iter(|| {
            out.clear();
            out = side_by_side::encode_ack_oracle(black_box(7), std::mem::take(&mut out));
        });
    });
    group.finish();

    for (name, payload) in [("deliver", deliver(7)), ("confirm", ack(7))] {
        let mut group = c.benchmark_group(format!("wire/decode_{name}"));
        group.bench_function("leveret", |b| b.iter(|| side_by_side::decode_method(black_box(&payload))));
        group.bench_function("amq-protocol", |b| {
            b.iter(|| side_by_side::decode_method_oracle(black_box(&payload)));
        });
        group.finish();
    }

    let mut head = BytesMut::new();
    assert!(side_by_side::encode_publish(&job, 7, &mut head));
    // Behind the method frame, the head of the header frame, and class, weight and size.
    let method = 8 + usize::from(head[6]);
    let raw = head[method + 7 + 12..head.len() - 1].to_vec();
    assert_eq!(side_by_side::decode_properties(&raw), Some(3));
    let mut group = c.benchmark_group("wire/decode_properties");
    group.bench_function("leveret", |b| b.iter(|| side_by_side::decode_properties(black_box(&raw))));
    group.bench_function("amq-protocol", |b| {
        b.iter(|| side_by_side::decode_properties_oracle(black_box(&raw)));
    });
    group.finish();
}

/// A connection with an open channel, past its handshake.
struct Link {
    connection: Connection,
    channel: ChannelId,
    input: BytesMut,
    out: SendBuf,
}

impl Link {
    fn open() -> Self {
        let connection = Connection::new(ConnectionConfig::new(Credentials::default()), NOW);
        let (channel, input) = (ChannelId::new(1).unwrap(), BytesMut::with_capacity(1 << 20));
        let mut link = Self { connection, channel, input, out: SendBuf::default() };
        link.receive(&frame(1, 0, b"\0\x0a\0\x0a\0\x09\0\0\0\0\0\0\0\x05PLAIN\0\0\0\x05en_US"));
        link.receive(&frame(1, 0, b"\0\x0a\0\x1e\x07\xff\0\x02\0\0\0\x3c"));
        link.receive(&frame(1, 0, b"\0\x0a\0\x29\0"));
        assert_eq!(link.connection.open_channel(), Ok(link.channel));
        link.transmit();
        link.receive(&frame(1, 1, b"\0\x14\0\x0b\0\0\0\0"));
        link.connection.confirm_select(link.channel).unwrap();
        let (queue, tag) = (ShortString::from_static("emails"), ShortString::from_static("c"));
        link.connection.consume(link.channel, &queue, &tag, &ConsumeOptions::default()).unwrap();
        link.transmit();
        link.receive(&[frame(1, 1, b"\0\x55\0\x0b"), frame(1, 1, b"\0\x3c\0\x15\x01c")].concat());
        while link.connection.poll_event().is_some() {}
        link
    }

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

/// A hundred messages at a time.
fn connection(c: &mut Criterion) {
    let mut group = c.benchmark_group("connection/100_messages");
    for multiple in [false, true] {
        let mut link = Link::open();
        let (job, mut last) = (job(), 0);
        let name = if multiple { "publish_confirmed_together" } else { "publish_confirmed_one_by_one" };
        group.bench_function(name, |b| {
            b.iter(|| {
                let first = last + 1;
                for _ in 0..BATCH {
                    last = link.connection.publish(link.channel, &job).unwrap();
                }
                link.transmit();
                for tag in if multiple { last..=last } else { first..=last } {
                    let mut confirm = frame(1, 1, &ack(tag));
                    let flag = confirm.len() - 2;
                    confirm[flag] = u8::from(multiple);
                    link.receive(&confirm);
                }
                while link.connection.poll_event().is_some() {}
            });
        });
    }
    for in_order in [true, false] {
        let mut link = Link::open();
        let mut tags = 0;
        let header = frame(2, 1, b"\0\x3c\0\0\0\0\0\0\0\0\x01\0\0\0");
        let body = frame(3, 1, &[7; 256]);
        let name = if in_order { "deliver_and_ack_merged" } else { "deliver_and_ack_backwards" };
        group.bench_function(name, |b| {
            b.iter(|| {
                for _ in 0..BATCH {
                    tags += 1;
                    link.receive(&[&frame(1, 1, &deliver(tags))[..], &header, &body].concat());
                }
                let mut in_hand: Vec<u64> = std::iter::from_fn(|| link.connection.poll_event())
                    .filter_map(|event| match event {
                        Event::Delivery(delivery) => Some(delivery.delivery_tag()),
                        _ => None,
                    })
                    .collect();
                if !in_order {
                    in_hand.reverse();
                }
                for tag in in_hand {
                    link.connection.ack(link.channel, tag, false).unwrap();
                    if !in_order {
                        link.transmit();
                    }
                }
                link.transmit();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, codec, connection);
criterion_main!(benches);
