//! An embedded AMQP 0-9-1 broker: sans-IO, in virtual time, and like RabbitMQ in what a job queue relies on.
//!
//! [`Broker`] has the same verbs as the machines of the client: bytes and time go in, bytes, deadlines and
//! events come out. Over a socket it is driven so (numbers as in [`tcp`], which is that driver):
//!
//! 1. a socket was accepted: [`Broker::accept`];
//! 2. bytes came: append them to the connection's input and call [`Broker::handle_read`]; it takes whole
//!    frames off the front and leaves the rest. The socket ended: [`Broker::handle_eof`];
//! 3. the deadline passed: [`Broker::handle_timeout`];
//! 4. after each of these, for *every* connection (a publish on one is a delivery on another):
//!    [`Broker::poll_transmit`] until it returns 0, and write what it gave;
//! 5. [`Broker::poll_event`] until `None`, and close the sockets it says;
//! 6. a connection that [`Broker::wants_read`] turned true for is given its input again (2.), since whole
//!    frames may lie in it; one for which it is false is not read from;
//! 7. wait for bytes or until [`Broker::poll_timeout`].
//!
//! A simulation does the same and jumps to the deadline instead of waiting.
//!
//! # What it does as RabbitMQ does
//!
//! * **Expiry** is from the head of a queue only. A message whose time is over waits behind one whose is not.
//! * **The lease** of a queue with `x-expires` is renewed by a declaration (also a passive one, not `no-wait`),
//!   by `basic.get`, and when the last consumer leaves; never by a publish. A queue that expires drops its
//!   messages, and a declaration after that makes a new, empty queue.
//! * **Dead-lettering** on expiry, rejection and overflow with `x-death`; without confirms, silent where the
//!   target is missing; a message that comes around without a rejection is dropped.
//! * **Quorum queues**: `x-delivery-limit` with the header `x-delivery-count`; a lease that no declaration renews;
//!   dead-lettering at least once, where a message stays until a queue takes it.
//! * **Priorities** of classic queues, cut at `x-max-priority`; one that is handed back keeps its place.
//! * **Confirms** in the order of a [`ConfirmStyle`]; a return always before its own acknowledgement.
//! * **Refusals** with RabbitMQ's codes and texts, on the channel or the connection.
//! * **Alarms** ([`Broker::block`]): connections that publish are not read from, acknowledgements included.
//! * **Transactions** route a publish when it comes, and deliver or return it at the commit; a rollback makes what
//!   was settled outstanding again.
//! * **Headers** pass through as bytes, however hostile.
//!
//! # What it does not do
//!
//! Streams, single active consumers, priorities of consumers, alternate exchanges, `global` prefetch,
//! `access.request`, `connection.update-secret`: each is refused with `NOT_IMPLEMENTED`, never ignored. Arguments that
//! nest more than 32 deep are refused as well. What else is missing:
//!
//! * **Copies of quorum queues.** There is one node. A message that was to be dead-lettered at least once and that no
//!   queue takes does not block those behind it, as 32 of them do in RabbitMQ, and goes on when a queue is declared.
//! * **TLS, permissions, policies.** Every user may do everything, `guest` from any address too.
//! * **Disk and limits.** Nothing is written down, so the delivery mode has no effect and a broker that is dropped
//!   forgets all. No limit but the machine's memory holds for what is stored in queues, and no publisher is
//!   slowed down.
//! * **The acknowledgement timeout.** A delivery may stay unsettled for ever; RabbitMQ up to 4.2 closes the
//!   channel after 30 minutes.
//! * **Routing by `CC` and `BCC`, and direct reply-to**: `amq.rabbitmq.reply-to` is a queue that does not exist.
//! * **Queue arguments that it does not know**, `x-queue-mode` among them: taken, without effect.
//!
//! Where versions of RabbitMQ differ: bodies above 16 MiB are refused, as from 4.0
//! ([`BrokerConfig::max_message_bytes`] changes it); the history of deaths is the header `x-death`, as up to 3.13,
//! and entries of it that are no tables are dropped at the next death; frames of 4,096 bytes are enough, as up to
//! 4.0; quorum queues ignore priorities, as up to 3.13, and have a delivery limit of 20 by default, as from 4.0; a queue
//! without a type is a classic one; transient queues are taken, as up to 4.2.

