//! From the text of a URI to its parts. Which parts go together is the builder's to say.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use serde::de::{self, Visitor};

use super::builder::UriBuilder;
use super::error::UriError;
use crate::connection::{Mechanism, Verification};

/// Splits and decodes.
pub(super) fn parse(uri: &str) -> Result<UriBuilder, UriError> {
    let (scheme, rest) = uri.split_once("://").ok_or(UriError::Scheme)?;
    let tls = match scheme {
        _ if scheme.eq_ignore_ascii_case("amqp") => false,
        _ if scheme.eq_ignore_ascii_case("amqps") => true,
        _ => return Err(UriError::Scheme),
    };
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
    let mut builder = UriBuilder::new(host).tls(tls);
    if let Some(port) = port {
        builder = builder.port(port);
    }
    if let Some(user_info) = user_info {
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        builder = builder.login(decode("user name", user)?, decode("password", password)?);
    }
    if let Some(path) = path {
        if path.contains('/') {
            return Err(UriError::PathSegments);
        }
        builder = builder.virtual_host(decode("virtual host", path)?);
    }
    query.map_or(Ok(Parameters::default()), Parameters::parse)?.apply(builder)
}

fn parse_address(address: &str) -> Result<(String, Option<u16>), UriError> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(UriError::Host)?;
            // RFC 6874, section 2: the `%` before a zone is encoded like any other.
            let host = decode("host", host)?;
            if !host.contains(':') {
                return Err(UriError::Host);
            }
            match rest.strip_prefix(':') {
                Some(port) => (host, port),
                None if rest.is_empty() => (host, ""),
                None => return Err(UriError::Host),
            }
        }
        None => {
            let (host, port) = address.split_once(':').unwrap_or((address, ""));
            let host = decode("host", host)?;
            if host.contains(':') {
                return Err(UriError::Host);
            }
            (host, port)
        }
    };
    let port = match port {
        "" => None,
        _ => Some(number(port).ok_or(UriError::Port)?),
    };
    Ok((host, port))
}

/// The query, each parameter at most once but for `auth_mechanism`.
#[derive(Default)]
struct Parameters {
    heartbeat: Option<Duration>,
    connection_timeout: Option<Duration>,
    frame_max: Option<u32>,
    channel_max: Option<u16>,
    mechanisms: Vec<Mechanism>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    verification: Option<Verification>,
    server_name: Option<String>,
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, UriError> {
        let mut parameters = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            parameters.set(&decode("query", name)?, value)?;
        }
        Ok(parameters)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), UriError> {
        let decoded = |name| decode(name, value);
        match name {
            "heartbeat" => {
                let name = "heartbeat";
                let seconds = number(&decoded(name)?).map(|seconds: u16| Duration::from_secs(seconds.into()));
                once(&mut self.heartbeat, name, seconds.ok_or(UriError::HEARTBEAT)?)
            }
            "connection_timeout" => {
                let name = "connection_timeout";
                let millis = number(&decoded(name)?).map(|millis: u32| Duration::from_millis(millis.into()));
                once(&mut self.connection_timeout, name, millis.ok_or(UriError::CONNECTION_TIMEOUT)?)
            }
            "frame_max" => {
                let bytes = number(&decoded("frame_max")?).ok_or(UriError::FRAME_MAX)?;
                once(&mut self.frame_max, "frame_max", bytes)
            }
            "channel_max" => {
                let name = "channel_max";
                let expected = "a number from 0 to 65535";
                let channels = number(&decoded(name)?);
                once(&mut self.channel_max, name, channels.ok_or(UriError::Parameter { name, expected })?)
            }
            "auth_mechanism" => {
                let name = "auth_mechanism";
                let expected = "plain, amqplain or external";
                let mechanism = Mechanism::from_name(&decoded(name)?);
                let mechanism = mechanism.ok_or(UriError::Parameter { name, expected })?;
                // Checked here too, so that the list stays as short as there are mechanisms.
                if self.mechanisms.contains(&mechanism) {
                    return Err(UriError::Duplicate { name });
                }
                self.mechanisms.push(mechanism);
                Ok(())
            }
            "cacertfile" => once(&mut self.ca_file, "cacertfile", decoded("cacertfile")?.into()),
            "certfile" => once(&mut self.cert_file, "certfile", decoded("certfile")?.into()),
            "keyfile" => once(&mut self.key_file, "keyfile", decoded("keyfile")?.into()),
            "verify" => {
                let verification = match decoded("verify")?.as_str() {
                    "verify_peer" => Verification::Peer,
                    "verify_none" => Verification::None,
                    _ => {
                        let expected = "verify_peer or verify_none";
                        return Err(UriError::Parameter { name: "verify", expected });
                    }
                };
                once(&mut self.verification, "verify", verification)
            }
            "server_name_indication" => {
                let name = "server_name_indication";
                once(&mut self.server_name, name, decoded(name)?)
            }
            _ => Err(UriError::unknown(name)),
        }
    }

    fn apply(self, mut builder: UriBuilder) -> Result<UriBuilder, UriError> {
        builder = match (self.cert_file, self.key_file) {
            (Some(cert_file), Some(key_file)) => builder.client_certificate(cert_file, key_file),
            (Some(_), None) => return Err(UriError::Half { given: "certfile", missing: "keyfile" }),
            (None, Some(_)) => return Err(UriError::Half { given: "keyfile", missing: "certfile" }),
            (None, None) => builder,
        };
        builder.heartbeat = self.heartbeat;
        builder.connection_timeout = self.connection_timeout;
        builder.frame_max = self.frame_max;
        builder.channel_max = self.channel_max;
        builder.mechanisms = self.mechanisms;
        builder.ca_file = self.ca_file;
        builder.verification = self.verification;
        builder.server_name = self.server_name;
        Ok(builder)
    }
}

fn once<T>(place: &mut Option<T>, name: &'static str, value: T) -> Result<(), UriError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(UriError::Duplicate { name }),
    }
}

/// Digits alone: `parse` would take a sign as well.
fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
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

/// Takes a string where a URI or a list of them is deserialized.
pub(super) struct FromText<T, E> {
    pub(super) expected: &'static str,
    pub(super) parse: fn(&str) -> Result<T, E>,
}

impl<T, E: fmt::Display> Visitor<'_> for FromText<T, E> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<D: de::Error>(self, text: &str) -> Result<T, D> {
        (self.parse)(text).map_err(D::custom)
    }
}
