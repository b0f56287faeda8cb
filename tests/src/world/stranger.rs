//! Another system's publisher: puts any message on the broker.

use bytes::{Buf, BytesMut};
use leveret_core::connection::{Connection, ConnectionConfig, Credentials, Event, SendBuf, Verdict};
use leveret_core::message::Message;
use leveret_core::time::Instant;

use crate::broker::Broker;

/// Publishes `message` over a connection of its own and waits for the verdict.
pub(super) fn publish(now: Instant, broker: &mut Broker, message: &Message) -> Option<Verdict> {
    let mut connection = Connection::new(ConnectionConfig::new(Credentials::default()), now);
    let socket = broker.accept(now);
    let (mut out, mut to_broker, mut input) = (SendBuf::default(), BytesMut::new(), BytesMut::new());
    let mut verdict = None;
    for _ in 0..1_000 {
        connection.poll_transmit(now, &mut out);
        while out.has_remaining() {
            let length = out.chunk().len();
            to_broker.extend_from_slice(out.chunk());
            out.advance(length);
        }
        broker.handle_read(now, socket, &mut to_broker);
        broker.poll_transmit(now, socket, &mut input);
        let _ = connection.handle_read(now, &mut input);
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Opened { .. } => {
                    let channel = connection.open_channel().ok()?;
                    connection.confirm_select(channel).ok()?;
                    connection.publish(channel, message).ok()?;
                }
                Event::Verdict { verdict: found, .. } => {
                    verdict = Some(found);
                    connection.close(now, 200, "done");
                }
                Event::Closed(_) => {
                    broker.handle_eof(now, socket);
                    return verdict;
                }
                _ => {}
            }
        }
    }
    None
}
