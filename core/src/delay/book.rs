//! What one client knows of one work queue's hold queues, of either kind: which are there, and for how long.

use std::collections::BTreeSet;

use super::granularity::HoldTtl;
use super::grid::Grid;
use super::kind::HoldKind;
use super::lease::{Confirmed, Cover, HoldLeases, Late, Lease};
use crate::time::Instant;

#[cfg(test)]
mod tests;

/// The book of one work queue's hold queues, on one channel of one connection.
///
/// It answers two questions: whether a hold is to be declared before a publish, and what the confirm of a message in
/// it is worth. The answers depend on the kind:
///
/// * **Expiring** holds go away, so each has a lease, and a confirm is worth what the lease is: [`HoldLeases`].
/// * **Replicated** holds stay. Each is declared once on a connection, and every confirm says that the message is
///   safe, however late it comes.
///
/// [`HoldPlan::book`](crate::topology::HoldPlan::book) makes the one that fits a plan.
///
/// ```
/// use std::time::Duration;
/// use leveret_core::delay::{Confirmed, ExactDelays, Granularity, Grid, HoldBook, HoldKind, HoldTtl, Lease};
/// use leveret_core::time::Instant;
///
/// let at = |seconds| Instant::from_origin(Duration::from_secs(seconds));
/// let second = Granularity::default();
/// let ttl = HoldTtl::from_millis(5_000).expect("between 1 ms and 24.8 days");
///
/// // One message after another goes into the hold of 5 s. The confirm of the first takes 8 s.
/// let confirmed_late = |mut book: HoldBook| {
///     assert_eq!(book.before_publish(at(0), ttl), Lease::Declare);
///     book.declare_sent(at(0), ttl);                   // queue.declare
///     let cover = book.publish_sent(at(0), ttl);       // basic.publish
///     book.declare_ok(at(0), ttl);                     // queue.declare-ok
///     (book.before_publish(at(60), ttl), book.after_confirm(at(8), cover))
/// };
/// let replicated = HoldBook::new(HoldKind::Replicated, Grid::wide(second, ExactDelays::default()));
/// assert_eq!(confirmed_late(replicated), (Lease::Covered, Confirmed::Safe));
/// // The queue would be gone before 60 s, and its lease does not cover a message that came in as late as 8 s.
/// let expiring = HoldBook::new(HoldKind::Expiring, second);
/// assert!(matches!(confirmed_late(expiring), (Lease::Declare, Confirmed::Renew(_))));
/// ```
#[derive(Clone, Debug)]
pub struct HoldBook {
    holds: Holds,
}

#[derive(Clone, Debug)]
enum Holds {
    Expiring(HoldLeases),
    /// Those that were declared on this connection; their number is bounded by that of the grid.
    Replicated(BTreeSet<HoldTtl>),
}

impl HoldBook {
    /// An empty book. `grid` says which larger hold takes a message that one was too short for; of a granularity,
    /// its whole steps. Only expiring holds need it.
    #[must_use]
    pub fn new(kind: HoldKind, grid: impl Into<Grid>) -> Self {
        let holds = match kind {
            HoldKind::Expiring => Holds::Expiring(HoldLeases::new(grid)),
            HoldKind::Replicated => Holds::Replicated(BTreeSet::new()),
        };
        Self { holds }
    }

    /// The hold for a message that should wait for `ttl`: that one, or a larger one where its lease would run out
    /// under confirms as slow as the latest. Aim the message at the answer, see
    /// [`Successor::aim_at_hold`](crate::settle::Successor::aim_at_hold).
    #[must_use]
    pub fn choose(&self, ttl: HoldTtl) -> HoldTtl {
        match &self.holds {
            Holds::Expiring(leases) => leases.choose(ttl),
            Holds::Replicated(_) => ttl,
        }
    }

    /// What a publish at `now` into the hold `ttl` needs before it, on the same channel.
    #[must_use]
    pub fn before_publish(&self, now: Instant, ttl: HoldTtl) -> Lease {
        match &self.holds {
            Holds::Expiring(leases) => leases.before_publish(now, ttl),
            Holds::Replicated(declared) if declared.contains(&ttl) => Lease::Covered,
            Holds::Replicated(_) => Lease::Declare,
        }
    }

