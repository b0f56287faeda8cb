//! Delays at an exchange of the delayed-message plugin.

use std::time::Duration;

use crate::delay::{DelayTooLong, Granularity, HoldTtl};
use crate::table::Table;
use crate::topology::placement::{Placement, Wait};
use crate::topology::{
    Binding, BindingDestination, Declaration, DelayedRouting, ExchangeDeclaration, ExchangeKind,
    ExchangeName, QueueName, RoutingKey,
};

/// A delayed exchange, which routes to the work queue after the delay in each message's header `x-delay`. Needs the
/// plugin `rabbitmq_delayed_message_exchange`, which does not come with RabbitMQ.
///
/// What it costs: **a message can be lost**. The plugin keeps what waits on the one node that took it, without a copy
/// on another; it confirms before it routes; and it answers every *mandatory* publish with a return, so these are not
/// mandatory, and nobody learns of a message that no queue takes. Nothing comes early. [`HoldPlan`](super::HoldPlan)
/// promises more.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayedExchangePlan {
    queue: QueueName,
    exchange: ExchangeName,
    granularity: Granularity,
}

impl DelayedExchangePlan {
    /// Messages for `queue` wait at `exchange`, by default [`QueueName::delayed_exchange`].
    #[must_use]
    pub const fn new(queue: QueueName, exchange: ExchangeName, granularity: Granularity) -> Self {
        Self { queue, exchange, granularity }
    }

    /// The queue into which the messages come.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// The name of the exchange.
    #[must_use]
    pub const fn exchange(&self) -> &ExchangeName {
        &self.exchange
    }

    /// The exchange, and its binding to the queue by the queue's name. One exchange can serve several queues.
    #[must_use]
    pub fn declarations(&self) -> [Declaration; 2] {
        let kind = ExchangeKind::Delayed { routes: DelayedRouting::Direct };
        [
            Declaration::Exchange(ExchangeDeclaration::durable(self.exchange.clone(), kind)),
            Declaration::Binding(Binding {
                source: self.exchange.clone(),
                destination: BindingDestination::Queue(self.queue.as_short().clone()),
                routing_key: RoutingKey::from(&self.queue),
                arguments: Table::new(),
            }),
        ]
    }

    /// Where a message goes that is to wait for `delay`. Without a delay it is the work queue itself.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] where the delay cannot be kept.
    pub fn place(&self, delay: Duration) -> Result<Placement, DelayTooLong> {
        Ok(match self.granularity.round_up(delay)? {
            None => Placement::queue(self.queue.as_short().clone(), Wait::None),
            Some(ttl) => self.after(ttl),
        })
    }

    /// Where a deferred message goes: it waits for at least one step, also without a delay.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] where the delay cannot be kept.
    pub fn place_deferral(&self, delay: Duration) -> Result<Placement, DelayTooLong> {
        self.granularity.round_up_deferral(delay).map(|ttl| self.after(ttl))
    }

    fn after(&self, ttl: HoldTtl) -> Placement {
        let (exchange, routing_key) = (self.exchange.as_short().clone(), self.queue.as_short().clone());
        Placement::unreturned(exchange, routing_key, Wait::DelayHeader(ttl))
    }
}
