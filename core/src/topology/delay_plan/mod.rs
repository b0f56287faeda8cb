//! How a queue's delayed messages wait, as plain values: what to declare, and what to publish where.
//!
//! | plan | waits in | a short delay behind a long one | promises |
//! |---|---|---|---|
//! | [`HoldPlan`] | one queue for each delay | never waits for it | all |
//! | [`WaitingQueuePlan`] | one queue, each message with its own expiration | waits as long | never lost, never early |
//! | [`DelayedExchangePlan`] | the store of a plugin | never waits for it | never early |
//!
//! All of them round a delay **up** to the granularity and refuse one above 24.8 days; none shortens it.

mod exchange;
mod holds;
mod waiting;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use exchange::DelayedExchangePlan;
pub use holds::HoldPlan;
pub use waiting::WaitingQueuePlan;

use super::declaration::{Declaration, QueueDeclaration};
use super::placement::Placement;
use crate::delay::DelayTooLong;

/// How the delayed messages of one queue wait.
///
/// ```
/// use std::time::Duration;
/// use leveret_core::delay::Granularity;
/// use leveret_core::message::Message;
/// use leveret_core::topology::{DelayPlan, HoldPlan, QueueName, Suffixes};
///
/// let (queue, suffixes) = (QueueName::new("shop.emails")?, Suffixes::DEFAULT);
/// let plan = DelayPlan::Holds(HoldPlan::new(queue, suffixes, Granularity::default()));
/// assert!(plan.declarations().is_empty(), "holds are declared on demand");
///
/// let placement = plan.place(Duration::from_millis(4_200))?;
/// let hold = plan.declare_before(&placement).expect("a delayed message needs its hold");
/// assert_eq!(hold.name, "shop.emails.deferred.5000");
/// assert_eq!(placement.routing_key(), &hold.name);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DelayPlan {
    /// In hold queues, one for each delay.
    Holds(HoldPlan),
    /// In one waiting queue, by the expiration of each message.
    WaitingQueue(WaitingQueuePlan),
    /// At an exchange of the delayed-message plugin.
    DelayedExchange(DelayedExchangePlan),
}

impl DelayPlan {
    /// What must exist before the first delayed message, in this order. Nothing for holds, which are declared on
    /// demand; for the others, after the queue itself, which a binding names.
    #[must_use]
    pub fn declarations(&self) -> Vec<Declaration> {
        match self {
            Self::Holds(_) => Vec::new(),
            Self::WaitingQueue(plan) => vec![Declaration::Queue(plan.declaration())],
            Self::DelayedExchange(plan) => plan.declarations().into(),
        }
    }

    /// What is declared before a message is published to `placement`: its hold queue, whenever the
    /// [book](HoldPlan::book) asks for it.
    #[must_use]
    pub fn declare_before(&self, placement: &Placement) -> Option<QueueDeclaration> {
        match (self, placement.hold()) {
            (Self::Holds(plan), Some(ttl)) => Some(plan.declaration(ttl)),
            _ => None,
        }
    }

    /// Where a message goes that is to wait for `delay`. Without a delay it is the work queue.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] where the delay cannot be kept.
    pub fn place(&self, delay: Duration) -> Result<Placement, DelayTooLong> {
        match self {
            Self::Holds(plan) => plan.place(delay),
            Self::WaitingQueue(plan) => plan.place(delay),
            Self::DelayedExchange(plan) => plan.place(delay),
        }
    }

    /// Where a deferred message goes: it waits for at least one step, also without a delay.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] where the delay cannot be kept.
    pub fn place_deferral(&self, delay: Duration) -> Result<Placement, DelayTooLong> {
        match self {
            Self::Holds(plan) => plan.place_deferral(delay),
            Self::WaitingQueue(plan) => plan.place_deferral(delay),
            Self::DelayedExchange(plan) => plan.place_deferral(delay),
        }
    }
}

impl From<HoldPlan> for DelayPlan {
    fn from(plan: HoldPlan) -> Self {
        Self::Holds(plan)
    }
}

impl From<WaitingQueuePlan> for DelayPlan {
    fn from(plan: WaitingQueuePlan) -> Self {
        Self::WaitingQueue(plan)
    }
}

impl From<DelayedExchangePlan> for DelayPlan {
    fn from(plan: DelayedExchangePlan) -> Self {
        Self::DelayedExchange(plan)
    }
}
