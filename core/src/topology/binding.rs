//! One `queue.bind` or `exchange.bind`, as a value.

use crate::table::Table;
use crate::text::ShortString;
use crate::topology::{ExchangeName, RoutingKey};

/// A route from an exchange to a queue (AMQP 0-9-1, 1.7.2.3) or to another exchange, which is RabbitMQ's
/// extension. Binding twice is the same as binding once.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// Where messages come from. Nothing can be bound to the default exchange: every queue already is.
    pub source: ExchangeName,
    /// Where they go.
    pub destination: BindingDestination,
    /// What the exchange compares the message's routing key with; the weight with a consistent-hash exchange.
    pub routing_key: RoutingKey,
    /// What a headers exchange compares the message's headers with.
    pub arguments: Table,
}

/// Where a binding leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingDestination {
    /// To a queue. The empty name means the queue that this channel declared last.
    Queue(ShortString),
    /// To an exchange.
    Exchange(ExchangeName),
}
