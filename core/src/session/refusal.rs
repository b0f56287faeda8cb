//! A broker that says no to a queue.

use std::fmt;

use crate::connection::CloseReason;
use crate::text::ShortString;
use crate::topology::Mismatch;

/// A broker that refused to declare or serve a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The queue that the broker refused: a work queue, dead-letter queue or hold queue.
    pub queue: ShortString,
    /// The broker's code and words.
    pub reason: CloseReason,
}

impl Refusal {
    /// The argument that differs, where the queue exists with other arguments.
    #[must_use]
    pub fn mismatch(&self) -> Option<Mismatch> {
        Mismatch::from_reply_text(&self.reason.text)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the broker refused queue \"{}\": ", self.queue)?;
        match self.mismatch() {
            Some(mismatch) => mismatch.fmt(f),
            None if self.reason.code == 403 => write!(
                f,
                "{}; the user needs configure, write and read permission for the queue and the names derived from \
                 it, and write permission on the default exchange",
                self.reason
            ),
            None => self.reason.fmt(f),
        }
    }
}

/// Whether a channel was closed over a `queue.declare` (AMQP 0-9-1, 1.7.2.1: class 50, method 10).
pub(super) const fn is_queue_declare(reason: &CloseReason) -> bool {
    reason.class_id == 50 && reason.method_id == 10
}
