//! One TCP connection of the session: when to connect, and what a loss means.
//!
//! ```text
//!            start                connected            connection.open-ok
//!   Idle ────────────▶ Connecting ─────────▶ Logging in ─────────────────▶ Up ──▶ established
//!     ▲                 │  ▲                  │                             │
//!     │ first connect   │  │ pause over       │ refused, cut, too slow      │ cut
//!     └─────────────────┤  │                  │                             │
//!       failed          ▼  │                  ▼                             ▼
//!                      Paused ◀────────────────────────────────────────────┘
//! ```
//!
//! A link is established once it can do what it is for: the one that publishes needs its queues. One that never was
//! fails after one round over the endpoints, each within the bound on an attempt. One that was comes back without
//! end, unless the cause is permanent.

use std::time::Duration;

use bytes::BytesMut;

use super::config::{Endpoint, SessionConfig};
use super::error::{ConnectFailure, Disconnect, LinkError};
use super::event::{LinkEnd, SessionEvent};
use super::ids::{Attempt, LinkId};
use super::outbox::Outbox;
use crate::connection::{Connection, ConnectionError, Event, ReadOutcome, SendBuf};
use crate::rng::Rng;
use crate::text::ShortString;
use crate::time::Instant;

/// What the session must do about a link that went down.
#[derive(Debug)]
pub(super) enum Down {
    /// It is being connected again, or the next endpoint is being tried.
    ComesBack,
    /// It stays down.
    Stays(LinkError),
    /// It stays down because the session closed it.
    Ended,
}

#[derive(Debug)]
pub(super) struct Link {
    id: LinkId,
    attempt: Attempt,
    state: State,
    /// Index of the endpoint in use or next to try.
    endpoint: usize,
    /// Endpoints tried since the last success or pause.
    tried: usize,
    /// Rounds over all endpoints that failed one after another.
    failed_rounds: u32,
    was_established: bool,
    /// Since when the present connection is established.
    established_since: Option<Instant>,
    closing: bool,
    /// A connection that has ended and may still have an answer to write, such as `close-ok`.
    leaving: Option<Box<Connection>>,
}

#[derive(Debug)]
enum State {
    Idle,
    Connecting {
        deadline: Instant,
    },
    LoggingIn {
        connection: Box<Connection>,
        deadline: Instant,
    },
    /// The bound on the attempt goes on where the link was never established.
    Up {
        connection: Box<Connection>,
        deadline: Option<Instant>,
    },
    Paused {
        until: Instant,
    },
    Ended(LinkEnd),
}

impl Link {
    pub(super) const fn new(id: LinkId) -> Self {
        Self {
            id,
            attempt: Attempt(0),
            state: State::Idle,
            endpoint: 0,
            tried: 0,
            failed_rounds: 0,
            was_established: false,
            established_since: None,
            closing: false,
            leaving: None,
        }
    }

    /// Begins to connect, if nothing was begun.
    pub(super) fn start(&mut self, now: Instant, config: &SessionConfig, outbox: &mut Outbox) {
        if matches!(self.state, State::Idle) {
            self.tried = 0;
            self.try_endpoint(now, config, outbox);
        }
    }

    pub(super) fn is_current(&self, attempt: Attempt) -> bool {
        self.attempt == attempt
            && matches!(self.state, State::Connecting { .. } | State::LoggingIn { .. } | State::Up { .. })
    }

    /// The AMQP connection, once it may be used.
    pub(super) fn up(&mut self) -> Option<&mut Connection> {
        match &mut self.state {
            State::Up { connection, .. } => Some(connection),
            _ => None,
        }
    }

    /// How it ended, once it has.
    pub(super) fn ended(&self) -> Option<LinkEnd> {
        match &self.state {
            State::Ended(end) => Some(end.clone()),
            _ => None,
        }
    }

    pub(super) fn socket_connected(&mut self, now: Instant, config: &SessionConfig) {
        if let State::Connecting { deadline } = self.state {
            let mut settings = config.connection.clone();
            settings.connection_name = settings.connection_name.map(|name| named(&name, self.id));
            let connection = Box::new(Connection::new(settings, now));
            self.leaving = None;
            self.state = State::LoggingIn { connection, deadline };
        }
    }

