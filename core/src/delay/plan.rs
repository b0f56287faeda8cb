//! Where a message goes to wait, if it waits at all.

use std::time::Duration;

use super::granularity::{DelayTooLong, Granularity, HoldTtl};
use crate::text::ShortString;
use crate::topology::QueueName;

/// The queue of a job queue's family that a message is published to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Placement {
    /// The work queue itself: no wait.
    Work,
    /// A hold queue with this TTL, from which the message comes back to the work queue.
    Hold(HoldTtl),
}

impl Placement {
    /// Where a retry or an enqueue with `delay` goes.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] when no hold can keep the delay.
    pub fn of_delay(delay: Duration, granularity: Granularity) -> Result<Self, DelayTooLong> {
        Ok(granularity.round_up(delay)?.map_or(Self::Work, Self::Hold))
    }

    /// Where a deferral with `delay` goes: always into a hold, for at least one step.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] when no hold can keep the delay.
    pub fn of_deferral(delay: Duration, granularity: Granularity) -> Result<Self, DelayTooLong> {
        granularity.round_up_deferral(delay).map(Self::Hold)
    }

    /// The name of that queue in the family of `queue`, which is also the routing key.
    #[must_use]
    pub fn queue_name(self, queue: &QueueName) -> ShortString {
        match self {
            Self::Work => queue.as_short().clone(),
            Self::Hold(ttl) => queue.hold(ttl),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_delay_goes_straight_to_the_work_queue_but_a_deferral_never_does() {
        let queue = QueueName::new("q").unwrap();
        let second = Granularity::default();
        assert_eq!(Placement::of_delay(Duration::ZERO, second).unwrap().queue_name(&queue), "q");
        assert_eq!(
            Placement::of_delay(Duration::from_nanos(1), second).unwrap().queue_name(&queue),
            "q.deferred.1000"
        );
        assert_eq!(
            Placement::of_deferral(Duration::ZERO, second).unwrap().queue_name(&queue),
            "q.deferred.1000"
        );
    }
}
