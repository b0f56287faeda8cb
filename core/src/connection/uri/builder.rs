//! A URI from values, and the one place that says which of them go together.

use core::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

use super::error::UriError;
use super::{Uri, default_port};
use crate::connection::{
    ClientCertificate, Credentials, MIN_FRAME_MAX, Mechanism, MechanismsError, TlsConfig, Verification,
};
use crate::text::ShortString;

/// Makes a [`Uri`] from values, which are taken as they are: nothing is percent-decoded. What is not set has the default
/// of the [module](super)'s tables.
///
/// `Debug` leaves the password out.
///
/// ```
/// # use std::time::Duration;
/// # use leveret_core::connection::{Mechanism, Uri};
/// let uri = Uri::builder("rabbit.example")
///     .tls(true)
///     .client_certificate("/etc/ssl/client.pem", "/etc/ssl/client.key")
///     .auth_mechanisms([Mechanism::External])
///     .virtual_host("jobs")
///     .heartbeat(Duration::from_secs(20))
///     .build()?;
/// assert_eq!(
///     uri.to_string(),
///     "amqps://rabbit.example:5671/jobs?heartbeat=20&auth_mechanism=external\
///      &certfile=/etc/ssl/client.pem&keyfile=/etc/ssl/client.key"
/// );
/// # Ok::<(), leveret_core::connection::UriError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until it is built"]
pub struct UriBuilder {
    host: String,
    port: Option<u16>,
    tls: bool,
    /// With whatever mechanisms: [`UriBuilder::mechanisms`] are the ones that count.
    login: Option<Credentials>,
    virtual_host: Option<String>,
    pub(super) heartbeat: Option<Duration>,
    pub(super) connection_timeout: Option<Duration>,
    pub(super) frame_max: Option<u32>,
    pub(super) channel_max: Option<u16>,
    /// Empty for the default.
    pub(super) mechanisms: Vec<Mechanism>,
    pub(super) ca_file: Option<PathBuf>,
    client_certificate: Option<ClientCertificate>,
    pub(super) verification: Option<Verification>,
    pub(super) server_name: Option<String>,
}

