//! One AMQP 0-9-1 connection over one byte stream, as a state machine without I/O.
//!
//! # Verbs
//!
//! - `handle_*`: something happened outside. Bytes came, the stream ended, time passed.
//! - `poll_*`: take something out. Bytes to write, the next deadline, the next event.
//! - Plain verbs ([`open_channel`](Connection::open_channel), [`publish`](Connection::publish), ...) are
//!   commands. They are queued, answered by an error or by events, and change nothing when they fail.
//! - Everything that takes `&self` is a question.
//!
//! # The run loop
//!
//! Whatever moves the bytes, a blocking socket, an event loop or a runtime, does the same five steps over and over:
//!
//! 1. *Write.* [`poll_transmit`](Connection::poll_transmit) fills a [`SendBuf`]; write that, and fill it again, until there
//!    is nothing more or the stream takes no more.
//! 2. *Arm one timer* for [`poll_timeout`](Connection::poll_timeout).
//! 3. *Handle events.* Take all out of [`poll_event`](Connection::poll_event). Commands that are given meanwhile, here or
//!    from elsewhere, leave with the next step 1: go there.
//! 4. *Wait* until the stream takes more (if the buffer is not empty), gives some (only while
//!    [`wants_read`](Connection::wants_read) says so), or the timer ends. Do not wait if the last
//!    [`handle_read`](Connection::handle_read) answered [`ReadOutcome::More`], or `wants_read` turned true again: whole
//!    frames may be in the buffer.
//! 5. *Tell what happened:* [`handle_read`](Connection::handle_read) with the bytes that came behind those it left,
//!    [`handle_eof`](Connection::handle_eof) where the stream ended or failed,
//!    [`handle_timeout`](Connection::handle_timeout). Go to 1.
//!
//! It is over when [`Event::Closed`] came and the buffer of step 1 is written.
//!
//! # Example
//!
//! A whole client: it declares a queue, publishes to it, consumes from it, and closes once its message is confirmed
//! and acknowledged. `stream` is any byte stream; the numbers are those above.
//!
//! ```
//! use std::error::Error;
//! use std::io::{Read, Write};
//!
//! use bytes::{Buf, Bytes, BytesMut};
//! use leveret_core::connection::{
//!     Connection, ConnectionConfig, ConsumeOptions, Credentials, Event, ReadOutcome, SendBuf, Verdict,
//! };
//! use leveret_core::message::{Message, Properties};
//! use leveret_core::table::Table;
//! use leveret_core::text::ShortString;
//! use leveret_core::time::Instant;
//! use leveret_core::topology::QueueDeclaration;
//!
//! fn greet(stream: &mut (impl Read + Write)) -> Result<(), Box<dyn Error>> {
//!     // With a clock of your own, and a timer for step 2. This one stands still.
//!     let now = Instant::ORIGIN;
//!     let mut connection = Connection::new(ConnectionConfig::new(Credentials::new("guest", "guest")), now);
//!     let (mut out, mut input) = (SendBuf::default(), BytesMut::new());
//!     let queue = ShortString::from_static("greetings");
//!     let mut open_ends = 2; // a confirm and a delivery
//!     loop {
//!         // 1.
//!         while connection.poll_transmit(now, &mut out) > 0 {
//!             while out.has_remaining() {
//!                 let written = stream.write(out.chunk())?;
//!                 out.advance(written);
//!             }
//!         }
//!         // 3.
//!         if let Some(event) = connection.poll_event() {
//!             match event {
//!                 Event::Opened { .. } => {
//!                     let channel = connection.open_channel()?;
//!                     connection.confirm_select(channel)?;
//!                     connection.declare_queue(channel, &QueueDeclaration::durable(queue.clone(), Table::new()))?;
//!                     connection.consume(channel, &queue, &ShortString::EMPTY, &ConsumeOptions::default())?;
//!                     let body = Bytes::from_static(b"hello");
//!                     connection.publish(channel, &Message::to_queue(queue.clone(), Properties::default(), body))?;
//!                 }
//!                 Event::Verdict { verdict: Verdict::Ok, .. } => open_ends -= 1,
//!                 Event::Verdict { verdict, .. } => return Err(format!("not published: {verdict:?}").into()),
//!                 Event::Delivery(delivery) => {
//!                     assert_eq!(delivery.content().body()?, "hello");
//!                     connection.ack(delivery.channel(), delivery.delivery_tag(), false)?;
//!                     open_ends -= 1;
//!                 }
//!                 Event::ChannelClosed { cause, .. } if !connection.is_closed() => return Err(cause.to_string().into()),
//!                 Event::Closed(error) if open_ends == 0 => {
//!                     println!("{error}");
//!                     return Ok(());
//!                 }
//!                 Event::Closed(error) => return Err(error.to_string().into()),
//!                 _ => {}
//!             }
//!             if open_ends == 0 {
//!                 connection.close(now, 200, "done"); // once; again it changes nothing
//!             }
//!             continue;
//!         }
//!         // 4. and 5.
//!         if connection.handle_read(now, &mut input) == ReadOutcome::More {
//!             continue;
//!         }
//!         let mut block = [0; 4096];
//!         match stream.read(&mut block)? {
//!             0 => connection.handle_eof(now),
//!             length => input.extend_from_slice(&block[..length]),
//!         }
//!     }
//! }
//! # // A server that has its answers ready, one for each time that it is read.
//! # struct Server { answers: std::vec::IntoIter<Vec<u8>>, heard: Vec<u8> }
//! # impl Read for Server {
//! #     fn read(&mut self, block: &mut [u8]) -> std::io::Result<usize> {
//! #         let answer = self.answers.next().unwrap_or_default();
//! #         block[..answer.len()].copy_from_slice(&answer);
//! #         Ok(answer.len())
//! #     }
//! # }
//! # impl Write for Server {
//! #     fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> { self.heard.write(bytes) }
//! #     fn flush(&mut self) -> std::io::Result<()> { Ok(()) }
//! # }
//! # fn frame(kind: u8, channel: u8, payload: &[u8]) -> Vec<u8> {
//! #     [&[kind, 0, channel, 0, 0, 0, payload.len() as u8], payload, &[0xCE]].concat()
//! # }
//! # let answers = vec![
//! #     frame(1, 0, b"\0\x0a\0\x0a\0\x09\0\0\0\0\0\0\0\x05PLAIN\0\0\0\x05en_US"),
//! #     frame(1, 0, b"\0\x0a\0\x1e\x07\xff\0\x02\0\0\0\x3c"),
//! #     frame(1, 0, b"\0\x0a\0\x29\0"),
//! #     [
//! #         frame(1, 1, b"\0\x14\0\x0b\0\0\0\0"),
//! #         frame(1, 1, b"\0\x55\0\x0b"),
//! #         frame(1, 1, b"\0\x32\0\x0b\x09greetings\0\0\0\0\0\0\0\0"),
//! #         frame(1, 1, b"\0\x3c\0\x15\x09leveret-1"),
//! #     ].concat(),
//! #     [
//! #         frame(1, 1, b"\0\x3c\0\x3c\x09leveret-1\0\0\0\0\0\0\0\x01\0\0\x09greetings"),
//! #         frame(2, 1, b"\0\x3c\0\0\0\0\0\0\0\0\0\x05\0\0"),
//! #         frame(3, 1, b"hello"),
//! #         frame(1, 1, b"\0\x3c\0\x50\0\0\0\0\0\0\0\x01\0"),
//! #     ].concat(),
//! #     frame(1, 0, b"\0\x0a\0\x33"),
//! # ];
//! # let mut server = Server { answers: answers.into_iter(), heard: Vec::new() };
//! # greet(&mut server)?;
//! # let ack = frame(1, 1, b"\0\x3c\0\x50\0\0\0\0\0\0\0\x01\0");
//! # assert!(server.heard.windows(ack.len()).any(|sent| sent == ack));
//! # Ok::<(), Box<dyn Error>>(())
//! ```
//!
//! # Commands and their answers
//!
//! Several commands may be in flight on a channel; each is answered once, in their order, except that RabbitMQ
//! answers `consume` and `cancel` later than others. A command that the server refuses ends its channel, and with
//! it everything that waits there: [`Event::ChannelClosed`].
//!
//! | commands | answer |
//! |---|---|
//! | [`open_channel`](Connection::open_channel), [`close_channel`](Connection::close_channel) | [`Event::ChannelOpened`], [`Event::ChannelClosed`] |
//! | [`confirm_select`](Connection::confirm_select), then [`publish`](Connection::publish) | [`Event::ConfirmSelected`], [`Event::Verdict`] for each |
//! | [`tx_select`](Connection::tx_select), [`tx_commit`](Connection::tx_commit), [`tx_rollback`](Connection::tx_rollback) | [`Event::TxSelected`], [`Event::TxCommitted`], [`Event::TxRolledBack`] |
//! | [`declare_exchange`](Connection::declare_exchange), [`delete_exchange`](Connection::delete_exchange) | [`Event::ExchangeDeclared`], [`Event::ExchangeDeleted`] |
//! | [`declare_queue`](Connection::declare_queue), [`purge_queue`](Connection::purge_queue), [`delete_queue`](Connection::delete_queue) | [`Event::QueueDeclared`], [`Event::QueuePurged`], [`Event::QueueDeleted`] |
//! | [`bind`](Connection::bind), [`unbind`](Connection::unbind) | [`Event::Bound`], [`Event::Unbound`] |
//! | [`set_prefetch`](Connection::set_prefetch), [`set_flow`](Connection::set_flow) | [`Event::PrefetchSet`], [`Event::FlowSet`] |
//! | [`consume`](Connection::consume), [`cancel`](Connection::cancel) | [`Event::ConsumeStarted`] and [`Event::Delivery`] for each, [`Event::ConsumerCancelled`] |
//! | [`get`](Connection::get) | [`Event::Got`] or [`Event::GetEmpty`] |
//! | [`recover`](Connection::recover) | [`Event::Recovered`] |
//! | [`ack`](Connection::ack), [`nack`](Connection::nack), [`reject`](Connection::reject) | none |
//!
//! # States
//!
//! ```text
//! Handshake(Start -> Tune -> OpenOk) --> Open --close()--> Closing --close-ok, or its deadline--> Closed
//!       |                                 |                   |                                     ^
//!       +-- refused, silent, cut ---------+-- closed, cut ----+-- cut ------------------------------+
//! ```
//!
//! When a connection ends, every publish without a verdict gets [`Verdict::Unknown`], then every channel its
//! [`Event::ChannelClosed`], and [`Event::Closed`] comes last and once.
//!
//! # Limits
//!
//! Nothing grows without one, whatever a server sends and however slowly the owner takes events out. What a connection
//! can cost is the sum of these:
//!
//! | what | bytes at most | limit |
//! |---|---|---|
//! | the caller's read buffer | one frame, and one read | [`frame_max`](ConnectionConfig::frame_max): a longer frame is refused by its head |
//! | the caller's [`SendBuf`] | its limit and three frames, or 84 KiB of acknowledgements above it | [`SendBuf::new`] |
//! | queued publishes | `max_unsent_bytes`, or one message that is larger | [`max_unsent_bytes`](ConnectionConfig::max_unsent_bytes): then [`PublishError::Full`] |
//! | commands, for each channel | 4,096 times their frames | then [`CommandError::TooManyUnanswered`] |
//! | publishes without a verdict, for each channel that confirms | 16 for each, and the reply text of those returned | [`max_unconfirmed`](ConnectionConfig::max_unconfirmed): then [`PublishError::TooManyUnconfirmed`] |
//! | deliveries in hand, for each channel | 16 for each, at most twice that, and 8 for each acknowledgement that has not left | the prefetch that was set |
//! | a message being received, for each channel | its body, as it arrives and never by the size it claims | [`max_message_bytes`](ConnectionConfig::max_message_bytes): then it is skipped |
//! | events | 8 MiB of messages and one more message; 1,024 events, and one more for each publish that one frame settles | then [`wants_read`](Connection::wants_read) is false |
//! | consumers, for each channel | some 100 for each | what was asked for |
//!
//! Acknowledgements are not refused: there is one for each delivery, and those are limited by the prefetch.
//!
//! # Settling
//!
//! Each delivery is settled once, by [`ack`](Connection::ack), [`nack`](Connection::nack) or
//! [`reject`](Connection::reject); a settlement of anything else is refused and nothing is sent, where RabbitMQ
//! would close the channel. Acknowledgements that are due together leave as one `multiple` where no delivery
//! that is still in hand stands before them. They overtake what is queued on other channels to be published, and
//! nothing that was asked for earlier on their own.

