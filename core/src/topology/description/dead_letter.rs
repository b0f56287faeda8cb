//! Where the dead letters of a queue go.

use std::fmt;

use crate::topology::argument_list::ArgumentList;
use crate::topology::arguments::{DEAD_LETTER_EXCHANGE, DEAD_LETTER_ROUTING_KEY};
use crate::topology::{ExchangeName, QueueName, RoutingKey};

/// Where the dead letters of a queue go: a queue, or an exchange that routes them on.
///
/// The broker looks the target up when a message dies, not when the queue is declared. A message whose target is
/// not there then is discarded silently, so [`Topology::check`](crate::topology::Topology::check) warns of targets that
/// nothing declares.
///
/// ```
/// # use leveret_core::topology::{DeadLetter, ExchangeName, QueueName, RoutingKey};
/// let graveyard = DeadLetter::to_queue(&QueueName::new("orders.dead")?);
/// let routed = DeadLetter::to_exchange(ExchangeName::new("dead")?).routing_key(RoutingKey::new("orders")?);
/// assert_eq!(graveyard.to_string(), "queue \"orders.dead\"");
/// assert_eq!(routed.to_string(), "exchange \"dead\" with routing key \"orders\"");
/// # Ok::<(), leveret_core::topology::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    exchange: ExchangeName,
    routing_key: Option<RoutingKey>,
}

impl DeadLetter {
    /// Straight into a queue, through the default exchange.
    #[must_use]
    pub fn to_queue(queue: &QueueName) -> Self {
        Self { exchange: ExchangeName::DEFAULT, routing_key: Some(RoutingKey::from(queue)) }
    }

    /// To an exchange, with the routing key that the message came with.
    #[must_use]
    pub const fn to_exchange(exchange: ExchangeName) -> Self {
        Self { exchange, routing_key: None }
    }

    /// With this routing key in place of the message's own.
    #[must_use]
    pub fn routing_key(self, routing_key: RoutingKey) -> Self {
        Self { routing_key: Some(routing_key), ..self }
    }

    /// The exchange; the default one for a target that is a queue.
    #[must_use]
    pub const fn exchange(&self) -> &ExchangeName {
        &self.exchange
    }

    /// The routing key that replaces the message's own; the queue's name for a target that is a queue.
    #[must_use]
    pub const fn key(&self) -> Option<&RoutingKey> {
        self.routing_key.as_ref()
    }

    pub(in crate::topology) fn write(&self, arguments: &mut ArgumentList, setting: &'static str) {
        arguments.set(DEAD_LETTER_EXCHANGE, setting, self.exchange.as_short());
        if let Some(key) = &self.routing_key {
            arguments.set(DEAD_LETTER_ROUTING_KEY, setting, key.as_short());
        }
    }
}

impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.routing_key, self.exchange.is_default()) {
            (Some(queue), true) => write!(f, "queue {:?}", queue.as_str()),
            (None, true) => f.write_str("the queue that the message's routing key names"),
            (Some(key), false) => {
                write!(f, "exchange {:?} with routing key {:?}", self.exchange.as_str(), key.as_str())
            }
            (None, false) => write!(f, "exchange {:?}", self.exchange.as_str()),
        }
    }
}
