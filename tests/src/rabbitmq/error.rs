//! Why there is no real broker to test against.

use std::fmt;
use std::io;

/// Why a real broker cannot be used.
#[non_exhaustive]
pub enum RealBrokerError {
    /// `LEVERET_REQUIRE_BROKER=1`, and there is no broker.
    Missing,
    /// An entry of `LEVERET_AMQP_URLS` cannot be used.
    Uri {
        /// Its place in the list, from 1. The text is not repeated: it may hold a password.
        position: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The machine refused something that a server needs.
    Io {
        /// What was attempted.
        attempt: String,
        /// The cause.
        source: io::Error,
    },
    /// Something other than an AMQP 0-9-1 broker answers.
    NotAmqp {
        /// Where.
        address: String,
        /// What it sent instead of `connection.start`.
        found: String,
    },
    /// A server was started and did not come up.
    Start {
        /// Which one.
        installation: String,
        /// What happened.
        problem: String,
        /// The end of what it printed.
        output: String,
    },
    /// A command for the broker's operator failed.
    Control {
        /// The command.
        command: String,
        /// What it printed.
        output: String,
    },
    /// A command for the broker's operator, on a broker that somebody else operates.
    NotOurs,
}

impl RealBrokerError {
    pub(super) fn io(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let attempt = attempt.into();
        |source| Self::Io { attempt, source }
    }
}

impl fmt::Display for RealBrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "no RabbitMQ found, and LEVERET_REQUIRE_BROKER=1 makes that a failure: run tests/run.sh, which \
                 sets one up, install rabbitmq-server, or name running brokers in LEVERET_AMQP_URLS",
            ),
            Self::Uri { position, problem } => {
                write!(f, "LEVERET_AMQP_URLS, entry {position}: {problem}; write amqp://user:password@host:port/vhost")
            }
            Self::Io { attempt, source } => write!(f, "cannot {attempt}: {source}"),
            Self::NotAmqp { address, found } => {
                write!(f, "{address} does not speak AMQP 0-9-1: it answered with {found}")
            }
            Self::Start { installation, problem, output } => {
                write!(f, "{installation} did not start: {problem}; the end of its output:\n{output}")
            }
            Self::Control { command, output } => write!(f, "rabbitmqctl {command} failed:\n{output}"),
            Self::NotOurs => f.write_str(
                "rabbitmqctl works only on brokers that the suite started: this one is from LEVERET_AMQP_URLS",
            ),
        }
    }
}

impl fmt::Debug for RealBrokerError {
    // A test unwraps this, and whoever reads its failure needs the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RealBrokerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
