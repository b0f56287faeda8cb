//! One small error per operation, each with what was wanted, what was found and what to do.
//!
//! A text tells the whole story, that of an inner error included, so no error has a
//! [`source`](std::error::Error::source): whoever prints the chain would print the inner text twice.

use std::fmt;
use std::time::Duration;

use super::config::Endpoint;
use super::refusal::Refusal;
use crate::connection::{CloseReason, CommandError, ConnectionError, TlsFailure};
use crate::delay::DelayTooLong;
use crate::envelope::{DecodeError, PayloadError};
use crate::text::{SHORT_STRING_MAX, ShortString};
use crate::topology::{Finding, QueueError, QueueName};

/// Why a session cannot be made from its configuration. Yours to mend.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no endpoint to connect to.
    NoEndpoint,
    /// A queue's description is not usable.
    Queue(QueueError),
    /// One queue is described twice and differently.
    TwoDescriptions {
        /// The queue.
        queue: QueueName,
        /// The first setting that differs, by the name of its setter.
        setting: &'static str,
    },
    /// The queues together would be refused by the broker, or lose jobs: the first such finding.
    Topology(Box<Finding>),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEndpoint => f.write_str("no endpoint is configured: name at least one host and port"),
            Self::Queue(error) => error.fmt(f),
            Self::Topology(finding) => finding.fmt(f),
            Self::TwoDescriptions { queue, setting } => write!(
                f,
                "queue \"{queue}\" is described twice, with another {setting}: describe it once and share the description"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

/// Why there is nothing to speak AMQP over, as the adapter saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// No socket, with the operating system's or resolver's words.
    Socket(String),
    /// The endpoint asks for TLS, and there is none with the server.
    Tls(TlsFailure),
}

/// Why a socket ended, as the adapter saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disconnect {
    /// The peer ended the stream.
    Eof,
    /// Reading or writing failed, with the operating system's words.
    Io(String),
}

/// Why a link is not up.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LinkError {
    /// No socket: refused, unreachable, or a name that does not resolve.
    Unreachable {
        /// Where the connection was to go.
        endpoint: Endpoint,
        /// The operating system's or resolver's words.
        text: String,
    },
    /// The endpoint asks for TLS, and there is none with the server. It has got no password.
    Tls {
        /// Where the connection was to go.
        endpoint: Endpoint,
        /// What the adapter saw.
        failure: Box<TlsFailure>,
    },
    /// No socket and no login within the bound on an attempt.
    TimedOut {
        /// Where the connection was to go.
        endpoint: Endpoint,
        /// The bound.
        after: Duration,
    },
    /// The AMQP connection is up, and a queue was neither declared nor refused within the bound on an attempt.
    Unanswered {
        /// Where the connection went.
        endpoint: Endpoint,
        /// The bound.
        after: Duration,
    },
    /// The AMQP connection was refused or has ended.
    Connection {
        /// Where the connection went.
        endpoint: Endpoint,
        /// How it ended.
        error: ConnectionError,
    },
    /// The AMQP connection is up and cannot do what the session needs: it has too few channels.
    Unusable {
        /// Where the connection went.
        endpoint: Endpoint,
        /// What could not be done.
        error: CommandError,
    },
    /// The broker closed a channel over nothing that was sent on it.
    ChannelClosed {
        /// Where the connection went.
        endpoint: Endpoint,
        /// The broker's code and words.
        reason: CloseReason,
    },
    /// The broker delivered more than the prefetch counts can explain.
    Flooded {
        /// Where the connection went.
        endpoint: Endpoint,
        /// How many deliveries may be in hand.
        limit: usize,
    },
    /// The socket failed under the AMQP connection.
    Socket {
        /// Where the connection went.
        endpoint: Endpoint,
        /// The operating system's words.
        text: String,
    },
}

