//! TLS of a server of the suite.

use std::fmt::{self, Write};
use std::io;
use std::path::Path;

/// A TLS listener: what the server shows to clients, and what it asks of them. The plugin that logs clients in by their
/// certificate (SASL EXTERNAL) is on, and takes the common name for the name of the user.
#[derive(Clone)]
pub struct TlsListener {
    authority: String,
    certificate: String,
    key: String,
    requires_certificates: bool,
}

impl TlsListener {
    /// A listener that shows `certificate`, and accepts certificates of clients that `authority` has signed. All three
    /// are in PEM form.
    #[must_use]
    pub fn new(authority: &str, certificate: &str, key: &str) -> Self {
        Self {
            authority: authority.to_owned(),
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            requires_certificates: false,
        }
    }

    /// The same, but a client without a certificate is refused.
    #[must_use]
    pub const fn requiring_certificates(mut self) -> Self {
        self.requires_certificates = true;
        self
    }

    /// Writes the listener's files to `dir`, which the server knows as `inside`, and gives its part of `rabbitmq.conf`.
    pub(super) fn lay_out(&self, dir: &Path, inside: &Path, address: &str) -> io::Result<String> {
        let mut configuration = format!(
            "listeners.ssl.1 = {address}\n\
             ssl_options.verify = verify_peer\n\
             ssl_options.fail_if_no_peer_cert = {}\n\
             ssl_cert_login_from = common_name\n",
            self.requires_certificates
        );
        for (number, mechanism) in (1..).zip(["PLAIN", "AMQPLAIN", "EXTERNAL"]) {
            let _ = writeln!(configuration, "auth_mechanisms.{number} = {mechanism}");
        }
        for (setting, content) in
            [("cacertfile", &self.authority), ("certfile", &self.certificate), ("keyfile", &self.key)]
        {
            let file = format!("{setting}.pem");
            std::fs::write(dir.join(&file), content)?;
            let _ = writeln!(configuration, "ssl_options.{setting} = {}", inside.join(file).display());
        }
        Ok(configuration)
    }
}

impl fmt::Debug for TlsListener {
    // Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsListener")
            .field("requires_certificates", &self.requires_certificates)
            .finish_non_exhaustive()
    }
}