    pub(super) fn socket_failed(
        &mut self,
        now: Instant,
        failure: ConnectFailure,
        config: &SessionConfig,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Down {
        let endpoint = self.endpoint(config);
        let error = match failure {
            ConnectFailure::Socket(text) => LinkError::Unreachable { endpoint, text },
            ConnectFailure::Tls(failure) => LinkError::Tls { endpoint, failure: Box::new(failure) },
        };
        self.lost(now, error, config, rng, outbox)
    }

    pub(super) fn read(&mut self, now: Instant, input: &mut BytesMut) -> ReadOutcome {
        match self.connection() {
            Some(connection) => connection.handle_read(now, input),
            None => ReadOutcome::Idle,
        }
    }

    /// The socket ended. A clean end is told to the connection, which knows what it means at this point of the
    /// protocol; the answer comes as its `Closed` event.
    pub(super) fn socket_closed(
        &mut self,
        now: Instant,
        cause: Disconnect,
        config: &SessionConfig,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Option<Down> {
        match cause {
            Disconnect::Eof => {
                if let Some(connection) = self.connection() {
                    connection.handle_eof(now);
                }
                None
            }
            Disconnect::Io(text) => {
                let error = LinkError::Socket { endpoint: self.endpoint(config), text };
                Some(self.lost(now, error, config, rng, outbox))
            }
        }
    }

    /// Fires what is due.
    pub(super) fn timeout(
        &mut self,
        now: Instant,
        config: &SessionConfig,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Option<Down> {
        match &mut self.state {
            State::Paused { until } if *until <= now => {
                self.tried = 0;
                self.try_endpoint(now, config, outbox);
                None
            }
            State::Connecting { deadline } | State::LoggingIn { deadline, .. } if *deadline <= now => {
                outbox.push(SessionEvent::Drop { link: self.id, attempt: self.attempt, flush: false });
                let error =
                    LinkError::TimedOut { endpoint: self.endpoint(config), after: config.connect_timeout };
                Some(self.lost(now, error, config, rng, outbox))
            }
            State::Up { deadline: Some(deadline), .. } if *deadline <= now => {
                let after = config.connect_timeout;
                let error = |endpoint| LinkError::Unanswered { endpoint, after };
                Some(self.unusable(now, error, config, rng, outbox))
            }
            State::LoggingIn { connection, .. } | State::Up { connection, .. } => {
                connection.handle_timeout(now);
                None
            }
            _ => None,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Paused { until } => Some(*until),
            State::Connecting { deadline } => Some(*deadline),
            State::LoggingIn { connection, deadline } => {
                Some(connection.poll_timeout().map_or(*deadline, |at| at.min(*deadline)))
            }
            State::Up { connection, deadline } => {
                connection.poll_timeout().into_iter().chain(*deadline).min()
            }
            State::Idle | State::Ended(_) => None,
        }
    }

    pub(super) fn transmit(&mut self, now: Instant, out: &mut SendBuf) -> usize {
        match &mut self.state {
            State::LoggingIn { connection, .. } | State::Up { connection, .. } => {
                connection.poll_transmit(now, out)
            }
            _ => self.leaving.as_mut().map_or(0, |connection| connection.poll_transmit(now, out)),
        }
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        match &mut self.state {
            State::LoggingIn { connection, .. } | State::Up { connection, .. } => Some(connection),
            _ => None,
        }
    }

    pub(super) fn wants_read(&self) -> bool {
        match &self.state {
            State::LoggingIn { connection, .. } | State::Up { connection, .. } => connection.wants_read(),
            _ => false,
        }
    }

    pub(super) fn poll_connection_event(&mut self) -> Option<Event> {
        self.connection()?.poll_event()
    }

    /// `connection.open-ok` has come.
    pub(super) fn opened(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Idle) {
            State::LoggingIn { connection, deadline } => {
                State::Up { connection, deadline: Some(deadline).filter(|_| !self.was_established) }
            }
            other => other,
        };
    }

    /// Whether it is up and not established yet.
    pub(super) const fn is_opening(&self) -> bool {
        matches!(self.state, State::Up { .. }) && self.established_since.is_none()
    }

    /// It can do what it is for.
    pub(super) fn established(&mut self, now: Instant) {
        if let State::Up { deadline, .. } = &mut self.state {
            *deadline = None;
            self.established_since = Some(now);
            self.was_established = true;
            self.tried = 0;
        }
    }

    /// The AMQP connection has ended; the socket goes with it.
    pub(super) fn connection_closed(
        &mut self,
        now: Instant,
        error: ConnectionError,
        config: &SessionConfig,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Down {
        // The answer to a close is still to be written. Nobody reads it where the connection failed.
        let flush = !matches!(error, ConnectionError::PeerSilent | ConnectionError::Eof);
        outbox.push(SessionEvent::Drop { link: self.id, attempt: self.attempt, flush });
        if flush {
            self.leaving = self.take_connection();
        }
        if self.closing {
            let clean = matches!(error, ConnectionError::ClosedLocally { acknowledged: true });
            self.state = State::Ended(if clean { LinkEnd::Handshake } else { LinkEnd::Cut });
            return Down::Ended;
        }
        let error = LinkError::Connection { endpoint: self.endpoint(config), error };
        self.lost(now, error, config, rng, outbox)
    }

    /// The connection is up and cannot do what the session needs.
    pub(super) fn unusable(
        &mut self,
        now: Instant,
        error: impl FnOnce(Endpoint) -> LinkError,
        config: &SessionConfig,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Down {
        outbox.push(SessionEvent::Drop { link: self.id, attempt: self.attempt, flush: false });
        let error = error(self.endpoint(config));
        self.lost(now, error, config, rng, outbox)
    }

    /// Begins to close for good: with the handshake where the connection is up, at once where it is not.
    pub(super) fn close(&mut self, now: Instant, outbox: &mut Outbox) {
        if self.closing {
            return;
        }
        self.closing = true;
        match &mut self.state {
            State::Up { connection, .. } => connection.close(now, 200, "client shut down"),
            State::Connecting { .. } | State::LoggingIn { .. } => {
                outbox.push(SessionEvent::Drop { link: self.id, attempt: self.attempt, flush: false });
                self.state = State::Ended(LinkEnd::Cut);
            }
            State::Idle => {
                self.state =
                    State::Ended(if self.was_established { LinkEnd::Cut } else { LinkEnd::NeverOpened });
            }
            State::Paused { .. } => self.state = State::Ended(LinkEnd::Cut),
            State::Ended(_) => {}
        }
    }

    fn take_connection(&mut self) -> Option<Box<Connection>> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::LoggingIn { connection, .. } | State::Up { connection, .. } => Some(connection),
            _ => None,
        }
    }

    fn lost(
        &mut self,
        now: Instant,
        error: LinkError,
        config: &SessionConfig,
        rng: &mut Rng,
        outbox: &mut Outbox,
    ) -> Down {
        if self.closing {
            self.state = State::Ended(LinkEnd::Cut);
            return Down::Ended;
        }
        let since = self.established_since.take();
        let up_for = since.map(|since| now.saturating_duration_since(since));
        if up_for.is_some_and(|time| time >= config.reconnect.stable_after) {
            self.failed_rounds = 0;
        }
        self.tried += 1;
        self.endpoint = (self.endpoint + 1) % config.endpoints.len();
        if self.was_established {
            outbox.push(SessionEvent::Disconnected { link: self.id, cause: error.clone() });
        }
        if error.is_permanent() {
            self.state = State::Idle;
            return Down::Stays(error);
        }
        if since.is_none() && self.tried < config.endpoints.len() {
            self.try_endpoint(now, config, outbox);
            return Down::ComesBack;
        }
        if !self.was_established {
            self.state = State::Idle;
            return Down::Stays(error);
        }
        let pause = config.reconnect.pause(self.failed_rounds, rng.next_u64());
        self.failed_rounds = self.failed_rounds.saturating_add(1);
        self.state = State::Paused { until: now + pause };
        Down::ComesBack
    }

    fn try_endpoint(&mut self, now: Instant, config: &SessionConfig, outbox: &mut Outbox) {
        self.attempt = Attempt(self.attempt.0 + 1);
        self.state =
            State::Connecting { deadline: now + config.connect_timeout.max(Duration::from_millis(1)) };
        outbox.push(SessionEvent::Connect {
            link: self.id,
            attempt: self.attempt,
            endpoint: self.endpoint(config),
        });
    }

    fn endpoint(&self, config: &SessionConfig) -> Endpoint {
        config.endpoints[self.endpoint].clone()
    }
}

/// What an operator sees in the broker's list of connections.
fn named(name: &str, link: LinkId) -> ShortString {
    let role = match link {
        LinkId::Publish => "publish",
        LinkId::Consume => "consume",
    };
    ShortString::truncated(&format!("{name} {role}"))
}
