//! How a delivery ends.
//!
//! A handler's [`Outcome`] becomes a [`Decision`]: acknowledge, requeue, reject, drop, or publish a [`Successor`] —
//! the next attempt, the deferred job, the dead letter — and acknowledge the original once the successor is safe.
//! [`decide()`] and [`aside()`] make that decision for jobs, [`decide_plain`] makes it for messages that need not be
//! jobs, [`copied_properties`] says what a successor keeps of its original, [`TakenAside`] is what becomes of a message that nobody can read, and [`SettleLedger`] keeps the order:
//! publish, confirm, acknowledge.

pub mod aside;
pub mod death;
pub mod decide;
pub mod ledger;
pub mod outcome;
pub mod plain;
pub mod retry_count;

pub use crate::message::copied_properties;
pub use aside::TakenAside;
pub use decide::{Decision, Successor, SuccessorKind, Target, aside, dead_letter, decide};
pub use ledger::{
    DeliveryId, Remains, SettleError, SettleLedger, Settlement, Settling, Step, SuccessorVerdict, Write,
};
pub use outcome::Outcome;
pub use plain::{PlainDelivery, decide_plain, give_up};
