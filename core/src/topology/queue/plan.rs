//! A description that has been checked.

use std::num::NonZeroU16;
use std::time::Duration;

use super::{DELIVERY_LIMIT, Holds, Queue, QueueError};
use crate::delay::{ExactDelays, HoldTtl};
use crate::retry::RetryPolicy;
use crate::text::ShortString;
use crate::topology::arguments::{
    DELIVERY_LIMIT as X_DELIVERY_LIMIT, MAX_PRIORITY, MESSAGE_TTL, classic, dead_letters_to, quorum,
};
use crate::topology::{HoldPlan, QueueDeclaration, QueueName, QueueType, Suffixes};

/// The highest priority of a classic queue, unless told otherwise.
const CLASSIC_TOP: u8 = 10;
/// What a deferred job carries on a quorum queue. RabbitMQ 4.0 to 4.2: above 4 is high; 4.3: 0 to 31, and 4 without.
const QUORUM_TOP: u8 = 9;
/// RabbitMQ 4 drops a message of a quorum queue at its 21st redelivery if nothing is said. A dead letter that somebody
/// looks at and puts back is not to vanish.
const DEAD_DELIVERY_LIMIT: i64 = 2_147_483_647;

/// A job queue whose description has been checked: what a session works with.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuePlan {
    queue: Queue,
    prefetch: NonZeroU16,
    /// In milliseconds.
    message_ttl: Option<u32>,
    holds: HoldPlan,
}

impl QueuePlan {
    pub(super) fn of(queue: &Queue) -> Result<Self, QueueError> {
        let name = || queue.name.clone();
        if queue.suffixes.looks_like_hold(queue.name.as_str()) {
            return Err(QueueError::LooksLikeHold { queue: name() });
        }
        let prefetch =
            NonZeroU16::new(queue.prefetch).ok_or_else(|| QueueError::PrefetchZero { queue: name() })?;
        match (queue.quorum, queue.max_priority, queue.delivery_limit) {
            (true, Some(max_priority @ 1..), _) => {
                return Err(QueueError::PriorityOnQuorum { queue: name(), max_priority });
            }
            (false, _, Some(limit)) => return Err(QueueError::LimitOnClassic { queue: name(), limit }),
            _ => {}
        }
        let message_ttl = match queue.message_ttl {
            None => None,
            Some(ttl) => {
                let millis = u32::try_from(ttl.as_millis()).ok();
                let millis = millis.filter(|ms| *ms > 0 && Duration::from_millis((*ms).into()) == ttl);
                Some(millis.ok_or_else(|| QueueError::MessageTtl { queue: name(), ttl })?)
            }
        };
        let holds = Self::plan_holds(queue)?;
        // Found here, and not when the job that would need it has failed.
        holds
            .grid()
            .round_up(queue.retry.longest_delay())
            .map_err(|cause| QueueError::RetryTooLong { queue: name(), cause })?;
        Ok(Self { queue: queue.clone(), prefetch, message_ttl, holds })
    }

    fn plan_holds(queue: &Queue) -> Result<HoldPlan, QueueError> {
        let holds = HoldPlan::new(queue.name.clone(), queue.suffixes.clone(), queue.granularity)
            .deferral_granularity(queue.deferral_granularity);
        let exact: &[Duration] = match &queue.holds {
            Some(Holds::Replicated { exact }) => exact,
            None if queue.quorum => &[],
            Some(Holds::Expiring) | None => {
                return Ok(if queue.coarse_delays { holds.coarse() } else { holds });
            }
        };
        if queue.coarse_delays {
            return Err(QueueError::CoarseReplicated { queue: queue.name.clone() });
        }
        let exact = ExactDelays::new(exact.iter().copied())
            .map_err(|cause| QueueError::ExactDelays { queue: queue.name.clone(), cause })?;
        Ok(holds.replicated(exact))
    }

    /// The description that was checked.
    #[must_use]
    pub const fn description(&self) -> &Queue {
        &self.queue
    }

