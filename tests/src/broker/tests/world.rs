//! A small client made of amq-protocol frames, and a clock that a test moves.

use std::time::Duration;

use amq_protocol::frame::{AMQPContentHeader, AMQPFrame, WriteContext, gen_frame, parse_frame};
use amq_protocol::protocol::{AMQPClass, BasicProperties, basic, channel, confirm, connection, queue};
use amq_protocol::types::{AMQPValue, FieldTable};
use bytes::{Buf, BytesMut};
use leveret_core::time::Instant;

use crate::broker::{Broker, BrokerConfig, BrokerEvent, ConnectionId};

/// What a client wants to be told.
pub(super) const CAPABILITIES: [&str; 3] =
    ["consumer_cancel_notify", "connection.blocked", "authentication_failure_close"];

pub(super) struct World {
    pub(super) broker: Broker,
    pub(super) now: Instant,
}

/// A client, with the bytes that the broker did not take yet.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) conn: ConnectionId,
    pub(super) input: BytesMut,
    received: BytesMut,
}

/// A delivery or a return, put together from its frames.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Content {
    pub(super) method: basic::AMQPMethod,
    pub(super) properties: BasicProperties,
    pub(super) body: Vec<u8>,
}

impl Content {
    pub(super) fn tag(&self) -> u64 {
        match &self.method {
            basic::AMQPMethod::Deliver(deliver) => deliver.delivery_tag,
            basic::AMQPMethod::GetOk(got) => got.delivery_tag,
            other => panic!("{other:?} has no delivery tag"),
        }
    }

    pub(super) fn redelivered(&self) -> bool {
        matches!(&self.method, basic::AMQPMethod::Deliver(deliver) if deliver.redelivered)
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(BrokerConfig::default())
    }

    pub(super) fn with(config: BrokerConfig) -> Self {
        // Not the origin, so that nothing works by chance because the clock reads zero.
        let now = Instant::from_origin(Duration::from_secs(1000));
        Self { broker: Broker::new(config, now, 7), now }
    }

