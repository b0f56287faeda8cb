//! What is wrong with a topology, as a value and in words.

use std::fmt;

use crate::table::Value;
use crate::text::ShortString;
use crate::topology::{DeadLetter, ExchangeName, HeaderKey, QueueName, QueueType, Role};

/// Something in a topology that will not do what it says: which thing, what about it, and what to do.
///
/// `Display` says all of it in one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it is about.
    pub subject: Subject,
    /// What is wrong.
    pub problem: Problem,
}

/// Whether a topology with a finding can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It can, and may do something else than it looks like.
    Warned,
    /// It cannot: the broker would refuse it, or lose messages without a word.
    Refused,
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Subject {
    /// A queue; the empty name is one that the server names.
    Queue(ShortString),
    /// An exchange.
    Exchange(ExchangeName),
    /// The binding of a destination to an exchange.
    Binding {
        /// The exchange.
        source: ExchangeName,
        /// The queue or exchange that is bound to it.
        destination: ShortString,
    },
}

/// Why a queue is too short-lived for what comes back to it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShortLived {
    /// It ends with its connection.
    Exclusive,
    /// It ends with its last consumer.
    AutoDelete,
    /// Nobody else knows its name.
    ServerNamed,
}

/// What is wrong. The broker's answers are given as the reply codes of AMQP: 403, 404, 406, 541.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// **Refused.** A queue of this type does not have the argument. The broker refuses it with 406.
    Unsupported {
        /// The argument.
        argument: ShortString,
        /// Its value.
        value: Value,
        /// The type of the queue.
        queue_type: QueueType,
    },
    /// **Refused.** The broker does not take the value, or takes it for something else.
    BadValue {
        /// The argument.
        argument: ShortString,
        /// Its value.
        value: Value,
        /// What it takes.
        allowed: &'static str,
    },
    /// **Refused.** Two settings say different things about one argument.
    SettingsContradict {
        /// The argument.
        argument: ShortString,
        /// The setter of the one, with its type where two types have it; `argument` for a raw argument.
        setting: &'static str,
        /// What that says.
        value: Value,
        /// The setter of the other.
        other_setting: &'static str,
        /// What that says.
        other_value: Value,
    },
    /// **Refused.** A routing key for dead letters and no exchange: 406.
    RoutingKeyWithoutExchange {
        /// The routing key.
        routing_key: Value,
    },
    /// **Refused.** Dead-lettering at least once from a queue that does not refuse publishes when it is full. The
    /// broker falls back to at most once, silently.
    AtLeastOnceWithoutRejectPublish {
        /// The value of `x-overflow`, if there is one.
        overflow: Option<Value>,
    },
    /// **Refused.** Dead-lettering at least once, and no exchange to dead-letter to.
    AtLeastOnceWithoutTarget,
    /// **Warned of.** An expiring quorum queue: a declare does not renew its lease, and what is in it is dropped.
    LeaseOfQuorumQueue {
        /// The value of `x-expires`.
        expires: Value,
    },
    /// **Refused.** A quorum queue that is transient, exclusive or auto-delete: 406.
    QuorumFlag {
        /// The flag as it is, such as `durable is false`.
        flag: &'static str,
    },
    /// **Refused.** A queue that ends with its connection and is to survive a restart of the broker.
    ExclusiveDurable,
    /// **Warned of.** A queue that does not survive a restart and is not exclusive. RabbitMQ 4.3 refuses it with 541,
    /// which closes the connection.
    TransientShared,
    /// **Refused.** A queue or exchange that is the broker's own: declaring it is 403.
    ReservedName,
    /// **Refused.** A binding to the default exchange: 403.
    BindsDefaultExchange,
    /// **Refused.** A binding to a consistent-hash exchange whose routing key is no weight: 406.
    NotAWeight {
        /// The routing key.
        routing_key: ShortString,
    },
    /// **Refused.** `max_attempts` on a quorum queue without a place for what is past it.
    MaxAttemptsWithoutDeadLetter {
        /// The number of attempts.
        max_attempts: u32,
    },
    /// **Refused.** A dead-letter target on a quorum queue, and no number of attempts after which it is used.
    DeadLetterWithoutMaxAttempts {
        /// The target.
        target: DeadLetter,
    },
    /// **Refused.** Attempts of a quorum queue can only be counted where its arguments are declared.
    AttemptsOfUndeclaredQuorumQueue,
    /// **Refused.** A delay on a queue that may be gone when the message comes back.
    DelayOnShortLived {
        /// Why it may.
        because: ShortLived,
    },
    /// **Refused.** The waiting queue of a queue is that queue: what should wait would be delivered at once.
    DelayIntoItself,
    /// **Refused.** What a subscription gives up is published to where it comes back at once.
    DeadLetterIntoItself {
        /// The target.
        target: DeadLetter,
    },
    /// **Refused.** The count of retries is in a header that has a meaning of its own, so that a copy may lose the
    /// count, or that meaning.
    RetryCountHeaderTaken {
        /// The header.
        header: HeaderKey,
    },
    /// **Refused.** Hold queues are declared on demand, and this client declares nothing.
    HoldsWithoutDeclaring,
    /// **Refused.** A length limit on a queue with delays: what is released into a full queue is lost without a word.
    DelaysBesideLengthLimit {
        /// The argument.
        argument: ShortString,
        /// Its value.
        value: Value,
    },
    /// **Warned of.** A time to live on a queue with delays: what comes back dies if it is not consumed in time.
    DelaysBesideTtl {
        /// The time to live.
        ttl: Value,
    },
    /// **Refused.** A queue of a hold queue's name with other properties: the hold could not be declared, or would lose
    /// messages.
    NotTheHoldOfItsName {
        /// The job queue whose hold has this name.
        owner: QueueName,
        /// The property that differs.
        property: ShortString,
        /// What it is.
        value: Option<Value>,
        /// What a hold of this name has.
        wanted: Option<Value>,
    },
    /// **Refused.** A queue that is described for itself and belongs to another one by its name.
    BelongsToAnother {
        /// The other one.
        owner: QueueName,
        /// What it is to that.
        role: Role,
    },
    /// **Refused.** Two descriptions of one queue or exchange that differ.
    DescriptionsDiffer {
        /// The property, or the setting of a job queue.
        property: ShortString,
        /// What the first says; `None` where it says nothing.
        first: Option<Value>,
        /// What the other says.
        second: Option<Value>,
    },
    /// **Refused.** Two descriptions of one job queue that differ in a setting which is not declared.
    JobQueuesDiffer {
        /// The name of the setter.
        setting: &'static str,
    },
    /// **Refused** where it is certain, **warned of** otherwise. Messages that die by themselves come around. The
    /// broker drops a message that comes back to a queue in which it died, unless it was rejected on the way.
    DeadLetterCycle {
        /// The queues on the way, back to the first.
        queues: Vec<ShortString>,
        /// Whether messages take this way for sure, or depending on their routing keys and headers.
        certain: bool,
    },
    /// **Warned of.** Nothing here declares the exchange or queue to which a queue dead-letters, or nothing is bound to
    /// it. Where it is missing, messages are discarded without a word.
    DeadLetterTargetUnknown {
        /// The exchange.
        exchange: ShortString,
        /// The routing key, where it is fixed.
        routing_key: Option<ShortString>,
    },
    /// **Warned of.** Nothing here declares the alternate exchange.
    AlternateUnknown {
        /// The exchange.
        exchange: ShortString,
    },
    /// **Warned of.** Nothing here declares the exchange of a binding: 404 where it is missing.
    SourceUnknown,
    /// **Warned of.** Nothing here declares the destination of a binding: 404 where it is missing.
    DestinationUnknown,
}

