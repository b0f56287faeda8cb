//! The arguments of queues that leveret declares, by name.

use crate::table::Table;
use crate::text::ShortString;

pub(super) const QUEUE_TYPE: ShortString = ShortString::from_static("x-queue-type");
pub(super) const MAX_PRIORITY: ShortString = ShortString::from_static("x-max-priority");
pub(super) const MESSAGE_TTL: ShortString = ShortString::from_static("x-message-ttl");
pub(super) const EXPIRES: ShortString = ShortString::from_static("x-expires");
pub(super) const DELIVERY_LIMIT: ShortString = ShortString::from_static("x-delivery-limit");
pub(super) const OVERFLOW: ShortString = ShortString::from_static("x-overflow");

const DEAD_LETTER_EXCHANGE: ShortString = ShortString::from_static("x-dead-letter-exchange");
const DEAD_LETTER_ROUTING_KEY: ShortString = ShortString::from_static("x-dead-letter-routing-key");
pub(super) const DEAD_LETTER_STRATEGY: ShortString = ShortString::from_static("x-dead-letter-strategy");

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
