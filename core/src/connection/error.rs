//! What can go wrong, by whose fault.

use std::fmt;

use super::{ChannelId, Mechanism};
use crate::text::ShortString;
use crate::wire::CloseReason;
use crate::wire::frame::{FrameError, ProtocolVersion};

/// Why a connection ended. Told once, as its last event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server refused the user name or the password.
    AuthenticationRefused {
        /// The server's text.
        text: ShortString,
    },
    /// The server hung up right after it was told the credentials, which is how old servers refuse them. A
    /// server that is just going down does the same.
    ProbablyAuthenticationRefused,
    /// The server offers none of the SASL mechanisms that the credentials may be shown by.
    MechanismNotOffered {
        /// Those of the credentials.
        wanted: Vec<Mechanism>,
        /// The names of those it offers.
        offered: String,
    },
    /// The login is longer than a frame may be.
    LoginTooLarge {
        /// Bytes of its frame, or at least as many.
        bytes: usize,
        /// The configured `frame_max`.
        limit: u32,
    },
    /// The server asked for more than the one answer that PLAIN, AMQPLAIN and EXTERNAL have (`connection.secure`).
    UnexpectedChallenge,
    /// The server refused the secret of an [`update_secret`](super::Connection::update_secret), which ends the
    /// connection.
    SecretRefused {
        /// The server's text.
        text: ShortString,
    },
    /// The server does not let us into the virtual host.
    VirtualHostRefused {
        /// The virtual host.
        virtual_host: ShortString,
        /// The server's text, which tells a missing one from one that the user may not enter.
        text: ShortString,
    },
    /// The server closed the connection.
    ClosedByPeer(CloseReason),
    /// The server broke the protocol. It was told so, where the connection was open.
    Protocol(ProtocolError),
    /// The peer is no AMQP server.
    NotAmqp {
        /// What it is instead.
        peer: ForeignPeer,
        /// Its first bytes, at most eight.
        beginning: Vec<u8>,
    },
    /// The server speaks another version of AMQP.
    VersionMismatch {
        /// The version that it speaks.
        offered: ProtocolVersion,
    },
    /// The handshake did not end in time.
    HandshakeTimeout {
        /// How far it came.
        stage: HandshakeStage,
    },
    /// Not one byte came for twice the heartbeat.
    PeerSilent,
    /// The byte stream ended without a word.
    Eof,
    /// We closed it.
    ClosedLocally {
        /// Whether the server answered. If it did not, or closed at the same time, it may not have taken what was
        /// sent last.
        acknowledged: bool,
    },
}

