//! How a delivery ends.
//!
//! A handler's [`Outcome`] becomes a [`Decision`]: acknowledge, hand back, or publish a [`Successor`] — the
//! next attempt, the deferred job, the dead letter — and acknowledge the original after the successor's
//! confirm. [`decide()`] and [`aside`] make that decision, [`copied_properties`] says what a successor keeps of
//! its original, and [`SettleLedger`] keeps the order: publish, confirm, acknowledge.

pub mod copy;
pub mod decide;
pub mod ledger;
pub mod outcome;

pub use copy::copied_properties;
pub use decide::{Decision, Successor, SuccessorKind, Target, aside, dead_letter, decide};
pub use ledger::{DeliveryId, SettleError, SettleLedger, Settlement, Step, SuccessorVerdict};
pub use outcome::Outcome;
