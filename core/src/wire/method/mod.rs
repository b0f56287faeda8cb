//! Methods (AMQP 0-9-1, 4.2.4): a class, a method, its arguments.

mod basic;
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;
mod topology;

pub use basic::ConsumeOptions;
pub(crate) use basic::*;
pub use incoming::CloseReason;
pub(crate) use incoming::{Deliver, GetOk, Incoming, MethodError, Return, Start, Tune, decode, ids};
pub(crate) use outgoing::*;
pub use topology::DeleteIf;
pub(crate) use topology::*;
