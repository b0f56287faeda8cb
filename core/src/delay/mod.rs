//! Delays: rounding up, hold queues and their lease.
//!
//! A delayed message waits in a *hold queue*: a queue without consumers whose messages all live equally long
//! and are dead-lettered into the work queue. One hold queue per delay, because RabbitMQ releases expired
//! messages only from the head: a short wait behind a long one would wait as long.
//!
//! [`Granularity`] is the step in which delays are kept, [`Grid`] says which of them have a hold of their own, and
//! [`HoldBook`] sees to it that the hold outlives the messages in it: by [`HoldLeases`], where holds expire. This module knows times only; the queues and
//! their arguments are in [`topology`](crate::topology), as a
//! [`DelayPlan`](crate::topology::DelayPlan).

pub mod book;
pub mod exact;
pub mod granularity;
pub mod grid;
pub mod kind;
pub mod lease;

pub use book::HoldBook;
pub use exact::{EXACT_DELAYS_MAX, ExactDelays, ExactDelaysError};
pub use granularity::{DelayTooLong, Granularity, GranularityError, HoldTtl};
pub use grid::Grid;
pub use kind::HoldKind;
pub use lease::{Confirmed, Cover, HoldLeases, Late, Lease};