impl ConnectionError {
    /// Whether another attempt with the same configuration would end the same way.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::AuthenticationRefused { .. }
            | Self::MechanismNotOffered { .. }
            | Self::LoginTooLarge { .. }
            | Self::UnexpectedChallenge
            | Self::NotAmqp { .. }
            | Self::VersionMismatch { .. } => true,
            // RabbitMQ answers 530 also for a virtual host that is full, or not up yet after a restart.
            Self::VirtualHostRefused { text, .. } => !text.contains("limit (") && !text.ends_with("is down"),
            // RabbitMQ: 403 is a missing permission, 530 something that is not allowed, such as another vhost.
            Self::ClosedByPeer(reason) => matches!(reason.code, 403 | 530),
            // RabbitMQ says 403 where credentials are wrong, as our capabilities ask, so a mere end of the
            // stream is more likely a server that goes down.
            Self::ProbablyAuthenticationRefused
            // The refused secret is not in the configuration; the one there may still be good.
            | Self::SecretRefused { .. }
            | Self::Protocol(_)
            | Self::HandshakeTimeout { .. }
            | Self::PeerSilent
            | Self::Eof
            | Self::ClosedLocally { .. } => false,
        }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AuthenticationRefused { text } => {
                write!(f, "the server refused the credentials ({text}): check user name and password")
            }
            Self::ProbablyAuthenticationRefused => f.write_str(
                "the server hung up when it was told the credentials: check user name and password, whether it is going down, and for a long token its initial_frame_max",
            ),
            Self::MechanismNotOffered { wanted, offered } => {
                f.write_str("the server offers none of the wanted SASL mechanisms (")?;
                for (at, mechanism) in wanted.iter().enumerate() {
                    write!(f, "{}{mechanism}", if at == 0 { "" } else { " " })?;
                }
                write!(f, ") but \"{offered}\": enable one on the server, or name one that it offers")?;
                if wanted.contains(&Mechanism::External) {
                    f.write_str("; EXTERNAL is offered only over TLS, with its plugin")?;
                }
                Ok(())
            }
            Self::LoginTooLarge { bytes, limit } => write!(
                f,
                "user name and password take a frame of {bytes} bytes or more, frame_max is {limit}: raise frame_max, and initial_frame_max on the server"
            ),
            Self::UnexpectedChallenge => f.write_str(
                "the server asked for more than user name and password (connection.secure), which PLAIN, AMQPLAIN and EXTERNAL never do: check that it is RabbitMQ, and its auth_mechanisms",
            ),
            Self::SecretRefused { text } => write!(
                f,
                "the server refused the new secret and closed the connection ({text}): check that it is valid and for the same user"
            ),
            Self::VirtualHostRefused { virtual_host, text } if virtual_host.is_empty() => write!(
                f,
                "the server refused the virtual host with the empty name ({text}): for the default one leave out the last `/` of the URI, or write `%2f` after it"
            ),
            Self::VirtualHostRefused { virtual_host, text } => write!(
                f,
                "the server refused the virtual host {virtual_host:?} ({text}): check that it exists and that the user has permissions on it"
            ),
            Self::ClosedByPeer(reason) => write!(f, "the server closed the connection: {reason}"),
            Self::Protocol(error) => write!(f, "the server broke the protocol: {error}"),
            Self::NotAmqp { peer, beginning } => {
                write!(f, "the peer does not speak AMQP, it began with \"{}\": ", beginning.escape_ascii())?;
                f.write_str(match peer {
                    ForeignPeer::Http => "that is a web server, RabbitMQ listens for AMQP on port 5672",
                    ForeignPeer::Tls => {
                        "that is TLS, write amqps:// or connect to the port for plain AMQP, often 5672"
                    }
                    ForeignPeer::Unknown => "check host and port",
                })
            }
            Self::VersionMismatch { offered } if offered.is_amqp_1_0() => {
                write!(f, "the server speaks {offered} and not AMQP 0-9-1: that is another protocol by the same name, connect to RabbitMQ")
            }
            Self::VersionMismatch { offered } => {
                write!(f, "the server speaks {offered} and not AMQP 0-9-1: check host and port")
            }
            Self::HandshakeTimeout { stage: HandshakeStage::Start } => f.write_str(
                "the AMQP handshake took too long, waiting for connection.start: check that the server is up, and that its port is for AMQP without TLS if we use none",
            ),
            Self::HandshakeTimeout { stage } => {
                write!(f, "the AMQP handshake took too long, waiting for {stage}: check that the server is up")
            }
            Self::PeerSilent => f.write_str("the server sent nothing for two heartbeats: it is gone or cut off"),
            Self::Eof => f.write_str("the byte stream ended without a close"),
            Self::ClosedLocally { acknowledged: true } => f.write_str("closed"),
            Self::ClosedLocally { acknowledged: false } => {
                f.write_str("closed, but the server did not acknowledge it")
            }
        }
    }
}

impl std::error::Error for ConnectionError {}

impl From<ProtocolError> for ConnectionError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

/// What a peer that does not speak AMQP seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignPeer {
    /// A web server, such as RabbitMQ's management pages on port 15672.
    Http,
    /// A port for TLS, such as RabbitMQ's 5671, which we spoke to without.
    Tls,
    /// Nothing that is known here.
    Unknown,
}

impl ForeignPeer {
    pub(super) const fn of(beginning: &[u8]) -> Self {
        match beginning {
            [b'H', b'T', b'T', b'P', ..] => Self::Http,
            // An alert or a part of a handshake, of version 3.x (RFC 8446, section 5.1).
            [0x15 | 0x16, 3, ..] => Self::Tls,
            _ => Self::Unknown,
        }
    }
}

/// The steps of the handshake, by what the server has to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeStage {
    /// `connection.start`
    Start,
    /// `connection.tune`
    Tune,
    /// `connection.open-ok`
    OpenOk,
}

impl fmt::Display for HandshakeStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "connection.start",
            Self::Tune => "connection.tune",
            Self::OpenOk => "connection.open-ok",
        })
    }
}