    /// Lets time pass as a harness does: from deadline to deadline.
    pub(super) fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut steps = 0;
        while let Some(due) = self.broker.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.broker.handle_timeout(self.now);
            steps += 1;
            assert!(steps < 10_000, "the broker asks to be called again and again at {due:?}");
        }
        self.now = end;
        self.broker.handle_timeout(end);
    }

    pub(super) fn pass_ms(&mut self, ms: u64) {
        self.pass(Duration::from_millis(ms));
    }

    /// Connects with the usual credentials and opens the virtual host `/` and channel 1.
    pub(super) fn connect(&mut self) -> Peer {
        let mut peer = self.accept();
        self.handshake(&mut peer, &Handshake::default());
        assert!(matches!(
            self.methods(&mut peer).last(),
            Some((0, AMQPClass::Connection(connection::AMQPMethod::OpenOk(_))))
        ));
        self.open_channel(&mut peer, 1);
        peer
    }

    /// The same with publisher confirms on channel 1.
    pub(super) fn connect_publisher(&mut self) -> Peer {
        let mut peer = self.connect();
        self.send(
            &mut peer,
            1,
            AMQPClass::Confirm(confirm::AMQPMethod::Select(confirm::Select { nowait: true })),
        );
        peer
    }

    pub(super) fn accept(&mut self) -> Peer {
        let conn = self.broker.accept(self.now);
        Peer { conn, input: BytesMut::new(), received: BytesMut::new() }
    }

    pub(super) fn handshake(&mut self, peer: &mut Peer, with: &Handshake) {
        self.write(peer, b"AMQP\x00\x00\x09\x01");
        let mut capabilities = FieldTable::default();
        for name in &with.capabilities {
            capabilities.insert((*name).into(), AMQPValue::Boolean(true));
        }
        let mut client_properties = FieldTable::default();
        client_properties.insert("capabilities".into(), AMQPValue::FieldTable(capabilities));
        client_properties.insert("connection_name".into(), AMQPValue::LongString("tester".into()));
        self.send(
            peer,
            0,
            AMQPClass::Connection(connection::AMQPMethod::StartOk(connection::StartOk {
                client_properties,
                mechanism: with.mechanism.into(),
                response: with.response.clone().into(),
                locale: "en_US".into(),
            })),
        );
        let tune_ok = connection::TuneOk {
            channel_max: with.channel_max,
            frame_max: with.frame_max,
            heartbeat: with.heartbeat,
        };
        self.send(peer, 0, AMQPClass::Connection(connection::AMQPMethod::TuneOk(tune_ok)));
        let open = connection::Open { virtual_host: with.vhost.into() };
        self.send(peer, 0, AMQPClass::Connection(connection::AMQPMethod::Open(open)));
    }

    pub(super) fn open_channel(&mut self, peer: &mut Peer, channel: u16) {
        self.send(peer, channel, AMQPClass::Channel(channel::AMQPMethod::Open(channel::Open {})));
        assert!(matches!(
            self.methods(peer).as_slice(),
            [(_, AMQPClass::Channel(channel::AMQPMethod::OpenOk(_)))]
        ));
    }

    pub(super) fn write(&mut self, peer: &mut Peer, bytes: &[u8]) {
        peer.input.extend_from_slice(bytes);
        self.broker.handle_read(self.now, peer.conn, &mut peer.input);
    }

    pub(super) fn send(&mut self, peer: &mut Peer, channel: u16, method: AMQPClass) {
        self.write(peer, &encoded(&AMQPFrame::Method(channel, method)));
    }

    pub(super) fn queue(&mut self, peer: &mut Peer, method: queue::AMQPMethod) {
        self.send(peer, 1, AMQPClass::Queue(method));
    }

    pub(super) fn basic(&mut self, peer: &mut Peer, method: basic::AMQPMethod) {
        self.send(peer, 1, AMQPClass::Basic(method));
    }

    /// Declares a durable queue; the answer stays to be read.
    pub(super) fn declare(&mut self, peer: &mut Peer, name: &str, arguments: &[(&str, AMQPValue)]) {
        self.queue(peer, queue::AMQPMethod::Declare(declaration(name, arguments)));
    }

    /// Declares a queue of which the broker approves.
    pub(super) fn make(&mut self, peer: &mut Peer, name: &str, arguments: &[(&str, AMQPValue)]) {
        self.declare(peer, name, arguments);
        let answer = self.methods(peer);
        assert!(
            matches!(answer.last(), Some((1, AMQPClass::Queue(queue::AMQPMethod::DeclareOk(_))))),
            "{answer:?}"
        );
    }

    /// Publishes to a queue through the default exchange.
    pub(super) fn publish(&mut self, peer: &mut Peer, queue: &str, body: &str) {
        self.publish_with(peer, queue, BasicProperties::default(), body);
    }

    pub(super) fn publish_with(
        &mut self,
        peer: &mut Peer,
        queue: &str,
        properties: BasicProperties,
        body: &str,
    ) {
        self.write(peer, &publish_bytes("", queue, false, properties, body.as_bytes()));
    }

    pub(super) fn consume(&mut self, peer: &mut Peer, queue: &str, tag: &str, prefetch: u16) {
        self.basic(peer, basic::AMQPMethod::Qos(basic::Qos { prefetch_count: prefetch, global: false }));
        let consume = basic::Consume {
            queue: queue.into(),
            consumer_tag: tag.into(),
            no_local: false,
            no_ack: false,
            exclusive: false,
            nowait: true,
            arguments: FieldTable::default(),
        };
        self.basic(peer, basic::AMQPMethod::Consume(consume));
    }

    pub(super) fn ack(&mut self, peer: &mut Peer, tag: u64) {
        self.basic(peer, basic::AMQPMethod::Ack(basic::Ack { delivery_tag: tag, multiple: false }));
    }

    pub(super) fn refuse(&mut self, peer: &mut Peer, tag: u64, requeue: bool) {
        self.basic(peer, basic::AMQPMethod::Reject(basic::Reject { delivery_tag: tag, requeue }));
    }

    /// Everything that the broker has for this client.
    pub(super) fn frames(&mut self, peer: &mut Peer) -> Vec<AMQPFrame> {
        while self.broker.poll_transmit(self.now, peer.conn, &mut peer.received) > 0 {}
        let mut frames = Vec::new();
        while !peer.received.is_empty() {
            let (left, frame) = parse_frame(&peer.received[..]).expect("the broker sends whole frames");
            let taken = peer.received.len() - left.len();
            peer.received.advance(taken);
            frames.push(frame);
        }
        frames
    }

    /// Everything but content.
    pub(super) fn methods(&mut self, peer: &mut Peer) -> Vec<(u16, AMQPClass)> {
        let frames = self.frames(peer).into_iter();
        let method = |frame| match frame {
            AMQPFrame::Method(channel, method) => Some((channel, method)),
            _ => None,
        };
        frames.filter_map(method).collect()
    }

    /// The deliveries and returns; other methods are dropped.
    pub(super) fn contents(&mut self, peer: &mut Peer) -> Vec<Content> {
        let mut contents: Vec<Content> = Vec::new();
        for frame in self.frames(peer) {
            match frame {
                AMQPFrame::Method(_, AMQPClass::Basic(method)) => {
                    contents.push(Content {
                        method,
                        properties: BasicProperties::default(),
                        body: Vec::new(),
                    });
                }
                AMQPFrame::Header(_, header) => contents.last_mut().unwrap().properties = header.properties,
                AMQPFrame::Body(_, part) => contents.last_mut().unwrap().body.extend(part),
                _ => {}
            }
        }
        let carries = |method: &basic::AMQPMethod| {
            matches!(
                method,
                basic::AMQPMethod::Deliver(_) | basic::AMQPMethod::Return(_) | basic::AMQPMethod::GetOk(_)
            )
        };
        contents.retain(|content| carries(&content.method));
        contents
    }

    /// The bodies of the deliveries, as text.
    pub(super) fn bodies(&mut self, peer: &mut Peer) -> Vec<String> {
        self.contents(peer).iter().map(|content| content.text().to_owned()).collect()
    }

    /// The reply text with which the broker closed channel 1, which is then opened again.
    pub(super) fn channel_error(&mut self, peer: &mut Peer) -> (u16, String) {
        let answer = self.methods(peer);
        let Some((1, AMQPClass::Channel(channel::AMQPMethod::Close(close)))) = answer.last() else {
            panic!("no channel.close: {answer:?}");
        };
        let error = (close.reply_code, close.reply_text.to_string());
        self.send(peer, 1, AMQPClass::Channel(channel::AMQPMethod::CloseOk(channel::CloseOk {})));
        self.open_channel(peer, 1);
        error
    }

    /// The reply with which the broker closed the connection.
    pub(super) fn connection_error(&mut self, peer: &mut Peer) -> (u16, String) {
        let answer = self.methods(peer);
        let Some((0, AMQPClass::Connection(connection::AMQPMethod::Close(close)))) = answer.last() else {
            panic!("no connection.close: {answer:?}");
        };
        (close.reply_code, close.reply_text.to_string())
    }

    /// The bodies that wait in a queue, head first; `None` if there is no such queue.
    pub(super) fn waiting(&self, queue: &str) -> Option<Vec<String>> {
        let view = self.broker.queue(queue)?;
        let text = |body: &[u8]| String::from_utf8(body.to_vec()).unwrap();
        Some(view.messages.iter().map(|message| text(&message.body)).collect())
    }

    pub(super) fn events(&mut self) -> Vec<BrokerEvent> {
        std::iter::from_fn(|| self.broker.poll_event()).collect()
    }

    pub(super) fn is_closed(&mut self, peer: &Peer) -> bool {
        self.events().contains(&BrokerEvent::CloseSocket { conn: peer.conn })
    }
}

