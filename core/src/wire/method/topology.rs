//! The methods that declare, bind and delete, as whole frames (AMQP 0-9-1, 1.6 and 1.7).

use amq_protocol::protocol::{AMQPClass, exchange, queue};
use bytes::Bytes;

use super::outgoing::method_frame;
use crate::text::ShortString;
use crate::topology::{Binding, BindingDestination, ExchangeDeclaration, ExchangeName, QueueDeclaration};
use crate::wire::table::{self, TooDeep, short_to_amq};

/// What must hold for a queue to be deleted (AMQP 0-9-1, 1.7.2.9). Where it does not, the answer is 406, which
/// ends the channel. The default is no condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteIf {
    /// Only if it has no consumers.
    pub unused: bool,
    /// Only if no message is ready in it. Those that were delivered and not settled do not count.
    pub empty: bool,
}

impl DeleteIf {
    /// Whatever is in it and whoever uses it.
    pub const ALWAYS: Self = Self { unused: false, empty: false };
    /// Only if nobody consumes from it.
    pub const UNUSED: Self = Self { unused: true, empty: false };
    /// Only if nothing is ready in it.
    pub const EMPTY: Self = Self { unused: false, empty: true };
    /// Only if both hold.
    pub const UNUSED_AND_EMPTY: Self = Self { unused: true, empty: true };
}

/// Never `no-wait`: RabbitMQ renews the lease of an expiring queue only for a declare that is answered.
pub(crate) fn queue_declare(channel: u16, declaration: &QueueDeclaration) -> Result<Bytes, TooDeep> {
    table::fields_len(declaration.arguments.iter())?;
    let method = queue::Declare {
        queue: short_to_amq(&declaration.name),
        passive: declaration.passive,
        durable: declaration.durable,
        exclusive: declaration.exclusive,
        auto_delete: declaration.auto_delete,
        nowait: false,
        arguments: table::to_amq(&declaration.arguments),
    };
    Ok(method_frame(channel, AMQPClass::Queue(queue::AMQPMethod::Declare(method))))
}

pub(crate) fn queue_delete(channel: u16, name: &ShortString, only_if: DeleteIf) -> Bytes {
    let method = queue::Delete {
        queue: short_to_amq(name),
        if_unused: only_if.unused,
        if_empty: only_if.empty,
        nowait: false,
    };
    method_frame(channel, AMQPClass::Queue(queue::AMQPMethod::Delete(method)))
}

pub(crate) fn queue_purge(channel: u16, name: &ShortString) -> Bytes {
    let method = queue::Purge { queue: short_to_amq(name), nowait: false };
    method_frame(channel, AMQPClass::Queue(queue::AMQPMethod::Purge(method)))
}

pub(crate) fn exchange_declare(channel: u16, declaration: &ExchangeDeclaration) -> Result<Bytes, TooDeep> {
    table::fields_len(declaration.arguments.iter())?;
    let method = exchange::Declare {
        exchange: short_to_amq(declaration.name.as_short()),
        kind: short_to_amq(&declaration.kind.as_short()),
        passive: declaration.passive,
        durable: declaration.durable,
        auto_delete: declaration.auto_delete,
        internal: declaration.internal,
        nowait: false,
        arguments: table::to_amq(&declaration.arguments),
    };
    Ok(method_frame(channel, AMQPClass::Exchange(exchange::AMQPMethod::Declare(method))))
}

pub(crate) fn exchange_delete(channel: u16, name: &ExchangeName, if_unused: bool) -> Bytes {
    let method = exchange::Delete { exchange: short_to_amq(name.as_short()), if_unused, nowait: false };
    method_frame(channel, AMQPClass::Exchange(exchange::AMQPMethod::Delete(method)))
}

/// `queue.bind` or `exchange.bind`.
pub(crate) fn bind(channel: u16, binding: &Binding) -> Result<Bytes, TooDeep> {
    table::fields_len(binding.arguments.iter())?;
    let source = short_to_amq(binding.source.as_short());
    let routing_key = short_to_amq(binding.routing_key.as_short());
    let arguments = table::to_amq(&binding.arguments);
    let class = match &binding.destination {
        BindingDestination::Queue(queue) => AMQPClass::Queue(queue::AMQPMethod::Bind(queue::Bind {
            queue: short_to_amq(queue),
            exchange: source,
            routing_key,
            nowait: false,
            arguments,
        })),
        BindingDestination::Exchange(destination) => {
            AMQPClass::Exchange(exchange::AMQPMethod::Bind(exchange::Bind {
                destination: short_to_amq(destination.as_short()),
                source,
                routing_key,
                nowait: false,
                arguments,
            }))
        }
    };
    Ok(method_frame(channel, class))
}

/// `queue.unbind` or `exchange.unbind`.
pub(crate) fn unbind(channel: u16, binding: &Binding) -> Result<Bytes, TooDeep> {
    table::fields_len(binding.arguments.iter())?;
    let source = short_to_amq(binding.source.as_short());
    let routing_key = short_to_amq(binding.routing_key.as_short());
    let arguments = table::to_amq(&binding.arguments);
    let class = match &binding.destination {
        BindingDestination::Queue(queue) => AMQPClass::Queue(queue::AMQPMethod::Unbind(queue::Unbind {
            queue: short_to_amq(queue),
            exchange: source,
            routing_key,
            arguments,
        })),
        BindingDestination::Exchange(destination) => {
            AMQPClass::Exchange(exchange::AMQPMethod::Unbind(exchange::Unbind {
                destination: short_to_amq(destination.as_short()),
                source,
                routing_key,
                nowait: false,
                arguments,
            }))
        }
    };
    Ok(method_frame(channel, class))
}
