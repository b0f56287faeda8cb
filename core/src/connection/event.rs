//! What a connection tells its owner.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::content::{Content, Delivery};
use super::{ChannelId, CloseReason, ConnectionError, Negotiated};
use crate::text::ShortString;

/// Something happened. Events of one channel come in the order in which the server caused them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is done: commands are taken.
    Opened {
        /// The limits of the connection.
        negotiated: Negotiated,
        /// Who the server says it is.
        server: ServerInfo,
    },
    /// The server opened a channel. Commands may have been queued on it before.
    ChannelOpened {
        /// The channel.
        channel: ChannelId,
    },
    /// The channel is in confirm mode.
    ConfirmSelected {
        /// The channel.
        channel: ChannelId,
    },
    /// The server took our wish to get deliveries or not.
    FlowSet {
        /// The channel.
        channel: ChannelId,
        /// Whether deliveries come.
        active: bool,
    },
    /// The channel works in transactions.
    TxSelected {
        /// The channel.
        channel: ChannelId,
    },
    /// What was published and settled since the last commit or rollback is done.
    TxCommitted {
        /// The channel.
        channel: ChannelId,
    },
    /// What was published since the last commit or rollback is dropped, and what was settled is to be settled
    /// again, under the same tags.
    TxRolledBack {
        /// The channel.
        channel: ChannelId,
    },
    /// An exchange is there.
    ExchangeDeclared {
        /// The channel.
        channel: ChannelId,
    },
    /// An exchange is gone.
    ExchangeDeleted {
        /// The channel.
        channel: ChannelId,
    },
    /// A route between an exchange and a queue, or another exchange, is there.
    Bound {
        /// The channel.
        channel: ChannelId,
    },
    /// A route is gone.
    Unbound {
        /// The channel.
        channel: ChannelId,
    },
    /// A queue is there.
    QueueDeclared {
        /// The channel.
        channel: ChannelId,
        /// Its name.
        name: ShortString,
        /// Messages ready in it. Approximate on some queue types: nothing should depend on it.
        messages: u32,
        /// Its consumers.
        consumers: u32,
    },
    /// A queue has nothing ready any more.
    QueuePurged {
        /// The channel.
        channel: ChannelId,
        /// Messages that were dropped.
        messages: u32,
    },
    /// A queue is gone.
    QueueDeleted {
        /// The channel.
        channel: ChannelId,
        /// Messages that went with it.
        messages: u32,
    },
    /// The prefetch holds for the consumers that are started from now on.
    PrefetchSet {
        /// The channel.
        channel: ChannelId,
    },
    /// Deliveries for a consumer may come.
    ConsumeStarted {
        /// The channel.
        channel: ChannelId,
        /// The consumer.
        consumer_tag: ShortString,
    },
    /// A consumer gets no more deliveries. Those it got can still be settled. Told once per consumer.
    ConsumerCancelled {
        /// The channel.
        channel: ChannelId,
        /// The consumer.
        consumer_tag: ShortString,
        /// Whether the server did it by itself, for example because the queue was deleted.
        by_server: bool,
    },
    /// A message for a consumer. It must be settled, unless [`Delivery::must_settle`] says that it need not.
    Delivery(Delivery),
    /// The answer to a [`Connection::get`](super::Connection::get). It must be settled like a delivery.
    Got {
        /// The message.
        delivery: Delivery,
        /// Messages left ready in the queue. Approximate: nothing should depend on it.
        messages: u32,
    },
    /// The answer to a [`Connection::get`](super::Connection::get): the queue has nothing ready.
    GetEmpty {
        /// The channel.
        channel: ChannelId,
    },
    /// Everything that was delivered on the channel before this and not settled comes again.
    Recovered {
        /// The channel.
        channel: ChannelId,
    },
    /// What became of a publish. Each publish on a channel in confirm mode gets exactly one.
    Verdict {
        /// The channel.
        channel: ChannelId,
        /// The number that [`Connection::publish`](super::Connection::publish) gave.
        sequence: u64,
        /// What became of it.
        verdict: Verdict,
    },
    /// A mandatory publish that gets no verdict, since its channel does not confirm, reached no queue. In
    /// transactions it comes with the commit.
    Returned {
        /// The channel.
        channel: ChannelId,
        /// Why it came back.
        returned: Returned,
        /// The message.
        content: Content,
    },
    /// A channel ended. Verdicts of its open publishes came before; commands that were not answered will not be.
    ChannelClosed {
        /// The channel. Its number may come back with the next channel, once this event is taken out.
        channel: ChannelId,
        /// Why.
        cause: ChannelClosed,
    },
    /// The server stopped reading what is published, because it is short of memory or disk. Publishes stay
    /// queued.
    Blocked {
        /// The server's reason.
        reason: ShortString,
    },
    /// The server reads again.
    Unblocked,
    /// The server has taken the secret of [`Connection::update_secret`](super::Connection::update_secret).
    SecretUpdated,
    /// After a [`PublishError::Full`](super::PublishError::Full): at most half of the limit is queued.
    Writable,
    /// The connection ended; the last event. Bytes that [`Connection::poll_transmit`] still gives, such as the
    /// answer to a close, should be written before the byte stream is dropped.
    ///
    /// [`Connection::poll_transmit`]: super::Connection::poll_transmit
    Closed(Arc<ConnectionError>),
}

