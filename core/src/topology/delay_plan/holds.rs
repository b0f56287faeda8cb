//! Delays in hold queues.

use std::time::Duration;

use crate::delay::{DelayTooLong, ExactDelays, Granularity, Grid, HoldBook, HoldKind, HoldTtl};
use crate::table::Table;
use crate::text::ShortString;
use crate::topology::arguments::{
    DEAD_LETTER_STRATEGY, EXPIRES, MESSAGE_TTL, OVERFLOW, classic, dead_letters_to, quorum,
};
use crate::topology::placement::{Placement, Wait};
use crate::topology::{QueueDeclaration, QueueName, Suffixes};

/// The hold queues of one queue: one for each delay of a grid, from which messages are dead-lettered into the queue.
///
/// * A **short hold is a race** against the confirm. A message whose confirm comes later than its lease allows is
///   published again, into a larger hold, before its original is acknowledged: it may arrive twice, and later. Where
///   the broker takes long to confirm (hundreds of milliseconds under load), delays below about a second do so often.
/// * **Expiring** holds (the default) are classic queues that other systems share. RabbitMQ moves a released message
///   to its work queue without flushing it to disk: a *SIGKILL of the broker* lost a third of the messages in motion
///   then, and none of those that were still held. A restart loses none.
/// * **Replicated** holds hand over at least once. A SIGKILL of the broker lost none. They never expire, and each costs
///   the broker a Raft group, so there are few of them, further apart: see [`Grid::wide`].
///
/// ```
/// use std::time::Duration;
/// use leveret_core::delay::Granularity;
/// use leveret_core::table::Value;
/// use leveret_core::topology::{HoldPlan, QueueName, Suffixes};
///
/// let plan = HoldPlan::new(QueueName::new("shop.emails")?, Suffixes::DEFAULT, Granularity::default());
/// let placement = plan.place(Duration::from_millis(4_200))?;
/// let ttl = placement.hold().expect("a delay needs a hold");
/// assert_eq!((ttl.as_millis(), placement.routing_key().as_str()), (5_000, "shop.emails.deferred.5000"));
/// assert_eq!(plan.place(Duration::ZERO)?.routing_key(), "shop.emails", "without a delay it is the queue itself");
///
/// let hold = plan.declaration(ttl);
/// assert_eq!(&hold.name, placement.routing_key());
/// assert_eq!(hold.arguments.get("x-dead-letter-routing-key").and_then(Value::as_str), Some("shop.emails"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HoldPlan {
    queue: QueueName,
    suffixes: Suffixes,
    kind: HoldKind,
    grid: Grid,
    deferrals: Grid,
}

impl HoldPlan {
    /// Expiring holds of `queue`, one for each whole step of `granularity`, also for deferrals.
    #[must_use]
    pub const fn new(queue: QueueName, suffixes: Suffixes, granularity: Granularity) -> Self {
        let grid = Grid::steps(granularity);
        Self { queue, suffixes, kind: HoldKind::Expiring, grid, deferrals: Grid::steps(granularity) }
    }

    /// The same holds, with another step for deferrals.
    #[must_use]
    pub fn deferral_granularity(self, granularity: Granularity) -> Self {
        Self { deferrals: self.deferrals.with_step(granularity), ..self }
    }

    /// Expiring holds on the coarse grid: their number is bounded, see [`Grid::coarse`].
    #[must_use]
    pub fn coarse(self) -> Self {
        let (grid, deferrals) = (Grid::coarse(self.grid.step()), Grid::coarse(self.deferrals.step()));
        Self { kind: HoldKind::Expiring, grid, deferrals, ..self }
    }

    /// Replicated holds on the wide grid and for the exact delays.
    #[must_use]
    pub fn replicated(self, exact: ExactDelays) -> Self {
        let grid = Grid::wide(self.grid.step(), exact.clone());
        let deferrals = Grid::wide(self.deferrals.step(), exact);
        Self { kind: HoldKind::Replicated, grid, deferrals, ..self }
    }

    /// The queue into which the messages come back.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// What the hold queues are made of.
    #[must_use]
    pub const fn kind(&self) -> HoldKind {
        self.kind
    }

    /// The delays of retries and delayed enqueues that have a hold.
    #[must_use]
    pub const fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The delays of deferrals that have a hold.
    #[must_use]
    pub const fn deferral_grid(&self) -> &Grid {
        &self.deferrals
    }

    /// The book to keep over these holds, empty. A message that needs a larger hold moves by the finer of the two
    /// grids.
    #[must_use]
    pub fn book(&self) -> HoldBook {
        // The larger hold of a deferral of 100 ms is not to be one of an hour because retries have such a step.
        let finer = if self.deferrals.step() < self.grid.step() { &self.deferrals } else { &self.grid };
        HoldBook::new(self.kind, finer.clone())
    }

    /// Where a message goes that is to wait for `delay`. Without a delay it is the work queue.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] where no hold can keep the delay.
    pub fn place(&self, delay: Duration) -> Result<Placement, DelayTooLong> {
        Ok(match self.grid.round_up(delay)? {
            None => Placement::queue(self.queue.as_short().clone(), Wait::None),
            Some(ttl) => self.at(ttl),
        })
    }

    /// Where a deferred message goes: always into a hold, for at least one step.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] where no hold can keep the delay.
    pub fn place_deferral(&self, delay: Duration) -> Result<Placement, DelayTooLong> {
        self.deferrals.round_up_deferral(delay).map(|ttl| self.at(ttl))
    }

    /// The hold queue of this TTL as a place.
    #[must_use]
    pub fn at(&self, ttl: HoldTtl) -> Placement {
        Placement::queue(self.name(ttl), Wait::Hold(ttl))
    }

    /// The name of the hold queue: `q.deferred.{ttl}` or `q.held.{ttl}`. One allocation.
    #[must_use]
    pub fn name(&self, ttl: HoldTtl) -> ShortString {
        self.suffixes.hold(&self.queue, self.kind, ttl)
    }

    /// The hold queue. Its arguments are a function of its name alone, so that services of any version agree on them.
    /// It has no priorities: they would not release anything sooner.
    #[must_use]
    pub fn declaration(&self, ttl: HoldTtl) -> QueueDeclaration {
        let work = self.queue.as_short();
        let waiting =
            |arguments: Table| dead_letters_to(arguments.with(MESSAGE_TTL, i64::from(ttl.as_millis())), work);
        let arguments = match self.kind {
            HoldKind::Expiring => waiting(classic()).with(EXPIRES, ttl.expires_ms()),
            // No x-expires: a declare does not renew the lease of a quorum queue, and it would drop its messages.
            // RabbitMQ dead-letters at least once only from a queue that refuses publishes when it is full, and falls
            // back to at most once without a word otherwise.
            HoldKind::Replicated => {
                waiting(quorum()).with(DEAD_LETTER_STRATEGY, "at-least-once").with(OVERFLOW, "reject-publish")
            }
        };
        QueueDeclaration::durable(self.name(ttl), arguments)
    }
}
