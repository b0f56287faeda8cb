//! A connection after its handshake with a scripted server, for the tests of what works on one.

use bytes::{Buf, BytesMut};

use crate::connection::{Connection, ConnectionConfig, Credentials, SendBuf};
use crate::time::Instant;
use crate::wire::script;

/// Time stands still.
pub(super) const NOW: Instant = Instant::ORIGIN;

pub(super) fn open_connection() -> Connection {
    let mut connection = Connection::new(ConnectionConfig::new(Credentials::default()), NOW);
    // The first bytes are the protocol header, which is no frame.
    connection.poll_transmit(NOW, &mut SendBuf::default());
    for bytes in [script::start("PLAIN"), script::tune(2_047, 131_072, 60), script::open_ok()] {
        let _ = connection.handle_read(NOW, &mut BytesMut::from(&bytes[..]));
        while connection.poll_event().is_some() {}
        sent(&mut connection);
    }
    connection
}

/// What the client sends next, one line for each frame.
pub(super) fn sent(connection: &mut Connection) -> Vec<String> {
    let mut out = SendBuf::default();
    let mut bytes = Vec::new();
    while connection.poll_transmit(NOW, &mut out) > 0 {
        while out.has_remaining() {
            bytes.extend_from_slice(out.chunk());
            out.advance(out.chunk().len());
        }
    }
    script::describe(&bytes)
}
