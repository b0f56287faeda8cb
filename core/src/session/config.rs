//! What a session is told at its start.

use std::fmt;
use std::time::Duration;

use super::error::ConfigError;
use crate::connection::{ConnectionConfig, Uri};
use crate::topology::{Queue, QueuePlan};

/// Everything that a [`Session`](super::Session) is told at its start.
///
/// # Memory
///
/// What waits for the broker is bounded by `max_waiting` messages and `max_waiting_bytes` of bodies, counted until
/// the broker's verdict. What was delivered is bounded by twice the sum of the prefetch counts, and is half of that
/// unless the broker cancels consumers: a link that brings more is cut. What a link has encoded
/// and not written is bounded by [`ConnectionConfig::max_unsent_bytes`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionConfig {
    /// Where to connect, tried in this order. At least one.
    pub endpoints: Vec<Endpoint>,
    /// How to log in and what to agree on, the same for both links.
    pub connection: ConnectionConfig,
    /// The queues that this session may use. They are declared when the publishing link opens.
    pub queues: Vec<Queue>,
    /// How to go on after a link was cut.
    pub reconnect: Reconnect,
    /// Bound on one attempt to connect, from the request for a socket to `connection.open-ok`; before the session has
    /// started, to the broker's answer for the last queue. Default 10 s.
    pub connect_timeout: Duration,
    /// Publishes in flight on one channel. Default 1,000; zero counts as one.
    pub max_in_flight: usize,
    /// Enqueued jobs without a verdict. Default 10,000.
    pub max_waiting: usize,
    /// Bytes of bodies of enqueued jobs without a verdict. Default 64 MiB. One job is always accepted.
    pub max_waiting_bytes: usize,
    /// How long an enqueued job may be without a verdict: because no link is up, the broker blocks publishers, or it
    /// does not confirm. Then it is answered with [`EnqueueError::TimedOut`](super::EnqueueError::TimedOut) if it was
    /// not sent, else with [`EnqueueError::Unconfirmed`](super::EnqueueError::Unconfirmed). Default 60 s.
    pub max_wait: Duration,
    /// How long a delivery rests before it is requeued, when its successor could not be published.
    /// Default 1 s. It keeps a failing target from spinning.
    pub requeue_pause: Duration,
}

impl SessionConfig {
    /// A configuration with the defaults stated at each field and no queues.
    #[must_use]
    pub fn new(endpoint: Endpoint, connection: ConnectionConfig) -> Self {
        Self {
            endpoints: vec![endpoint],
            connection,
            queues: Vec::new(),
            reconnect: Reconnect::default(),
            connect_timeout: Duration::from_secs(10),
            max_in_flight: 1_000,
            max_waiting: 10_000,
            max_waiting_bytes: 64 << 20,
            max_wait: Duration::from_secs(60),
            requeue_pause: Duration::from_secs(1),
        }
    }

    /// Parses the queue descriptions, so that what runs cannot be wrong.
    pub(super) fn plans(&self) -> Result<Vec<QueuePlan>, ConfigError> {
        if self.endpoints.is_empty() {
            return Err(ConfigError::NoEndpoint);
        }
        let mut plans: Vec<QueuePlan> = Vec::with_capacity(self.queues.len());
        for queue in &self.queues {
            let plan = queue.plan().map_err(ConfigError::Queue)?;
            match plans.iter().find(|known| known.name() == plan.name()) {
                Some(known) => {
                    if let Some(setting) = known.description().differs_in(queue) {
                        return Err(ConfigError::TwoDescriptions { queue: plan.name().clone(), setting });
                    }
                }
                None => plans.push(plan),
            }
        }
        Ok(plans)
    }
}

impl From<Uri> for SessionConfig {
    /// The endpoint, credentials, virtual host and limits of an AMQP URI.
    fn from(uri: Uri) -> Self {
        let connection = uri.connection_config();
        let mut config = Self::new(Endpoint { host: uri.host, port: uri.port }, connection);
        if let Some(timeout) = uri.connection_timeout {
            config.connect_timeout = timeout;
        }
        config
    }
}

/// A host and port to connect to. The host is resolved anew at every attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// A host name or an address; an IPv6 address without brackets.
    pub host: String,
    /// The TCP port; 5672 for plain AMQP.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// How a link that was cut comes back: exponential pauses with full jitter, without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The first pause is random below this. Default 500 ms.
    pub base: Duration,
    /// No pause is longer. Default 30 s.
    pub max: Duration,
    /// A link that stayed up for this long starts again with the first pause. Default 10 s.
    pub stable_after: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(500),
            max: Duration::from_secs(30),
            stable_after: Duration::from_secs(10),
        }
    }
}

impl Reconnect {
    /// The pause before the next round, after `failures` rounds that failed one after another.
    ///
    /// At least a tenth of the computed pause, so that random bits near zero do not make a storm.
    pub(super) fn pause(&self, failures: u32, random: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.min(31));
        let ceiling = self.base.saturating_mul(doubled).min(self.max);
        let floor = ceiling / 10;
        let span = u64::try_from((ceiling - floor).as_nanos()).unwrap_or(u64::MAX);
        floor + Duration::from_nanos(random.checked_rem(span).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_reconnect_pause_never_exceeds_its_maximum_and_is_never_a_storm(
            failures: u32, random: u64, base in 1_u64..10_000, max in 1_u64..100_000,
        ) {
            let policy = Reconnect {
                base: Duration::from_millis(base), max: Duration::from_millis(max), ..Reconnect::default()
            };
            let pause = policy.pause(failures, random);
            prop_assert!(pause <= policy.max);
            prop_assert!(pause >= policy.base.min(policy.max) / 10);
        }
    }
}
