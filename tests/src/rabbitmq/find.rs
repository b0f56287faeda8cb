//! Which brokers there are to test against.

use std::panic::resume_unwind;
use std::sync::OnceLock;

use super::host::setting;
use super::{Installation, RealBroker, RealBrokerError};
use crate::skip::{say, skip};

/// The value of `LEVERET_AMQP_URLS` that asks for no broker.
const NONE: &str = "none";

/// The brokers that all tests of this process share, found or started at the first call. See the module for where
/// they come from.
///
/// Empty where there is none, for a test that has the embedded broker as well: see [`needed_brokers`].
///
/// # Errors
///
/// [`RealBrokerError::Missing`] where one is required and there is none; otherwise why one that is there does not
/// work. Every call gives the same answer.
pub fn brokers() -> Result<&'static [RealBroker], &'static RealBrokerError> {
    // Never dropped: the leashes of the servers pull when the process ends.
    static FOUND: OnceLock<Result<Vec<RealBroker>, RealBrokerError>> = OnceLock::new();
    FOUND.get_or_init(find).as_deref()
}

/// As [`brokers`], for a test that has nothing to do without: where there is none, it is [skipped](skip).
///
/// # Errors
///
/// As [`brokers`].
pub fn needed_brokers() -> Result<&'static [RealBroker], &'static RealBrokerError> {
    let brokers = brokers()?;
    if brokers.is_empty() {
        skip(why_none());
    }
    Ok(brokers)
}

/// Those of [`brokers`] that the suite started, so that they take its orders. Where there is none, the test is
/// [skipped](skip).
///
/// # Errors
///
/// As [`brokers`].
pub fn our_brokers() -> Result<Vec<&'static RealBroker>, &'static RealBrokerError> {
    let brokers = needed_brokers()?;
    let ours: Vec<_> = brokers.iter().filter(|broker| broker.is_ours()).collect();
    if ours.is_empty() && !brokers.is_empty() {
        skip("the brokers of LEVERET_AMQP_URLS take no orders from the suite");
    }
    Ok(ours)
}

/// The servers of this machine that a test can start, other than those of [`brokers`]. Where there is none, the
/// test is [skipped](skip).
#[must_use]
pub fn needed_installations() -> Vec<Installation> {
    if is_unwanted() {
        skip(why_none());
        return Vec::new();
    }
    let found = installations();
    if found.is_empty() {
        skip("no rabbitmq-server on this machine");
    }
    found
}

fn find() -> Result<Vec<RealBroker>, RealBrokerError> {
    let brokers = match setting("LEVERET_AMQP_URLS") {
        Some(list) => listed(&list)?,
        None => match contained()? {
            Some(broker) => vec![broker],
            None => of_this_machine()?,
        },
    };
    if brokers.is_empty() {
        if setting("LEVERET_REQUIRE_BROKER").as_deref() == Some("1") {
            return Err(RealBrokerError::Missing);
        }
        if !is_unwanted() {
            say(format_args!("{}: only the embedded broker is tested", why_none()));
        }
    }
    Ok(brokers)
}

fn is_unwanted() -> bool {
    setting("LEVERET_AMQP_URLS").as_deref() == Some(NONE)
}

fn why_none() -> &'static str {
    if is_unwanted() {
        "RabbitMQ is not asked for (LEVERET_AMQP_URLS=none)"
    } else {
        "no RabbitMQ here (tests/run.sh sets one up)"
    }
}

/// The brokers of `LEVERET_AMQP_URLS`.
pub(super) fn listed(list: &str) -> Result<Vec<RealBroker>, RealBrokerError> {
    if list == NONE {
        return Ok(Vec::new());
    }
    let uris = list.split(',').map(str::trim).filter(|uri| !uri.is_empty());
    (1..).zip(uris).map(|(position, uri)| RealBroker::elsewhere(position, uri)).collect()
}

fn installations() -> Vec<Installation> {
    [Installation::local(), Installation::version_4()].into_iter().flatten().collect()
}

fn of_this_machine() -> Result<Vec<RealBroker>, RealBrokerError> {
    let installations = installations();
    std::thread::scope(|scope| {
        let start = |installation| scope.spawn(move || RealBroker::start(installation));
        let starting: Vec<_> = installations.iter().map(start).collect();
        starting
            .into_iter()
            .map(|server| server.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

#[cfg(feature = "testcontainers")]
fn contained() -> Result<Option<RealBroker>, RealBrokerError> {
    let image = setting("LEVERET_RABBITMQ_IMAGE").unwrap_or_else(|| "rabbitmq:4".to_owned());
    super::container::Container::start(&image)?.map(RealBroker::contained).transpose()
}

#[cfg(not(feature = "testcontainers"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as with the feature")]
fn contained() -> Result<Option<RealBroker>, RealBrokerError> {
    Ok(None)
}