impl LinkError {
    /// Whether trying again cannot help: a refused login, a missing virtual host, a peer that speaks no AMQP or no TLS,
    /// a file for TLS that cannot be used, more queues than channels.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Connection { error, .. } => error.is_permanent(),
            Self::Tls { failure, .. } => failure.is_permanent(),
            Self::Unusable { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { endpoint, text } => write!(
                f,
                "no connection to {endpoint}: {text}; is the broker running there and listening on that port?"
            ),
            Self::Tls { endpoint, failure } => write!(f, "no connection to {endpoint}: {failure}"),
            Self::TimedOut { endpoint, after } => write!(
                f,
                "no AMQP connection to {endpoint} within {after:?}: the host or a firewall does not answer, the broker \
                 is overloaded, or something else than AMQP listens there"
            ),
            Self::Unanswered { endpoint, after } => write!(
                f,
                "{endpoint} did not answer for every queue within {after:?} of connecting: the broker is overloaded, \
                 or a node that holds one of the queues does not answer"
            ),
            Self::Connection { endpoint, error } => write!(f, "{endpoint}: {error}"),
            Self::Unusable { endpoint, error } => {
                write!(f, "{endpoint}: {error}; each queue needs a channel")
            }
            Self::ChannelClosed { endpoint, reason } => write!(
                f,
                "{endpoint} closed a channel on which nothing was published: {reason}; is it RabbitMQ, with publisher \
                 confirms?"
            ),
            Self::Flooded { endpoint, limit } => write!(
                f,
                "{endpoint} delivered more than {limit} messages before any was settled, twice the prefetch counts: does \
                 something between here and the broker repeat them?"
            ),
            Self::Socket { endpoint, text } => write!(f, "the connection to {endpoint} failed: {text}"),
        }
    }
}

impl std::error::Error for LinkError {}

/// Why the session did not start. It has ended; nothing is left open.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no session: its configuration cannot be used.
    Config(ConfigError),
    /// No endpoint could be connected to. The cause is that of the last one tried.
    Link(LinkError),
    /// The broker refused a queue.
    Refused(Refusal),
    /// The session was shut down before it was connected.
    Closed,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Link(error) => error.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Closed => f.write_str("the client was shut down before it was connected"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// Why a job was not enqueued, or why nobody knows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EnqueueError {
    /// Too much is waiting already; [`SessionEvent::Writable`](super::SessionEvent::Writable) follows.
    Full,
    /// The job cannot be written as JSON. Nothing was sent.
    Payload(PayloadError),
    /// No worker could read the job. Nothing was sent.
    Unreadable(DecodeError),
    /// The delay cannot be kept. Nothing was sent.
    DelayTooLong(DelayTooLong),
    /// The queue is described otherwise than the session knows it. Nothing was sent.
    DifferentDescription {
        /// The queue asked for.
        queue: QueueName,
        /// The first setting that differs, by the name of its setter.
        setting: &'static str,
    },
    /// The session has no description of this queue. Nothing was sent.
    UnknownQueue {
        /// The queue asked for.
        queue: QueueName,
    },
    /// The properties do not fit one frame. Nothing was sent.
    HeadersTooLarge {
        /// Their size in bytes.
        bytes: usize,
        /// The room in one frame, in bytes.
        limit: u32,
    },
    /// The headers are nested too deep. Nothing was sent.
    HeadersTooDeep {
        /// The deepest that is sent.
        limit: usize,
    },
    /// The body is larger than the configuration allows. Nothing was sent.
    BodyTooLarge {
        /// Its size in bytes.
        bytes: u64,
        /// The configured `max_message_bytes`.
        limit: u64,
    },
    /// The session is not running: not ready yet, shutting down, or ended.
    Closed,
    /// The broker refused the queue or the hold queue. Nothing was enqueued.
    Refused(Refusal),
    /// No queue took the job: it was deleted after it was declared. Nothing was enqueued.
    Unroutable {
        /// The queue that the job was published to.
        queue: ShortString,
    },
    /// The broker took no responsibility for the job, for example because the queue is full.
    Nacked {
        /// The queue that the job was published to.
        queue: ShortString,
    },
    /// The job was not written in time. Nothing was enqueued.
    TimedOut {
        /// The bound on waiting.
        after: Duration,
    },
    /// The broker closed the channel before its verdict: the job may or may not be enqueued.
    Unknown(CloseReason),
    /// The job was sent and the broker gave no verdict in time, or before the session ended: the job may or may not be
    /// enqueued.
    Unconfirmed,
}