mod channel;
mod commands;
mod config;
mod confirms;
mod content;
mod credentials;
mod ending;
mod error;
mod event;
mod handshake;
mod incoming;
#[cfg(feature = "fuzzing")]
pub(crate) mod model;
mod negotiated;
mod outgoing;
#[cfg(test)]
mod tests;
mod timers;
mod tls;
mod unacked;
pub mod uri;

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

use self::channel::Channels;
use self::content::Chunk;
use self::event::Events;
use self::outgoing::Outgoing;
use self::timers::Timers;
use crate::time::Instant;
use crate::wire::frame::{self, FrameKind};

pub use self::channel::ChannelId;
pub use self::config::ConnectionConfig;
pub use self::content::{Content, Delivery, Oversized};
pub use self::credentials::{Credentials, Mechanism, MechanismsError};
pub use self::error::{
    CommandError, ConnectionError, ForeignPeer, HandshakeStage, ProtocolError, PublishError,
};
pub use self::event::{ChannelClosed, Event, Returned, ServerInfo, Verdict};
pub use self::negotiated::Negotiated;
pub use self::timers::TimerKind;
pub use self::tls::{
    ClientCertificate, PlainPeer, TlsConfig, TlsFailure, TlsFile, TlsFileProblem, Verification,
};
pub use self::uri::{Uri, UriBuilder, UriError, UriList, UriListError};
pub use crate::wire::{
    CloseReason, ConsumeOptions, DeleteIf, MARK_HEADER, MAX_TABLE_DEPTH, PropertiesError, ProtocolVersion,
    SendBuf,
};

