//! A subscription as a user describes it, and the plan that is parsed from it.

mod delay;
mod error;
mod plan;
mod route;

#[cfg(test)]
mod tests;

pub use delay::Delay;
pub use error::SubscriptionError;
pub use plan::SubscriptionPlan;
pub use route::Route;

use super::description::{DeadLetter, PlainQueue};
use super::family::Suffixes;
use super::name::{ExchangeName, HeaderKey};
use crate::delay::Granularity;

/// A subscription of plain messages, which need not be jobs: a queue, what it is bound to, and how its deliveries are
/// run, delayed, retried and given up.
///
/// Nothing is created unless the client declares its topology. Then its exchanges, queue, bindings and the target of
/// its delays are declared, in this order: [`plan`](Self::plan). Otherwise all of it must exist:
/// [`plan_existing`](Self::plan_existing).
///
/// Setters take anything; the plan says what is wrong with the whole.
///
/// ```
/// use leveret_core::topology::{
///     DeadLetter, Exchange, ExchangeKind, ExchangeName, PlainQueue, QueueName, Route, RoutingKey, Subscription,
/// };
///
/// let events = Exchange::new(ExchangeName::new("shop.events")?, ExchangeKind::Topic);
/// let orders = Subscription::new(PlainQueue::new("orders")?.quorum())
///     .bind(Route::from(events).routing_key(RoutingKey::new("order.#")?))
///     .lanes(16)
///     .max_attempts(5)
///     .dead_letter(DeadLetter::to_queue(&QueueName::new("orders.dead")?));
/// let plan = orders.plan()?;
/// assert_eq!(plan.declarations().len(), 3, "the exchange, the queue, the binding");
/// assert!(plan.broker_counts_attempts());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    queue: PlainQueue,
    routes: Vec<Route>,
    prefetch: u16,
    lanes: u16,
    delay: Option<Delay>,
    granularity: Granularity,
    suffixes: Suffixes,
    max_attempts: Option<u32>,
    dead_letter: Option<DeadLetter>,
    retry_count_header: HeaderKey,
}

impl Subscription {
    /// A subscription of a queue with the defaults that the setters state.
    #[must_use]
    pub fn new(queue: PlainQueue) -> Self {
        Self {
            queue,
            routes: Vec::new(),
            prefetch: 32,
            lanes: 1,
            delay: None,
            granularity: Granularity::default(),
            suffixes: Suffixes::DEFAULT,
            max_attempts: None,
            dead_letter: None,
            retry_count_header: HeaderKey::RETRY_COUNT,
        }
    }

    /// One more route into the queue. Default none: the default exchange routes to every queue by its name.
    #[must_use]
    pub fn bind(mut self, route: impl Into<Route>) -> Self {
        self.routes.push(route.into());
        self
    }

    /// How many deliveries are in hand at once, 1 to 65,535, at least the number of lanes. Default 32.
    #[must_use]
    pub fn prefetch(self, prefetch: u16) -> Self {
        Self { prefetch, ..self }
    }

    /// How many deliveries run at once, 1 to 1,024: those with one partition key one after another, those without a key
    /// on any idle lane. Default 1, one delivery after another.
    #[must_use]
    pub fn lanes(self, lanes: u16) -> Self {
        Self { lanes, ..self }
    }

    /// How delayed messages wait. Default [`Delay::holds`] where the client declares its topology, the queue lasts (it
    /// is named, not exclusive, not auto-delete) and has no length limit; no delays elsewhere. What is released into a
    /// full queue is lost, so a delay and a length limit together are refused.
    #[must_use]
    pub fn delay(self, delay: Delay) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// The step in which delays are kept. Default 1 s. With replicated holds it has no effect: they have a grid of
    /// their own.
    #[must_use]
    pub fn granularity(self, granularity: Granularity) -> Self {
        Self { granularity, ..self }
    }

    /// What stands between the queue's name and the names of what its delays need. Default [`Suffixes::DEFAULT`].
    #[must_use]
    pub fn suffixes(self, suffixes: Suffixes) -> Self {
        Self { suffixes, ..self }
    }

    /// How often a message is tried; 0 counts as 1. Default: no limit.
    ///
    /// On a classic queue a header of the copies counts, and past the limit the message is published to the
    /// [`dead_letter`](Self::dead_letter) target, or rejected where there is none. On a quorum queue that the client
    /// declares, the broker counts as well (`x-delivery-limit` is one less), and needs the target. A copy that went
    /// through a hold starts the broker's count again; the header goes on. Without a limit here a quorum queue has that
    /// of its broker: see [`PlainQueue::quorum`].
    #[must_use]
    pub fn max_attempts(self, attempts: u32) -> Self {
        Self { max_attempts: Some(attempts), ..self }
    }

    /// Where messages go that are given up. Default: they are rejected, which drops them unless the queue itself has a
    /// dead-letter target. On a quorum queue it goes with [`max_attempts`](Self::max_attempts). The target is not
    /// declared by the subscription, and must not lead back to its queue at once.
    #[must_use]
    pub fn dead_letter(self, target: DeadLetter) -> Self {
        Self { dead_letter: Some(target), ..self }
    }

    /// The header that counts the retries of a message. Default [`HeaderKey::RETRY_COUNT`]. Services that share a
    /// queue must agree. One that the broker or leveret writes or acts on, such as `x-delay`, is refused.
    #[must_use]
    pub fn retry_count_header(self, header: HeaderKey) -> Self {
        Self { retry_count_header: header, ..self }
    }

    /// The queue.
    #[must_use]
    pub const fn queue(&self) -> &PlainQueue {
        &self.queue
    }

    /// Checks the description as a whole, for a client that declares its topology.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError`] says which setting cannot be kept.
    pub fn plan(&self) -> Result<SubscriptionPlan, SubscriptionError> {
        SubscriptionPlan::of(self, true)
    }

    /// Checks the description as a whole, for a client that declares nothing. What the description says of the queue
    /// is not compared with what is there.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError`] says which setting cannot be kept. Refused are also delays in holds, which are declared
    /// on demand; `max_attempts` or `dead_letter` of a quorum queue, whose arguments they are; and a queue that the
    /// server names.
    pub fn plan_existing(&self) -> Result<SubscriptionPlan, SubscriptionError> {
        SubscriptionPlan::of(self, false)
    }

    /// The exchanges of its routes that exist, by what the description says.
    pub(super) fn existing_exchanges(&self) -> impl Iterator<Item = &ExchangeName> {
        self.routes.iter().filter_map(Route::existing)
    }

    pub(super) const fn used_suffixes(&self) -> &Suffixes {
        &self.suffixes
    }
}
