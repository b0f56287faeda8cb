//! A broker and its clients, which take turns until nobody has anything to say.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use leveret_core::connection::{
    ChannelId, Connection, ConnectionConfig, ConsumeOptions, Credentials, Delivery, Event, ReadOutcome,
    SendBuf,
};
use leveret_core::message::{Message, Properties};
use leveret_core::text::ShortString;
use leveret_core::time::Instant;
use leveret_core::topology::QueueDeclaration;
use leveret_testkit::broker::{Broker, BrokerConfig, ConnectionId};

/// More turns than any story takes without a clock: more of them are a busy loop.
const MAX_TURNS: usize = 10_000;

pub(crate) struct Pair {
    pub(crate) broker: Broker,
    pub(crate) now: Instant,
    clients: Vec<Client>,
}

struct Client {
    connection: Connection,
    socket: ConnectionId,
    out: SendBuf,
    to_broker: BytesMut,
    input: BytesMut,
    events: Vec<Event>,
}

impl Pair {
    /// A broker with one client, whose connection is open.
    pub(crate) fn new() -> Self {
        Self::with(ConnectionConfig::new(Credentials::default()))
    }

    pub(crate) fn with(config: ConnectionConfig) -> Self {
        let now = Instant::from_origin(Duration::from_secs(1_000));
        let broker = Broker::new(BrokerConfig::default(), now, 7);
        let mut pair = Self { broker, now, clients: Vec::new() };
        assert_eq!(pair.connect(config), 0);
        pair
    }

    /// One more client; the answer is its number.
    pub(crate) fn connect(&mut self, config: ConnectionConfig) -> usize {
        self.clients.push(Client {
            connection: Connection::new(config, self.now),
            socket: self.broker.accept(self.now),
            out: SendBuf::default(),
            to_broker: BytesMut::new(),
            input: BytesMut::new(),
            events: Vec::new(),
        });
        let number = self.clients.len() - 1;
        let events = self.events_of(number);
        assert!(matches!(events[..], [Event::Opened { .. }]), "{events:?}");
        number
    }

    /// The first client's connection.
    pub(crate) fn client(&mut self) -> &mut Connection {
        self.connection(0)
    }

    pub(crate) fn connection(&mut self, client: usize) -> &mut Connection {
        &mut self.clients[client].connection
    }

    /// Opens a channel of the first client.
    pub(crate) fn channel(&mut self) -> ChannelId {
        let channel = self.client().open_channel().expect("a channel is free");
        assert_eq!(self.events(), [Event::ChannelOpened { channel }]);
        channel
    }

    /// Declares a classic queue on a channel of the first client.
    pub(crate) fn queue(&mut self, channel: ChannelId, name: &'static str) {
        let queue = QueueDeclaration::durable(short(name), leveret_core::table::Table::new());
        self.client().declare_queue(channel, &queue).expect("the channel is open");
        assert!(matches!(self.events()[..], [Event::QueueDeclared { .. }]));
    }

    /// Puts messages into a queue without waiting for anything.
    pub(crate) fn fill(
        &mut self,
        channel: ChannelId,
        queue: &'static str,
        bodies: impl IntoIterator<Item = String>,
    ) {
        for body in bodies {
            self.client().publish(channel, &to_queue(queue, body)).expect("there is room");
        }
        assert_eq!(self.events(), []);
    }

    /// Starts the consumer `c` of a queue, and gives what it was delivered at once.
    pub(crate) fn consume(&mut self, channel: ChannelId, queue: &'static str) -> Vec<Delivery> {
        self.consume_with(channel, queue, &ConsumeOptions::default())
    }

    pub(crate) fn consume_with(
        &mut self,
        channel: ChannelId,
        queue: &'static str,
        options: &ConsumeOptions,
    ) -> Vec<Delivery> {
        self.client().consume(channel, &short(queue), &short("c"), options).expect("the channel is open");
        let mut events = self.events();
        assert!(matches!(events.remove(0), Event::ConsumeStarted { .. }));
        deliveries(events)
    }

    /// What the first client is told until everything has been said.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        self.events_of(0)
    }

    pub(crate) fn events_of(&mut self, client: usize) -> Vec<Event> {
        self.settle_down();
        std::mem::take(&mut self.clients[client].events)
    }

    /// Lets a number of seconds pass, one after the other.
    pub(crate) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.broker.handle_timeout(self.now);
            for client in &mut self.clients {
                client.connection.handle_timeout(self.now);
            }
            self.settle_down();
        }
    }

    /// What is ready in a queue, and what was delivered from it and not settled.
    pub(crate) fn counts(&self, queue: &str) -> (usize, usize) {
        let queue = self.broker.queue(queue).expect("the queue is there");
        (queue.ready, queue.unacked)
    }

    fn settle_down(&mut self) {
        for _ in 0..MAX_TURNS {
            let (broker, now) = (&mut self.broker, self.now);
            let moved = self.clients.iter_mut().fold(false, |moved, client| client.turn(now, broker) | moved);
            if !moved {
                return;
            }
        }
        panic!("client and broker never come to rest");
    }
}

impl Client {
    fn turn(&mut self, now: Instant, broker: &mut Broker) -> bool {
        let mut moved = self.connection.poll_transmit(now, &mut self.out) > 0;
        while self.out.has_remaining() {
            let length = self.out.chunk().len();
            self.to_broker.extend_from_slice(self.out.chunk());
            self.out.advance(length);
        }
        let unread = self.to_broker.len();
        broker.handle_read(now, self.socket, &mut self.to_broker);
        moved |= self.to_broker.len() != unread;
        moved |= broker.poll_transmit(now, self.socket, &mut self.input) > 0;
        if self.connection.wants_read() {
            let unread = self.input.len();
            while self.connection.handle_read(now, &mut self.input) == ReadOutcome::More {}
            moved |= self.input.len() != unread;
        }
        while let Some(event) = self.connection.poll_event() {
            moved = true;
            self.events.push(event);
        }
        moved
    }
}

pub(crate) const fn short(text: &'static str) -> ShortString {
    ShortString::from_static(text)
}

/// A mandatory message to an exchange.
pub(crate) fn to(exchange: &'static str, routing_key: &'static str, body: impl Into<Bytes>) -> Message {
    Message {
        exchange: short(exchange),
        routing_key: short(routing_key),
        mandatory: true,
        properties: Properties::default(),
        body: body.into(),
    }
}

pub(crate) fn to_queue(queue: &'static str, body: impl Into<Bytes>) -> Message {
    to("", queue, body)
}

pub(crate) fn deliveries(events: Vec<Event>) -> Vec<Delivery> {
    let delivery = |event| match event {
        Event::Delivery(delivery) => delivery,
        other => panic!("no delivery: {other:?}"),
    };
    events.into_iter().map(delivery).collect()
}

pub(crate) fn tags(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(Delivery::delivery_tag).collect()
}

pub(crate) fn numbered(count: u32) -> impl Iterator<Item = String> {
    (1..=count).map(|number| number.to_string())
}
