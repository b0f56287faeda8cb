//! A job to enqueue.

use std::time::Duration;

use super::ids::PublishId;
use crate::envelope::{JobId, JobType, RawPayload};
use crate::text::ShortString;

/// A job that is not on the broker yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewJob {
    /// Names the handler that runs it.
    pub job_type: JobType,
    /// What the handler gets.
    pub payload: RawPayload,
    /// How long it must wait at least. Zero, the default, goes straight to the work queue; anything above is
    /// rounded **up** to the queue's granularity. It is an argument of this one publish, not part of the job.
    pub delay: Duration,
    /// The application's correlation id.
    pub correlation_id: Option<ShortString>,
}

impl NewJob {
    /// A job without a delay.
    #[must_use]
    pub const fn new(job_type: JobType, payload: RawPayload) -> Self {
        Self { job_type, payload, delay: Duration::ZERO, correlation_id: None }
    }

    /// The job, not before `delay` has passed.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// What [`Session::enqueue`](super::Session::enqueue) accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accepted {
    /// The verdict will name this.
    pub publish: PublishId,
    /// The id that the job keeps over all attempts.
    pub job: JobId,
}