/// The smallest `frame_max` that leveret asks for, in bytes. RabbitMQ 4.1 and later refuse less.
pub const MIN_FRAME_MAX: u32 = 8_192;

/// Frames handled by one call of [`Connection::handle_read`].
const MAX_FRAMES_PER_READ: usize = 256;
/// Bytes handled by one call of [`Connection::handle_read`], within one frame.
const MAX_BYTES_PER_READ: usize = 1024 * 1024;

/// One connection, from the protocol header to its end. See the [module](self) for how to drive it.
///
/// ```
/// use leveret_core::connection::{CommandError, Connection, ConnectionConfig, Credentials, SendBuf};
/// use leveret_core::time::Instant;
///
/// let now = Instant::ORIGIN;
/// let mut connection = Connection::new(ConnectionConfig::new(Credentials::default()), now);
/// let mut out = SendBuf::default();
/// assert_eq!(connection.poll_transmit(now, &mut out), 8, "the protocol header");
/// assert!(connection.poll_timeout().is_some(), "the handshake has to end in time");
/// // Write `out`, read into a buffer, give that to `handle_read`, and poll again. Until the server has said
/// // all of its part, nothing can be asked for.
/// assert_eq!(connection.open_channel(), Err(CommandError::NotOpen));
/// ```
pub struct Connection {
    config: ConnectionConfig,
    phase: Phase,
    negotiated: Option<Negotiated>,
    /// Who the server says it is, until that is told.
    server: ServerInfo,
    channels: Channels,
    outgoing: Outgoing,
    /// Where frames are encoded before they are queued; blocks are shared by many frames.
    scratch: BytesMut,
    events: Events,
    timers: Timers,
    /// Bytes that the last call of `handle_read` left in the buffer: more of them means that some came.
    unread: usize,
    /// Whether reading was paused for too many events, so that silence is not the peer's.
    reading_paused: bool,
    /// Whether a heartbeat goes out, unless something else does.
    heartbeat_due: bool,
    blocked: bool,
    /// Whether a publish was refused since the last [`Event::Writable`].
    refused: bool,
    unmatched: Unmatched,
    /// Whether a secret was sent that the server has not answered.
    secret_unanswered: bool,
}

