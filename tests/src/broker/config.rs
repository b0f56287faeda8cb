//! What a broker is configured with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use leveret_core::text::ShortString;
use leveret_core::time::UnixMillis;

use super::confirm::ConfirmStyle;

/// The configuration of a [`Broker`](super::Broker): as RabbitMQ comes out of the box, unless told otherwise.
#[derive(Clone)]
pub struct BrokerConfig {
    users: BTreeMap<String, String>,
    pub(super) vhosts: BTreeSet<ShortString>,
    pub(super) heartbeat: u16,
    pub(super) frame_max: u32,
    pub(super) channel_max: u16,
    pub(super) max_message_bytes: u64,
    pub(super) confirms: ConfirmStyle,
    pub(super) started_at: UnixMillis,
    pub(super) handshake_timeout: Duration,
    pub(super) outgoing_high_water: usize,
    pub(super) event_limit: usize,
}

impl Default for BrokerConfig {
    /// User `guest` with password `guest`, the virtual host `/`, heartbeat 60 s, frames of 131,072 bytes,
    /// 2,047 channels, messages up to 16 MiB.
    fn default() -> Self {
        Self {
            users: BTreeMap::from([("guest".to_owned(), "guest".to_owned())]),
            vhosts: BTreeSet::from([ShortString::from_static("/")]),
            heartbeat: 60,
            frame_max: 131_072,
            channel_max: 2047,
            max_message_bytes: 16 * 1024 * 1024,
            confirms: ConfirmStyle::default(),
            started_at: UnixMillis(0),
            handshake_timeout: Duration::from_secs(10),
            outgoing_high_water: 256 * 1024,
            event_limit: 100_000,
        }
    }
}

impl BrokerConfig {
    /// Adds a user, who may do everything on every virtual host.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.users.insert(name.into(), password.into());
        self
    }

    /// Adds a virtual host.
    #[must_use]
    pub fn vhost(mut self, name: ShortString) -> Self {
        self.vhosts.insert(name);
        self
    }

    /// The heartbeat that `tune` proposes, in seconds; 0 proposes none. Default 60. What counts is what the
    /// client answers.
    #[must_use]
    pub const fn heartbeat(mut self, seconds: u16) -> Self {
        self.heartbeat = seconds;
        self
    }

    /// The largest frame that `tune` offers, in bytes, at least 4,096 (less is taken as that). Default
    /// 131,072.
    #[must_use]
    pub const fn frame_max(mut self, bytes: u32) -> Self {
        self.frame_max =
            if bytes < super::frames::FRAME_MIN_SIZE { super::frames::FRAME_MIN_SIZE } else { bytes };
        self
    }

    /// The number of channels that `tune` offers, at least 1. Default 2,047.
    #[must_use]
    pub const fn channel_max(mut self, channels: u16) -> Self {
        self.channel_max = if channels == 0 { 1 } else { channels };
        self
    }

    /// The largest body that is taken, in bytes. Default 16 MiB. One message per channel can be half received,
    /// so a connection can cost this times its channels.
    #[must_use]
    pub const fn max_message_bytes(mut self, bytes: u64) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// How publishes are confirmed. Default [`ConfirmStyle::default`].
    #[must_use]
    pub const fn confirms(mut self, style: ConfirmStyle) -> Self {
        self.confirms = style;
        self
    }

    /// The wall clock at the `now` that the broker is made with; it shows in the `time` of `x-death` only.
    /// Default 1970.
    #[must_use]
    pub const fn started_at(mut self, wall_clock: UnixMillis) -> Self {
        self.started_at = wall_clock;
        self
    }

    /// How long a client may take from connecting to `connection.open`, and to answer `connection.close`.
    /// Default 10 s.
    #[must_use]
    pub const fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// How many unsent bytes of one connection stop deliveries to it and reading from it. Default 256 KiB.
    /// One message more may stand in its output.
    #[must_use]
    pub const fn outgoing_high_water(mut self, bytes: usize) -> Self {
        self.outgoing_high_water = bytes;
        self
    }

    /// How many events are kept for [`Broker::poll_event`](super::Broker::poll_event) before the oldest are
    /// forgotten (never a `CloseSocket`). Default 100,000, of about 200 bytes each.
    #[must_use]
    pub const fn event_limit(mut self, events: usize) -> Self {
        self.event_limit = events;
        self
    }

    pub(super) fn knows(&self, user: &str, password: &[u8]) -> bool {
        self.users.get(user).is_some_and(|known| known.as_bytes() == password)
    }
}

impl fmt::Debug for BrokerConfig {
    // Passwords are not printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerConfig")
            .field("users", &self.users.keys())
            .field("vhosts", &self.vhosts)
            .field("heartbeat", &self.heartbeat)
            .field("frame_max", &self.frame_max)
            .field("channel_max", &self.channel_max)
            .field("max_message_bytes", &self.max_message_bytes)
            .field("confirms", &self.confirms)
            .field("started_at", &self.started_at)
            .field("handshake_timeout", &self.handshake_timeout)
            .field("outgoing_high_water", &self.outgoing_high_water)
            .field("event_limit", &self.event_limit)
            .finish()
    }
}
