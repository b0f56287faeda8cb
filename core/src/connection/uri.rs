//! AMQP URIs, by RabbitMQ's rules: `amqp://user:password@host:port/vhost?heartbeat=5`.

use std::fmt;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::config::{ConnectionConfig, Credentials};
use super::{MIN_FRAME_MAX, ShortString};

/// The port for AMQP without TLS.
const DEFAULT_PORT: u16 = 5672;

/// Where to connect and as whom. `Debug` does not show the password.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Uri {
    /// A host name or an IP address; IPv6 without its brackets. Default `localhost`.
    pub host: String,
    /// The port. Default 5672.
    pub port: u16,
    /// User and password. Default `guest` and `guest`; with a user and no password, an empty one.
    pub credentials: Credentials,
    /// The virtual host. `/` where the URI has no path; empty where the path is only `/`.
    pub virtual_host: ShortString,
    /// `heartbeat`, in seconds.
    pub heartbeat: Option<Duration>,
    /// `connection_timeout`, in milliseconds.
    pub connection_timeout: Option<Duration>,
    /// `frame_max`, in bytes, at least 8,192.
    pub frame_max: Option<u32>,
    /// `channel_max`; 0 for as many as the server allows.
    pub channel_max: Option<u16>,
}

impl Uri {
    /// Reads a URI. Its parts are percent-decoded, and `+` stays `+`.
    ///
    /// ```
    /// # use leveret_core::connection::Uri;
    /// let uri = Uri::parse("amqp://ada:s%23cret@rabbit.example/%2f?heartbeat=5").unwrap();
    /// assert_eq!((uri.host.as_str(), uri.port), ("rabbit.example", 5672));
    /// assert_eq!(uri.virtual_host, "/");
    /// ```
    ///
    /// # Errors
    ///
    /// [`UriError`], which names the part and never shows the password.
    pub fn parse(uri: &str) -> Result<Self, UriError> {
        let (scheme, rest) = uri.split_once("://").ok_or(UriError::Scheme)?;
        match scheme.to_ascii_lowercase().as_str() {
            "amqp" => {}
            "amqps" => return Err(UriError::TlsNotAvailable),
            _ => return Err(UriError::Scheme),
        }
        if rest.contains('#') {
            return Err(UriError::Reserved);
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) =
            rest.split_once('/').map_or((rest, None), |(authority, path)| (authority, Some(path)));
        // A `/` or `?` in the password would make the rest of it look like a path: nothing of it may be shown.
        if path.is_some_and(|path| path.contains('@')) || query.is_some_and(|query| query.contains('@')) {
            return Err(UriError::Reserved);
        }
        let (user_info, address) = authority
            .rsplit_once('@')
            .map_or((None, authority), |(user_info, address)| (Some(user_info), address));
        let (host, port) = parse_address(address)?;
        let mut parsed = Self {
            host,
            port,
            credentials: user_info.map_or_else(|| Ok(Credentials::default()), parse_user_info)?,
            virtual_host: path.map_or(Ok(ShortString::from_static("/")), parse_virtual_host)?,
            heartbeat: None,
            connection_timeout: None,
            frame_max: None,
            channel_max: None,
        };
        for pair in query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty()) {
            parsed.set_parameter(pair)?;
        }
        Ok(parsed)
    }

    /// The configuration that the URI describes; `connection_timeout` becomes the time of the handshake.
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

    fn set_parameter(&mut self, pair: &str) -> Result<(), UriError> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = |name, expected| UriError::Parameter { name, expected };
        match name {
            "heartbeat" => {
                let seconds: u16 =
                    value.parse().map_err(|_| wrong("heartbeat", "a number of seconds from 0 to 65535"))?;
                self.heartbeat = Some(Duration::from_secs(seconds.into()));
            }
            "connection_timeout" => {
                let millis = value.parse().ok().filter(|millis: &u32| *millis > 0);
                let millis = millis.ok_or(wrong("connection_timeout", "a number of milliseconds above 0"))?;
                self.connection_timeout = Some(Duration::from_millis(millis.into()));
            }
            "frame_max" => {
                let bytes = value.parse().ok().filter(|bytes| *bytes >= MIN_FRAME_MAX);
                self.frame_max = Some(bytes.ok_or(wrong("frame_max", "a number of bytes from 8192 up"))?);
            }
            "channel_max" => {
                let channels = value.parse().ok();
                self.channel_max = Some(channels.ok_or(wrong("channel_max", "a number from 0 to 65535"))?);
            }
            _ => return Err(UriError::UnknownParameter { name: name.to_owned() }),
        }
        Ok(())
    }
}