/// How the server broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A frame of an unknown type.
    UnknownFrameType {
        /// The type octet.
        found: u8,
    },
    /// A frame longer than agreed.
    FrameTooLarge {
        /// Its length, in bytes.
        bytes: u64,
        /// The longest that was agreed on.
        limit: u32,
    },
    /// A frame that does not end where its length says.
    BadFrameEnd {
        /// The octet found instead of 0xCE.
        found: u8,
    },
    /// A heartbeat that is not on channel 0.
    HeartbeatOnChannel {
        /// The channel number.
        channel: u16,
    },
    /// Frames smaller than the protocol allows were proposed.
    FrameMaxTooSmall {
        /// The proposed `frame_max`, in bytes.
        offered: u32,
    },
    /// A frame on a channel that is not open.
    UnknownChannel {
        /// The channel number.
        channel: u16,
    },
    /// A frame that cannot come at this point, such as a body that no header announced.
    UnexpectedFrame {
        /// The channel number.
        channel: u16,
    },
    /// A method that nobody asked for.
    UnexpectedMethod {
        /// The channel number.
        channel: u16,
        /// The class.
        class: u16,
        /// The method.
        method: u16,
    },
    /// A method whose arguments cannot be read.
    MalformedMethod {
        /// The channel number.
        channel: u16,
        /// The class.
        class: u16,
        /// The method.
        method: u16,
    },
    /// A content header that cannot be read, or of a class that has no content.
    MalformedHeader {
        /// The channel number.
        channel: u16,
    },
    /// More body than the content header announced.
    BodyTooLong {
        /// The channel number.
        channel: u16,
        /// The announced size, in bytes.
        announced: u64,
    },
    /// A delivery whose tag is zero or not above those before it on its channel (AMQP 0-9-1, 1.1.1:
    /// `delivery-tag`).
    DeliveryTag {
        /// The channel number.
        channel: u16,
        /// The tag.
        found: u64,
    },
}

impl ProtocolError {
    /// The reply code that tells the server (AMQP 0-9-1, 1.1.2).
    #[must_use]
    pub const fn reply_code(self) -> u16 {
        match self {
            Self::UnknownFrameType { .. }
            | Self::FrameTooLarge { .. }
            | Self::BadFrameEnd { .. }
            | Self::HeartbeatOnChannel { .. }
            | Self::FrameMaxTooSmall { .. }
            | Self::MalformedHeader { .. }
            | Self::BodyTooLong { .. } => 501,
            Self::MalformedMethod { .. } | Self::DeliveryTag { .. } => 502,
            Self::UnexpectedMethod { .. } => 503,
            Self::UnknownChannel { .. } => 504,
            Self::UnexpectedFrame { .. } => 505,
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UnknownFrameType { found } => write!(f, "a frame of the unknown type {found}"),
            Self::FrameTooLarge { bytes, limit } => {
                write!(f, "a frame of {bytes} bytes, agreed were {limit}")
            }
            Self::BadFrameEnd { found } => write!(f, "a frame that ends with {found:#04x} and not 0xce"),
            Self::HeartbeatOnChannel { channel } => write!(f, "a heartbeat on channel {channel}"),
            Self::FrameMaxTooSmall { offered } => {
                write!(f, "a proposed frame_max of {offered} bytes, the protocol asks for 4096 at least")
            }
            Self::UnknownChannel { channel } => write!(f, "a frame on channel {channel}, which is not open"),
            Self::UnexpectedFrame { channel } => write!(f, "content out of order on channel {channel}"),
            Self::UnexpectedMethod { channel, class, method } => {
                write!(f, "the method {class}.{method} out of place on channel {channel}")
            }
            Self::MalformedMethod { channel, class, method } => {
                write!(f, "unreadable arguments of the method {class}.{method} on channel {channel}")
            }
            Self::MalformedHeader { channel } => {
                write!(f, "an unreadable content header on channel {channel}")
            }
            Self::BodyTooLong { channel, announced } => {
                write!(f, "more body on channel {channel} than the announced {announced} bytes")
            }
            Self::DeliveryTag { channel, found } => {
                write!(f, "the delivery tag {found} on channel {channel}, where tags have to grow")
            }
        }
    }
}

impl std::error::Error for ProtocolError {}

impl From<FrameError> for ProtocolError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::UnknownKind { found } => Self::UnknownFrameType { found },
            FrameError::TooLarge { bytes, limit } => Self::FrameTooLarge { bytes, limit },
            FrameError::BadEnd { found } => Self::BadFrameEnd { found },
        }
    }
}