pub(super) struct Handshake {
    pub(super) mechanism: &'static str,
    pub(super) response: Vec<u8>,
    pub(super) capabilities: Vec<&'static str>,
    pub(super) channel_max: u16,
    pub(super) frame_max: u32,
    pub(super) heartbeat: u16,
    pub(super) vhost: &'static str,
}

impl Default for Handshake {
    fn default() -> Self {
        Self {
            mechanism: "PLAIN",
            response: b"\0guest\0guest".to_vec(),
            capabilities: CAPABILITIES.to_vec(),
            channel_max: 2047,
            frame_max: 131_072,
            // Time passes in hours here; tests of heartbeats ask for them.
            heartbeat: 0,
            vhost: "/",
        }
    }
}

pub(super) fn declaration(name: &str, arguments: &[(&str, AMQPValue)]) -> queue::Declare {
    queue::Declare {
        queue: name.into(),
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        nowait: false,
        arguments: table(arguments),
    }
}

pub(super) fn table(fields: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in fields {
        table.insert((*name).into(), value.clone());
    }
    table
}

pub(super) const fn int(number: i64) -> AMQPValue {
    AMQPValue::LongLongInt(number)
}

pub(super) fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

/// Arguments that dead-letter to a queue through the default exchange.
pub(super) fn dead_letter_to(queue: &str) -> [(&'static str, AMQPValue); 2] {
    [("x-dead-letter-exchange", text("")), ("x-dead-letter-routing-key", text(queue))]
}

pub(super) fn encoded(frame: &AMQPFrame) -> Vec<u8> {
    gen_frame(frame)(WriteContext::from(Vec::new())).unwrap().write
}

pub(super) fn publish_bytes(
    exchange: &str,
    routing_key: &str,
    mandatory: bool,
    properties: BasicProperties,
    body: &[u8],
) -> Vec<u8> {
    let publish = basic::AMQPMethod::Publish(basic::Publish {
        exchange: exchange.into(),
        routing_key: routing_key.into(),
        mandatory,
        immediate: false,
    });
    let mut bytes = encoded(&AMQPFrame::Method(1, AMQPClass::Basic(publish)));
    let header = AMQPContentHeader { class_id: 60, body_size: body.len() as u64, properties };
    bytes.extend(encoded(&AMQPFrame::Header(1, header)));
    if !body.is_empty() {
        bytes.extend(encoded(&AMQPFrame::Body(1, body.to_vec())));
    }
    bytes
}