/// What is wrong with a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriError {
    /// It does not begin with `amqp://`.
    Scheme,
    /// It begins with `amqps://`.
    TlsNotAvailable,
    /// A character stands where it must be percent-encoded.
    Reserved,
    /// A part has a `%` that no two hexadecimal digits follow, or does not decode to UTF-8.
    Encoding {
        /// The part.
        part: &'static str,
    },
    /// The host is no host name and no address, or its brackets do not match.
    Host,
    /// The port is no number from 1 to 65,535.
    Port,
    /// The path has more than one segment.
    PathSegments,
    /// The virtual host has more than 255 bytes.
    VirtualHostTooLong {
        /// Its length, in bytes.
        bytes: usize,
    },
    /// A parameter has a value that does not fit.
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What it takes.
        expected: &'static str,
    },
    /// A parameter that leveret does not know.
    UnknownParameter {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("the URI does not begin with amqp://: write amqp://host"),
            Self::TlsNotAvailable => {
                f.write_str("the URI begins with amqps://, and TLS is not available yet: use amqp://")
            }
            Self::Reserved => f.write_str(
                "the URI has a '#', or an '@' after the host: percent-encode '/', '?', '#' and '@' in user name, password and virtual host",
            ),
            Self::Encoding { part } => write!(
                f,
                "the {part} in the URI is not percent-encoded UTF-8: write '%' as %25, and other characters as their bytes"
            ),
            Self::Host => f.write_str("the host in the URI is not valid: write an IPv6 address in brackets"),
            Self::Port => f.write_str("the port in the URI is not a number from 1 to 65535"),
            Self::PathSegments => {
                f.write_str("the virtual host in the URI has a '/': write it as %2f, so the default one is /%2f")
            }
            Self::VirtualHostTooLong { bytes } => {
                write!(f, "the virtual host in the URI has {bytes} bytes, AMQP allows 255")
            }
            Self::Parameter { name, expected } => write!(f, "{name} in the URI is not {expected}"),
            Self::UnknownParameter { name } => write!(
                f,
                "the URI has the unknown parameter {name:?}: known are heartbeat, connection_timeout, frame_max and channel_max"
            ),
        }
    }
}

impl std::error::Error for UriError {}

fn parse_user_info(user_info: &str) -> Result<Credentials, UriError> {
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    Ok(Credentials::new(decode("user name", user)?, decode("password", password)?))
}

fn parse_address(address: &str) -> Result<(String, u16), UriError> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(UriError::Host)?;
            host.parse::<core::net::Ipv6Addr>().map_err(|_| UriError::Host)?;
            match rest.strip_prefix(':') {
                Some(port) => (host.to_owned(), port),
                None if rest.is_empty() => (host.to_owned(), ""),
                None => return Err(UriError::Host),
            }
        }
        None => {
            let (host, port) = address.split_once(':').unwrap_or((address, ""));
            let host = decode("host", host)?;
            if host.contains(|c: char| c.is_whitespace() || c.is_control()) {
                return Err(UriError::Host);
            }
            (host, port)
        }
    };
    let port = match port {
        "" => DEFAULT_PORT,
        _ => port.parse().ok().filter(|port| *port != 0).ok_or(UriError::Port)?,
    };
    let host = if host.is_empty() { "localhost".to_owned() } else { host };
    Ok((host, port))
}

fn parse_virtual_host(path: &str) -> Result<ShortString, UriError> {
    if path.contains('/') {
        return Err(UriError::PathSegments);
    }
    let virtual_host = decode("virtual host", path)?;
    ShortString::new(virtual_host).map_err(|error| UriError::VirtualHostTooLong { bytes: error.bytes })
}