    /// The work queue's name.
    #[must_use]
    pub const fn name(&self) -> &QueueName {
        &self.queue.name
    }

    /// Whether it is a classic or a quorum queue.
    #[must_use]
    pub const fn queue_type(&self) -> QueueType {
        if self.queue.quorum { QueueType::Quorum } else { QueueType::Classic }
    }

    /// How many deliveries a worker holds at once.
    #[must_use]
    pub const fn prefetch(&self) -> NonZeroU16 {
        self.prefetch
    }

    /// How often a job runs, and how long it waits after a failure.
    #[must_use]
    pub const fn retry(&self) -> &RetryPolicy {
        &self.queue.retry
    }

    /// How often a job may be deferred; `None` for no limit.
    #[must_use]
    pub const fn max_deferrals(&self) -> Option<u32> {
        self.queue.max_deferrals
    }

    /// The highest priority, at which deferred jobs come back; `None` for a queue without priorities. A quorum queue
    /// has priorities from RabbitMQ 4 on, and ignores them before.
    #[must_use]
    pub fn top_priority(&self) -> Option<u8> {
        let default = if self.queue.quorum { QUORUM_TOP } else { CLASSIC_TOP };
        Some(self.queue.max_priority.unwrap_or(default)).filter(|top| *top > 0)
    }

    /// Whether dead letters are kept in `q.dead`.
    #[must_use]
    pub const fn dead_letters(&self) -> bool {
        self.queue.dead_letters
    }

    /// What stands between the name of the work queue and the names of what belongs to it.
    #[must_use]
    pub const fn suffixes(&self) -> &Suffixes {
        &self.queue.suffixes
    }

    /// The hold queues.
    #[must_use]
    pub const fn holds(&self) -> &HoldPlan {
        &self.holds
    }

    /// What must exist before anything is published or consumed: the work queue, then its dead-letter queue.
    pub fn declarations(&self) -> impl Iterator<Item = QueueDeclaration> {
        std::iter::once(self.work()).chain(self.dead())
    }

    /// The work queue `q`.
    #[must_use]
    pub fn work(&self) -> QueueDeclaration {
        let mut arguments = if self.queue.quorum {
            let limit = self.queue.delivery_limit.unwrap_or(DELIVERY_LIMIT);
            let arguments = quorum().with(X_DELIVERY_LIMIT, limit);
            if self.dead_letters() { dead_letters_to(arguments, &self.dead_name()) } else { arguments }
        } else {
            match self.top_priority() {
                Some(top) => classic().with(MAX_PRIORITY, i64::from(top)),
                None => classic(),
            }
        };
        if let Some(ttl) = self.message_ttl {
            arguments.insert(MESSAGE_TTL, ttl);
        }
        QueueDeclaration::durable(self.name().as_short().clone(), arguments)
    }

    /// The dead-letter queue `q.dead`, if dead letters are kept. It is of the work queue's type. They never expire, are
    /// never routed on, and may be read and put back any number of times.
    #[must_use]
    pub fn dead(&self) -> Option<QueueDeclaration> {
        let arguments = || {
            if self.queue.quorum { quorum().with(X_DELIVERY_LIMIT, DEAD_DELIVERY_LIMIT) } else { classic() }
        };
        self.dead_letters().then(|| QueueDeclaration::durable(self.dead_name(), arguments()))
    }

    /// The name of the dead-letter queue, whether dead letters are kept or not. One allocation.
    #[must_use]
    pub fn dead_name(&self) -> ShortString {
        self.queue.suffixes.dead(&self.queue.name)
    }

    /// The hold queue for one delay: [`HoldPlan::declaration`].
    #[must_use]
    pub fn hold(&self, ttl: HoldTtl) -> QueueDeclaration {
        self.holds.declaration(ttl)
    }

    /// The name of the hold queue for one delay: `q.deferred.{ttl}` or `q.held.{ttl}`. One allocation.
    #[must_use]
    pub fn hold_name(&self, ttl: HoldTtl) -> ShortString {
        self.holds.name(ttl)
    }
}
