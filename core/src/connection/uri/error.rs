//! What can be wrong with a URI.

use std::fmt;

/// What is wrong with a URI, or with the values of a [`UriBuilder`](super::UriBuilder). It quotes nothing of the URI but
/// the name of an unknown parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriError {
    /// It begins neither with `amqp://` nor with `amqps://`.
    Scheme,
    /// A character stands where it must be percent-encoded.
    Reserved,
    /// A part has a `%` that no two hexadecimal digits follow, or does not decode to UTF-8.
    Encoding {
        /// The part, or the parameter.
        part: &'static str,
    },
    /// A part has the character U+0000, which ends a text for the mechanism PLAIN.
    Nul {
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
    /// A parameter comes twice, or `auth_mechanism` twice with one value.
    Duplicate {
        /// The parameter.
        name: &'static str,
    },
    /// A parameter that leveret does not know.
    UnknownParameter {
        /// Its name, cut at 64 bytes.
        name: String,
    },
    /// The same in a list of URIs, where its name could be part of a password and is not shown.
    HiddenParameter,
    /// One of `certfile` and `keyfile` is given without the other.
    Half {
        /// The one that is given.
        given: &'static str,
        /// The one that is not.
        missing: &'static str,
    },
    /// A parameter for TLS in a URI without TLS.
    NeedsTls {
        /// The parameter.
        name: &'static str,
    },
    /// EXTERNAL is the only mechanism, and there is no client certificate to show.
    ExternalWithoutCertificate,
    /// A mechanism needs a user name and a password, and there are none.
    NoLogin,
}

impl UriError {
    pub(super) const HEARTBEAT: Self =
        Self::Parameter { name: "heartbeat", expected: "a whole number of seconds from 0 to 65535" };
    pub(super) const CONNECTION_TIMEOUT: Self = Self::Parameter {
        name: "connection_timeout",
        expected: "a whole number of milliseconds from 1 to 4294967295",
    };
    pub(super) const FRAME_MAX: Self =
        Self::Parameter { name: "frame_max", expected: "a number of bytes from 8192 to 4294967295" };
    pub(super) const SERVER_NAME: Self =
        Self::Parameter { name: "server_name_indication", expected: "a host name or an address" };

    pub(super) fn unknown(name: &str) -> Self {
        Self::UnknownParameter { name: crate::text::cut(name, 64).to_owned() }
    }

    /// The same error without words of the URI.
    pub(super) fn without_words(self) -> Self {
        match self {
            Self::UnknownParameter { .. } => Self::HiddenParameter,
            other => other,
        }
    }
}

const KNOWN: &str = "known are heartbeat, connection_timeout, channel_max, frame_max, auth_mechanism, cacertfile, \
                     certfile, keyfile, verify and server_name_indication";

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str(
                "the URI begins neither with amqp:// nor with amqps://: write amqp://host, or amqps://host for TLS",
            ),
            Self::Reserved => f.write_str(
                "the URI has a '#', or an '@' after the host: percent-encode '/', '?', '#' and '@' in user name, password, virtual host and values",
            ),
            Self::Encoding { part } => write!(
                f,
                "the {part} in the URI is not percent-encoded UTF-8: write '%' as %25, and other characters as their bytes"
            ),
            Self::Nul { part } => {
                write!(f, "the {part} in the URI has the character U+0000, which no login can have: leave it out")
            }
            Self::Host => f.write_str(
                "the host in the URI is not valid: write an IPv6 address in brackets, its zone after %25, and several servers as several whole URIs",
            ),
            Self::Port => f.write_str("the port in the URI is not a number from 1 to 65535"),
            Self::PathSegments => {
                f.write_str("the virtual host in the URI has a '/': write it as %2f, so the default one is /%2f")
            }
            Self::VirtualHostTooLong { bytes } => {
                write!(f, "the virtual host in the URI has {bytes} bytes, AMQP allows 255")
            }
            Self::Parameter { name, expected } => write!(f, "{name} in the URI is not {expected}"),
            Self::Duplicate { name } => {
                write!(f, "the URI has the parameter {name} twice: leave out the one that is not meant")
            }
            Self::HiddenParameter => {
                write!(f, "the URI has an unknown parameter, or a password with an '@' that is not percent-encoded: {KNOWN}")
            }
            Self::UnknownParameter { name } => write!(
                f,
                "the URI has the unknown parameter {name:?}: {KNOWN}"
            ),
            Self::Half { given, missing } => {
                write!(f, "the URI has {given} and not {missing}: a client certificate needs both")
            }
            Self::NeedsTls { name } => {
                write!(f, "the URI has the parameter {name} and no TLS: write amqps://, or leave it out")
            }
            Self::ExternalWithoutCertificate => f.write_str(
                "the only auth_mechanism in the URI is external, and there is no client certificate: write amqps:// with certfile and keyfile, or name plain as well",
            ),
            Self::NoLogin => f.write_str("the auth_mechanism in the URI needs a user name and a password: give both"),
        }
    }
}

impl std::error::Error for UriError {}
