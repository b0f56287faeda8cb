//! Which brokers there are to test against.

use std::panic::resume_unwind;
use std::sync::OnceLock;

use super::host::{say, setting};
use super::{Installation, RealBroker, RealBrokerError};

/// The brokers that all tests of this process share, found or started at the first call. See the module for where
/// they come from.
///
/// Empty where there is none; that was then said on standard error, and the test has nothing to do.
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
        say("no RabbitMQ here: tests that need one are SKIPPED (tests/run.sh sets one up)");
    }
    Ok(brokers)
}

/// The brokers of `LEVERET_AMQP_URLS`.
pub(super) fn listed(list: &str) -> Result<Vec<RealBroker>, RealBrokerError> {
    if list == "none" {
        return Ok(Vec::new());
    }
    let uris = list.split(',').map(str::trim).filter(|uri| !uri.is_empty());
    (1..).zip(uris).map(|(position, uri)| RealBroker::elsewhere(position, uri)).collect()
}

fn of_this_machine() -> Result<Vec<RealBroker>, RealBrokerError> {
    let installations = [Installation::local(), Installation::version_4()];
    std::thread::scope(|scope| {
        let start = |installation| scope.spawn(move || RealBroker::start(installation));
        let starting: Vec<_> = installations.iter().flatten().map(start).collect();
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