mod arguments;
mod channel;
mod config;
mod confirm;
mod connection;
mod deadletter;
mod delivery;
mod error;
mod event;
mod exchange;
mod frames;
mod lifecycle;
mod message;
mod methods;
mod properties;
mod queue;
mod steer;
mod store;
mod table;
pub mod tcp;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::BytesMut;
use leveret_core::rng::Rng;
use leveret_core::text::ShortString;
use leveret_core::time::Instant;

use channel::{At, Channel};
use connection::{Connection, Stage};
use deadletter::Death;
use event::EventLog;
use exchange::Exchange;
use queue::{Key, Queue};

pub use config::BrokerConfig;
pub use confirm::ConfirmStyle;
pub use event::{BrokerEvent, ConnectionId, DeathReason, DeleteCause, EndCause};
pub use view::{ConnectionView, MessageView, QueueView};

/// One broker with its virtual hosts, queues and connections. See the [module](self) for how it is driven.
///
/// The same seed and inputs give the same outputs.
#[derive(Debug)]
pub struct Broker {
    config: BrokerConfig,
    confirms: ConfirmStyle,
    started: Instant,
    /// The latest moment that was told, or that of the deadline being handled. Never goes back.
    now: Instant,
    rng: Rng,
    connections: BTreeMap<ConnectionId, Connection>,
    queues: BTreeMap<Key, Queue>,
    /// All but the default exchange, which is the queues themselves.
    exchanges: BTreeMap<Key, Exchange>,
    /// Queues that may have something to expire or to deliver.
    touched: BTreeSet<Key>,
    /// Dead messages that were not routed yet; empty between calls.
    deaths: VecDeque<Death>,
    /// Dead messages of queues that hand over at least once, and that no queue has taken yet.
    unrouted: VecDeque<Death>,
    /// A memory alarm is on.
    alarm: bool,
    events: EventLog,
    connections_accepted: u64,
    queues_created: u64,
}

impl Broker {
    /// A broker that was just started. `seed` decides generated names and the order of
    /// [`ConfirmStyle::OutOfOrder`].
    #[must_use]
    pub fn new(config: BrokerConfig, now: Instant, seed: u64) -> Self {
        let predeclared = |vhost: &ShortString| {
            exchange::PREDECLARED.map(|(name, kind)| {
                let key = Key { vhost: vhost.clone(), name: ShortString::from_static(name) };
                (key, Exchange::new(kind, true, false, false))
            })
        };
        Self {
            confirms: config.confirms,
            started: now,
            now,
            rng: Rng::new(seed),
            connections: BTreeMap::new(),
            queues: BTreeMap::new(),
            exchanges: config.vhosts.iter().flat_map(predeclared).collect(),
            touched: BTreeSet::new(),
            deaths: VecDeque::new(),
            unrouted: VecDeque::new(),
            alarm: false,
            events: EventLog::new(config.event_limit),
            connections_accepted: 0,
            queues_created: 0,
            config,
        }
    }

    /// A client's TCP connection was accepted.
    pub fn accept(&mut self, now: Instant) -> ConnectionId {
        self.advance(now);
        self.connections_accepted += 1;
        let id = ConnectionId(self.connections_accepted);
        self.connections.insert(id, Connection::new(self.now, self.now + self.config.handshake_timeout));
        id
    }

