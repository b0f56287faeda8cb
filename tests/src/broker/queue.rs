//! A queue: storage order, expiry from the head, the lease of `x-expires`, the delivery limit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use leveret_core::table::Table;
use leveret_core::text::ShortString;
use leveret_core::time::Instant;

use super::ConnectionId;
use super::arguments::{Overflow, Settings};
use super::error::AmqpError;
use super::message::Message;

/// A queue or an exchange: names are per virtual host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) vhost: ShortString,
    pub(super) name: ShortString,
}

impl Key {
    /// How RabbitMQ calls a queue in its reply texts.
    pub(super) fn queue_text(&self) -> String {
        format!("queue '{}' in vhost '{}'", self.name, self.vhost)
    }

    /// How RabbitMQ calls an exchange in its reply texts.
    pub(super) fn exchange_text(&self) -> String {
        format!("exchange '{}' in vhost '{}'", self.name, self.vhost)
    }
}

/// Where a message stands: higher priorities first, then in order of arrival. It keeps its place for life, so
/// a message that is handed back stands where it stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    priority: Reverse<u8>,
    arrival: u64,
}

/// A message in one queue.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) message: Arc<Message>,
    pub(super) redelivered: bool,
    /// Quorum queues: how often it was handed back.
    pub(super) handed_back: u64,
    pub(super) expires_at: Option<Instant>,
}

/// A consumer, as its queue knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConsumerRef {
    pub(super) conn: ConnectionId,
    pub(super) channel: u16,
    pub(super) tag: ShortString,
    pub(super) exclusive: bool,
}

/// What a queue did with a new message.
pub(super) enum Admission {
    Stored,
    /// `x-overflow` refused it; the flag says whether it is dead-lettered.
    Refused {
        dead_letter: bool,
    },
}

#[derive(Debug)]
pub(super) struct Queue {
    /// Tells a queue from a later one of the same name.
    pub(super) id: u64,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    /// The only connection that may use it.
    pub(super) owner: Option<ConnectionId>,
    pub(super) arguments: Table,
    pub(super) settings: Settings,
    /// Delivered and not yet settled; the messages are with their channels.
    pub(super) unacked: usize,
    /// The next one to be served stands in front.
    pub(super) consumers: VecDeque<ConsumerRef>,
    ready: BTreeMap<Position, Stored>,
    ready_bytes: u64,
    arrivals: u64,
    /// When an unused queue with `x-expires` is deleted.
    lease_end: Option<Instant>,
}

/// What a declaration says about a new queue.
pub(super) struct Declaration {
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) owner: Option<ConnectionId>,
    pub(super) arguments: Table,
}

impl Queue {
    pub(super) fn new(id: u64, now: Instant, declared: Declaration, queue: &str) -> Result<Self, AmqpError> {
        let settings = Settings::parse(&declared.arguments, queue)?;
        let mut queue = Self {
            id,
            durable: declared.durable,
            auto_delete: declared.auto_delete,
            owner: declared.owner,
            arguments: declared.arguments,
            settings,
            unacked: 0,
            consumers: VecDeque::new(),
            ready: BTreeMap::new(),
            ready_bytes: 0,
            arrivals: 0,
            lease_end: None,
        };
        queue.renew_lease(now);
        Ok(queue)
    }

    /// The queue was declared (not `no-wait`). RabbitMQ: that renews no lease of a quorum queue.
    pub(super) fn declared(&mut self, now: Instant) {
        if !self.settings.quorum {
            self.renew_lease(now);
        }
    }

    /// The queue was used: read by `basic.get`, or left by its last consumer.
    /// RabbitMQ: a publish does not renew the lease.
    pub(super) fn renew_lease(&mut self, now: Instant) {
        self.lease_end = self.settings.expires.map(|expires| now + expires);
    }

    /// Whether the lease has run out. Consumers keep a queue alive.
    pub(super) fn lease_is_over(&self, now: Instant) -> bool {
        self.live_lease().is_some_and(|end| end <= now)
    }

    fn live_lease(&self) -> Option<Instant> {
        self.lease_end.filter(|_| self.consumers.is_empty())
    }

    /// When something happens to the queue by itself.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let head = self.ready.values().next().and_then(|head| head.expires_at);
        [head, self.live_lease()].into_iter().flatten().min()
    }

    /// Takes a new message in, or refuses it because the queue is full. The message has been validated, so
    /// its own TTL can be read.
    pub(super) fn admit(&mut self, now: Instant, message: Arc<Message>) -> Admission {
        if self.settings.overflow != Overflow::DropHead && self.is_full(&message) {
            let dead_letter = self.settings.overflow == Overflow::RejectPublishDlx;
            return Admission::Refused { dead_letter };
        }
        let own = message.ttl().ok().flatten();
        let ttl = [own, self.settings.message_ttl].into_iter().flatten().min();
        let highest = self.settings.max_priority.unwrap_or(0);
        let position =
            Position { priority: Reverse(message.priority().min(highest)), arrival: self.arrivals };
        self.arrivals += 1;
        self.put(
            position,
            Stored { message, redelivered: false, handed_back: 0, expires_at: ttl.map(|ttl| now + ttl) },
        );
        Admission::Stored
    }

    fn is_full(&self, coming: &Message) -> bool {
        let bytes = self.ready_bytes + coming.body.len() as u64;
        self.settings.max_length.is_some_and(|max| self.ready.len() as u64 >= max)
            || self.settings.max_length_bytes.is_some_and(|max| bytes > max)
    }

    /// Puts a message back where it stood, or answers with it where it has been handed back too often.
    pub(super) fn put_back(&mut self, position: Position, mut stored: Stored) -> Option<Stored> {
        stored.redelivered = true;
        stored.handed_back += u64::from(self.settings.quorum);
        // RabbitMQ: a limit of n allows n + 1 deliveries.
        if self.settings.delivery_limit.is_some_and(|limit| stored.handed_back > limit) {
            return Some(stored);
        }
        self.put(position, stored);
        None
    }

    fn put(&mut self, position: Position, stored: Stored) {
        self.ready_bytes += stored.message.body.len() as u64;
        self.ready.insert(position, stored);
    }

    /// Takes the message that is to be delivered next.
    pub(super) fn take_head(&mut self) -> Option<(Position, Stored)> {
        let (position, stored) = self.ready.pop_first()?;
        self.ready_bytes -= stored.message.body.len() as u64;
        Some((position, stored))
    }

    /// Takes the head if it has expired. Messages behind a head that has not stay, also when their own time
    /// is over.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<Stored> {
        let head = self.ready.values().next()?;
        head.expires_at.filter(|end| *end <= now)?;
        self.take_head().map(|(_, stored)| stored)
    }

    /// Takes the head if the queue holds more than its limits allow.
    pub(super) fn take_overflow(&mut self) -> Option<Stored> {
        let over = self.settings.max_length.is_some_and(|max| self.ready.len() as u64 > max)
            || self.settings.max_length_bytes.is_some_and(|max| self.ready_bytes > max);
        if !over {
            return None;
        }
        self.take_head().map(|(_, stored)| stored)
    }

    /// Drops everything that is ready, and says how much that was.
    pub(super) fn purge(&mut self) -> usize {
        self.ready_bytes = 0;
        std::mem::take(&mut self.ready).len()
    }

    /// The number of messages that wait for a consumer.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The waiting messages with their effective priority, head first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u8, &Stored)> {
        self.ready.iter().map(|(position, stored)| (position.priority.0, stored))
    }
}
