//! From the protocol header to `connection.open-ok` (AMQP 0-9-1, 2.2.4).
//!
//! | the server | the connection ends with |
//! |---|---|
//! | answers by a protocol header: another version, AMQP 1.0 | `VersionMismatch` |
//! | is a web server, a port for TLS, or something else | `NotAmqp` |
//! | says nothing, at any step | `HandshakeTimeout`, after `handshake_timeout` for all steps together |
//! | offers none of our mechanisms | `MechanismNotOffered` |
//! | asks for more than one answer | `UnexpectedChallenge` |
//! | refuses the login by a close, as our capability asks | `AuthenticationRefused` |
//! | refuses the login by hanging up, or goes down just then | `ProbablyAuthenticationRefused` |
//! | refuses the virtual host | `VirtualHostRefused` |
//! | proposes frames below 4,096 bytes, or steps out of order | `Protocol` |

use bytes::Bytes;

use super::config::ConnectionConfig;
use super::negotiated::FrameMaxTooSmall;
use super::{
    CloseReason, Connection, ConnectionError, Event, ForeignPeer, HandshakeStage, Mechanism, Negotiated,
    Phase, ProtocolError, ServerInfo, TimerKind,
};
use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::time::Instant;
use crate::wire::ProtocolVersion;
use crate::wire::frame::{self, Opening};
use crate::wire::method::{self, Start, Tune};

/// Reply codes that refuse (AMQP 0-9-1, 1.1.2).
const ACCESS_REFUSED: u16 = 403;
const NOT_ALLOWED: u16 = 530;

const PRODUCT: ShortString = ShortString::from_static("product");
const VERSION: ShortString = ShortString::from_static("version");

impl Connection {
    /// Looks at what the peer says first. False if it is nothing to read frames from, or too little to tell.
    pub(super) fn check_opening(&mut self, input: &[u8]) -> bool {
        let Phase::Handshake { stage: HandshakeStage::Start, opening } = &mut self.phase else { return true };
        match frame::opening(input, false) {
            Opening::Frames => {
                // What was kept of it has become a frame.
                *opening = Bytes::new();
                return true;
            }
            Opening::Undecided => *opening = Bytes::copy_from_slice(input),
            Opening::Version(_) | Opening::Foreign => {
                if let Some(error) = foreign_opening(input, false) {
                    self.fail(error);
                }
            }
        }
        false
    }

    /// `connection.start`: tells who we are, and the password.
    pub(super) fn handle_start(&mut self, start: &Start) -> Result<HandshakeStage, ConnectionError> {
        if (start.version_major, start.version_minor) != (0, 9) {
            let (major, minor) = (start.version_major, start.version_minor);
            let offered = ProtocolVersion { id: 0, major, minor, revision: 0 };
            return Err(ConnectionError::VersionMismatch { offered });
        }
        let credentials = &self.config.credentials;
        let mechanism =
            credentials.choose(&start.mechanisms).ok_or_else(|| ConnectionError::MechanismNotOffered {
                wanted: credentials.mechanisms().to_vec(),
                offered: start.mechanisms.clone(),
            })?;
        let text = |name: &str| {
            let text = start.server_properties.get(name).and_then(Value::as_str);
            text.map(ShortString::truncated).unwrap_or_default()
        };
        self.server = ServerInfo { product: text("product"), version: text("version") };
        self.outgoing.push_control(self.start_ok(mechanism)?);
        Ok(HandshakeStage::Tune)
    }

    fn start_ok(&self, mechanism: Mechanism) -> Result<Bytes, ConnectionError> {
        let limit = self.config.frame_limit();
        let too_large = |bytes| ConnectionError::LoginTooLarge { bytes, limit };
        let login = self.config.credentials.login();
        let bytes = login.map_or(0, |(user, password)| user.len().saturating_add(password.len()));
        if bytes > limit as usize {
            return Err(too_large(bytes));
        }
        let response = self.config.credentials.response(mechanism);
        let start_ok =
            method::connection_start_ok(&client_properties(&self.config), mechanism.name(), response);
        if start_ok.len() > limit as usize { Err(too_large(start_ok.len())) } else { Ok(start_ok) }
    }

