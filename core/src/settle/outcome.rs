//! What a handler says about the job it ran.

use std::time::Duration;

/// What a handler says about the job it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The job is done.
    Done,
    /// The attempt failed. The job runs again if its queue's retry policy has attempts left, else it becomes a
    /// dead letter.
    Retry {
        /// How long to wait; `None` for what the policy says. The number of attempts is the policy's either
        /// way.
        delay: Option<Duration>,
        /// What went wrong, for the dead letter.
        error: String,
    },
    /// The job cannot run yet ("429, retry after"). It comes back ahead of the backlog, and no attempt is
    /// counted.
    Defer {
        /// How long to wait, at least one step of the queue's granularity.
        delay: Duration,
        /// Why, for the dead letter of a job that was deferred too often.
        reason: String,
    },
    /// Running the job again is of no use.
    DeadLetter {
        /// Why.
        reason: String,
    },
    /// The job was not run. The broker delivers it again, to this worker or another one.
    Requeue,
    /// The job is discarded on purpose: it is acknowledged, and nothing takes its place, not even where the
    /// broker would keep what is rejected as a dead letter.
    Drop {
        /// Why, for whoever watches: nothing else tells.
        reason: String,
    },
}
