//! A plain queue as a user describes it.

use std::time::Duration;

use super::DeadLetter;
use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::topology::argument_list::ArgumentList;
use crate::topology::arguments::{
    DELIVERY_LIMIT, EXPIRES, MAX_LENGTH, MAX_LENGTH_BYTES, MAX_PRIORITY, MESSAGE_TTL, OVERFLOW, QUEUE_TYPE,
    SINGLE_ACTIVE_CONSUMER,
};
use crate::topology::check::Problem;
use crate::topology::{NameError, QueueDeclaration, QueueName};

/// What a queue is made of (argument `x-queue-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum QueueType {
    /// On one node of the broker.
    #[default]
    Classic,
    /// Replicated over several nodes by Raft, always durable and shared.
    Quorum,
}

impl QueueType {
    /// The value of the argument `x-queue-type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
        }
    }
}

/// What a queue at its length limit does (argument `x-overflow`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// The oldest messages make room: they are dead-lettered, or dropped. What the broker does by itself.
    DropHead,
    /// New messages are refused, and their publisher is told by a nack. What another queue dead-letters into
    /// this one is lost silently.
    RejectPublish,
    /// As `RejectPublish`, and the refused message is dead-lettered.
    RejectPublishDlx,
}

impl Overflow {
    /// The value of the argument `x-overflow`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DropHead => "drop-head",
            Self::RejectPublish => "reject-publish",
            Self::RejectPublishDlx => "reject-publish-dlx",
        }
    }
}

/// A plain queue as a user describes it: what a [`Subscription`](crate::topology::Subscription) reads, or a queue that
/// only has to be there.
///
/// Setters take anything; [`Topology::check`](crate::topology::Topology::check) says what is wrong with the whole. Every
/// declaration says its type: a virtual host may be set up to make a quorum queue of a declaration without one.
///
/// ```
/// # use leveret_core::topology::PlainQueue;
/// let orders = PlainQueue::new("orders")?.quorum().single_active_consumer(true);
/// assert_eq!(orders.declaration().name, "orders");
/// # Ok::<(), leveret_core::topology::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PlainQueue {
    name: Option<QueueName>,
    queue_type: QueueType,
    durable: bool,
    exclusive: bool,
    auto_delete: bool,
    max_priority: u8,
    message_ttl: Option<Duration>,
    expires: Option<Duration>,
    max_length: Option<u32>,
    max_length_bytes: Option<u32>,
    overflow: Option<Overflow>,
    delivery_limit: Option<u32>,
    dead_letter: Option<DeadLetter>,
    single_active_consumer: bool,
    arguments: Table,
}