/// Percent-decodes strictly: what a URI library lets through as it is would be a wrong password later.
fn decode(part: &'static str, text: &str) -> Result<String, UriError> {
    let wrong = UriError::Encoding { part };
    let mut pieces = text.split('%');
    pieces.next();
    let encoded = |piece: &str| piece.len() >= 2 && piece.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    if !pieces.all(encoded) {
        return Err(wrong);
    }
    percent_decode_str(text).decode_utf8().map(std::borrow::Cow::into_owned).map_err(|_| wrong)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(uri: &str) -> (String, String, String, u16, String) {
        let uri = Uri::parse(uri).unwrap();
        let (user, password) = (uri.credentials.user().to_owned(), uri.credentials.password().to_owned());
        (user, password, uri.host, uri.port, uri.virtual_host.to_string())
    }

    #[test]
    fn the_table_of_examples() {
        let guest = ("guest", "guest");
        for (uri, (user, password), host, port, virtual_host) in [
            ("amqp://user:pass@host:10000/vhost", ("user", "pass"), "host", 10_000, "vhost"),
            ("amqp://user%61:%61pass@ho%61st:10000/v%2fhost", ("usera", "apass"), "hoast", 10_000, "v/host"),
            ("amqp://", guest, "localhost", 5672, "/"),
            ("amqp://:@/", ("", ""), "localhost", 5672, ""),
            ("amqp://user@", ("user", ""), "localhost", 5672, "/"),
            ("amqp://user:pass@", ("user", "pass"), "localhost", 5672, "/"),
            ("amqp://host", guest, "host", 5672, "/"),
            ("amqp://:10000", guest, "localhost", 10_000, "/"),
            ("amqp:///vhost", guest, "localhost", 5672, "vhost"),
            ("amqp://host/", guest, "host", 5672, ""),
            ("amqp://host/%2f", guest, "host", 5672, "/"),
            ("amqp://[::1]", guest, "::1", 5672, "/"),
            ("AMQP://[::1]:5673/%2F?heartbeat=5", guest, "::1", 5673, "/"),
            ("amqp://a+b:p%40ss%3aw%2frd%25+%c3%a9@h", ("a+b", "p@ss:w/rd%+é"), "h", 5672, "/"),
        ] {
            let expected = (user.into(), password.into(), host.into(), port, virtual_host.into());
            assert_eq!(parts(uri), expected, "{uri}");
        }
    }

    #[test]
    fn parameters_are_read() {
        let uri =
            Uri::parse("amqp://h?heartbeat=5&connection_timeout=3000&frame_max=8192&channel_max=10").unwrap();
        let config = uri.connection_config();
        assert_eq!(config.heartbeat, Duration::from_secs(5));
        assert_eq!(config.handshake_timeout, Duration::from_secs(3));
        assert_eq!((config.frame_max, config.channel_max), (8_192, 10));
    }

    #[test]
    fn errors_name_the_part() {
        for (uri, part) in [
            ("localhost", "amqp://"),
            ("http://host", "amqp://"),
            ("amqps://host", "TLS"),
            ("amqp://host:0", "port"),
            ("amqp://host:65536", "port"),
            ("amqp://host:x", "port"),
            ("amqp://::1", "port"),
            ("amqp://[::1", "host"),
            ("amqp://[::1]x", "host"),
            ("amqp://[zz]", "host"),
            ("amqp://h ost", "host"),
            ("amqp://host/a/b", "virtual host"),
            ("amqp://host/%zz", "virtual host"),
            ("amqp://us%e9r@host", "user name"),
            ("amqp://u:p%4@host", "password"),
            ("amqp://host?heartbeat=-1", "heartbeat"),
            ("amqp://host?connection_timeout=0", "connection_timeout"),
            ("amqp://host?frame_max=4096", "frame_max"),
            ("amqp://host?channel_max=65536", "channel_max"),
            ("amqp://host?verify=none", "verify"),
        ] {
            let error = Uri::parse(uri).unwrap_err().to_string();
            assert!(error.contains(part), "{uri}: {error}");
        }
        let long = format!("amqp://host/{}", "v".repeat(256));
        assert_eq!(Uri::parse(&long), Err(UriError::VirtualHostTooLong { bytes: 256 }));
    }

    #[test]
    fn no_part_of_a_password_is_shown() {
        for uri in [
            "amqp://user:sec/ret@host",
            "amqp://user:sec?ret@host",
            "amqp://user:sec?ret=1@host",
            "amqp://user:sec#ret@host",
            "amqp://user:sec%ret@host",
            "amqp://user:1/sec/ret@host/v",
        ] {
            let error = Uri::parse(uri).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("ret"), "{uri}: {error}");
        }
        let uri = Uri::parse("amqp://user:secret@host").unwrap();
        assert!(!format!("{uri:?}").contains("secret"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*", tail in ".*") {
            let _ = Uri::parse(&text);
            let _ = Uri::parse(&format!("amqp://{tail}"));
        }

        #[test]
        fn what_is_encoded_comes_back(user in ".*", password in ".*") {
            let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
            let uri = Uri::parse(&format!("amqp://{}:{}@h", encode(&user), encode(&password))).unwrap();
            prop_assert_eq!(uri.credentials, Credentials::new(user, password));
        }
    }
}
