//! What a session is told at its start.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::error::ConfigError;
use crate::connection::{ConnectionConfig, TlsConfig, Uri, UriList, UriListError};
use crate::envelope::Limits;
use crate::topology::{Queue, QueuePlan, Severity, Topology};

/// Everything that a [`Session`](super::Session) is told at its start.
///
/// # Memory
///
/// What waits for the broker is bounded by `max_waiting` messages and `max_waiting_bytes` of bodies, counted until
/// the broker's verdict. What was delivered is bounded by twice the sum of the prefetch counts, and is half of that
/// unless the broker cancels consumers: a link that brings more is cut. Each delivery keeps its body, of up to
/// [`ConnectionConfig::max_message_bytes`], and beside it at most what `envelope_limits` allows. What a link has encoded
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
    /// What the body of a job may cost, delivered or enqueued. What is delivered beyond it is moved aside to the
    /// dead-letter queue as it is, and what is enqueued beyond it is
    /// [`EnqueueError::Unreadable`](super::EnqueueError::Unreadable). So give it to every client of a queue alike.
    ///
    /// Beside its body a delivery takes at most 512 bytes, 128 bytes for each of
    /// [`max_unknown_fields`](Limits::max_unknown_fields), and the bytes of `max_queue_bytes` and
    /// `max_correlation_id_bytes`, as texts with escapes are copied: some 73 KiB with the defaults of [`Limits`], and
    /// less than half a KiB for what services write.
    pub envelope_limits: Limits,
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
            envelope_limits: Limits::default(),
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
        check(&plans)?;
        Ok(plans)
    }
}

/// Finds what no description shows by itself: a queue that has the name of another one's dead-letter queue.
fn check(plans: &[QueuePlan]) -> Result<(), ConfigError> {
    let topology = plans.iter().fold(Topology::new(), Topology::job_queue);
    for finding in topology.check() {
        if finding.severity() == Severity::Refused {
            return Err(ConfigError::Topology(Box::new(finding)));
        }
        tracing::warn!(target: "leveret", %finding, "the description of a queue may not do what it looks like");
    }
    Ok(())
}

impl From<Uri> for SessionConfig {
    /// The endpoint, credentials, virtual host and limits of an AMQP URI.
    fn from(uri: Uri) -> Self {
        let mut config = Self::new(Endpoint::from(&uri), uri.connection_config());
        config.connect_timeout = uri.connection_timeout().unwrap_or(config.connect_timeout);
        config
    }
}

impl TryFrom<UriList> for SessionConfig {
    type Error = UriListError;

    /// The endpoints of a list of AMQP URIs, in its order, and what they agree on.
    fn try_from(list: UriList) -> Result<Self, UriListError> {
        let mut config = Self::from(list.agreed()?.clone());
        config.endpoints = list.iter().map(Endpoint::from).collect();
        Ok(config)
    }
}

/// A host and port to connect to, with TLS or without. The host is resolved anew at every attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Endpoint {
    /// A host name or an address; an IPv6 address without brackets.
    pub host: String,
    /// The TCP port; 5672 for plain AMQP, 5671 for TLS.
    pub port: u16,
    /// What TLS is made with, before anything of AMQP is sent. `None` for none. Default none.
    ///
    /// Whoever connects must fail where it cannot do that: the password would be sent in the clear.
    pub tls: Option<Arc<TlsConfig>>,
}

impl Endpoint {
    /// An endpoint without TLS.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, tls: None }
    }

    /// The same with TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: TlsConfig) -> Self {
        self.tls = Some(Arc::new(tls));
        self
    }
}

impl From<&Uri> for Endpoint {
    fn from(uri: &Uri) -> Self {
        Self { host: uri.host().to_owned(), port: uri.port(), tls: uri.tls().cloned().map(Arc::new) }
    }
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

    #[test]
    fn a_list_of_uris_becomes_endpoints_in_its_order() {
        let list = "amqps://ada:x@one/jobs?heartbeat=5&connection_timeout=7000,amqp://ada:x@[::1]/jobs?heartbeat=5&connection_timeout=7000";
        let config = SessionConfig::try_from(UriList::parse(list).unwrap()).unwrap();
        assert_eq!(
            config.endpoints,
            [Endpoint::new("one", 5671).with_tls(TlsConfig::default()), Endpoint::new("::1", 5672)]
        );
        assert_eq!(config.connection.virtual_host, "jobs");
        assert_eq!(config.connect_timeout, Duration::from_secs(7));
    }

    #[test]
    fn a_list_that_does_not_agree_is_refused() {
        let list = UriList::parse("amqp://ada:x@one,amqp://ada:x@two,amqp://ada:y@three").unwrap();
        let part = "user name, password or auth_mechanism";
        assert_eq!(SessionConfig::try_from(list).unwrap_err(), UriListError::Differs { position: 3, part });
    }

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
