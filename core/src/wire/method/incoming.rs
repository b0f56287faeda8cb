//! The methods that a server sends to a client that asked for what leveret asks for.

use std::fmt;

use amq_protocol::protocol::connection::parse_start;

use crate::table::Table;
use crate::text::ShortString;
use crate::wire::depth;
use crate::wire::reader::Reader;
use crate::wire::table;

/// Why a peer closed a channel or a connection (AMQP 0-9-1, 1.4.2.10 and 1.5.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseReason {
    /// The reply code, such as 404.
    pub code: u16,
    /// The reply text, such as `NOT_FOUND - no queue 'q' in vhost '/'`.
    pub text: ShortString,
    /// The class of the method that failed; 0 where it was none.
    pub class_id: u16,
    /// The method that failed; 0 where it was none.
    pub method_id: u16,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.text)?;
        if self.class_id != 0 {
            write!(f, " (method {}.{})", self.class_id, self.method_id)?;
        }
        Ok(())
    }
}

/// A method from the server. Texts that come with every message are left where they are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming<'a> {
    ConnectionStart(Start),
    /// A challenge, which none of our mechanisms has.
    ConnectionSecure,
    ConnectionTune(Tune),
    ConnectionOpenOk,
    ConnectionClose(CloseReason),
    ConnectionCloseOk,
    ConnectionBlocked {
        reason: ShortString,
    },
    ConnectionUnblocked,
    ConnectionUpdateSecretOk,
    ChannelOpenOk,
    ChannelFlow {
        active: bool,
    },
    ChannelFlowOk {
        active: bool,
    },
    ChannelClose(CloseReason),
    ChannelCloseOk,
    ExchangeDeclareOk,
    ExchangeDeleteOk,
    ExchangeBindOk,
    ExchangeUnbindOk,
    QueueDeclareOk {
        queue: ShortString,
        messages: u32,
        consumers: u32,
    },
    QueueBindOk,
    QueueUnbindOk,
    QueuePurgeOk {
        messages: u32,
    },
    QueueDeleteOk {
        messages: u32,
    },
    BasicQosOk,
    BasicConsumeOk {
        consumer_tag: ShortString,
    },
    BasicCancel {
        consumer_tag: ShortString,
        no_wait: bool,
    },
    BasicCancelOk {
        consumer_tag: ShortString,
    },
    BasicReturn(Return<'a>),
    BasicDeliver(Deliver<'a>),
    BasicGetOk(GetOk<'a>),
    BasicGetEmpty,
    BasicRecoverOk,
    BasicAck {
        delivery_tag: u64,
        multiple: bool,
    },
    BasicNack {
        delivery_tag: u64,
        multiple: bool,
    },
    ConfirmSelectOk,
    TxSelectOk,
    TxCommitOk,
    TxRollbackOk,
}

/// `connection.start`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Start {
    pub(crate) version_major: u8,
    pub(crate) version_minor: u8,
    pub(crate) server_properties: Table,
    /// Names of SASL mechanisms, separated by spaces.
    pub(crate) mechanisms: String,
}

/// `connection.tune`: the server's limits, 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tune {
    pub(crate) channel_max: u16,
    /// Bytes of a whole frame.
    pub(crate) frame_max: u32,
    /// Seconds.
    pub(crate) heartbeat: u16,
}

/// `basic.deliver`, its texts as the bytes that they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deliver<'a> {
    pub(crate) consumer_tag: &'a [u8],
    pub(crate) delivery_tag: u64,
    pub(crate) redelivered: bool,
    pub(crate) exchange: &'a [u8],
    pub(crate) routing_key: &'a [u8],
}

/// `basic.return`, its texts as the bytes that they are, but for the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Return<'a> {
    pub(crate) code: u16,
    pub(crate) text: ShortString,
    pub(crate) exchange: &'a [u8],
    pub(crate) routing_key: &'a [u8],
}

