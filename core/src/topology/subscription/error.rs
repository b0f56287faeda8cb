//! Why a description of a subscription cannot be kept.

use std::fmt;

use crate::delay::ExactDelaysError;
use crate::lane::{LaneCountError, PrefetchTooSmall};
use crate::text::ShortString;
use crate::topology::Finding;

/// A description of a subscription that cannot be kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// A prefetch of 0.
    PrefetchZero {
        /// The queue; empty for one that the server names.
        queue: ShortString,
    },
    /// A number of lanes that cannot be had.
    Lanes {
        /// The queue; empty for one that the server names.
        queue: ShortString,
        /// What is wrong with it.
        cause: LaneCountError,
    },
    /// Fewer deliveries in hand than lanes, so that some would never run anything.
    PrefetchBelowLanes {
        /// The queue; empty for one that the server names.
        queue: ShortString,
        /// Both numbers.
        cause: PrefetchTooSmall,
    },
    /// A queue that the server names, for a client that declares nothing.
    ServerNamedUndeclared,
    /// The exact delays of replicated holds cannot be kept.
    ExactDelays {
        /// The queue; empty for one that the server names.
        queue: ShortString,
        /// What is wrong with them.
        cause: ExactDelaysError,
    },
    /// What it needs on the broker would be refused, or lose messages: the first such finding.
    Refused(Box<Finding>),
}

impl fmt::Display for SubscriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // AMQP 0-9-1, 1.8.3.1: zero means "no specific limit".
            Self::PrefetchZero { queue } => write!(
                f,
                "the prefetch of {} is 0, which AMQP takes as unlimited: set it from 1 to 65535",
                Named(queue)
            ),
            Self::Lanes { queue, cause } => write!(f, "{}: {cause}", Named(queue)),
            Self::PrefetchBelowLanes { queue, cause } => write!(f, "{}: {cause}", Named(queue)),
            Self::ServerNamedUndeclared => f.write_str(
                "a queue that the server names exists only where it is declared, and this client declares nothing: let \
                 it declare the queue, or name one that exists",
            ),
            Self::ExactDelays { queue, cause } => {
                write!(f, "the replicated holds of {}: {cause}", Named(queue))
            }
            Self::Refused(finding) => finding.fmt(f),
        }
    }
}

impl std::error::Error for SubscriptionError {}

struct Named<'a>(&'a ShortString);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("the subscription of a server-named queue")
        } else {
            write!(f, "the subscription of queue {}", self.0)
        }
    }
}