/// Where a connection is in its life.
#[derive(Debug)]
enum Phase {
    Handshake {
        stage: HandshakeStage,
        /// The first bytes of the peer while they are too few to be anything.
        opening: Bytes,
    },
    Open,
    Closing,
    Closed,
}

/// Whether [`Connection::handle_read`] has to be called again before the stream is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ReadOutcome {
    /// Whole frames may be left in the buffer: poll, and call again.
    More,
    /// Nothing can be done before more bytes come, or before events are taken out.
    Idle,
}

/// What the server sent about publishes that do not wait for it. Counted and otherwise ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// Confirms of tags that are unknown, not sent yet, or have a verdict.
    pub confirms: u64,
    /// Returns on a channel that confirms, without a readable mark or with that of a publish that does not wait.
    pub returns: u64,
}

impl Connection {
    /// A connection whose protocol header is ready to be sent. The handshake's deadline counts from `now`.
    #[must_use]
    pub fn new(config: ConnectionConfig, now: Instant) -> Self {
        let mut timers = Timers::default();
        timers.observe(now);
        timers.set(TimerKind::HandshakeDeadline, now + config.handshake_timeout);
        let mut outgoing = Outgoing::new();
        outgoing.push_control(Bytes::from_static(&frame::PROTOCOL_HEADER));
        Self {
            config,
            phase: Phase::Handshake { stage: HandshakeStage::Start, opening: Bytes::new() },
            negotiated: None,
            server: ServerInfo::default(),
            channels: Channels::default(),
            outgoing,
            scratch: BytesMut::new(),
            events: Events::default(),
            timers,
            unread: 0,
            reading_paused: false,
            heartbeat_due: false,
            blocked: false,
            refused: false,
            unmatched: Unmatched::default(),
            secret_unanswered: false,
        }
    }