/// Why a command was not taken. Nothing was sent or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandError {
    /// The connection is not open yet, or no longer.
    NotOpen,
    /// The channel is not open, or is being closed.
    NoSuchChannel {
        /// The channel.
        channel: ChannelId,
    },
    /// All channels that were agreed on are open.
    ChannelsExhausted {
        /// How many there may be.
        limit: u16,
    },
    /// Too many commands of this channel wait for their answer.
    TooManyUnanswered {
        /// How many may wait.
        limit: usize,
    },
    /// A secret was sent before, and the server has not answered.
    SecretUnanswered,
    /// The method does not fit into one frame.
    TooLarge {
        /// Bytes of its frame.
        bytes: usize,
        /// The largest frame that was agreed on.
        limit: u32,
    },
    /// The arguments are nested too deep.
    TooDeep {
        /// The deepest that is sent.
        limit: usize,
    },
    /// No delivery of this tag is to be settled: none came, it was settled before, it needs none, or it was
    /// given up by a recover. RabbitMQ answers such a settlement with 406, which ends the channel.
    NotOutstanding {
        /// The channel.
        channel: ChannelId,
        /// The tag.
        delivery_tag: u64,
    },
    /// A consumer of the channel has this tag already, and its end was not told. RabbitMQ ends the connection
    /// over a second one.
    ConsumerTagInUse {
        /// The channel.
        channel: ChannelId,
    },
    /// The channel has no consumer of this tag.
    NoSuchConsumer {
        /// The channel.
        channel: ChannelId,
    },
    /// A channel is either in confirm mode or transactional, and this one is the other.
    OtherMode {
        /// The channel.
        channel: ChannelId,
    },
    /// Commit and rollback need a channel that is transactional.
    NotTransactional {
        /// The channel.
        channel: ChannelId,
    },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotOpen => f.write_str("the connection is not open: wait until it is"),
            Self::NoSuchChannel { channel } => write!(f, "channel {channel} is not open: open another one"),
            Self::ChannelsExhausted { limit } => {
                write!(f, "all {limit} channels of the connection are open: close one or raise channel_max")
            }
            Self::TooManyUnanswered { limit } => {
                write!(f, "{limit} commands of the channel wait for their answer: wait for some of them")
            }
            Self::SecretUnanswered => {
                f.write_str("the server has not answered the secret before this one: wait until it has")
            }
            Self::TooLarge { bytes, limit } => {
                write!(
                    f,
                    "the method takes {bytes} bytes, a frame holds {limit}: use fewer or shorter arguments"
                )
            }
            Self::TooDeep { limit } => {
                write!(f, "the arguments are nested more than {limit} levels deep: flatten them")
            }
            Self::NotOutstanding { channel, delivery_tag } => {
                write!(
                    f,
                    "no delivery {delivery_tag} is to be settled on channel {channel}: settle each once"
                )
            }
            Self::ConsumerTagInUse { channel } => {
                write!(f, "channel {channel} has a consumer of this tag: take another one, or none")
            }
            Self::NoSuchConsumer { channel } => {
                write!(f, "channel {channel} has no consumer of this tag: it was cancelled, or is another's")
            }
            Self::OtherMode { channel } => write!(
                f,
                "channel {channel} cannot both confirm and work in transactions: open another channel for one of them"
            ),
            Self::NotTransactional { channel } => {
                write!(f, "channel {channel} does not work in transactions: select them first")
            }
        }
    }
}

impl std::error::Error for CommandError {}

/// Why a publish was not taken. Nothing was sent, and no sequence number was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishError {
    /// The connection is not open yet, or no longer.
    NotOpen,
    /// The channel is not open, or is being closed.
    NoSuchChannel {
        /// The channel.
        channel: ChannelId,
    },
    /// Too much is queued. An [`Event::Writable`](super::Event::Writable) follows.
    Full {
        /// The configured `max_unsent_bytes`.
        limit: usize,
    },
    /// Too many publishes of this channel came after the first that waits for its verdict.
    TooManyUnconfirmed {
        /// The configured `max_unconfirmed`.
        limit: usize,
    },
    /// The properties do not fit into one frame, and cannot be split.
    HeadersTooLarge {
        /// Bytes of the frame.
        bytes: usize,
        /// The largest frame that was agreed on.
        limit: u32,
    },
    /// The headers are nested too deep: no consumer of leveret would read them.
    HeadersTooDeep {
        /// The deepest that is sent.
        limit: usize,
    },
    /// The body is larger than the configuration allows.
    BodyTooLarge {
        /// Its size, in bytes.
        bytes: u64,
        /// The configured `max_message_bytes`.
        limit: u64,
    },
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotOpen => CommandError::NotOpen.fmt(f),
            Self::NoSuchChannel { channel } => CommandError::NoSuchChannel { channel }.fmt(f),
            Self::Full { limit } => {
                write!(
                    f,
                    "max_unsent_bytes = {limit} are queued: publish again when the connection is writable"
                )
            }
            Self::TooManyUnconfirmed { limit } => {
                write!(
                    f,
                    "max_unconfirmed = {limit} publishes of the channel, from the first without a verdict on: wait for that one"
                )
            }
            Self::HeadersTooLarge { bytes, limit } => write!(
                f,
                "the properties take a frame of {bytes} bytes, agreed were {limit}: move data from the headers into the body"
            ),
            Self::HeadersTooDeep { limit } => {
                write!(f, "the headers are nested more than {limit} levels deep: flatten them")
            }
            Self::BodyTooLarge { bytes, limit } => {
                write!(
                    f,
                    "the body has {bytes} bytes, max_message_bytes is {limit}: send a reference instead"
                )
            }
        }
    }
}

impl std::error::Error for PublishError {}
