//! A real broker, whoever runs it.

use std::fmt;
use std::path::Path;

use amq_protocol::uri::{AMQPScheme, AMQPUri};

#[cfg(feature = "testcontainers")]
use super::container::Container;
use super::probe::greet;
use super::server::Server;
use super::{Installation, RealBrokerError, TlsListener, unique_name};

/// A running RabbitMQ. One that was started by [`RealBroker::start`] is killed when this is dropped.
pub struct RealBroker {
    uri: String,
    version: String,
    operator: Operator,
}

/// Who can give orders to the broker.
enum Operator {
    Server(Server),
    #[cfg(feature = "testcontainers")]
    Container(Box<Container>),
    SomebodyElse,
}

impl RealBroker {
    /// Starts a server of this machine and waits until it answers, two minutes at most.
    ///
    /// # Errors
    ///
    /// [`RealBrokerError::Start`] where it does not come up, with the end of its log; [`RealBrokerError::Io`]
    /// where it cannot even be tried.
    pub fn start(installation: &Installation) -> Result<Self, RealBrokerError> {
        Self::start_server(installation, None)
    }

    /// The same, with a TLS listener besides: [`RealBroker::tls_port`].
    ///
    /// # Errors
    ///
    /// As [`RealBroker::start`].
    pub fn start_with_tls(installation: &Installation, tls: &TlsListener) -> Result<Self, RealBrokerError> {
        Self::start_server(installation, Some(tls))
    }

    fn start_server(installation: &Installation, tls: Option<&TlsListener>) -> Result<Self, RealBrokerError> {
        let (server, greeting) = Server::start(installation, tls)?;
        let uri = format!("amqp://guest:guest@{}/%2f", server.address());
        Ok(Self { uri, version: greeting.version, operator: Operator::Server(server) })
    }

    /// Takes the broker behind the entry `uri` of a list, the `position`th.
    pub(super) fn elsewhere(position: usize, uri: &str) -> Result<Self, RealBrokerError> {
        let problem = |problem: String| RealBrokerError::Uri { position, problem };
        let parsed: AMQPUri = uri.parse().map_err(problem)?;
        if parsed.scheme != AMQPScheme::AMQP {
            return Err(problem("the suites connect without TLS".to_owned()));
        }
        let address = format!("{}:{}", parsed.authority.host, parsed.authority.port);
        let greeting = greet(&address)?;
        Ok(Self { uri: uri.to_owned(), version: greeting.version, operator: Operator::SomebodyElse })
    }

    #[cfg(feature = "testcontainers")]
    pub(super) fn contained(container: Container) -> Result<Self, RealBrokerError> {
        let address = container.address();
        let greeting = greet(&address)?;
        let uri = format!("amqp://guest:guest@{address}/%2f");
        Ok(Self { uri, version: greeting.version, operator: Operator::Container(Box::new(container)) })
    }

    /// Its URI, with credentials; the virtual host is `/` where the suite started it.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The port of 127.0.0.1 where it takes AMQP over TLS, if it was started with that.
    #[must_use]
    pub const fn tls_port(&self) -> Option<u16> {
        match &self.operator {
            Operator::Server(server) => server.tls_port(),
            _ => None,
        }
    }

    /// The directory of a server that was started: a place for files that belong to it, and are removed with it.
    #[must_use]
    pub fn dir(&self) -> Option<&Path> {
        match &self.operator {
            Operator::Server(server) => Some(server.dir()),
            _ => None,
        }
    }

    /// Its version, such as `3.10.8`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The number before the first dot of its version; 0 where there is none.
    #[must_use]
    pub fn major_version(&self) -> u32 {
        self.version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Whether the suite started it, so that it takes orders: [`RealBroker::ctl`].
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        !matches!(self.operator, Operator::SomebodyElse)
    }

    /// Runs `rabbitmqctl` with these arguments (about a second) and gives what it printed.
    ///
    /// # Errors
    ///
    /// [`RealBrokerError::Control`] where it fails, [`RealBrokerError::NotOurs`] on a broker that the suite did
    /// not start.
    pub fn ctl(&self, arguments: &[&str]) -> Result<String, RealBrokerError> {
        match &self.operator {
            Operator::Server(server) => server.ctl(arguments),
            #[cfg(feature = "testcontainers")]
            Operator::Container(container) => container.ctl(arguments),
            Operator::SomebodyElse => Err(RealBrokerError::NotOurs),
        }
    }

    /// The arguments of a queue of the virtual host `/`, as `name,value` in the order of the names; `None` where there
    /// is no such queue.
    ///
    /// # Errors
    ///
    /// As [`RealBroker::ctl`].
    pub fn queue_arguments(&self, queue: &str) -> Result<Option<Vec<String>>, RealBrokerError> {
        let listed = self.ctl(&["list_queues", "--silent", "name", "arguments"])?;
        let mut rows = listed.lines().filter_map(|line| line.split_once('\t'));
        Ok(rows.find(|(name, _)| *name == queue).map(|(_, column)| arguments(column)))
    }

    /// The URI of a new, empty virtual host, for one test alone. Costs about two seconds.
    ///
    /// On a broker that the suite did not start it is the URI as it was given, since nobody may create virtual hosts
    /// there: combine it with [`unique_name`]s.
    ///
    /// # Errors
    ///
    /// [`RealBrokerError::Control`] where the broker refuses.
    pub fn vhost(&self) -> Result<String, RealBrokerError> {
        if !self.is_ours() {
            return Ok(self.uri.clone());
        }
        let name = unique_name("test");
        self.ctl(&["add_vhost", &name])?;
        self.ctl(&["set_permissions", "--vhost", &name, "guest", ".*", ".*", ".*"])?;
        let server = self.uri.strip_suffix("/%2f").unwrap_or(&self.uri);
        Ok(format!("{server}/{name}"))
    }
}

impl fmt::Debug for RealBroker {
    // Without the URI, which may hold somebody's password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealBroker").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Reads what `rabbitmqctl` prints for arguments, such as `[{"x-queue-type","classic"},{"x-max-priority",10}]`.
fn arguments(column: &str) -> Vec<String> {
    let pairs = column.trim_start_matches('[').trim_end_matches(']').split("},{");
    // An empty string is an empty list to the tool.
    let pair = |pair: &str| pair.trim_matches(['{', '}']).replace('"', "").replace("[]", "");
    let mut found: Vec<String> = pairs.map(pair).filter(|pair| !pair.is_empty()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rabbitmqctl_prints_for_arguments_is_read() {
        let column = r#"[{"x-dead-letter-exchange",[]},{"x-message-ttl",30000},{"x-queue-type","classic"}]"#;
        assert_eq!(
            arguments(column),
            ["x-dead-letter-exchange,", "x-message-ttl,30000", "x-queue-type,classic"]
        );
        assert_eq!(arguments("[]"), [""; 0]);
    }
}
