//! Exchanges and plain queues as a user describes them.

mod dead_letter;
mod exchange;
mod plain_queue;

#[cfg(test)]
mod tests;

pub use dead_letter::DeadLetter;
pub use exchange::Exchange;
pub use plain_queue::{Overflow, PlainQueue, QueueType};
