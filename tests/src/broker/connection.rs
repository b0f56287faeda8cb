//! The state of one connection: handshake, limits, timers, output.

use std::collections::BTreeMap;
use std::time::Duration;

use amq_protocol::protocol::AMQPClass;
use bytes::BytesMut;
use leveret_core::text::ShortString;
use leveret_core::time::Instant;

use super::channel::Channel;
use super::frames;

/// Where a connection is in its life (AMQP 0-9-1, 2.2.4).
///
/// ```text
/// Header -> StartOk -> TuneOk -> Open -> Running -> Ended
///    |         |          |        |        |
///    |         |          `--------+--------+-> Closing -> Ended
///    `---------`-> Ended
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The protocol header is awaited.
    Header,
    /// `connection.start-ok` is awaited.
    StartOk,
    /// `connection.tune-ok` is awaited.
    TuneOk,
    /// `connection.open` is awaited.
    Open,
    /// In use.
    Running,
    /// The broker sent `connection.close`; only the answer counts.
    Closing,
    /// Nothing is read any more; the socket is closed when the output is gone.
    Ended,
}

/// What the client said it understands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Capabilities {
    pub(super) consumer_cancel_notify: bool,
    pub(super) connection_blocked: bool,
    pub(super) authentication_failure_close: bool,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stage: Stage,
    pub(super) channels: BTreeMap<u16, Channel>,
    pub(super) user: ShortString,
    pub(super) vhost: ShortString,
    pub(super) name: Option<ShortString>,
    pub(super) capabilities: Capabilities,
    pub(super) frame_max: u32,
    pub(super) channel_max: u16,
    /// None where the client wanted none.
    pub(super) heartbeat: Option<Duration>,
    /// It has published, so an alarm stops it.
    pub(super) publishes: bool,
    /// An alarm stopped it.
    pub(super) blocked: bool,
    /// The end of the handshake, or of the wait for `close-ok`, or for the last bytes to be taken.
    pub(super) give_up_at: Option<Instant>,
    pub(super) last_read: Instant,
    pub(super) last_written: Instant,
    pub(super) outgoing: BytesMut,
}

impl Connection {
    pub(super) fn new(now: Instant, give_up_at: Instant) -> Self {
        Self {
            stage: Stage::Header,
            channels: BTreeMap::new(),
            user: ShortString::EMPTY,
            vhost: ShortString::EMPTY,
            name: None,
            capabilities: Capabilities::default(),
            frame_max: frames::HANDSHAKE_FRAME_MAX,
            channel_max: 0,
            heartbeat: None,
            publishes: false,
            blocked: false,
            give_up_at: Some(give_up_at),
            last_read: now,
            last_written: now,
            outgoing: BytesMut::new(),
        }
    }

    pub(super) fn send(&mut self, channel: u16, method: AMQPClass) {
        frames::put_method(&mut self.outgoing, channel, method);
    }

    /// When a heartbeat is due: every half of the agreed time without anything sent.
    pub(super) fn heartbeat_due(&self) -> Option<Instant> {
        self.heartbeat_while_running().map(|interval| self.last_written + interval / 2)
    }

    /// When the client counts as gone: two and a half heartbeats without a byte (RabbitMQ: two to three). Not
    /// while the broker itself does not read from it.
    pub(super) fn silence_ends(&self) -> Option<Instant> {
        self.heartbeat_while_running()
            .filter(|_| !self.blocked)
            .map(|interval| self.last_read + interval * 2 + interval / 2)
    }

    fn heartbeat_while_running(&self) -> Option<Duration> {
        self.heartbeat.filter(|_| matches!(self.stage, Stage::Open | Stage::Running))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let confirms = self.channels.values().filter_map(|channel| channel.confirms.as_ref()?.due()).min();
        [self.give_up_at, self.heartbeat_due(), self.silence_ends(), confirms].into_iter().flatten().min()
    }
}
