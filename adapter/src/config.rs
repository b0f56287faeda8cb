//! What a client is told at its start.

use std::time::Duration;

use leveret_core::connection::{Uri, UriError, UriList, UriListError};
use leveret_core::session::{Endpoint, Reconnect, SessionConfig};
use leveret_core::text::ShortString;

/// Where the broker is, how to log in, and the limits that a client keeps.
///
/// ```
/// # use std::time::Duration;
/// # use leveret_adapter::Config;
/// let config = Config::from_uri("amqp://guest:guest@localhost:5672/%2f")?
///     .connection_name("mailer")
///     .heartbeat(Duration::from_secs(20));
/// # Ok::<(), leveret_adapter::UriError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config(SessionConfig);

impl Config {
    /// The configuration that an AMQP URI describes: `amqp://user:password@host:port/vhost?heartbeat=20`, with the
    /// defaults of [`SessionConfig`] for what it leaves out. `amqps://` needs the cargo feature `tls`.
    ///
    /// # Errors
    ///
    /// [`UriError`] names the part that cannot be read. It never shows the password.
    pub fn from_uri(uri: &str) -> Result<Self, UriError> {
        Uri::parse(uri).map(Self::from)
    }

    /// The configuration that several AMQP URIs describe, separated by commas and tried in their order:
    /// `amqp://user:password@one,amqp://user:password@two`. They may differ in host, port and TLS alone.
    ///
    /// # Errors
    ///
    /// [`UriListError`] names the URI, and its part that cannot be read or that differs from the first. It never shows
    /// a password.
    pub fn from_uris(uris: &str) -> Result<Self, UriListError> {
        UriList::parse(uris)?.try_into().map(Self)
    }

    /// One more endpoint, tried after those before it, with the same TLS as the first one or, as that, with none.
    #[must_use]
    pub fn endpoint(mut self, host: impl Into<String>, port: u16) -> Self {
        let mut endpoint = Endpoint::new(host, port);
        endpoint.tls = self.0.endpoints.first().and_then(|first| first.tls.clone());
        self.0.endpoints.push(endpoint);
        self
    }

    /// The name that the broker's management pages show, followed by the name of the link. Cut at 255 bytes.
    #[must_use]
    pub fn connection_name(mut self, name: &str) -> Self {
        self.0.connection.connection_name = Some(ShortString::truncated(name));
        self
    }

    /// How often each side shows that it lives, in whole seconds; zero turns it off. The broker may ask for less.
    #[must_use]
    pub const fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.0.connection.heartbeat = heartbeat;
        self
    }

    /// Bound on one attempt to connect, from the socket to the opened AMQP connection. Default 10 s.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.0.connect_timeout = timeout;
        self
    }

    /// How a connection that was lost comes back.
    #[must_use]
    pub const fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.0.reconnect = reconnect;
        self
    }

    /// Everything else that can be set, and the memory that it can cost.
    pub const fn session_mut(&mut self) -> &mut SessionConfig {
        &mut self.0
    }

    pub(crate) fn into_session(self) -> SessionConfig {
        self.0
    }
}

impl From<Uri> for Config {
    /// The configuration of a URI that was read or [built](crate::UriBuilder) before.
    fn from(uri: Uri) -> Self {
        Self(uri.into())
    }
}

impl From<SessionConfig> for Config {
    fn from(config: SessionConfig) -> Self {
        Self(config)
    }
}