/// `basic.get-ok`, its texts as the bytes that they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GetOk<'a> {
    pub(crate) delivery_tag: u64,
    pub(crate) redelivered: bool,
    pub(crate) exchange: &'a [u8],
    pub(crate) routing_key: &'a [u8],
    /// What is left ready in the queue.
    pub(crate) messages: u32,
}

/// A payload that is none of these methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MethodError {
    /// The arguments do not fit; 0.0 where not even the method could be read.
    Malformed { class: u16, method: u16 },
    /// A method that nobody asked for, or that only a client sends.
    Unexpected { class: u16, method: u16 },
}

/// The class and the method of a payload; 0 where it is too short to say.
pub(crate) fn ids(payload: &[u8]) -> (u16, u16) {
    let mut reader = Reader::new(payload);
    (reader.u16().unwrap_or(0), reader.u16().unwrap_or(0))
}

/// Reads the payload of a method frame.
pub(crate) fn decode(payload: &[u8]) -> Result<Incoming<'_>, MethodError> {
    let mut reader = Reader::new(payload);
    let (Some(class), Some(method)) = (reader.u16(), reader.u16()) else {
        return Err(MethodError::Malformed { class: 0, method: 0 });
    };
    if (class, method) == (10, 10) {
        let start = decode_start(reader.rest());
        return start.map(Incoming::ConnectionStart).ok_or(MethodError::Malformed { class, method });
    }
    let arguments = decode_arguments(class, method, &mut reader)?;
    match arguments {
        Some(incoming) if reader.rest().is_empty() => Ok(incoming),
        _ => Err(MethodError::Malformed { class, method }),
    }
}

/// `Ok(None)` where the arguments end too early.
fn decode_arguments<'a>(
    class: u16,
    method: u16,
    reader: &mut Reader<'a>,
) -> Result<Option<Incoming<'a>>, MethodError> {
    Ok(match (class, method) {
        (10, 20) => reader.long_bytes().map(|_| Incoming::ConnectionSecure),
        (10, 30) => tune(reader).map(Incoming::ConnectionTune),
        (10, 41) => reader.short_bytes().map(|_| Incoming::ConnectionOpenOk),
        (10, 50) => close(reader).map(Incoming::ConnectionClose),
        (10, 51) => Some(Incoming::ConnectionCloseOk),
        (10, 60) => reader.short_string().map(|reason| Incoming::ConnectionBlocked { reason }),
        (10, 61) => Some(Incoming::ConnectionUnblocked),
        (10, 71) => Some(Incoming::ConnectionUpdateSecretOk),
        (20, 11) => reader.long_bytes().map(|_| Incoming::ChannelOpenOk),
        (20, 20) => reader.flag().map(|active| Incoming::ChannelFlow { active }),
        (20, 21) => reader.flag().map(|active| Incoming::ChannelFlowOk { active }),
        (20, 40) => close(reader).map(Incoming::ChannelClose),
        (20, 41) => Some(Incoming::ChannelCloseOk),
        (40, 11) => Some(Incoming::ExchangeDeclareOk),
        (40, 21) => Some(Incoming::ExchangeDeleteOk),
        (40, 31) => Some(Incoming::ExchangeBindOk),
        (40, 51) => Some(Incoming::ExchangeUnbindOk),
        (50, 11) => queue_declare_ok(reader),
        (50, 21) => Some(Incoming::QueueBindOk),
        (50, 31) => reader.u32().map(|messages| Incoming::QueuePurgeOk { messages }),
        (50, 41) => reader.u32().map(|messages| Incoming::QueueDeleteOk { messages }),
        (50, 51) => Some(Incoming::QueueUnbindOk),
        (60, 11) => Some(Incoming::BasicQosOk),
        (60, 21) => reader.short_string().map(|consumer_tag| Incoming::BasicConsumeOk { consumer_tag }),
        (60, 30) => basic_cancel(reader),
        (60, 31) => reader.short_string().map(|consumer_tag| Incoming::BasicCancelOk { consumer_tag }),
        (60, 50) => basic_return(reader).map(Incoming::BasicReturn),
        (60, 60) => basic_deliver(reader).map(Incoming::BasicDeliver),
        (60, 71) => basic_get_ok(reader).map(Incoming::BasicGetOk),
        // The one argument is reserved.
        (60, 72) => reader.short_bytes().map(|_| Incoming::BasicGetEmpty),
        (60, 80) => basic_ack(reader),
        (60, 111) => Some(Incoming::BasicRecoverOk),
        (60, 120) => basic_nack(reader),
        (85, 11) => Some(Incoming::ConfirmSelectOk),
        (90, 11) => Some(Incoming::TxSelectOk),
        (90, 21) => Some(Incoming::TxCommitOk),
        (90, 31) => Some(Incoming::TxRollbackOk),
        _ => return Err(MethodError::Unexpected { class, method }),
    })
}

