//! One session and its sockets.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use leveret_core::session::{Attempt, ConnectFailure, Disconnect, LinkId, SendBuf, Session, SessionEvent};
use leveret_core::time::{Instant, UnixMillis};

use crate::broker::{Broker, ConnectionId};

#[derive(Debug)]
pub(super) struct Client {
    pub(super) session: Session,
    pub(super) events: Vec<SessionEvent>,
    pub(super) is_dead: bool,
    pub(super) is_asleep: bool,
    /// For how long its machine has slept: its monotonic clock stood still then, and its wall clock did not.
    pub(super) slept: Duration,
    sockets: BTreeMap<LinkId, Socket>,
}

/// The buffers belong to one attempt.
#[derive(Debug)]
struct Socket {
    attempt: Attempt,
    connection: ConnectionId,
    out: SendBuf,
    to_broker: BytesMut,
    input: BytesMut,
}

impl Client {
    pub(super) fn new(session: Session) -> Self {
        Self {
            session,
            events: Vec::new(),
            is_dead: false,
            is_asleep: false,
            slept: Duration::ZERO,
            sockets: BTreeMap::new(),
        }
    }

    /// What its monotonic clock shows.
    pub(super) fn clock(&self, now: Instant) -> Instant {
        now.saturating_sub(self.slept)
    }

    /// Tells the session the time; then it can be given commands.
    pub(super) fn awake(&mut self, now: Instant) -> &mut Session {
        self.session.handle_wall_clock(self.clock(now), wall(now));
        &mut self.session
    }

    /// The clocks, then transmit, events, input. Returns whether anything moved.
    pub(super) fn drive(&mut self, now: Instant, broker: &mut Broker, reachable: bool) -> bool {
        if self.is_asleep {
            return self.sockets.values_mut().fold(false, |moved, socket| moved | socket.fetch(now, broker));
        }
        self.awake(now);
        let mut moved = false;
        for link in LinkId::ALL {
            moved |= self.transmit(now, broker, link);
        }
        while let Some(event) = self.session.poll_event() {
            moved = true;
            self.on_event(now, broker, reachable, event);
        }
        for link in LinkId::ALL {
            moved |= self.receive(now, broker, link);
        }
        moved
    }

    /// The broker has closed its side: what it had sent is still read.
    pub(super) fn socket_closed(&mut self, now: Instant, broker: &mut Broker, connection: ConnectionId) {
        let Some(link) = LinkId::ALL
            .into_iter()
            .find(|link| self.sockets.get(link).is_some_and(|socket| socket.connection == connection))
        else {
            return;
        };
        self.receive(now, broker, link);
        self.disconnect(now, link);
    }

    pub(super) fn disconnect(&mut self, now: Instant, link: LinkId) -> Option<ConnectionId> {
        let socket = self.sockets.remove(&link)?;
        self.session.handle_closed(self.clock(now), link, socket.attempt, Disconnect::Eof);
        Some(socket.connection)
    }

    pub(super) fn abandon(&mut self, link: LinkId) -> Option<ConnectionId> {
        self.sockets.remove(&link).map(|socket| socket.connection)
    }

    pub(super) fn transmit(&mut self, now: Instant, broker: &mut Broker, link: LinkId) -> bool {
        let clock = self.clock(now);
        let Some(socket) = self.sockets.get_mut(&link) else { return false };
        let written = self.session.poll_transmit(clock, link, &mut socket.out);
        while socket.out.has_remaining() {
            let chunk = socket.out.chunk();
            let length = chunk.len();
            socket.to_broker.extend_from_slice(chunk);
            socket.out.advance(length);
        }
        broker.handle_read(now, socket.connection, &mut socket.to_broker);
        written > 0
    }

    fn receive(&mut self, now: Instant, broker: &mut Broker, link: LinkId) -> bool {
        let clock = self.clock(now);
        let Some(socket) = self.sockets.get_mut(&link) else { return false };
        let received = socket.fetch(now, broker);
        let before = socket.input.len();
        if before > 0 && self.session.wants_read(link) {
            let _ = self.session.handle_read(clock, link, socket.attempt, &mut socket.input);
        }
        received || socket.input.len() != before
    }

    fn on_event(&mut self, now: Instant, broker: &mut Broker, reachable: bool, event: SessionEvent) {
        match event {
            SessionEvent::Connect { link, attempt, .. } if reachable => {
                let connection = broker.accept(now);
                self.sockets.insert(
                    link,
                    Socket {
                        attempt,
                        connection,
                        out: SendBuf::default(),
                        to_broker: BytesMut::new(),
                        input: BytesMut::new(),
                    },
                );
                self.session.handle_connected(self.clock(now), link, attempt);
            }
            SessionEvent::Connect { link, attempt, .. } => {
                let cause = ConnectFailure::Socket("connection refused".to_owned());
                self.session.handle_connect_failed(self.clock(now), link, attempt, cause);
            }
            SessionEvent::Drop { link, attempt, .. } => {
                if self.sockets.get(&link).is_some_and(|socket| socket.attempt == attempt)
                    && let Some(connection) = self.abandon(link)
                {
                    broker.handle_eof(now, connection);
                }
            }
            event => self.events.push(event),
        }
    }
}

impl Socket {
    /// Takes in what the broker has sent, as an operating system does.
    fn fetch(&mut self, now: Instant, broker: &mut Broker) -> bool {
        broker.poll_transmit(now, self.connection, &mut self.input) > 0
    }
}

/// The wall clock of every machine.
pub(super) fn wall(now: Instant) -> UnixMillis {
    UnixMillis(1_700_000_000_000 + now.as_nanos() / 1_000_000)
}
