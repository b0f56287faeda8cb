//! What the broker reports: sockets to close, and a log of what it did for those who check it.

use std::collections::VecDeque;
use std::fmt;

use leveret_core::text::ShortString;

/// One accepted TCP connection. Ids are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(super) u64);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {}", self.0)
    }
}

/// Something that the broker did. Queues are of any virtual host; `message_id` is the property of that name,
/// where it is text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokerEvent {
    /// Close the socket of this connection: all that was to be sent has been taken by `poll_transmit`, or
    /// will never be sent. The connection is forgotten.
    CloseSocket {
        /// The connection.
        conn: ConnectionId,
    },
    /// The handshake is done.
    Opened {
        /// The connection.
        conn: ConnectionId,
        /// The `connection_name` that the client gave.
        name: Option<ShortString>,
    },
    /// A connection ended and its unacknowledged messages went back.
    Ended {
        /// The connection.
        conn: ConnectionId,
        /// Why.
        cause: EndCause,
    },
    /// The broker closed a channel.
    ChannelClosed {
        /// The connection.
        conn: ConnectionId,
        /// The channel number.
        channel: u16,
        /// The reply code.
        code: u16,
        /// The reply text.
        text: String,
    },
    /// A queue was made. A declaration of one that exists is no event.
    QueueCreated {
        /// The queue.
        queue: ShortString,
    },
    /// A queue is gone, with all that was in it.
    QueueDeleted {
        /// The queue.
        queue: ShortString,
        /// Why.
        cause: DeleteCause,
        /// How many ready messages were lost with it.
        messages: usize,
    },
    /// The ready messages of a queue were thrown away by `queue.purge`.
    QueuePurged {
        /// The queue.
        queue: ShortString,
        /// How many there were.
        messages: usize,
    },
    /// A publish was accepted.
    Published {
        /// The exchange; empty for the default exchange.
        exchange: ShortString,
        /// The routing key.
        routing_key: ShortString,
        /// The message.
        message_id: Option<ShortString>,
        /// How many queues it was routed to.
        queues: usize,
    },
    /// An unroutable mandatory message was sent back.
    Returned {
        /// The routing key.
        routing_key: ShortString,
        /// The message.
        message_id: Option<ShortString>,
    },
    /// A `basic.ack` or `basic.nack` was sent to a publisher.
    Confirmed {
        /// The connection.
        conn: ConnectionId,
        /// The channel number.
        channel: u16,
        /// The publish tag.
        tag: u64,
        /// Whether it covers all outstanding lower tags as well.
        multiple: bool,
        /// Acknowledged, or refused.
        ack: bool,
    },
    /// A message was given to a consumer, or to `basic.get`.
    Delivered {
        /// The queue.
        queue: ShortString,
        /// The connection.
        conn: ConnectionId,
        /// The message.
        message_id: Option<ShortString>,
        /// Whether it had been delivered before.
        redelivered: bool,
    },
    /// A message was acknowledged, and is gone.
    Acked {
        /// The queue.
        queue: ShortString,
        /// The message.
        message_id: Option<ShortString>,
    },
    /// A message was handed back, or its consumer was lost, and is ready again.
    Requeued {
        /// The queue.
        queue: ShortString,
        /// The message.
        message_id: Option<ShortString>,
    },
    /// A dead message was moved on.
    DeadLettered {
        /// The queue that it left.
        queue: ShortString,
        /// Why.
        reason: DeathReason,
        /// The routing key that it was published on with.
        routing_key: ShortString,
        /// The message.
        message_id: Option<ShortString>,
        /// How many queues took it. With 0 it is lost, as in RabbitMQ.
        queues: usize,
    },
    /// A message is lost: its queue has no dead-letter exchange.
    Dropped {
        /// The queue.
        queue: ShortString,
        /// Why.
        reason: DeathReason,
        /// The message.
        message_id: Option<ShortString>,
    },
}

/// Why a message left its queue unconsumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeathReason {
    /// Its time was over.
    Expired,
    /// A consumer rejected it without requeue.
    Rejected,
    /// The queue was full.
    MaxLength,
    /// It was delivered too often.
    DeliveryLimit,
}

impl DeathReason {
    /// The word that RabbitMQ writes into `x-death`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Rejected => "rejected",
            Self::MaxLength => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }
}

/// Why a queue was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteCause {
    /// `queue.delete`, or [`Broker::delete_queue`](super::Broker::delete_queue).
    Deleted,
    /// Unused for `x-expires`.
    Expired,
    /// Auto-delete, and the last consumer left.
    Unused,
    /// Exclusive, and its connection ended.
    OwnerGone,
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndCause {
    /// The client closed it with the close handshake.
    ClosedByClient,
    /// The client's socket ended without one.
    Lost,
    /// No byte came for two and a half heartbeats.
    HeartbeatMissed,
    /// The handshake was not done in time.
    HandshakeTimeout,
    /// What came first was not the AMQP 0-9-1 protocol header.
    NotAmqp,
    /// [`Broker::cut`](super::Broker::cut).
    Cut,
    /// The broker closed it.
    ClosedByBroker {
        /// The reply code.
        code: u16,
        /// The reply text.
        text: String,
    },
}

/// Events that nobody took yet.
#[derive(Debug)]
pub(super) struct EventLog {
    closes: VecDeque<ConnectionId>,
    log: VecDeque<BrokerEvent>,
    limit: usize,
}

impl EventLog {
    pub(super) const fn new(limit: usize) -> Self {
        Self { closes: VecDeque::new(), log: VecDeque::new(), limit }
    }

    pub(super) fn close_socket(&mut self, conn: ConnectionId) {
        self.closes.push_back(conn);
    }

    pub(super) fn push(&mut self, event: BrokerEvent) {
        if self.log.len() >= self.limit {
            self.log.pop_front();
        }
        if self.limit > 0 {
            self.log.push_back(event);
        }
    }

    /// For a driver that sees by itself which connections are gone.
    pub(super) fn forget_closes(&mut self) {
        self.closes.clear();
    }

    /// Sockets first: they are bounded by what was accepted and must not be forgotten.
    pub(super) fn pop(&mut self) -> Option<BrokerEvent> {
        match self.closes.pop_front() {
            Some(conn) => Some(BrokerEvent::CloseSocket { conn }),
            None => self.log.pop_front(),
        }
    }
}
