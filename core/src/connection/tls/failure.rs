//! Why there is no TLS with a server, as an adapter saw it.

use std::fmt;
use std::path::PathBuf;

/// Why there is no TLS with a server. Nothing of AMQP was sent to it, no password either.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFailure {
    /// The adapter was built without TLS.
    NotBuilt,
    /// A file that the configuration names cannot be used. Nothing was connected to.
    File {
        /// What the file is for.
        file: TlsFile,
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        problem: TlsFileProblem,
    },
    /// No authorities are given, and the system has none to trust. Nothing was connected to.
    NoSystemRoots {
        /// What went wrong on the way, where something did.
        reason: Option<String>,
    },
    /// What the server's certificate must be for is no host name and no address. Nothing was connected to.
    ServerName {
        /// The name.
        name: String,
    },
    /// The certificate and its key cannot be used, or TLS cannot be had for another reason that is on our side.
    Unusable {
        /// The TLS library's words.
        reason: String,
    },
    /// The server's certificate does not prove that it is the one that is meant.
    Certificate {
        /// The name or address that it must be for.
        name: String,
        /// Why it does not.
        reason: String,
    },
    /// The server refused us.
    Refused {
        /// Why.
        reason: String,
    },
    /// The server does not speak TLS on that port.
    NotTls {
        /// What it speaks.
        peer: PlainPeer,
    },
    /// The server speaks TLS, and we find no common ground, or it breaks the protocol.
    Protocol {
        /// The TLS library's words.
        reason: String,
    },
    /// The server ended the connection before TLS was agreed on.
    Ended,
    /// The connection failed before TLS was agreed on.
    Io {
        /// The operating system's words.
        text: String,
    },
}

/// What a server that speaks no TLS begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlainPeer {
    /// AMQP, of any version.
    Amqp,
    /// HTTP.
    WebServer,
    /// Something else.
    Unknown,
}

impl PlainPeer {
    /// The peer whose first bytes are these.
    #[must_use]
    pub fn of(first: &[u8]) -> Self {
        if first.starts_with(b"AMQP") {
            Self::Amqp
        } else if first.starts_with(b"HTTP") {
            Self::WebServer
        } else {
            Self::Unknown
        }
    }
}

/// What a file of a [`TlsConfig`](super::TlsConfig) is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFile {
    /// The authorities to trust.
    Authorities,
    /// Our certificate.
    Certificate,
    /// The key of our certificate.
    Key,
}

impl TlsFile {
    /// The URI parameter that names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Authorities => "cacertfile",
            Self::Certificate => "certfile",
            Self::Key => "keyfile",
        }
    }
}

/// What is wrong with a file. Nothing of its content is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFileProblem {
    /// It cannot be read.
    Unreadable {
        /// The operating system's words.
        text: String,
    },
    /// It is larger than any such file is.
    TooLarge {
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// It begins like PEM and is broken.
    BrokenPem,
    /// It has no certificate in PEM form.
    NoCertificate,
    /// None of its certificates can be understood.
    BadCertificate,
    /// It has no private key in PEM form.
    NoKey,
    /// Its key is encrypted.
    EncryptedKey,
    /// Its key is of no kind that is known here, or broken.
    BadKey,
    /// Its key is not the one of our certificate.
    OtherKey,
}

