//! Methods (AMQP 0-9-1, 4.2.4): a class, a method, its arguments.

mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

pub use incoming::CloseReason;
pub(crate) use incoming::{Deliver, Incoming, MethodError, Start, Tune, decode, ids};
pub(crate) use outgoing::*;
