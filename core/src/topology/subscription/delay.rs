//! How the delayed messages of a subscription wait, as a user says it.

use std::time::Duration;

use crate::delay::{ExactDelays, ExactDelaysError, Granularity};
use crate::topology::{
    DelayPlan, DelayedExchangePlan, ExchangeName, HoldPlan, QueueName, QueueType, Suffixes, WaitingQueuePlan,
};

/// How the delayed messages of a [`Subscription`](super::Subscription) wait.
///
/// | | waits in | a short delay behind a long one | needs |
/// |---|---|---|---|
/// | [`holds`](Self::holds) | one queue for each delay, declared on demand | never waits for it | a client that declares |
/// | [`waiting_queue`](Self::waiting_queue), [`named`](Self::named) | one queue, released from its head | **waits as long** | one more queue |
/// | [`delayed_exchange`](Self::delayed_exchange) | the store of a plugin, on one node | never waits for it | the plugin; **can lose messages** |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay(How);

#[derive(Clone, Debug, PartialEq, Eq)]
enum How {
    Holds,
    ExpiringHolds,
    ReplicatedHolds(Vec<Duration>),
    WaitingQueue(Option<QueueName>),
    DelayedExchange,
}

impl Delay {
    /// In hold queues, one for each delay: replicated ones for a quorum queue, expiring ones for a classic queue. See
    /// [`HoldPlan`] for what a crash of the broker does to each.
    #[must_use]
    pub const fn holds() -> Self {
        Self(How::Holds)
    }

    /// In expiring hold queues, `q.deferred.{ttl}`, whatever the queue is made of.
    #[must_use]
    pub const fn expiring_holds() -> Self {
        Self(How::ExpiringHolds)
    }

    /// In replicated hold queues, `q.held.{ttl}`, whatever the queue is made of. Delays in `exact` are kept as they
    /// are, others are rounded up to the wide grid.
    #[must_use]
    pub fn replicated_holds(exact: impl IntoIterator<Item = Duration>) -> Self {
        Self(How::ReplicatedHolds(exact.into_iter().collect()))
    }

    /// In the waiting queue `q.retry`, where each message has an expiration of its own. Messages leave it only from
    /// its head: a long delay blocks all shorter ones behind it.
    #[must_use]
    pub const fn waiting_queue() -> Self {
        Self(How::WaitingQueue(None))
    }

    /// In a waiting queue of another name.
    #[must_use]
    pub const fn named(queue: QueueName) -> Self {
        Self(How::WaitingQueue(Some(queue)))
    }

    /// At the exchange `q.delay` of the delayed-message plugin, which does not come with RabbitMQ. See
    /// [`DelayedExchangePlan`] for what it can lose.
    #[must_use]
    pub const fn delayed_exchange() -> Self {
        Self(How::DelayedExchange)
    }

    pub(super) const fn is_holds(&self) -> bool {
        matches!(self.0, How::Holds | How::ExpiringHolds | How::ReplicatedHolds(_))
    }

    pub(super) fn plan(
        &self,
        queue: &QueueName,
        queue_type: QueueType,
        suffixes: &Suffixes,
        granularity: Granularity,
    ) -> Result<DelayPlan, ExactDelaysError> {
        let holds = || HoldPlan::new(queue.clone(), suffixes.clone(), granularity);
        Ok(match &self.0 {
            How::Holds if queue_type == QueueType::Quorum => {
                holds().replicated(ExactDelays::default()).into()
            }
            How::Holds | How::ExpiringHolds => holds().into(),
            How::ReplicatedHolds(exact) => {
                holds().replicated(ExactDelays::new(exact.iter().copied())?).into()
            }
            How::WaitingQueue(name) => {
                let name = match name {
                    Some(name) => name.as_short().clone(),
                    None => suffixes.waiting(queue),
                };
                WaitingQueuePlan::new(queue.clone(), name, granularity).into()
            }
            How::DelayedExchange => {
                // A derived name is shorter than the longest exchange name, and has no control characters either.
                let name = ExchangeName::new(suffixes.delayed_exchange(queue)).unwrap_or_default();
                DelayedExchangePlan::new(queue.clone(), name, granularity).into()
            }
        })
    }
}
