//! Delays in one waiting queue.

use std::time::Duration;

use crate::delay::{DelayTooLong, Granularity, HoldTtl};
use crate::text::ShortString;
use crate::topology::arguments::{classic, dead_letters_to};
use crate::topology::placement::{Placement, Wait};
use crate::topology::{QueueDeclaration, QueueName};

/// One waiting queue, in which each message has its own expiration, and from which it is dead-lettered into the work
/// queue.
///
/// RabbitMQ releases expired messages **only from the head**. So a message waits at least as long as every message
/// that was in front of it when it came: one of ten minutes blocks all shorter ones behind it until it leaves. Nothing
/// comes early and nothing is lost, but much comes late where delays differ. It fits where all delays are alike, and
/// where the number of queues must not grow; [`HoldPlan`](super::HoldPlan) has no such wait.
///
/// As with expiring holds, a SIGKILL of the broker can lose what was just released.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingQueuePlan {
    queue: QueueName,
    name: ShortString,
    granularity: Granularity,
}

impl WaitingQueuePlan {
    /// Messages for `queue` wait in the queue `name`, by default [`QueueName::waiting`].
    #[must_use]
    pub const fn new(queue: QueueName, name: ShortString, granularity: Granularity) -> Self {
        Self { queue, name, granularity }
    }

    /// The queue into which the messages come back.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// The name of the waiting queue.
    #[must_use]
    pub const fn name(&self) -> &ShortString {
        &self.name
    }

    /// The waiting queue: classic and durable. It has no priorities: they would release nothing sooner, as long as
    /// what is in front of it has not expired.
    #[must_use]
    pub fn declaration(&self) -> QueueDeclaration {
        QueueDeclaration::durable(self.name.clone(), dead_letters_to(classic(), self.queue.as_short()))
    }

    /// Where a message goes that is to wait for `delay`. Without a delay it is the work queue.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] where the delay cannot be kept.
    pub fn place(&self, delay: Duration) -> Result<Placement, DelayTooLong> {
        Ok(match self.granularity.round_up(delay)? {
            None => Placement::queue(self.queue.as_short().clone(), Wait::None),
            Some(ttl) => self.until(ttl),
        })
    }

    /// Where a deferred message goes: it waits for at least one step, also without a delay.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] where the delay cannot be kept.
    pub fn place_deferral(&self, delay: Duration) -> Result<Placement, DelayTooLong> {
        self.granularity.round_up_deferral(delay).map(|ttl| self.until(ttl))
    }

    fn until(&self, ttl: HoldTtl) -> Placement {
        Placement::queue(self.name.clone(), Wait::Expiration(ttl))
    }
}
