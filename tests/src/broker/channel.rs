//! The state of one channel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::BytesMut;
use leveret_core::text::ShortString;

use super::confirm::Confirms;
use super::error::{AmqpError, Code};
use super::message::Message;
use super::properties::Properties;
use super::queue::{Key, Position, Stored};

/// A channel of one connection, by number. Cheap to pass on, and what every method is handled "at".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) conn: super::ConnectionId,
    pub(super) channel: u16,
}

#[derive(Debug, Default)]
pub(super) struct Channel {
    /// The broker sent `channel.close`: everything but the answer is ignored (AMQP 0-9-1, 1.5.2.5).
    pub(super) closing: bool,
    /// Unacknowledged deliveries that a consumer started from now on may have; 0 is unlimited.
    pub(super) prefetch: u16,
    pub(super) consumers: BTreeMap<ShortString, Consumer>,
    /// Deliveries that were not settled yet, by delivery tag.
    pub(super) unacked: BTreeMap<u64, Unacked>,
    pub(super) confirms: Option<Confirms>,
    /// What waits for a commit, once the channel works in transactions.
    pub(super) transaction: Option<Transaction>,
    /// A publish whose content is not complete.
    pub(super) incoming: Option<Incoming>,
    /// What an empty queue name means (AMQP 0-9-1, 1.7.2.3).
    pub(super) last_queue: Option<ShortString>,
    delivered: u64,
}

#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) queue: Key,
    /// The queue's own id: a later queue of that name is another one.
    pub(super) queue_id: u64,
    pub(super) no_ack: bool,
    pub(super) prefetch: u16,
    pub(super) unacked: u32,
}

impl Consumer {
    pub(super) fn has_room(&self) -> bool {
        self.no_ack || self.prefetch == 0 || self.unacked < u32::from(self.prefetch)
    }
}

/// A delivery that awaits its acknowledgement, with all that it takes to hand the message back.
#[derive(Debug)]
pub(super) struct Unacked {
    pub(super) queue: Key,
    pub(super) queue_id: u64,
    pub(super) position: Position,
    pub(super) stored: Stored,
    /// None for `basic.get`, which no prefetch counts.
    pub(super) consumer: Option<ShortString>,
}

/// What a settlement does with its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settlement {
    Acknowledge,
    Requeue,
    Reject,
}

impl Settlement {
    pub(super) const fn refused(requeue: bool) -> Self {
        if requeue { Self::Requeue } else { Self::Reject }
    }
}

/// What was published and settled since the last commit or rollback (AMQP 0-9-1, 1.9).
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) publishes: Vec<Routed>,
    /// With their delivery tags, under which a rollback makes them outstanding again.
    pub(super) settled: Vec<(u64, Unacked, Settlement)>,
}

/// A publish, and the queues that it was for when it came.
#[derive(Debug)]
pub(super) struct Routed {
    pub(super) message: Arc<Message>,
    pub(super) targets: BTreeSet<Key>,
    pub(super) mandatory: bool,
}

/// A publish on its way in: method, then header, then body.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) exchange: ShortString,
    pub(super) routing_key: ShortString,
    pub(super) mandatory: bool,
    pub(super) immediate: bool,
    /// What the header said; the body grows as it comes and is never reserved by the claimed size.
    pub(super) content: Option<(Properties, u64)>,
    pub(super) body: BytesMut,
}

impl Incoming {
    /// The refusal of a frame that is not the one that comes next.
    pub(super) fn out_of_place(&self) -> AmqpError {
        let detail = match self.content {
            None => "expected content header for class 60, got non content header frame instead",
            Some(_) => "expected content body, got non content body frame instead",
        };
        AmqpError::new(Code::UnexpectedFrame, detail)
    }
}

impl Channel {
    /// What is left of a channel that the broker closed, until the answer comes.
    pub(super) fn closing() -> Self {
        Self { closing: true, ..Self::default() }
    }

    /// Counts a delivery: the first has tag 1.
    pub(super) const fn next_delivery_tag(&mut self) -> u64 {
        self.delivered += 1;
        self.delivered
    }

    /// Takes the deliveries that a settlement covers, oldest first. `None` if the tag is not outstanding.
    ///
    /// RabbitMQ: `multiple` needs its own tag to be outstanding too, except 0, which means all
    /// (AMQP 0-9-1, 1.8.3.13).
    pub(super) fn take_unacked(&mut self, tag: u64, multiple: bool) -> Option<BTreeMap<u64, Unacked>> {
        if multiple && tag == 0 {
            return Some(std::mem::take(&mut self.unacked));
        }
        if !self.unacked.contains_key(&tag) {
            return None;
        }
        if !multiple {
            return self.unacked.remove(&tag).map(|one| BTreeMap::from([(tag, one)]));
        }
        let later = self.unacked.split_off(&(tag.saturating_add(1)));
        Some(std::mem::replace(&mut self.unacked, later))
    }
}
