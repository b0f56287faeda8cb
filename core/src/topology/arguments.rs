//! The arguments of queues and exchanges that RabbitMQ understands, by name.

use crate::table::Table;
use crate::text::ShortString;

pub(super) const QUEUE_TYPE: ShortString = ShortString::from_static("x-queue-type");
pub(super) const MAX_PRIORITY: ShortString = ShortString::from_static("x-max-priority");
pub(super) const MESSAGE_TTL: ShortString = ShortString::from_static("x-message-ttl");
pub(super) const EXPIRES: ShortString = ShortString::from_static("x-expires");
pub(super) const MAX_LENGTH: ShortString = ShortString::from_static("x-max-length");
pub(super) const MAX_LENGTH_BYTES: ShortString = ShortString::from_static("x-max-length-bytes");
pub(super) const OVERFLOW: ShortString = ShortString::from_static("x-overflow");
pub(super) const DELIVERY_LIMIT: ShortString = ShortString::from_static("x-delivery-limit");
pub(super) const DEAD_LETTER_EXCHANGE: ShortString = ShortString::from_static("x-dead-letter-exchange");
pub(super) const DEAD_LETTER_ROUTING_KEY: ShortString = ShortString::from_static("x-dead-letter-routing-key");
pub(super) const DEAD_LETTER_STRATEGY: ShortString = ShortString::from_static("x-dead-letter-strategy");
pub(super) const SINGLE_ACTIVE_CONSUMER: ShortString = ShortString::from_static("x-single-active-consumer");
pub(super) const GROUP_SIZE: ShortString = ShortString::from_static("x-quorum-initial-group-size");
pub(super) const ALTERNATE_EXCHANGE: ShortString = ShortString::from_static("alternate-exchange");
pub(super) const DELAYED_TYPE: ShortString = ShortString::from_static("x-delayed-type");

/// A classic queue. The type is always said: a broker may be set up to make a quorum queue of a declaration without
/// one, and RabbitMQ does not renew the lease of a quorum queue at a declare, so that a hold would drop its messages.
pub(super) fn classic() -> Table {
    Table::new().with(QUEUE_TYPE, "classic")
}

/// A quorum queue.
pub(super) fn quorum() -> Table {
    Table::new().with(QUEUE_TYPE, "quorum")
}

/// The queue dead-letters into `queue`, through the default exchange: to that queue and no other.
pub(super) fn dead_letters_to(arguments: Table, queue: &ShortString) -> Table {
    arguments.with(DEAD_LETTER_EXCHANGE, "").with(DEAD_LETTER_ROUTING_KEY, queue)
}