    /// Takes whole frames off the front of `input`, and leaves the rest for the next call.
    ///
    /// `input` must hold what the last call left, with new bytes behind it. One call does a bounded amount of
    /// work. After the end of the connection everything in `input` is dropped.
    pub fn handle_read(&mut self, now: Instant, input: &mut BytesMut) -> ReadOutcome {
        self.timers.observe(now);
        if self.wants_read() && (input.len() != self.unread || self.reading_paused) {
            self.reading_paused = false;
            self.rearm_silence(now);
        }
        let outcome = self.read_frames(now, input);
        if self.is_closed() {
            input.clear();
        }
        self.reading_paused |= self.events.is_full();
        self.unread = input.len();
        outcome
    }

    /// The byte stream ended, or failed. What came before belongs to [`handle_read`](Self::handle_read) first: it
    /// may hold confirms, and the reason.
    pub fn handle_eof(&mut self, now: Instant) {
        self.timers.observe(now);
        let error = match &self.phase {
            Phase::Handshake { stage: HandshakeStage::Start, opening } if !opening.is_empty() => {
                handshake::foreign_opening(opening, true).unwrap_or(ConnectionError::Eof)
            }
            Phase::Handshake { stage: HandshakeStage::Tune, .. } => {
                ConnectionError::ProbablyAuthenticationRefused
            }
            _ => ConnectionError::Eof,
        };
        self.outgoing.drop_all();
        self.fail(error);
    }