impl fmt::Display for EnqueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => {
                f.write_str("too many jobs wait for the broker: wait until there is room, or enqueue fewer")
            }
            Self::Payload(error) => error.fmt(f),
            Self::Unreadable(error) => {
                write!(f, "no worker could read the job: {error}; put a reference to the data in the job")
            }
            Self::DelayTooLong(error) => error.fmt(f),
            Self::DifferentDescription { queue, setting } => write!(
                f,
                "queue \"{queue}\" is described with another {setting} than when this client was made: describe it \
                 once and share the description"
            ),
            Self::UnknownQueue { queue } => {
                write!(f, "queue \"{queue}\" was not given to this client: add it with Client::queue(..) before connect()")
            }
            Self::HeadersTooLarge { bytes, limit } => write!(
                f,
                "the job's properties and headers have {bytes} bytes, one frame has room for {limit}: put less there"
            ),
            Self::HeadersTooDeep { limit } => {
                write!(f, "the job's headers are nested deeper than {limit} levels: nest them less")
            }
            Self::Closed => f.write_str(
                "the client is not running: it was shut down, or its first connect has not succeeded",
            ),
            Self::BodyTooLarge { bytes, limit } => write!(
                f,
                "the job has {bytes} bytes, max_message_bytes is {limit}: put a reference to the data in the job"
            ),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unroutable { queue } => {
                write!(f, "queue \"{queue}\" does not exist any more: who deleted it?")
            }
            Self::Nacked { queue } => write!(
                f,
                "the broker did not take the job for queue \"{queue}\": is it full and set to reject publishes?"
            ),
            Self::TimedOut { after } => write!(
                f,
                "the job could not be sent within {after:?}: the broker is unreachable or blocks publishers"
            ),
            Self::Unknown(reason) => write!(
                f,
                "the broker closed the channel before its verdict ({reason}): the job may or may not be enqueued"
            ),
            Self::Unconfirmed => f.write_str(
                "the broker gave no verdict in time: the job may or may not be enqueued; enqueue it again if a second run does \
                 no harm",
            ),
        }
    }
}

impl std::error::Error for EnqueueError {}

/// Why a subscription was not begun. Yours to mend.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The session has no description of this queue.
    UnknownQueue {
        /// The queue asked for.
        queue: QueueName,
    },
    /// This session already consumes from this queue.
    AlreadySubscribed {
        /// The queue asked for.
        queue: QueueName,
    },
    /// The session is not running: not ready yet, shutting down, or ended.
    Closed,
}

impl fmt::Display for SubscribeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownQueue { queue } => {
                write!(
                    f,
                    "queue \"{queue}\" was not given to this client: add it with Client::queue(..) before connect()"
                )
            }
            Self::AlreadySubscribed { queue } => write!(
                f,
                "this client already consumes from queue \"{queue}\": give the one worker more handlers or prefetch"
            ),
            Self::Closed => f.write_str(
                "the client is not running: it was shut down, or its first connect has not succeeded",
            ),
        }
    }
}

impl std::error::Error for SubscribeError {}

/// Why a subscription ended by itself. Others go on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// The broker refused the queue or the consumer.
    Refused(Refusal),
    /// The consuming link cannot come up.
    Link(LinkError),
    /// The consuming link has no channel left for it.
    NoChannel(CommandError),
}

impl fmt::Display for SubscriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Link(error) => error.fmt(f),
            Self::NoChannel(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SubscriptionError {}

/// Why a question about a queue has no answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RequestError {
    /// The broker refused it.
    Refused(Refusal),
    /// The publishing link is down, or ended before the answer.
    Disconnected,
    /// The publishing link has no channel left for it.
    NoChannel(CommandError),
    /// The broker did not answer in time, as on a link that it blocks. A queue to be deleted may be deleted later.
    TimedOut {
        /// The bound on waiting.
        after: Duration,
    },
    /// No queue has a name as long as this: nothing was asked.
    NameTooLong {
        /// Its length, in bytes.
        bytes: usize,
    },
    /// Too many questions wait for an answer already.
    TooMany {
        /// How many may wait.
        limit: usize,
    },
    /// The session is not running: not ready yet, shutting down, or ended.
    Closed,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Disconnected => {
                f.write_str("the connection is down, or ended before the broker answered: ask again")
            }
            Self::NoChannel(error) => error.fmt(f),
            Self::TimedOut { after } => {
                write!(f, "the broker did not answer within {after:?}: does it block publishers?")
            }
            Self::NameTooLong { bytes } => {
                write!(
                    f,
                    "the queue's name has {bytes} bytes, AMQP allows {SHORT_STRING_MAX}: check the name"
                )
            }
            Self::TooMany { limit } => {
                write!(f, "{limit} questions wait for the broker already: wait for their answers first")
            }
            Self::Closed => f.write_str(
                "the client is not running: it was shut down, or its first connect has not succeeded",
            ),
        }
    }
}

impl std::error::Error for RequestError {}
