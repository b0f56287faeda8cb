//! Another system's client, in virtual time.

use bytes::{Buf, BytesMut};
use leveret_core::connection::{Connection, ConnectionConfig, Credentials, SendBuf, Verdict};
use leveret_core::time::Instant;

use crate::broker::Broker;
use crate::stranger::{Errand, Stranger};

/// More turns than one errand takes.
const MAX_TURNS: usize = 1_000;

/// Runs one errand over a connection of its own and waits for the answer.
pub(super) fn run(now: Instant, broker: &mut Broker, errand: Errand<'_>) -> Option<Verdict> {
    let mut stranger = Stranger::new(Connection::new(ConnectionConfig::new(Credentials::default()), now));
    let socket = broker.accept(now);
    let (mut out, mut to_broker, mut input) = (SendBuf::default(), BytesMut::new(), BytesMut::new());
    for _ in 0..MAX_TURNS {
        stranger.connection.poll_transmit(now, &mut out);
        while out.has_remaining() {
            let length = out.chunk().len();
            to_broker.extend_from_slice(out.chunk());
            out.advance(length);
        }
        broker.handle_read(now, socket, &mut to_broker);
        broker.poll_transmit(now, socket, &mut input);
        let _ = stranger.connection.handle_read(now, &mut input);
        if let Some(verdict) = stranger.turn(now, errand).ok()? {
            broker.handle_eof(now, socket);
            return Some(verdict);
        }
    }
    None
}
