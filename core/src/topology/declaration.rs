//! The description of one queue, as `queue.declare` carries it.

use crate::table::Table;
use crate::text::ShortString;

/// A queue as it is declared (AMQP 0-9-1, 1.7.2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct QueueDeclaration {
    /// Its name; empty lets the server choose one.
    pub name: ShortString,
    /// Whether the declaration only checks that the queue exists.
    pub passive: bool,
    /// Whether the queue survives a restart of the broker.
    pub durable: bool,
    /// Whether the queue belongs to its connection and ends with it.
    pub exclusive: bool,
    /// Whether the queue is deleted when its last consumer leaves.
    pub auto_delete: bool,
    /// Its arguments, such as `x-queue-type`.
    pub arguments: Table,
}