/// The one incoming method that holds a table, so the one that amq-protocol reads.
fn decode_start(arguments: &[u8]) -> Option<Start> {
    const VERSION: usize = 2;
    depth::check_table(arguments.get(VERSION..)?).ok()?;
    let (rest, start) = parse_start(arguments).ok()?;
    rest.is_empty().then(|| Start {
        version_major: start.version_major,
        version_minor: start.version_minor,
        server_properties: table::from_amq(&start.server_properties),
        mechanisms: start.mechanisms.to_string(),
    })
}

fn tune(reader: &mut Reader<'_>) -> Option<Tune> {
    Some(Tune { channel_max: reader.u16()?, frame_max: reader.u32()?, heartbeat: reader.u16()? })
}

fn close(reader: &mut Reader<'_>) -> Option<CloseReason> {
    Some(CloseReason {
        code: reader.u16()?,
        text: reader.short_string()?,
        class_id: reader.u16()?,
        method_id: reader.u16()?,
    })
}

fn queue_declare_ok<'a>(reader: &mut Reader<'_>) -> Option<Incoming<'a>> {
    Some(Incoming::QueueDeclareOk {
        queue: reader.short_string()?,
        messages: reader.u32()?,
        consumers: reader.u32()?,
    })
}

fn basic_cancel<'a>(reader: &mut Reader<'_>) -> Option<Incoming<'a>> {
    Some(Incoming::BasicCancel { consumer_tag: reader.short_string()?, no_wait: reader.flag()? })
}

fn basic_return<'a>(reader: &mut Reader<'a>) -> Option<Return<'a>> {
    Some(Return {
        code: reader.u16()?,
        text: reader.short_string()?,
        exchange: reader.short_bytes()?,
        routing_key: reader.short_bytes()?,
    })
}

fn basic_deliver<'a>(reader: &mut Reader<'a>) -> Option<Deliver<'a>> {
    Some(Deliver {
        consumer_tag: reader.short_bytes()?,
        delivery_tag: reader.u64()?,
        redelivered: reader.flag()?,
        exchange: reader.short_bytes()?,
        routing_key: reader.short_bytes()?,
    })
}

fn basic_get_ok<'a>(reader: &mut Reader<'a>) -> Option<GetOk<'a>> {
    Some(GetOk {
        delivery_tag: reader.u64()?,
        redelivered: reader.flag()?,
        exchange: reader.short_bytes()?,
        routing_key: reader.short_bytes()?,
        messages: reader.u32()?,
    })
}

fn basic_ack<'a>(reader: &mut Reader<'_>) -> Option<Incoming<'a>> {
    Some(Incoming::BasicAck { delivery_tag: reader.u64()?, multiple: reader.flag()? })
}

fn basic_nack<'a>(reader: &mut Reader<'_>) -> Option<Incoming<'a>> {
    // The second flag, `requeue`, means nothing to a publisher.
    Some(Incoming::BasicNack { delivery_tag: reader.u64()?, multiple: reader.flag()? })
}
