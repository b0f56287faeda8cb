//! One `queue.declare`, as a value, and one of whatever can be declared.

use crate::table::Table;
use crate::text::ShortString;
use crate::topology::{Binding, ExchangeDeclaration};

/// One thing that must exist on the broker.
#[derive(Clone, Debug, PartialEq)]
pub enum Declaration {
    /// An exchange.
    Exchange(ExchangeDeclaration),
    /// A queue.
    Queue(QueueDeclaration),
    /// A route between them.
    Binding(Binding),
}

/// What a `queue.declare` asks for (AMQP 0-9-1, 1.7.2.1). It is never sent `no-wait`: RabbitMQ renews the
/// lease of an expiring queue only for a declare that it answers.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueDeclaration {
    /// The queue.
    pub name: ShortString,
    /// Only ask whether the queue exists; everything but the name is ignored then.
    pub passive: bool,
    /// Whether the queue survives a restart of the broker.
    pub durable: bool,
    /// Whether only this connection may use the queue, which ends with it.
    pub exclusive: bool,
    /// Whether the queue goes when its last consumer does.
    pub auto_delete: bool,
    /// The arguments, such as `x-queue-type`.
    pub arguments: Table,
}

impl QueueDeclaration {
    /// A queue that every connection shares and that survives a restart of the broker.
    #[must_use]
    pub const fn durable(name: ShortString, arguments: Table) -> Self {
        Self { name, passive: false, durable: true, exclusive: false, auto_delete: false, arguments }
    }

    /// The question whether a queue exists. The answer to a missing one is 404, which closes the channel.
    #[must_use]
    pub const fn passive(name: ShortString) -> Self {
        Self {
            name,
            passive: true,
            durable: false,
            exclusive: false,
            auto_delete: false,
            arguments: Table::new(),
        }
    }
}
