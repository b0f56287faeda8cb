//! Why a text is no name.

use std::fmt;

use super::queue::QUEUE_NAME_MAX;
use crate::text::{SHORT_STRING_MAX, ShortString};

/// What a name names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameKind {
    /// A job queue.
    Queue,
    /// An exchange.
    Exchange,
    /// A routing key.
    RoutingKey,
    /// A header of a message.
    HeaderKey,
    /// A consumer.
    ConsumerTag,
    /// What stands between the name of a job queue and what belongs to it.
    Suffix,
}

impl NameKind {
    /// The longest name of this kind, in bytes.
    #[must_use]
    pub const fn max_bytes(self) -> usize {
        match self {
            Self::Queue => QUEUE_NAME_MAX,
            Self::Suffix => SHORT_STRING_MAX - QUEUE_NAME_MAX,
            Self::Exchange | Self::RoutingKey | Self::HeaderKey | Self::ConsumerTag => SHORT_STRING_MAX,
        }
    }

    pub(super) const fn may_be_empty(self) -> bool {
        matches!(self, Self::Exchange | Self::RoutingKey)
    }
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue name",
            Self::Exchange => "exchange name",
            Self::RoutingKey => "routing key",
            Self::HeaderKey => "header name",
            Self::ConsumerTag => "consumer tag",
            Self::Suffix => "suffix",
        })
    }
}

/// Why a text is no name of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The text is empty, which AMQP reads as "let the server choose".
    Empty {
        /// What it was to name.
        of: NameKind,
    },
    /// The text is longer than [`NameKind::max_bytes`].
    TooLong {
        /// What it was to name.
        of: NameKind,
        /// The length found, in bytes.
        bytes: usize,
    },
    /// The text holds a control character.
    ControlCharacter {
        /// What it was to name.
        of: NameKind,
        /// The character found.
        character: char,
        /// Where, in bytes from the start.
        at: usize,
    },
    /// The text starts with `amq.`, which RabbitMQ keeps for itself (AMQP 0-9-1, 1.7.2.1).
    ReservedPrefix {
        /// What it was to name.
        of: NameKind,
        /// The text.
        name: ShortString,
    },
    /// The text is the name of a hold queue of another job queue.
    HoldName {
        /// The text.
        name: ShortString,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { of } => write!(f, "the {of} is empty: give it at least one character"),
            Self::TooLong { of: of @ NameKind::Queue, bytes } => write!(
                f,
                "the {of} has {bytes} bytes, at most {QUEUE_NAME_MAX} leave room for the names of its hold \
                 queues: shorten it"
            ),
            Self::TooLong { of, bytes } => {
                write!(f, "the {of} has {bytes} bytes, at most {} are possible: shorten it", of.max_bytes())
            }
            Self::ControlCharacter { of, character, at } => {
                write!(f, "the {of} has the control character {character:?} at byte {at}: leave it out")
            }
            Self::ReservedPrefix { of, name } => {
                write!(
                    f,
                    "the {of} {name:?} starts with `amq.`, which the broker keeps for itself: choose another"
                )
            }
            Self::HoldName { name } => write!(
                f,
                "the queue name {name:?} ends like a hold queue (`.deferred.` or `.held.` and digits), which \
                 another queue could need: choose another"
            ),
        }
    }
}

impl std::error::Error for NameError {}