    /// `connection.tune`: agrees on limits, and opens the virtual host.
    pub(super) fn handle_tune(
        &mut self,
        now: Instant,
        offer: Tune,
    ) -> Result<HandshakeStage, ConnectionError> {
        let (negotiated, answer) = Negotiated::new(&self.config, offer)
            .map_err(|FrameMaxTooSmall { offered }| ProtocolError::FrameMaxTooSmall { offered })?;
        self.negotiated = Some(negotiated);
        self.outgoing.set_frame_max(negotiated.frame_max);
        self.outgoing.push_control(method::connection_tune_ok(answer));
        self.outgoing.push_control(method::connection_open(&self.config.virtual_host));
        self.rearm_heartbeat(now);
        self.rearm_silence(now);
        Ok(HandshakeStage::OpenOk)
    }

    /// `connection.open-ok`: commands are taken from now on.
    pub(super) fn handle_open_ok(&mut self) {
        let Some(negotiated) = self.negotiated else {
            debug_assert!(false, "opened before anything was agreed on");
            return;
        };
        self.phase = Phase::Open;
        self.timers.clear(TimerKind::HandshakeDeadline);
        let server = std::mem::take(&mut self.server);
        self.events.push(Event::Opened { negotiated, server });
    }

    /// What a close by the server means at this point.
    pub(super) fn refusal(&self, reason: CloseReason) -> ConnectionError {
        match (&self.phase, reason.code) {
            (Phase::Handshake { stage: HandshakeStage::Tune, .. }, ACCESS_REFUSED) => {
                ConnectionError::AuthenticationRefused { text: reason.text }
            }
            (Phase::Handshake { stage: HandshakeStage::OpenOk, .. }, ACCESS_REFUSED | NOT_ALLOWED) => {
                ConnectionError::VirtualHostRefused {
                    virtual_host: self.config.virtual_host.clone(),
                    text: reason.text,
                }
            }
            // RabbitMQ answers a secret that it refuses with 530, and names no method.
            (Phase::Open, ACCESS_REFUSED | NOT_ALLOWED) if self.secret_unanswered => {
                ConnectionError::SecretRefused { text: reason.text }
            }
            _ => ConnectionError::ClosedByPeer(reason),
        }
    }
}

/// The error for a peer whose first bytes are no frames, once that is certain.
pub(super) fn foreign_opening(input: &[u8], ended: bool) -> Option<ConnectionError> {
    match frame::opening(input, ended) {
        Opening::Frames | Opening::Undecided => None,
        Opening::Version(offered) => Some(ConnectionError::VersionMismatch { offered }),
        Opening::Foreign => {
            let shown = input.len().min(frame::PROTOCOL_HEADER.len());
            let beginning = input[..shown].to_vec();
            Some(ConnectionError::NotAmqp { peer: ForeignPeer::of(&beginning), beginning })
        }
    }
}

/// Who we are and what we understand. RabbitMQ sends a consumer's end, a blocked connection and a refused login
/// only to clients that say that they understand it.
fn client_properties(config: &ConnectionConfig) -> Table {
    const CAPABILITIES: [&str; 7] = [
        "publisher_confirms",
        "consumer_cancel_notify",
        "exchange_exchange_bindings",
        "basic.nack",
        "connection.blocked",
        "authentication_failure_close",
        "per_consumer_qos",
    ];
    let capabilities: Table =
        CAPABILITIES.iter().map(|&name| (ShortString::from_static(name), Value::Bool(true))).collect();
    let properties = Table::new()
        .with(PRODUCT, "leveret")
        .with(VERSION, env!("CARGO_PKG_VERSION"))
        .with(ShortString::from_static("platform"), "Rust")
        .with(ShortString::from_static("information"), "Reliable jobs on RabbitMQ")
        .with(ShortString::from_static("capabilities"), capabilities);
    match &config.connection_name {
        Some(name) => properties.with(ShortString::from_static("connection_name"), name),
        None => properties,
    }
}