impl Finding {
    /// Whether the topology can be used with it.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.problem.severity()
    }

    pub(in crate::topology) const fn of_queue(name: ShortString, problem: Problem) -> Self {
        Self { subject: Subject::Queue(name), problem }
    }
}

impl Problem {
    const fn severity(&self) -> Severity {
        match self {
            Self::LeaseOfQuorumQueue { .. }
            | Self::TransientShared
            | Self::DelaysBesideTtl { .. }
            | Self::DeadLetterCycle { certain: false, .. }
            | Self::DeadLetterTargetUnknown { .. }
            | Self::AlternateUnknown { .. }
            | Self::SourceUnknown
            | Self::DestinationUnknown => Severity::Warned,
            _ => Severity::Refused,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warned => "warned",
            Self::Refused => "refused",
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) if name.is_empty() => f.write_str("a queue that the server names"),
            Self::Queue(name) => write!(f, "queue {:?}", name.as_str()),
            Self::Exchange(name) if name.is_default() => f.write_str("the default exchange"),
            Self::Exchange(name) => write!(f, "exchange {:?}", name.as_str()),
            Self::Binding { source, destination } => {
                write!(f, "the binding of {:?} to exchange {:?}", destination.as_str(), source.as_str())
            }
        }
    }
}

impl fmt::Display for ShortLived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive, and ends with its connection",
            Self::AutoDelete => "auto-delete, and ends with its last consumer",
            Self::ServerNamed => "named by the server, and has another name after a reconnect",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.problem)
    }
}

impl std::error::Error for Finding {}
