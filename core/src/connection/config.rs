//! What one connection is told before it starts.

use std::time::Duration;

use super::{Credentials, MIN_FRAME_MAX};
use crate::text::ShortString;

/// The configuration of one connection.
///
/// What it can cost: `max_unsent_bytes` of queued publishes, or one larger message; on each channel, the commands
/// that wait, at most 4,096, and one message of up to `max_message_bytes` that is being received; on each channel
/// on which something is delivered, 16 bytes for each delivery that is not settled, at most twice that; on each
/// in confirm mode, 16 bytes for each of `max_unconfirmed` publishes, and the reply text of those that were
/// returned; and the events that were not taken out, some 8 MiB or one message, after which reading stops.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConnectionConfig {
    /// Who connects, and by which SASL mechanisms that is shown.
    pub credentials: Credentials,
    /// The virtual host. Default `/`.
    pub virtual_host: ShortString,
    /// A name that RabbitMQ shows for the connection. Default none.
    pub connection_name: Option<ShortString>,
    /// The heartbeat, in whole seconds (parts are rounded up), at most 65,535 s. Default 30 s.
    ///
    /// The lower of this and the server's proposal is used; where one of the two is zero, the other one. Off
    /// only if both are zero.
    pub heartbeat: Duration,
    /// The largest frame, in bytes. Default 131,072.
    ///
    /// Below 8,192 it is taken as 8,192, because RabbitMQ 4.1 and later refuse less. The server may lower it.
    pub frame_max: u32,
    /// The highest channel number. Default 2,047, as on the server; 0 asks for as many as the server allows.
    pub channel_max: u16,
    /// How long the AMQP handshake may take. Default 10 s.
    pub handshake_timeout: Duration,
    /// How long the peer may take to answer a close. Default 5 s.
    pub close_timeout: Duration,
    /// How many bytes of commands and publishes may be queued before publishes are refused. Default 8 MiB.
    pub max_unsent_bytes: usize,
    /// The largest body, in bytes, sent or received. Default 128 MiB.
    ///
    /// A larger publish is refused. A larger delivery comes without its body, which is skipped as it arrives:
    /// [`Content::body`](super::Content::body) is [`Oversized`](super::Oversized).
    pub max_message_bytes: u64,
    /// How many publishes of one channel there may be, counted from the first that waits for its confirm: those
    /// after it count also when they are confirmed. Default 65,536.
    pub max_unconfirmed: usize,
}

impl ConnectionConfig {
    /// The default configuration for these credentials.
    #[must_use]
    pub fn new(credentials: Credentials) -> Self {
        Self {
            credentials,
            virtual_host: ShortString::from_static("/"),
            connection_name: None,
            heartbeat: Duration::from_secs(30),
            frame_max: 131_072,
            channel_max: 2_047,
            handshake_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(5),
            max_unsent_bytes: 8 * 1024 * 1024,
            max_message_bytes: 128 * 1024 * 1024,
            max_unconfirmed: 65_536,
        }
    }

    /// The largest frame that we accept, whatever the server says.
    pub(super) fn frame_limit(&self) -> u32 {
        self.frame_max.max(MIN_FRAME_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        let config = ConnectionConfig::new(Credentials::new("ada", "hunter2"));
        let text = format!("{config:?}");
        assert!(text.contains("ada") && !text.contains("hunter2"), "{text}");
    }
}
