//! Delays: rounding up, hold queues and their lease.
//!
//! A delayed message waits in a *hold queue*: a queue without consumers whose messages all live equally long
//! and are dead-lettered into the work queue. One hold queue per delay, because RabbitMQ releases expired
//! messages only from the head: a short wait behind a long one would wait as long.
//!
//! [`Granularity`] rounds a delay up to the TTL of a hold, [`Placement`] says where a message goes, and
//! [`HoldLeases`] sees to it that the hold outlives the messages in it.

pub mod granularity;
pub mod kind;
pub mod lease;
pub mod plan;

pub use granularity::{DelayTooLong, Granularity, GranularityError, HoldTtl};
pub use kind::HoldKind;
pub use lease::{Confirmed, Cover, HoldLeases, Late, Lease};
pub use plan::Placement;
