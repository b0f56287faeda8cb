//! One `exchange.declare`, as a value.

use std::fmt;

use crate::table::Table;
use crate::text::ShortString;
use crate::topology::ExchangeName;
use crate::topology::arguments::DELAYED_TYPE;

/// How an exchange routes (AMQP 0-9-1, 1.6.2.1: `type`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeKind {
    /// To the queues bound with the message's routing key.
    Direct,
    /// To the queues bound with a pattern that the routing key matches.
    Topic,
    /// To all bound queues.
    Fanout,
    /// To the queues bound with headers that the message has.
    Headers,
    /// To one of the bound queues, the same one for the same routing key. The routing key of a *binding* is its
    /// weight, in decimal digits. Needs the plugin `rabbitmq_consistent_hash_exchange`, which comes with RabbitMQ.
    ConsistentHash,
    /// As `routes`, after the delay in the header `x-delay`. Needs the plugin
    /// `rabbitmq_delayed_message_exchange`, which does not come with RabbitMQ.
    Delayed {
        /// How the exchange routes once the delay is over.
        routes: DelayedRouting,
    },
    /// A type that another plugin brings.
    Custom(ShortString),
}

/// How a delayed exchange routes once the delay is over (argument `x-delayed-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedRouting {
    /// As [`ExchangeKind::Direct`].
    Direct,
    /// As [`ExchangeKind::Topic`].
    Topic,
    /// As [`ExchangeKind::Fanout`].
    Fanout,
    /// As [`ExchangeKind::Headers`].
    Headers,
}

impl ExchangeKind {
    /// The type as the wire takes it.
    #[must_use]
    pub fn as_short(&self) -> ShortString {
        match self {
            Self::Direct => ShortString::from_static("direct"),
            Self::Topic => ShortString::from_static("topic"),
            Self::Fanout => ShortString::from_static("fanout"),
            Self::Headers => ShortString::from_static("headers"),
            Self::ConsistentHash => ShortString::from_static("x-consistent-hash"),
            Self::Delayed { .. } => ShortString::from_static("x-delayed-message"),
            Self::Custom(kind) => kind.clone(),
        }
    }
}

impl fmt::Display for ExchangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_short(), f)
    }
}

impl DelayedRouting {
    /// The value of the argument `x-delayed-type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Topic => "topic",
            Self::Fanout => "fanout",
            Self::Headers => "headers",
        }
    }
}

/// What an `exchange.declare` asks for (AMQP 0-9-1, 1.6.2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeDeclaration {
    /// The exchange.
    pub name: ExchangeName,
    /// How it routes.
    pub kind: ExchangeKind,
    /// Only ask whether the exchange exists; everything but the name is ignored then.
    pub passive: bool,
    /// Whether the exchange survives a restart of the broker.
    pub durable: bool,
    /// Whether the exchange goes when the last thing bound to it does.
    pub auto_delete: bool,
    /// Whether only other exchanges may publish to it.
    pub internal: bool,
    /// The arguments, such as `alternate-exchange`. That of the kind (`x-delayed-type`) is among them.
    pub arguments: Table,
}

impl ExchangeDeclaration {
    /// An exchange that survives a restart of the broker, with the argument that its kind needs.
    #[must_use]
    pub fn durable(name: ExchangeName, kind: ExchangeKind) -> Self {
        let arguments = match kind {
            ExchangeKind::Delayed { routes } => Table::new().with(DELAYED_TYPE, routes.as_str()),
            _ => Table::new(),
        };
        Self { name, kind, passive: false, durable: true, auto_delete: false, internal: false, arguments }
    }

    /// The question whether an exchange exists. The answer to a missing one is 404, which closes the channel.
    #[must_use]
    pub const fn passive(name: ExchangeName) -> Self {
        Self {
            name,
            kind: ExchangeKind::Direct,
            passive: true,
            durable: false,
            auto_delete: false,
            internal: false,
            arguments: Table::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_declared_by_the_name_that_the_broker_knows() {
        let kinds = [
            (ExchangeKind::Direct, "direct"),
            (ExchangeKind::Topic, "topic"),
            (ExchangeKind::Fanout, "fanout"),
            (ExchangeKind::Headers, "headers"),
            (ExchangeKind::ConsistentHash, "x-consistent-hash"),
            (ExchangeKind::Delayed { routes: DelayedRouting::Topic }, "x-delayed-message"),
            (ExchangeKind::Custom(ShortString::from_static("x-random")), "x-random"),
        ];
        for (kind, name) in kinds {
            assert_eq!(kind.to_string(), name);
        }
    }

    #[test]
    fn a_delayed_exchange_says_how_it_routes_afterwards() {
        let name = ExchangeName::new("q.delay").unwrap();
        let kind = ExchangeKind::Delayed { routes: DelayedRouting::Direct };
        let declaration = ExchangeDeclaration::durable(name.clone(), kind);
        assert_eq!(format!("{:?}", declaration.arguments), r#"{"x-delayed-type": "direct"}"#);
        assert!(ExchangeDeclaration::durable(name, ExchangeKind::Fanout).arguments.is_empty());
    }
}
