//! What a TLS connection is to be made with, as plain values. Nothing here reads a file or speaks TLS: an adapter does.

mod failure;

use core::net::IpAddr;
use std::path::PathBuf;

pub use failure::{PlainPeer, TlsFailure, TlsFile, TlsFileProblem};

/// The TLS of one endpoint.
///
/// | field | URI parameter | default |
/// |---|---|---|
/// | `ca_file` | `cacertfile` | the roots of the system |
/// | `client_certificate` | `certfile`, `keyfile` | none: the server learns nothing by TLS about who connects |
/// | `verification` | `verify` | the server must prove who it is |
/// | `server_name` | `server_name_indication` | the host that is connected to |
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct TlsConfig {
    /// A file in PEM form with the certificates of the authorities to trust, in place of those of the system.
    pub ca_file: Option<PathBuf>,
    /// What to show the server, where it asks; needed for [`Mechanism::External`](super::Mechanism::External).
    pub client_certificate: Option<ClientCertificate>,
    /// Whether the server must prove who it is.
    pub verification: Verification,
    /// The name that the server's certificate must be for, in place of the host that is connected to.
    pub server_name: Option<String>,
}

impl TlsConfig {
    /// The name to send to the server before it chooses a certificate (SNI). `host` is the one that is connected to.
    ///
    /// `None`, so that none is sent, for an address: RFC 6066, section 3, allows names of hosts alone. A name is sent
    /// without the dot that may end it, as the same section asks.
    ///
    /// ```
    /// # use leveret_core::connection::TlsConfig;
    /// let mut tls = TlsConfig::default();
    /// assert_eq!(tls.sni("rabbit.example."), Some("rabbit.example"));
    /// assert_eq!(tls.sni("::1"), None);
    /// tls.server_name = Some("rabbit.example".to_owned());
    /// assert_eq!(tls.sni("10.0.0.1"), Some("rabbit.example"));
    /// ```
    #[must_use]
    pub fn sni<'a>(&'a self, host: &'a str) -> Option<&'a str> {
        let name = self.verified_name(host);
        name.parse::<IpAddr>().is_err().then_some(name)
    }

    /// The name or the address that the server's certificate must be for. `host` is the one that is connected to.
    ///
    /// Without the zone of an IPv6 address, which means something on this machine alone (RFC 6874, section 1), and
    /// without a last dot.
    #[must_use]
    pub fn verified_name<'a>(&'a self, host: &'a str) -> &'a str {
        let name = self.server_name.as_deref().unwrap_or(host);
        match name.split_once('%') {
            Some((address, _zone)) => address,
            None => name.strip_suffix('.').unwrap_or(name),
        }
    }
}

/// A certificate of ours, and the key that belongs to it. Only paths: the key itself is never held here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientCertificate {
    /// A file in PEM form with the certificate, and those between it and the authority after it.
    pub cert_file: PathBuf,
    /// A file in PEM form with the private key, not encrypted.
    pub key_file: PathBuf,
}

/// Whether the server must prove who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verification {
    /// `verify_peer`: its certificate must be valid, signed by a trusted authority, and for the name connected to.
    #[default]
    Peer,
    /// `verify_none`: any certificate will do. Whoever sits in between can read everything, passwords too: for
    /// trials only.
    None,
}

impl Verification {
    /// The value of the URI parameter `verify`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Peer => "verify_peer",
            Self::None => "verify_none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_sent_for_hosts_and_never_for_addresses() {
        let tls = TlsConfig::default();
        for (host, sni, verified) in [
            ("h.example", Some("h.example"), "h.example"),
            ("h.example.", Some("h.example"), "h.example"),
            ("localhost", Some("localhost"), "localhost"),
            ("127.0.0.1", None, "127.0.0.1"),
            ("::1", None, "::1"),
            ("fe80::1%eth0", None, "fe80::1"),
        ] {
            assert_eq!((tls.sni(host), tls.verified_name(host)), (sni, verified), "{host}");
        }
    }

    #[test]
    fn a_given_name_takes_the_place_of_the_host() {
        let tls = |name: &str| TlsConfig { server_name: Some(name.to_owned()), ..TlsConfig::default() };
        assert_eq!(tls("h.example").sni("127.0.0.1"), Some("h.example"));
        assert_eq!(tls("h.example").verified_name("::1"), "h.example");
        assert_eq!(tls("10.0.0.1").sni("h.example"), None, "a given address is none to send either");
        assert_eq!(tls("10.0.0.1").verified_name("h.example"), "10.0.0.1");
    }
}
