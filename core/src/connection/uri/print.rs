//! A URI as text, without its password.

use std::fmt;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Uri;
use crate::connection::{Credentials, Verification};

/// All but the unreserved characters (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// In a query a `/` may stand as it is (RFC 3986, section 3.4), so that paths stay readable.
const IN_QUERY: &AsciiSet = &RESERVED.remove(b'/');
/// What an IPv6 address is made of stays.
const IN_BRACKETS: &AsciiSet = &RESERVED.remove(b':');

/// The whole URI but for the password, each default written out that is part of the address. Paths that are not UTF-8
/// are shown with U+FFFD in place of what is not.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls.is_some() { "amqps://" } else { "amqp://" })?;
        if let Some(user) = self.credentials.user() {
            write!(f, "{}@", utf8_percent_encode(user, RESERVED))?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", utf8_percent_encode(&self.host, IN_BRACKETS))?;
        } else {
            write!(f, "{}", utf8_percent_encode(&self.host, RESERVED))?;
        }
        write!(f, ":{}/{}", self.port, utf8_percent_encode(&self.virtual_host, RESERVED))?;
        Query { separator: '?', f }.write(self)
    }
}

struct Query<'a, 'b> {
    separator: char,
    f: &'a mut fmt::Formatter<'b>,
}

impl Query<'_, '_> {
    fn write(mut self, uri: &Uri) -> fmt::Result {
        self.number("heartbeat", uri.heartbeat.map(|time| time.as_secs()))?;
        self.number("connection_timeout", uri.connection_timeout.map(|time| time.as_millis()))?;
        self.number("channel_max", uri.channel_max)?;
        self.number("frame_max", uri.frame_max)?;
        if uri.credentials.mechanisms() != Credentials::default().mechanisms() {
            for mechanism in uri.credentials.mechanisms() {
                self.text("auth_mechanism", &mechanism.name().to_ascii_lowercase())?;
            }
        }
        let Some(tls) = &uri.tls else { return Ok(()) };
        self.path("cacertfile", tls.ca_file.as_deref())?;
        let certificate = tls.client_certificate.as_ref();
        self.path("certfile", certificate.map(|certificate| certificate.cert_file.as_path()))?;
        self.path("keyfile", certificate.map(|certificate| certificate.key_file.as_path()))?;
        if tls.verification != Verification::default() {
            self.text("verify", tls.verification.name())?;
        }
        tls.server_name.as_ref().map_or(Ok(()), |name| self.text("server_name_indication", name))
    }

    fn text(&mut self, name: &str, value: &str) -> fmt::Result {
        write!(self.f, "{}{name}={}", self.separator, utf8_percent_encode(value, IN_QUERY))?;
        self.separator = '&';
        Ok(())
    }

    fn number(&mut self, name: &str, value: Option<impl ToString>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.text(name, &value.to_string()))
    }

    fn path(&mut self, name: &str, path: Option<&Path>) -> fmt::Result {
        path.map_or(Ok(()), |path| self.text(name, &path.to_string_lossy()))
    }
}