    /// Bytes of a client. Takes whole frames off the front of `input` while [`Broker::wants_read`] says so;
    /// what is left is part of a frame, or waits for that. A frame is at most the agreed `frame_max` long, so
    /// more input than that and 8 bytes need never be kept. Input of a connection that is gone is discarded.
    pub fn handle_read(&mut self, now: Instant, conn: ConnectionId, input: &mut BytesMut) {
        self.advance(now);
        if let Some(connection) = self.connections.get_mut(&conn).filter(|_| !input.is_empty()) {
            connection.last_read = self.now;
        }
        while self.wants_read(conn) && self.read_frame(conn, input) {
            self.work();
        }
        if self.connections.get(&conn).is_none_or(|connection| connection.stage == Stage::Ended) {
            input.clear();
        }
        self.send_due_confirms();
    }

    /// The client's socket ended: what it had not acknowledged goes back, redelivered, and its exclusive
    /// queues are gone.
    pub fn handle_eof(&mut self, now: Instant, conn: ConnectionId) {
        self.advance(now);
        self.end_at_once(conn, EndCause::Lost);
        self.work();
    }

    /// Time has passed. Early and duplicate calls are harmless. Whatever was due in the meantime happens as of
    /// the moment when it was due, in that order, so that a jump of hours gives what waiting would have given.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        let due: Vec<ConnectionId> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.deadline().is_some_and(|due| due <= self.now))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.connection_timers(id);
        }
        self.send_due_confirms();
        self.work();
    }

    /// Appends what is to be sent to a client, and returns how many bytes that were. More may follow at once:
    /// call it until it returns 0.
    pub fn poll_transmit(&mut self, now: Instant, conn: ConnectionId, out: &mut BytesMut) -> usize {
        self.advance(now);
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&conn) else { return 0 };
        let sent = connection.outgoing.len();
        if sent == 0 {
            return 0;
        }
        out.extend_from_slice(&connection.outgoing);
        connection.outgoing.clear();
        connection.last_written = now;
        if connection.stage == Stage::Ended {
            self.forget(conn);
        } else if sent >= self.config.outgoing_high_water {
            self.touch_consumed_by(conn);
            self.work();
        }
        sent
    }

    /// When [`Broker::handle_timeout`] is to be called, if nothing else happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let queues = self.next_queue_deadline();
        let connections = self.connections.values().filter_map(Connection::deadline).min();
        [queues, connections].into_iter().flatten().min()
    }

    /// What happened, once, in order; sockets to close come first.
    pub fn poll_event(&mut self) -> Option<BrokerEvent> {
        self.events.pop()
    }

    /// Whether the broker reads from this connection now. It does not while an alarm stops a publisher, or
    /// while the client does not take what it is sent.
    #[must_use]
    pub fn wants_read(&self, conn: ConnectionId) -> bool {
        self.connections.get(&conn).is_some_and(|connection| {
            connection.stage != Stage::Ended
                && !connection.blocked
                && connection.outgoing.len() < self.config.outgoing_high_water
        })
    }

    /// Brings the queues up to `now`, one deadline after the other.
    fn advance(&mut self, now: Instant) {
        while let Some(due) = self.next_queue_deadline().filter(|due| *due <= now) {
            self.now = self.now.max(due);
            self.queues_due();
        }
        self.now = self.now.max(now);
    }

    /// Does all that follows from what happened: dead messages move on, queues expire and deliver.
    fn work(&mut self) {
        while self.route_dead() || self.serve_next() {}
    }

    fn channel_mut(&mut self, at: At) -> Option<&mut Channel> {
        self.connections.get_mut(&at.conn)?.channels.get_mut(&at.channel)
    }

    fn default_vhost_key(name: &str) -> Option<Key> {
        Some(Key { vhost: ShortString::from_static("/"), name: ShortString::new(name).ok()? })
    }

    fn unix_seconds(&self) -> u64 {
        let since_start = self.now.saturating_duration_since(self.started);
        (Duration::from_millis(self.config.started_at.0) + since_start).as_secs()
    }
}