impl TlsFailure {
    /// Whether trying again cannot help: something is wrong with our side's configuration, or the port is for something
    /// else. What a server shows and refuses can change, so certificates and refusals are not permanent.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::NotBuilt
            | Self::File { .. }
            | Self::NoSystemRoots { .. }
            | Self::ServerName { .. }
            | Self::Unusable { .. }
            | Self::NotTls { .. } => true,
            Self::Certificate { .. }
            | Self::Refused { .. }
            | Self::Protocol { .. }
            | Self::Ended
            | Self::Io { .. } => false,
        }
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => f.write_str(
                "it asks for TLS (amqps://), which this build does not have: turn on the cargo feature \"tls\" of the \
                 leveret crate of your runtime, or use amqp://",
            ),
            Self::File { file, path, problem } => {
                write!(f, "the {} {} {problem}", file.name(), path.display())
            }
            Self::NoSystemRoots { reason } => {
                f.write_str("the system has no certificates of authorities to trust")?;
                if let Some(reason) = reason {
                    write!(f, " ({reason})")?;
                }
                f.write_str(": install them (often a package ca-certificates), or give a cacertfile")
            }
            Self::ServerName { name } => write!(
                f,
                "{name:?} is no host name and no address that a certificate could be for: give the name in the server's \
                 certificate as server_name_indication"
            ),
            Self::Unusable { reason } => write!(f, "TLS cannot be used as it is configured: {reason}"),
            Self::Certificate { name, reason } => {
                write!(f, "the server's certificate was not accepted for \"{name}\": {reason}")
            }
            Self::Refused { reason } => write!(f, "the server refused us: {reason}"),
            Self::NotTls { peer } => {
                f.write_str("the server does not speak TLS on this port: ")?;
                f.write_str(match peer {
                    PlainPeer::Amqp => {
                        "it answered with plain AMQP; the port for TLS is often 5671, or write amqp:// for none"
                    }
                    PlainPeer::WebServer => {
                        "it is a web server; the port for AMQP over TLS is often 5671"
                    }
                    PlainPeer::Unknown => {
                        "it answered with something else; the port for AMQP over TLS is often 5671"
                    }
                })
            }
            Self::Protocol { reason } => write!(f, "no TLS could be agreed on: {reason}"),
            Self::Ended => f.write_str(
                "the server ended the connection before TLS was agreed on: is it up, and does its TLS listener have a \
                 certificate?",
            ),
            Self::Io { text } => write!(f, "the connection failed before TLS was agreed on: {text}"),
        }
    }
}

impl std::error::Error for TlsFailure {}

impl fmt::Display for TlsFileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { text } => write!(f, "cannot be read: {text}"),
            Self::TooLarge { limit } => write!(f, "has more than {limit} bytes: is it the right file?"),
            Self::BrokenPem => f.write_str("is broken PEM: was it copied whole?"),
            Self::NoCertificate => f.write_str(
                "has no certificate in PEM form (-----BEGIN CERTIFICATE-----): convert it, or name the right file",
            ),
            Self::BadCertificate => f.write_str("has no certificate that can be understood: was it copied whole?"),
            Self::NoKey => f.write_str(
                "has no private key in PEM form (-----BEGIN PRIVATE KEY-----): convert it, or name the right file",
            ),
            Self::EncryptedKey => f.write_str(
                "has an encrypted key: give one that is not, such as from `openssl pkey`, and keep others from reading it",
            ),
            Self::BadKey => {
                f.write_str("has a key that cannot be used: RSA of 2048 bits or more, ECDSA P-256 or P-384, or Ed25519 can")
            }
            Self::OtherKey => f.write_str("has a key that does not belong to the certificate in certfile"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_speaks_no_tls_is_told_by_its_first_bytes() {
        for (first, peer) in [
            (&b"AMQP\x00\x00\x09\x01"[..], PlainPeer::Amqp),
            (b"HTTP/1.1 400", PlainPeer::WebServer),
            (b"AMQ", PlainPeer::Unknown),
            (b"", PlainPeer::Unknown),
        ] {
            assert_eq!(PlainPeer::of(first), peer, "{first:?}");
        }
    }

    #[test]
    fn a_file_is_named_by_its_parameter_and_path() {
        let path = PathBuf::from("/etc/ca.pem");
        let problem = TlsFileProblem::Unreadable { text: "no such file".to_owned() };
        let failure = TlsFailure::File { file: TlsFile::Authorities, path, problem };
        assert_eq!(failure.to_string(), "the cacertfile /etc/ca.pem cannot be read: no such file");
        assert!(failure.is_permanent());
    }
}
