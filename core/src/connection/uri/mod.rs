//! AMQP URIs, by RabbitMQ's URI specification and its query parameters.
//!
//! ```text
//! amqps://user:password@host:port/vhost?heartbeat=5&cacertfile=/etc/ssl/ca.pem
//! ```
//!
//! | part | default | rule |
//! |---|---|---|
//! | scheme | | `amqp`, or `amqps` for TLS from the first byte; in any case |
//! | user name, password | `guest`, `guest` | with a user name and no password, an empty one; no U+0000 |
//! | host | `localhost` | a name, an IPv4 address, or an IPv6 address in brackets, its zone after `%25`: `[fe80::1%25eth0]` |
//! | port | 5672; `amqps` 5671 | 1 to 65,535 |
//! | virtual host | `/` | one path segment of at most 255 bytes: `/%2f` is `/`, and a path of only `/` is the virtual host with the empty name |
//!
//! | parameter | what it is | value | default |
//! |---|---|---|---|
//! | `heartbeat` | proposed heartbeat | 0 to 65,535 s; 0 leaves it to the server | 30 |
//! | `connection_timeout` | bound on connecting, from the socket to `connection.open-ok` | 1 to 4,294,967,295 ms | 10,000 |
//! | `channel_max` | highest channel number | 0 to 65,535; 0 for as many as the server allows | 2,047 |
//! | `frame_max` | largest frame | 8,192 to 4,294,967,295 bytes | 131,072 |
//! | `auth_mechanism` | SASL mechanism, several times in the order in which they are wanted | `plain`, `amqplain`, `external`, in any case | `plain`, `amqplain` |
//! | `cacertfile` | authorities to trust | path of a PEM file | those of the system |
//! | `certfile`, `keyfile` | client certificate and its key, both or neither | paths of PEM files | none |
//! | `verify` | whether the server must prove who it is | `verify_peer`, `verify_none` | `verify_peer` |
//! | `server_name_indication` | name to ask for and to expect in the server's certificate | a host name or an address | the host |
//!
//! The last five are for `amqps` alone. A parameter that comes twice (but for `auth_mechanism`) or that is not in the
//! table is an error: it would be ignored otherwise, and nobody would notice. With `external` alone there is no
//! default user name, and a client certificate is needed.
//!
//! Every part is percent-decoded as UTF-8, names and values of parameters as well; `+` stays `+`. `/`, `?`, `#` and `@`
//! must be encoded in user name, password and virtual host, `:` in the user name, `&` and `#` in a value.
//!
//! - [`Uri`] is one URI that was read and found possible; [`UriBuilder`] makes or changes one from values that are not
//!   encoded.
//! - [`UriList`] is several of them, in the order in which they are tried.
//! - Nothing here shows a password: `Display` of a [`Uri`] leaves it out, no error quotes more than the name of a
//!   parameter, and nothing is `Serialize`.

mod builder;
mod error;
mod list;
mod parse;
mod print;
#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::config::ConnectionConfig;
use super::credentials::Credentials;
use super::tls::TlsConfig;
use crate::text::ShortString;

pub use self::builder::UriBuilder;
pub use self::error::UriError;
pub use self::list::{UriList, UriListError};

/// The port for AMQP without TLS.
const AMQP_PORT: u16 = 5672;
/// The port for AMQP over TLS.
const AMQPS_PORT: u16 = 5671;

/// Where to connect, as whom, and what to agree on. See the [module](self) for what a URI holds.
///
/// `Debug` and `Display` leave the password out. What `Display` writes can be parsed and is the same URI but for that:
/// [`Uri::without_password`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    host: String,
    port: u16,
    tls: Option<TlsConfig>,
    credentials: Credentials,
    virtual_host: ShortString,
    heartbeat: Option<Duration>,
    connection_timeout: Option<Duration>,
    frame_max: Option<u32>,
    channel_max: Option<u16>,
}