impl PlainQueue {
    /// A durable, shared, classic queue with the defaults that the setters state.
    ///
    /// # Errors
    ///
    /// [`NameError`] when the name is none for a queue.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = Some(QueueName::new(name)?);
        Ok(Self { name, durable: true, exclusive: false, ..Self::server_named() })
    }

    /// A queue that the server names when it is declared: classic, transient and exclusive, so that it ends
    /// with its connection.
    #[must_use]
    pub const fn server_named() -> Self {
        Self {
            name: None,
            queue_type: QueueType::Classic,
            durable: false,
            exclusive: true,
            auto_delete: false,
            max_priority: 0,
            message_ttl: None,
            expires: None,
            max_length: None,
            max_length_bytes: None,
            overflow: None,
            delivery_limit: None,
            dead_letter: None,
            single_active_consumer: false,
            arguments: Table::new(),
        }
    }

    /// A quorum queue: replicated, always durable and shared, and without a maximum of priorities. From RabbitMQ 4.0 on
    /// it drops a message that was delivered again 20 times, unless [`dead_letter`](Self::dead_letter) says where that
    /// goes or [`delivery_limit`](Self::delivery_limit) is higher.
    #[must_use]
    pub fn quorum(self) -> Self {
        Self { queue_type: QueueType::Quorum, ..self }
    }

    /// Whether the queue survives a restart of the broker. Default on, off for a server-named queue.
    #[must_use]
    pub fn durable(self, durable: bool) -> Self {
        Self { durable, ..self }
    }

    /// Whether only the connection that declares it may use the queue, which ends with it. Default off, on for
    /// a server-named queue.
    #[must_use]
    pub fn exclusive(self, exclusive: bool) -> Self {
        Self { exclusive, ..self }
    }

    /// Whether the queue goes when its last consumer does. Default off.
    #[must_use]
    pub fn auto_delete(self, auto_delete: bool) -> Self {
        Self { auto_delete, ..self }
    }

    /// The highest priority of a classic queue, 1 to 255 (10 is plenty), or 0 for none. Default 0. It cannot be
    /// changed on an existing queue.
    #[must_use]
    pub fn max_priority(self, max_priority: u8) -> Self {
        Self { max_priority, ..self }
    }

    /// How long a message waits at most before it dies, in whole milliseconds, rounded up, at most ten years.
    /// Default: no limit.
    #[must_use]
    pub fn message_ttl(self, ttl: Duration) -> Self {
        Self { message_ttl: Some(ttl), ..self }
    }

    /// How long the queue exists without use, in whole milliseconds, rounded up, at least one. What is in it
    /// then is dropped. A publish is no use. Default: no limit.
    #[must_use]
    pub fn expires(self, lease: Duration) -> Self {
        Self { expires: Some(lease), ..self }
    }

    /// How many messages wait at most. Default: no limit.
    #[must_use]
    pub fn max_length(self, messages: u32) -> Self {
        Self { max_length: Some(messages), ..self }
    }

    /// How many bytes of bodies wait at most. Default: no limit.
    #[must_use]
    pub fn max_length_bytes(self, bytes: u32) -> Self {
        Self { max_length_bytes: Some(bytes), ..self }
    }

    /// What happens at the length limit. Default [`Overflow::DropHead`], which the broker does by itself.
    #[must_use]
    pub fn overflow(self, overflow: Overflow) -> Self {
        Self { overflow: Some(overflow), ..self }
    }

    /// How often a message of a quorum queue is *re*delivered: `n` allows `n + 1` deliveries, then it dies.
    /// Default: the broker's own, which is none up to RabbitMQ 3.13 and 20 from 4.0.
    #[must_use]
    pub fn delivery_limit(self, limit: u32) -> Self {
        Self { delivery_limit: Some(limit), ..self }
    }

    /// Where messages go that expire, are pushed out, or are rejected. Default: nowhere, they are dropped.
    #[must_use]
    pub fn dead_letter(self, target: DeadLetter) -> Self {
        Self { dead_letter: Some(target), ..self }
    }

    /// Whether the broker delivers to one consumer at a time, and to the next one when that leaves. Default off.
    #[must_use]
    pub fn single_active_consumer(self, single: bool) -> Self {
        Self { single_active_consumer: single, ..self }
    }

    /// A raw argument, for what is not modelled here. Sent as it is; one that says something else than a
    /// setting is refused. Its name is not checked: a misspelt one has no effect, neither here nor at the broker.
    #[must_use]
    pub fn argument(mut self, name: ShortString, value: impl Into<Value>) -> Self {
        self.arguments.insert(name, value);
        self
    }

    /// The queue's name; `None` for one that the server names.
    #[must_use]
    pub const fn name(&self) -> Option<&QueueName> {
        self.name.as_ref()
    }

    /// What it is made of.
    #[must_use]
    pub const fn queue_type(&self) -> QueueType {
        self.queue_type
    }

    /// Whether it ends with its connection.
    #[must_use]
    pub const fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Whether it ends with its last consumer.
    #[must_use]
    pub const fn is_auto_delete(&self) -> bool {
        self.auto_delete
    }

    /// Whether its length is limited, by a setting or a raw argument.
    pub(in crate::topology) fn has_length_limit(&self) -> bool {
        let raw =
            [MAX_LENGTH, MAX_LENGTH_BYTES].iter().any(|argument| self.arguments.get(argument).is_some());
        raw || self.max_length.is_some() || self.max_length_bytes.is_some()
    }

    /// What is sent to the broker.
    #[must_use]
    pub fn declaration(&self) -> QueueDeclaration {
        self.draft(ArgumentList::default()).0
    }

    /// The declaration, and the contradictions among the settings. `list` holds what others say of the queue.
    pub(in crate::topology) fn draft(&self, mut list: ArgumentList) -> (QueueDeclaration, Vec<Problem>) {
        list.set(QUEUE_TYPE, "queue type", self.queue_type.as_str());
        if self.max_priority > 0 {
            list.set(MAX_PRIORITY, "max_priority", i64::from(self.max_priority));
        }
        if let Some(ttl) = self.message_ttl {
            list.set(MESSAGE_TTL, "message_ttl", whole_millis(ttl));
        }
        if let Some(lease) = self.expires {
            list.set(EXPIRES, "expires", whole_millis(lease));
        }
        if let Some(messages) = self.max_length {
            list.set(MAX_LENGTH, "max_length", messages);
        }
        if let Some(bytes) = self.max_length_bytes {
            list.set(MAX_LENGTH_BYTES, "max_length_bytes", bytes);
        }
        if let Some(overflow) = self.overflow {
            list.set(OVERFLOW, "overflow", overflow.as_str());
        }
        if let Some(limit) = self.delivery_limit {
            list.set(DELIVERY_LIMIT, "delivery_limit", limit);
        }
        if let Some(target) = &self.dead_letter {
            target.write(&mut list, "PlainQueue::dead_letter");
        }
        if self.single_active_consumer {
            list.set(SINGLE_ACTIVE_CONSUMER, "single_active_consumer", true);
        }
        for (name, value) in self.arguments.iter() {
            list.set(name.clone(), "argument", value.clone());
        }
        let (arguments, conflicts) = list.finish();
        let declaration = QueueDeclaration {
            name: self.name.as_ref().map_or(ShortString::EMPTY, |name| name.as_short().clone()),
            passive: false,
            durable: self.durable,
            exclusive: self.exclusive,
            auto_delete: self.auto_delete,
            arguments,
        };
        (declaration, conflicts)
    }
}

/// Whole milliseconds, rounded up, as the broker takes them.
fn whole_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