    /// Time has passed. Early and repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.timers.observe(now);
        while let Some(kind) = self.timers.take_expired() {
            match kind {
                TimerKind::HandshakeDeadline => {
                    if let Phase::Handshake { stage, .. } = self.phase {
                        self.outgoing.drop_all();
                        self.fail(ConnectionError::HandshakeTimeout { stage });
                    }
                }
                TimerKind::CloseDeadline => self.fail(ConnectionError::ClosedLocally { acknowledged: false }),
                TimerKind::PeerSilence if self.wants_read() && !self.reading_paused => {
                    // A peer that does not read either would only delay the end: no close handshake.
                    self.outgoing.drop_all();
                    self.fail(ConnectionError::PeerSilent);
                }
                TimerKind::PeerSilence => {
                    // We did not read. If we do from now on, what came in the meantime will be found by then.
                    self.reading_paused = !self.wants_read();
                    self.rearm_silence(now);
                }
                TimerKind::HeartbeatSend => {
                    self.heartbeat_due = true;
                    self.rearm_heartbeat(now);
                }
            }
        }
    }

    /// Appends frames to `out` until nothing may be sent or `out` is full; the number of bytes appended.
    ///
    /// Everything in `out` counts as sent: write it to this connection's byte stream, in order.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut SendBuf) -> usize {
        self.timers.observe(now);
        let before = out.remaining();
        self.outgoing.transmit(out, &mut self.channels);
        if self.heartbeat_due && out.remaining() == before && !out.is_full() {
            out.put_bytes(Bytes::from_static(&frame::HEARTBEAT));
        }
        let appended = out.remaining() - before;
        if appended > 0 {
            self.heartbeat_due = false;
            self.rearm_heartbeat(now);
            self.tell_writable();
        }
        appended
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called. `None`: time makes no difference.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().map(|(at, _)| at)
    }

    /// What [`poll_timeout`](Self::poll_timeout) waits for.
    #[must_use]
    pub fn timeout_reason(&self) -> Option<TimerKind> {
        self.timers.next().map(|(_, kind)| kind)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop();
        match &event {
            Some(Event::ChannelClosed { channel, .. }) => self.channels.free(*channel),
            Some(Event::Delivery(delivery) | Event::Got { delivery, .. }) => {
                if let Some(channel) = self.channels.get(delivery.channel()) {
                    channel.unacked.taken(delivery.delivery_tag());
                }
            }
            _ => {}
        }
        event
    }

    /// Whether bytes are taken: false while too many events are waiting, and after the end.
    #[must_use]
    pub fn wants_read(&self) -> bool {
        !self.is_closed() && !self.events.is_full()
    }

    /// Whether commands are taken.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// Whether the connection has ended.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Whether the server asked us to publish nothing for now.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// The limits that were agreed on, once they are.
    #[must_use]
    pub const fn negotiated(&self) -> Option<Negotiated> {
        self.negotiated
    }

    /// Bytes that are queued here and not yet in a [`SendBuf`].
    #[must_use]
    pub const fn unsent_bytes(&self) -> usize {
        self.outgoing.unsent()
    }

    /// How many confirms and returns belonged to no waiting publish.
    #[must_use]
    pub const fn unmatched(&self) -> Unmatched {
        self.unmatched
    }

    fn read_frames(&mut self, now: Instant, input: &mut BytesMut) -> ReadOutcome {
        let mut bytes = 0;
        for _ in 0..MAX_FRAMES_PER_READ {
            if !self.wants_read() || bytes >= MAX_BYTES_PER_READ {
                break;
            }
            if !self.check_opening(input) {
                return ReadOutcome::Idle;
            }
            let frame = match frame::peek(input, self.frame_max()) {
                Ok(Some(frame)) => frame,
                Ok(None) => return ReadOutcome::Idle,
                Err(error) => {
                    self.fail(ConnectionError::Protocol(error.into()));
                    return ReadOutcome::Idle;
                }
            };
            bytes += frame.len();
            let handled = if frame.kind == FrameKind::Body && content::is_shared(frame.payload().len()) {
                let payload = input.split_to(frame.len()).freeze().slice(frame.payload());
                self.handle_body(frame.channel, Chunk::Shared(payload))
            } else {
                let handled = self.handle_frame(now, frame.kind, frame.channel, &input[frame.payload()]);
                input.advance(frame.len());
                handled
            };
            if let Err(error) = handled {
                self.fail(error);
            }
        }
        if self.wants_read() { ReadOutcome::More } else { ReadOutcome::Idle }
    }

    /// The largest frame that the peer may send now.
    fn frame_max(&self) -> u32 {
        self.negotiated.map_or_else(|| self.config.frame_limit(), |negotiated| negotiated.frame_max)
    }

    fn rearm_heartbeat(&mut self, now: Instant) {
        if let Some(heartbeat) = self.running_heartbeat() {
            self.timers.set(TimerKind::HeartbeatSend, now + heartbeat / 2);
        }
    }

    fn rearm_silence(&mut self, now: Instant) {
        if let Some(heartbeat) = self.running_heartbeat() {
            self.timers.set(TimerKind::PeerSilence, now + heartbeat * 2);
        }
    }

    fn running_heartbeat(&self) -> Option<std::time::Duration> {
        let heartbeat = self.negotiated?.heartbeat;
        (!heartbeat.is_zero() && !self.is_closed()).then_some(heartbeat)
    }

    fn tell_writable(&mut self) {
        if self.refused && self.is_open() && self.outgoing.unsent() <= self.config.max_unsent_bytes / 2 {
            self.refused = false;
            self.events.push(Event::Writable);
        }
    }
}

impl fmt::Debug for Connection {
    // Not what is queued: it may hold the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("phase", &self.phase)
            .field("negotiated", &self.negotiated)
            .field("blocked", &self.blocked)
            .field("unsent_bytes", &self.outgoing.unsent())
            .finish_non_exhaustive()
    }
}