    /// Notes that a declare of the hold `ttl` is sent. A replicated one counts as declared at once: what follows on
    /// the channel is not executed if the declare is refused.
    pub fn declare_sent(&mut self, now: Instant, ttl: HoldTtl) {
        match &mut self.holds {
            Holds::Expiring(leases) => leases.declare_sent(now, ttl),
            Holds::Replicated(declared) => drop(declared.insert(ttl)),
        }
    }

    /// Notes that the oldest unanswered declare of the hold `ttl` was answered with `declare-ok`.
    pub fn declare_ok(&mut self, now: Instant, ttl: HoldTtl) {
        if let Holds::Expiring(leases) = &mut self.holds {
            leases.declare_ok(now, ttl);
        }
    }

    /// Notes that a message is published into the hold `ttl`, after the declare that
    /// [`before_publish`](Self::before_publish) asked for. Keep the answer until the message's confirm or return. It
    /// is `None` in a replicated hold, which has no lease.
    #[must_use]
    pub fn publish_sent(&self, now: Instant, ttl: HoldTtl) -> Option<Cover> {
        match &self.holds {
            Holds::Expiring(leases) => Some(leases.publish_sent(now, ttl)),
            Holds::Replicated(_) => None,
        }
    }

    /// What the confirm of a message is worth. Report the answers to earlier declares first.
    ///
    /// Without a cover it is [`Confirmed::Safe`]: so it is in a replicated hold, and where a message is in no hold.
    #[must_use]
    pub fn after_confirm(&mut self, now: Instant, cover: Option<Cover>) -> Confirmed {
        match (&mut self.holds, cover) {
            (Holds::Expiring(leases), Some(cover)) => leases.after_confirm(now, cover),
            _ => Confirmed::Safe,
        }
    }

    /// What a late confirm is worth now that a declare of its hold was answered.
    #[must_use]
    pub fn after_declare_ok(&self, now: Instant, late: Late) -> Confirmed {
        match &self.holds {
            Holds::Expiring(leases) => leases.after_declare_ok(now, late),
            Holds::Replicated(_) => Confirmed::Safe,
        }
    }

    /// Notes that a message came back unroutable from the hold `ttl`: it is gone, whatever was known of it. `cover`
    /// is what [`publish_sent`](Self::publish_sent) said.
    ///
    /// The answer is the hold to publish it into again. [`before_publish`](Self::before_publish) asks to declare it,
    /// unless that was done since.
    pub fn after_return(&mut self, ttl: HoldTtl, cover: Option<Cover>) -> HoldTtl {
        match (&mut self.holds, cover) {
            (Holds::Expiring(leases), Some(cover)) => leases.after_return(cover),
            (Holds::Expiring(_), None) => ttl,
            (Holds::Replicated(declared), _) => {
                declared.remove(&ttl);
                ttl
            }
        }
    }

    /// Notes that a declare of the hold `ttl` was refused, which closed the channel. What was not called safe before
    /// is published again.
    pub fn after_refusal(&mut self, ttl: HoldTtl) {
        match &mut self.holds {
            Holds::Expiring(leases) => leases.after_refusal(ttl),
            // Which of the others were executed was not noted.
            Holds::Replicated(declared) => declared.clear(),
        }
    }

    /// Ends all leases on a channel that goes on: the machine slept, and holds may have expired meanwhile. What was
    /// declared is still answered. Replicated holds do not expire, and stay declared.
    pub fn void(&mut self) {
        if let Holds::Expiring(leases) = &mut self.holds {
            leases.void();
        }
    }

    /// Forgets all holds, and makes every confirm that is still to come under a lease worth nothing: the channel or
    /// connection has ended.
    pub fn clear(&mut self) {
        match &mut self.holds {
            Holds::Expiring(leases) => leases.clear(),
            Holds::Replicated(declared) => declared.clear(),
        }
    }
}
