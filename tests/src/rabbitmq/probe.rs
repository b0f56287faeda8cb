//! Asks an address who it is, with the first exchange of an AMQP connection.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use amq_protocol::frame::{AMQPFrame, parse_frame};
use amq_protocol::protocol::AMQPClass;
use amq_protocol::protocol::connection::AMQPMethod;
use amq_protocol::types::{AMQPValue, FieldTable};

use super::RealBrokerError;

/// How long each step may take.
const STEP: Duration = Duration::from_secs(10);

/// The longest first frame that is read, in bytes: RabbitMQ's has about 500.
const LONGEST: u32 = 64 * 1024;

/// What a broker says of itself in `connection.start` (AMQP 0-9-1, 1.4.2.1).
#[derive(Debug)]
pub(super) struct Greeting {
    /// Its version.
    pub(super) version: String,
    /// The name of its cluster: RabbitMQ's default is its node name with the full host name.
    pub(super) cluster: String,
}

/// Sends the protocol header to `address` (`host:port`) and reads the answer. Nothing is left open.
///
/// # Errors
///
/// [`RealBrokerError::Io`] where nobody listens or the answer does not come, [`RealBrokerError::NotAmqp`] where
/// it is another one than `connection.start`.
pub(super) fn greet(address: &str) -> Result<Greeting, RealBrokerError> {
    let frame =
        first_frame(address).map_err(RealBrokerError::io(format!("ask {address} for its version")))?;
    let start = match parse_frame(frame.as_slice()) {
        Ok((_, AMQPFrame::Method(0, AMQPClass::Connection(AMQPMethod::Start(start))))) => start,
        _ => {
            let found = format!("{:?}", String::from_utf8_lossy(&frame));
            return Err(RealBrokerError::NotAmqp { address: address.to_owned(), found });
        }
    };
    let property = |name| text(&start.server_properties, name).unwrap_or_default();
    Ok(Greeting { version: property("version"), cluster: property("cluster_name") })
}

/// One frame as it came: 7 bytes of head, the payload, the end byte (AMQP 0-9-1, 2.3.5). What is no frame is cut
/// after the head.
fn first_frame(address: &str) -> io::Result<Vec<u8>> {
    let resolved = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&resolved, STEP)?;
    stream.set_read_timeout(Some(STEP))?;
    stream.set_write_timeout(Some(STEP))?;
    stream.write_all(b"AMQP\x00\x00\x09\x01")?;
    let mut head = [0; 7];
    stream.read_exact(&mut head)?;
    let mut frame = head.to_vec();
    let length = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
    if head[0] == 1 && length <= LONGEST {
        stream.take(u64::from(length) + 1).read_to_end(&mut frame)?;
    }
    Ok(frame)
}

fn text(table: &FieldTable, name: &str) -> Option<String> {
    match table.inner().get(name)? {
        AMQPValue::LongString(value) => Some(value.to_string()),
        _ => None,
    }
}
