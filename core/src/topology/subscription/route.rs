//! What a subscription's queue is bound to.

use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::topology::check::topic::topic_matches;
use crate::topology::{
    Binding, BindingDestination, DelayedRouting, Exchange, ExchangeKind, ExchangeName, RoutingKey,
};

/// A route into the queue of a [`Subscription`](super::Subscription): from an exchange that is declared with it, or
/// from one that exists.
///
/// ```
/// # use leveret_core::topology::{Exchange, ExchangeKind, ExchangeName, RoutingKey, Route};
/// let events = Exchange::new(ExchangeName::new("shop.events")?, ExchangeKind::Topic);
/// let orders = Route::from(events).routing_key(RoutingKey::new("orders.#")?);
/// let logs = Route::from_existing(ExchangeName::new("amq.rabbitmq.log")?);
/// # let _ = (orders, logs);
/// # Ok::<(), leveret_core::topology::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    source: Source,
    routing_key: RoutingKey,
    arguments: Table,
}

#[derive(Clone, Debug, PartialEq)]
enum Source {
    Declared(Exchange),
    Existing(ExchangeName),
}

impl Route {
    /// From an exchange that exists, such as `amq.topic` or one that another service declares. Where it is missing,
    /// the binding is answered with 404, which closes the channel.
    #[must_use]
    pub const fn from_existing(exchange: ExchangeName) -> Self {
        Self { source: Source::Existing(exchange), routing_key: RoutingKey::EMPTY, arguments: Table::new() }
    }

    /// What the exchange compares the message's routing key with. Default empty, as fanout and headers exchanges take
    /// it.
    #[must_use]
    pub fn routing_key(self, routing_key: RoutingKey) -> Self {
        Self { routing_key, ..self }
    }

    /// What a headers exchange compares the message's headers with.
    #[must_use]
    pub fn argument(mut self, name: ShortString, value: impl Into<Value>) -> Self {
        self.arguments.insert(name, value);
        self
    }

    /// The exchange, where it is declared with the subscription.
    #[must_use]
    pub const fn declared(&self) -> Option<&Exchange> {
        match &self.source {
            Source::Declared(exchange) => Some(exchange),
            Source::Existing(_) => None,
        }
    }

    /// The exchange, where it exists already.
    pub(super) const fn existing(&self) -> Option<&ExchangeName> {
        match &self.source {
            Source::Declared(_) => None,
            Source::Existing(name) => Some(name),
        }
    }

    pub(super) const fn source(&self) -> &ExchangeName {
        match &self.source {
            Source::Declared(exchange) => exchange.name(),
            Source::Existing(name) => name,
        }
    }

    /// Whether a message with this key surely takes the route.
    pub(super) fn takes(&self, key: &str) -> bool {
        match self.routing() {
            Some(DelayedRouting::Fanout) => true,
            Some(DelayedRouting::Direct) => self.routing_key.as_str() == key,
            Some(DelayedRouting::Topic) => topic_matches(self.routing_key.as_str(), key),
            _ => false,
        }
    }

    /// How the exchange compares routing keys; `None` where it looks at something else, or its kind is not known.
    fn routing(&self) -> Option<DelayedRouting> {
        match &self.source {
            Source::Declared(exchange) => match exchange.kind() {
                ExchangeKind::Fanout => Some(DelayedRouting::Fanout),
                ExchangeKind::Direct => Some(DelayedRouting::Direct),
                ExchangeKind::Topic => Some(DelayedRouting::Topic),
                ExchangeKind::Delayed { routes } => Some(*routes),
                _ => None,
            },
            Source::Existing(name) => match name.as_str() {
                "amq.fanout" => Some(DelayedRouting::Fanout),
                "amq.direct" => Some(DelayedRouting::Direct),
                "amq.topic" => Some(DelayedRouting::Topic),
                _ => None,
            },
        }
    }

    /// The binding to a queue; the empty name means the queue that was declared last.
    pub(super) fn binding(&self, queue: ShortString) -> Binding {
        Binding {
            source: self.source().clone(),
            destination: BindingDestination::Queue(queue),
            routing_key: self.routing_key.clone(),
            arguments: self.arguments.clone(),
        }
    }
}

impl From<Exchange> for Route {
    fn from(exchange: Exchange) -> Self {
        Self { source: Source::Declared(exchange), routing_key: RoutingKey::EMPTY, arguments: Table::new() }
    }
}