impl UriBuilder {
    pub(super) fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port: None,
            tls: false,
            login: None,
            virtual_host: None,
            heartbeat: None,
            connection_timeout: None,
            frame_max: None,
            channel_max: None,
            mechanisms: Vec::new(),
            ca_file: None,
            client_certificate: None,
            verification: None,
            server_name: None,
        }
    }

    pub(super) fn from_uri(uri: Uri) -> Self {
        let tls = uri.tls.is_some();
        let TlsConfig { ca_file, client_certificate, verification, server_name } =
            uri.tls.unwrap_or_default();
        Self {
            host: uri.host,
            port: Some(uri.port).filter(|port| *port != default_port(tls)),
            tls,
            mechanisms: uri.credentials.mechanisms().to_vec(),
            login: Some(uri.credentials).filter(|credentials| credentials.user().is_some()),
            virtual_host: Some(uri.virtual_host.to_string()),
            heartbeat: uri.heartbeat,
            connection_timeout: uri.connection_timeout,
            frame_max: uri.frame_max,
            channel_max: uri.channel_max,
            ca_file,
            client_certificate,
            verification: Some(verification).filter(|verification| *verification != Verification::Peer),
            server_name,
        }
    }

    /// A name or an address, an IPv6 address with or without brackets; empty for `localhost`.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self
    }

    /// The port, in place of the scheme's default.
    pub const fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Whether it is `amqps`.
    pub const fn tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// User name and password.
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Some(Credentials::new(user, password));
        self
    }

    /// The virtual host.
    pub fn virtual_host(mut self, virtual_host: impl Into<String>) -> Self {
        self.virtual_host = Some(virtual_host.into());
        self
    }

    /// `heartbeat`: whole seconds, at most 65,535; zero leaves it to the server.
    pub const fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// `connection_timeout`: whole milliseconds above 0, at most 4,294,967,295.
    pub const fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.connection_timeout = Some(timeout);
        self
    }

    /// `frame_max`: at least 8,192 bytes.
    pub const fn frame_max(mut self, bytes: u32) -> Self {
        self.frame_max = Some(bytes);
        self
    }

    /// `channel_max`; 0 for as many as the server allows.
    pub const fn channel_max(mut self, channels: u16) -> Self {
        self.channel_max = Some(channels);
        self
    }

    /// `auth_mechanism`: all of them, in the order in which they are wanted; none for the default.
    pub fn auth_mechanisms(mut self, mechanisms: impl IntoIterator<Item = Mechanism>) -> Self {
        self.mechanisms = mechanisms.into_iter().collect();
        self
    }

    /// `cacertfile`: the authorities to trust.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// `certfile` and `keyfile`: our certificate, and its key.
    pub fn client_certificate(mut self, cert_file: impl Into<PathBuf>, key_file: impl Into<PathBuf>) -> Self {
        let (cert_file, key_file) = (cert_file.into(), key_file.into());
        self.client_certificate = Some(ClientCertificate { cert_file, key_file });
        self
    }

    /// `verify`: whether the server must prove who it is.
    pub const fn verification(mut self, verification: Verification) -> Self {
        self.verification = Some(verification);
        self
    }

    /// `server_name_indication`: the name to ask for and to expect, in place of the host.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Checks each value, and whether they go together.
    ///
    /// # Errors
    ///
    /// [`UriError`], which names the part of the URI or the parameter.
    pub fn build(self) -> Result<Uri, UriError> {
        let tls = self.tls_config()?;
        let credentials = self.credentials(tls.as_ref())?;
        let port = self.port.unwrap_or(default_port(self.tls));
        if port == 0 {
            return Err(UriError::Port);
        }
        let virtual_host = match &self.virtual_host {
            None => ShortString::from_static("/"),
            Some(name) => {
                ShortString::new(name).map_err(|error| UriError::VirtualHostTooLong { bytes: error.bytes })?
            }
        };
        let whole_seconds = |time: &Duration| time.subsec_nanos() == 0 && time.as_secs() <= u16::MAX.into();
        if !self.heartbeat.as_ref().is_none_or(whole_seconds) {
            return Err(UriError::HEARTBEAT);
        }
        let whole_millis = |time: &Duration| {
            time.subsec_nanos().is_multiple_of(1_000_000) && (1..=u32::MAX.into()).contains(&time.as_millis())
        };
        if !self.connection_timeout.as_ref().is_none_or(whole_millis) {
            return Err(UriError::CONNECTION_TIMEOUT);
        }
        if self.frame_max.is_some_and(|bytes| bytes < MIN_FRAME_MAX) {
            return Err(UriError::FRAME_MAX);
        }
        Ok(Uri {
            host: checked_host(self.host).ok_or(UriError::Host)?,
            port,
            tls,
            credentials,
            virtual_host,
            heartbeat: self.heartbeat,
            connection_timeout: self.connection_timeout,
            frame_max: self.frame_max,
            channel_max: self.channel_max,
        })
    }

    fn tls_config(&self) -> Result<Option<TlsConfig>, UriError> {
        let given = [
            ("cacertfile", self.ca_file.is_some()),
            ("certfile", self.client_certificate.is_some()),
            ("verify", self.verification.is_some()),
            ("server_name_indication", self.server_name.is_some()),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, given)| *given && !self.tls) {
            return Err(UriError::NeedsTls { name });
        }
        let certificate = self.client_certificate.as_ref();
        for (name, path) in [
            ("cacertfile", self.ca_file.as_ref()),
            ("certfile", certificate.map(|certificate| &certificate.cert_file)),
            ("keyfile", certificate.map(|certificate| &certificate.key_file)),
        ] {
            if path.is_some_and(|path| path.as_os_str().is_empty()) {
                return Err(UriError::Parameter { name, expected: "the path of a file" });
            }
        }
        let server_name = match &self.server_name {
            None => None,
            Some(name) if name.is_empty() => return Err(UriError::SERVER_NAME),
            Some(name) => Some(checked_host(name.clone()).ok_or(UriError::SERVER_NAME)?),
        };
        Ok(self.tls.then(|| TlsConfig {
            ca_file: self.ca_file.clone(),
            client_certificate: self.client_certificate.clone(),
            verification: self.verification.unwrap_or_default(),
            server_name,
        }))
    }

    fn credentials(&self, tls: Option<&TlsConfig>) -> Result<Credentials, UriError> {
        let external_only = self.mechanisms == [Mechanism::External];
        let credentials = match &self.login {
            Some(login) => login.clone(),
            None if external_only => Credentials::external(),
            None => Credentials::default(),
        };
        for (part, text) in credentials
            .login()
            .map_or([("", ""); 2], |(user, password)| [("user name", user), ("password", password)])
        {
            if text.contains('\0') {
                return Err(UriError::Nul { part });
            }
        }
        let credentials = if self.mechanisms.is_empty() {
            credentials
        } else {
            credentials.with_mechanisms(self.mechanisms.iter().copied()).map_err(|error| match error {
                MechanismsError::Twice { .. } => UriError::Duplicate { name: "auth_mechanism" },
                MechanismsError::None | MechanismsError::NeedsPassword { .. } => UriError::NoLogin,
            })?
        };
        if credentials.is_external_only() && tls.is_none_or(|tls| tls.client_certificate.is_none()) {
            return Err(UriError::ExternalWithoutCertificate);
        }
        Ok(credentials)
    }
}

/// A host as it is resolved: an IPv6 address without brackets, or a text without what delimits the parts of a URI.
fn checked_host(host: String) -> Option<String> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_free = |c: char| !c.is_whitespace() && !c.is_control() && !r#"/?#@[]:,%<>"\^`{|}"#.contains(c);
    match inner.unwrap_or(&host) {
        "" if inner.is_none() => Some("localhost".to_owned()),
        address if address.contains(':') => {
            let (number, zone) =
                address.split_once('%').map_or((address, None), |(number, zone)| (number, Some(zone)));
            // RFC 6874, section 2: a zone is of unreserved characters.
            let is_unreserved = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
            let zone_fits = zone.is_none_or(|zone| !zone.is_empty() && zone.chars().all(is_unreserved));
            (number.parse::<Ipv6Addr>().is_ok() && zone_fits).then(|| address.to_owned())
        }
        name if inner.is_none() && name.chars().all(is_free) => Some(host),
        _ => None,
    }
}
