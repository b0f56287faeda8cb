//! One session and its sockets.

use std::collections::BTreeMap;

use bytes::{Buf, BytesMut};
use leveret_core::session::{Attempt, ConnectFailure, Disconnect, LinkId, SendBuf, Session, SessionEvent};
use leveret_core::time::Instant;

use crate::broker::{Broker, ConnectionId};

#[derive(Debug)]
pub(super) struct Client {
    pub(super) session: Session,
    pub(super) events: Vec<SessionEvent>,
    pub(super) is_dead: bool,
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
        Self { session, events: Vec::new(), is_dead: false, sockets: BTreeMap::new() }
    }

    /// Transmit, events, input. Returns whether anything moved.
    pub(super) fn drive(&mut self, now: Instant, broker: &mut Broker, reachable: bool) -> bool {
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
        self.session.handle_closed(now, link, socket.attempt, Disconnect::Eof);
        Some(socket.connection)
    }

    pub(super) fn abandon(&mut self, link: LinkId) -> Option<ConnectionId> {
        self.sockets.remove(&link).map(|socket| socket.connection)
    }

    pub(super) fn transmit(&mut self, now: Instant, broker: &mut Broker, link: LinkId) -> bool {
        let Some(socket) = self.sockets.get_mut(&link) else { return false };
        let written = self.session.poll_transmit(now, link, &mut socket.out);
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
        let Some(socket) = self.sockets.get_mut(&link) else { return false };
        let received = broker.poll_transmit(now, socket.connection, &mut socket.input);
        let before = socket.input.len();
        if before > 0 && self.session.wants_read(link) {
            let _ = self.session.handle_read(now, link, socket.attempt, &mut socket.input);
        }
        received > 0 || socket.input.len() != before
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
                self.session.handle_connected(now, link, attempt);
            }
            SessionEvent::Connect { link, attempt, .. } => {
                let cause = ConnectFailure { text: "connection refused".to_owned() };
                self.session.handle_connect_failed(now, link, attempt, cause);
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
