//! The methods of consuming and settling, as whole frames (AMQP 0-9-1, 1.8).

use std::num::NonZeroU16;

use amq_protocol::protocol::{AMQPClass, basic};
use bytes::{BufMut, Bytes, BytesMut};

use super::outgoing::{BASIC, method_frame};
use crate::table::Table;
use crate::text::ShortString;
use crate::wire::table::{self, TooDeep, short_to_amq};
use crate::wire::{frame, put};

/// What a consumer asks for beyond its queue (AMQP 0-9-1, 1.8.3.3). The default is what a job queue wants:
/// deliveries that have to be acknowledged, and other consumers beside this one.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConsumeOptions {
    /// Whether the server forgets a message as soon as it has sent it. What is on its way when a connection
    /// ends is then lost, no prefetch holds, and nothing is to be acknowledged.
    pub no_ack: bool,
    /// Whether no other consumer may read the queue. Where one does already, the answer is 403, which ends the
    /// channel.
    pub exclusive: bool,
    /// The arguments, such as `x-priority` (which of several consumers comes first) and, from RabbitMQ 3.12
    /// on, `x-consumer-timeout` (milliseconds within which a delivery has to be settled).
    pub arguments: Table,
}

impl ConsumeOptions {
    /// Deliveries that need no acknowledgement, as direct reply-to asks for.
    #[must_use]
    pub fn without_acknowledgement() -> Self {
        Self { no_ack: true, ..Self::default() }
    }

    /// These options with one more argument.
    #[must_use]
    pub fn with_argument(self, name: ShortString, value: impl Into<crate::table::Value>) -> Self {
        Self { arguments: self.arguments.with(name, value), ..self }
    }
}

/// `basic.qos` for each consumer of the channel that comes after it.
pub(crate) fn basic_qos(channel: u16, count: NonZeroU16) -> Bytes {
    let method = basic::Qos { prefetch_count: count.get(), global: false };
    method_frame(channel, AMQPClass::Basic(basic::AMQPMethod::Qos(method)))
}

/// Never `no-local`, which RabbitMQ ignores.
pub(crate) fn basic_consume(
    channel: u16,
    queue: &ShortString,
    consumer_tag: &ShortString,
    options: &ConsumeOptions,
) -> Result<Bytes, TooDeep> {
    table::fields_len(options.arguments.iter())?;
    let method = basic::Consume {
        queue: short_to_amq(queue),
        consumer_tag: short_to_amq(consumer_tag),
        no_local: false,
        no_ack: options.no_ack,
        exclusive: options.exclusive,
        nowait: false,
        arguments: table::to_amq(&options.arguments),
    };
    Ok(method_frame(channel, AMQPClass::Basic(basic::AMQPMethod::Consume(method))))
}

pub(crate) fn basic_cancel(channel: u16, consumer_tag: &ShortString) -> Bytes {
    let method = basic::Cancel { consumer_tag: short_to_amq(consumer_tag), nowait: false };
    method_frame(channel, AMQPClass::Basic(basic::AMQPMethod::Cancel(method)))
}

pub(crate) fn basic_cancel_ok(channel: u16, consumer_tag: &ShortString) -> Bytes {
    let method = basic::CancelOk { consumer_tag: short_to_amq(consumer_tag) };
    method_frame(channel, AMQPClass::Basic(basic::AMQPMethod::CancelOk(method)))
}

pub(crate) fn basic_get(channel: u16, queue: &ShortString, no_ack: bool) -> Bytes {
    let method = basic::Get { queue: short_to_amq(queue), no_ack };
    method_frame(channel, AMQPClass::Basic(basic::AMQPMethod::Get(method)))
}

/// Always with `requeue`: RabbitMQ answers the other form with 540, which ends the connection.
pub(crate) fn basic_recover(channel: u16) -> Bytes {
    method_frame(channel, AMQPClass::Basic(basic::AMQPMethod::Recover(basic::Recover { requeue: true })))
}

/// How one delivery, or all up to it, is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    Ack { multiple: bool },
    Nack { multiple: bool, requeue: bool },
    Reject { requeue: bool },
}

impl Settlement {
    /// Whether it settles all deliveries up to its tag.
    pub(crate) const fn is_multiple(self) -> bool {
        matches!(self, Self::Ack { multiple: true } | Self::Nack { multiple: true, .. })
    }
}

/// Bytes of a frame that [`put_settlement`] writes.
pub(crate) const SETTLEMENT_FRAME: usize = SETTLEMENT + frame::OVERHEAD;
/// Class, method, tag, flags.
const SETTLEMENT: usize = 2 + 2 + 8 + 1;

/// Writes `basic.ack`, `basic.nack` or `basic.reject`.
pub(crate) fn put_settlement(out: &mut BytesMut, channel: u16, delivery_tag: u64, settlement: Settlement) {
    let (method, flags) = match settlement {
        Settlement::Ack { multiple } => (80, [multiple, false]),
        Settlement::Nack { multiple, requeue } => (120, [multiple, requeue]),
        Settlement::Reject { requeue } => (90, [requeue, false]),
    };
    frame::put_method_head(out, channel, SETTLEMENT);
    out.put_u16(BASIC);
    out.put_u16(method);
    out.put_u64(delivery_tag);
    put::flags(out, flags);
    frame::put_end(out);
}
