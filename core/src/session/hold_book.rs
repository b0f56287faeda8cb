//! What a session knows of one work queue's hold queues: which are there, and for how long.

use std::collections::BTreeSet;

use crate::delay::{Confirmed, Cover, HoldKind, HoldLeases, HoldTtl, Late, Lease};
use crate::time::Instant;
use crate::topology::HoldPlan;

#[cfg(test)]
mod tests;

/// The book of hold queues of either kind.
#[derive(Debug)]
pub(super) enum HoldBook {
    /// They go away, so each has a lease, and a confirm is worth what the lease is.
    Expiring(HoldLeases),
    /// They stay once they are declared, and a confirm says that the message is safe. Those that were declared on
    /// this connection; their number is bounded by that of the grid.
    Replicated(BTreeSet<HoldTtl>),
}

impl HoldBook {
    pub(super) fn new(plan: &HoldPlan) -> Self {
        match plan.kind() {
            HoldKind::Expiring => {
                // The larger hold of a deferral of 100 ms is not to be one of an hour because retries have such a step.
                let (grid, deferrals) = (plan.grid(), plan.deferral_grid());
                let finer = if deferrals.step() < grid.step() { deferrals } else { grid };
                Self::Expiring(HoldLeases::new(finer.clone()))
            }
            HoldKind::Replicated => Self::Replicated(BTreeSet::new()),
        }
    }

    /// The hold for a message that should wait for `ttl`: that one, or a larger one where confirms are slow.
    pub(super) fn choose(&self, ttl: HoldTtl) -> HoldTtl {
        match self {
            Self::Expiring(leases) => leases.choose(ttl),
            Self::Replicated(_) => ttl,
        }
    }

    /// What a publish into a hold needs before it.
    pub(super) fn before_publish(&self, now: Instant, ttl: HoldTtl) -> Lease {
        match self {
            Self::Expiring(leases) => leases.before_publish(now, ttl),
            Self::Replicated(declared) if declared.contains(&ttl) => Lease::Covered,
            Self::Replicated(_) => Lease::Declare,
        }
    }

    /// A declare of a hold is on its way. Of a replicated one it counts at once: what follows on the channel is not
    /// executed if it is refused.
    pub(super) fn declare_sent(&mut self, now: Instant, ttl: HoldTtl) {
        match self {
            Self::Expiring(leases) => leases.declare_sent(now, ttl),
            Self::Replicated(declared) => drop(declared.insert(ttl)),
        }
    }

    /// The lease under which a message was published; `None` where its confirm alone makes it safe.
    pub(super) fn publish_sent(&self, now: Instant, ttl: HoldTtl) -> Option<Cover> {
        match self {
            Self::Expiring(leases) => Some(leases.publish_sent(now, ttl)),
            Self::Replicated(_) => None,
        }
    }

    /// A declare of a hold was answered.
    pub(super) fn declare_ok(&mut self, now: Instant, ttl: HoldTtl) {
        if let Self::Expiring(leases) = self {
            leases.declare_ok(now, ttl);
        }
    }

    /// What the confirm of a message is worth that was published under a lease.
    pub(super) fn after_confirm(&mut self, now: Instant, cover: Cover) -> Confirmed {
        match self {
            Self::Expiring(leases) => leases.after_confirm(now, cover),
            Self::Replicated(_) => Confirmed::Safe,
        }
    }

    /// What a late confirm is worth now that a declare of its hold was answered.
    pub(super) fn after_declare_ok(&self, now: Instant, late: Late) -> Confirmed {
        match self {
            Self::Expiring(leases) => leases.after_declare_ok(now, late),
            Self::Replicated(_) => Confirmed::Safe,
        }
    }

    /// A message came back from a hold that is not there. Answers with the hold for it to go to again.
    pub(super) fn after_return(&mut self, ttl: HoldTtl, cover: Option<Cover>) -> HoldTtl {
        match (self, cover) {
            (Self::Expiring(leases), Some(cover)) => leases.after_return(cover),
            (Self::Expiring(_), None) => ttl,
            (Self::Replicated(declared), _) => {
                declared.remove(&ttl);
                ttl
            }
        }
    }

    /// The channel was closed over the declare of this hold.
    pub(super) fn after_refusal(&mut self, ttl: HoldTtl) {
        match self {
            Self::Expiring(leases) => leases.after_refusal(ttl),
            // Which of the others were executed was not noted.
            Self::Replicated(declared) => declared.clear(),
        }
    }

    /// The machine slept, with holds expiring meanwhile. What was declared is still answered on its channel.
    pub(super) fn void(&mut self) {
        match self {
            Self::Expiring(leases) => leases.void(),
            // They do not expire.
            Self::Replicated(_) => {}
        }
    }

    /// Nothing is known of any hold any more.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Expiring(leases) => leases.clear(),
            Self::Replicated(declared) => declared.clear(),
        }
    }
}