/// Who a server says it is. Empty where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The product, such as `RabbitMQ`; cut at 255 bytes.
    pub product: ShortString,
    /// Its version, such as `4.0.5`; cut at 255 bytes.
    pub version: ShortString,
}

/// What became of a publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The broker has it: routed, if it was mandatory, and confirmed.
    Ok,
    /// No queue took it.
    Unroutable(Returned),
    /// The broker could not take it.
    Nacked,
    /// The channel or the connection ended before the broker said anything: it may have it or not.
    Unknown(ChannelClosed),
}

/// Why a mandatory message came back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Returned {
    /// The reply code, usually 312.
    pub code: u16,
    /// The reply text, usually `NO_ROUTE`.
    pub text: ShortString,
}

impl fmt::Display for Returned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.text)
    }
}

/// Why a channel ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelClosed {
    /// The server closed it.
    Peer(CloseReason),
    /// We closed it.
    Ours,
    /// Its connection ended.
    ConnectionEnded(Arc<ConnectionError>),
}

impl fmt::Display for ChannelClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer(reason) => write!(f, "the server closed the channel: {reason}"),
            Self::Ours => f.write_str("the channel was closed"),
            Self::ConnectionEnded(error) => write!(f, "the connection ended: {error}"),
        }
    }
}

/// Events that were not taken out yet.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<Event>,
    /// Bytes of the messages in `queue`.
    content_bytes: usize,
}

impl Events {
    /// Reading stops at so many events. One frame can cause more, at most one for each unconfirmed publish.
    const MAX_QUEUED: usize = 1_024;
    /// Reading stops at so many bytes of messages, properties and bodies.
    const MAX_CONTENT_BYTES: usize = 8 * 1024 * 1024;

    pub(super) fn push(&mut self, event: Event) {
        self.content_bytes += content_bytes(&event);
        self.queue.push_back(event);
    }

    pub(super) fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        events.into_iter().for_each(|event| self.push(event));
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.queue.pop_front()?;
        self.content_bytes -= content_bytes(&event);
        Some(event)
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= Self::MAX_QUEUED || self.content_bytes >= Self::MAX_CONTENT_BYTES
    }
}

fn content_bytes(event: &Event) -> usize {
    match event {
        Event::Delivery(delivery) | Event::Got { delivery, .. } => delivery.content().bytes(),
        Event::Returned { content, .. } => content.bytes(),
        _ => 0,
    }
}
