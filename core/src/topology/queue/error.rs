//! Why a description of a queue cannot be kept.

use std::fmt;
use std::time::Duration;

use crate::delay::{DelayTooLong, ExactDelaysError};
use crate::topology::QueueName;

/// A description of a queue that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueError {
    /// A prefetch of 0.
    PrefetchZero {
        /// The queue described.
        queue: QueueName,
    },
    /// With the suffixes of its description, the name is that of another queue's hold.
    LooksLikeHold {
        /// The queue described.
        queue: QueueName,
    },
    /// A highest priority for a quorum queue.
    PriorityOnQuorum {
        /// The queue described.
        queue: QueueName,
        /// The priority asked for.
        max_priority: u8,
    },
    /// A delivery limit for a classic queue.
    LimitOnClassic {
        /// The queue described.
        queue: QueueName,
        /// The limit asked for.
        limit: u32,
    },
    /// A TTL of the work queue that is zero, has a part of a millisecond or is too long.
    MessageTtl {
        /// The queue described.
        queue: QueueName,
        /// The TTL asked for.
        ttl: Duration,
    },
    /// The coarse grid for replicated holds.
    CoarseReplicated {
        /// The queue described.
        queue: QueueName,
    },
    /// The exact delays of replicated holds cannot be kept.
    ExactDelays {
        /// The queue described.
        queue: QueueName,
        /// What is wrong with them.
        cause: ExactDelaysError,
    },
    /// The retry policy waits longer than a hold queue can.
    RetryTooLong {
        /// The queue described.
        queue: QueueName,
        /// The wait that is too long.
        cause: DelayTooLong,
    },
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // AMQP 0-9-1, 1.8.3.1: zero means "no specific limit".
            Self::PrefetchZero { queue } => write!(
                f,
                "the prefetch of queue {queue} is 0, which AMQP takes as unlimited: set it from 1 to 65535"
            ),
            Self::LooksLikeHold { queue } => write!(
                f,
                "with its suffixes, the queue name {queue} is that of another queue's hold: choose another name or suffix"
            ),
            Self::PriorityOnQuorum { queue, max_priority } => write!(
                f,
                "the highest priority of queue {queue} is {max_priority}, and RabbitMQ refuses x-max-priority on a \
                 quorum queue, which has its priorities without it: leave it out"
            ),
            Self::LimitOnClassic { queue, limit } => write!(
                f,
                "the delivery limit of queue {queue} is {limit}, and RabbitMQ refuses x-delivery-limit on a classic \
                 queue: leave it out, or make it a quorum queue"
            ),
            Self::MessageTtl { queue, ttl } => write!(
                f,
                "a message TTL of {ttl:?} on queue {queue} cannot be kept: use whole milliseconds, from 1ms to {:?}",
                Duration::from_millis(u32::MAX.into())
            ),
            Self::CoarseReplicated { queue } => write!(
                f,
                "the holds of queue {queue} are replicated, which have a wider grid than coarse delays: leave those \
                 out, or ask for expiring holds"
            ),
            Self::ExactDelays { queue, cause } => write!(f, "the replicated holds of queue {queue}: {cause}"),
            Self::RetryTooLong { queue, cause } => {
                write!(f, "the retry policy of queue {queue} waits too long: {cause}")
            }
        }
    }
}

impl std::error::Error for QueueError {}