impl Uri {
    /// Reads a URI.
    ///
    /// ```
    /// # use leveret_core::connection::Uri;
    /// let uri = Uri::parse("amqp://ada:s%23cret@rabbit.example/%2f?heartbeat=5")?;
    /// assert_eq!((uri.host(), uri.port()), ("rabbit.example", 5672));
    /// assert_eq!(uri.virtual_host(), "/");
    /// assert_eq!(uri.to_string(), "amqp://ada@rabbit.example:5672/%2F?heartbeat=5");
    /// # Ok::<(), leveret_core::connection::UriError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UriError`], which names the part and never shows the password.
    pub fn parse(uri: &str) -> Result<Self, UriError> {
        parse::parse(uri)?.build()
    }

    /// A builder for a URI without TLS to this host, with all defaults. `host` is a name or an address, an IPv6
    /// address with or without brackets.
    pub fn builder(host: impl Into<String>) -> UriBuilder {
        UriBuilder::new(host)
    }

    /// A builder that has the parts of this URI, to change some of them. A port that is the default of the scheme
    /// follows the scheme.
    ///
    /// ```
    /// # use leveret_core::connection::Uri;
    /// let uri = Uri::parse("amqp://ada:s%23cret@rabbit.example")?.into_builder().tls(true).build()?;
    /// assert_eq!(uri.to_string(), "amqps://ada@rabbit.example:5671/%2F");
    /// # Ok::<(), leveret_core::connection::UriError>(())
    /// ```
    pub fn into_builder(self) -> UriBuilder {
        UriBuilder::from_uri(self)
    }

    /// A host name or an address; IPv6 without its brackets, with its zone after `%`.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What TLS is made with; `None` for `amqp`, which has none.
    #[must_use]
    pub const fn tls(&self) -> Option<&TlsConfig> {
        self.tls.as_ref()
    }

    /// Who connects, and by which mechanisms.
    #[must_use]
    pub const fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The virtual host.
    #[must_use]
    pub const fn virtual_host(&self) -> &ShortString {
        &self.virtual_host
    }

    /// `heartbeat`, whole seconds.
    #[must_use]
    pub const fn heartbeat(&self) -> Option<Duration> {
        self.heartbeat
    }

    /// `connection_timeout`, whole milliseconds.
    #[must_use]
    pub const fn connection_timeout(&self) -> Option<Duration> {
        self.connection_timeout
    }

    /// `frame_max`, in bytes.
    #[must_use]
    pub const fn frame_max(&self) -> Option<u32> {
        self.frame_max
    }

    /// `channel_max`.
    #[must_use]
    pub const fn channel_max(&self) -> Option<u16> {
        self.channel_max
    }

    /// The same URI with an empty password, as it is when it was printed and parsed again.
    #[must_use]
    pub fn without_password(mut self) -> Self {
        self.credentials = self.credentials.without_password();
        self
    }

    /// The configuration that the URI describes; `connection_timeout` becomes the time of the handshake. TLS is below
    /// a connection and not part of it.
    #[must_use]
    pub fn connection_config(&self) -> ConnectionConfig {
        let mut config = ConnectionConfig::new(self.credentials.clone());
        config.virtual_host = self.virtual_host.clone();
        config.heartbeat = self.heartbeat.unwrap_or(config.heartbeat);
        config.handshake_timeout = self.connection_timeout.unwrap_or(config.handshake_timeout);
        config.frame_max = self.frame_max.unwrap_or(config.frame_max);
        config.channel_max = self.channel_max.unwrap_or(config.channel_max);
        config
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(uri: &str) -> Result<Self, UriError> {
        Self::parse(uri)
    }
}

/// From a string. There is no `Serialize`: it would write the password.
impl<'de> Deserialize<'de> for Uri {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(parse::FromText { expected: "an AMQP URI", parse: Self::parse })
    }
}

const fn default_port(tls: bool) -> u16 {
    if tls { AMQPS_PORT } else { AMQP_PORT }
}
