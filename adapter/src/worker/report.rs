//! What a worker did.

use leveret_core::session::{Left, Settlement};

/// How many deliveries a worker settled, and how. Answered when it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// Jobs done and acknowledged.
    pub done: u64,
    /// Failed attempts whose next attempt is confirmed.
    pub retried: u64,
    /// Deferrals that are confirmed.
    pub deferred: u64,
    /// Deliveries confirmed in the dead-letter queue: attempts used up, fatal errors, job types without a handler,
    /// unreadable bodies.
    pub dead_lettered: u64,
    /// The same where dead-letter queues are switched off.
    pub rejected: u64,
    /// Deliveries discarded on purpose, by [`JobError::discard`](crate::JobError::discard).
    pub dropped: u64,
    /// Deliveries given back to the broker, which delivers them again: not started when the worker was stopped, or
    /// their successor could not be published.
    pub requeued: u64,
    /// Deliveries that could not be settled because their connection had ended; the broker delivers them again.
    pub stale: u64,
    /// Deliveries that were not settled when the worker's grace ended; the broker delivers them again. The observer
    /// sees them as [`Settlement::Stale`] too, and they are counted here alone.
    pub left: u64,
    /// Settlements that the observer was too slow to see.
    pub unobserved: u64,
}

impl WorkerReport {
    pub(super) const fn count(&mut self, settlement: &Settlement) {
        let counter = match settlement {
            Settlement::Done => &mut self.done,
            Settlement::Retried { .. } => &mut self.retried,
            Settlement::Deferred { .. } => &mut self.deferred,
            Settlement::DeadLettered { .. } => &mut self.dead_lettered,
            Settlement::Rejected { .. } => &mut self.rejected,
            Settlement::Dropped { .. } => &mut self.dropped,
            Settlement::Requeued { .. } => &mut self.requeued,
            Settlement::Stale => &mut self.stale,
            _ => return,
        };
        *counter += 1;
    }

    /// The report of a worker whose subscription has left something unsettled.
    pub(super) const fn with_left(mut self, left: Left) -> Self {
        self.left = left.unsettled as u64;
        // Each of them was settled as stale just before.
        self.stale = self.stale.saturating_sub(self.left);
        self
    }
}
