//! Why a worker ended without having been told to.

use std::fmt;

use leveret_core::envelope::JobType;
use leveret_core::session::{SubscribeError, SubscriptionError};
use leveret_core::topology::QueueName;

use crate::shared::Stopped;

/// Why a worker did not start, or ended by itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WorkerError {
    /// The worker has no handler, so it would dead-letter every job. Nothing was consumed.
    NoHandler {
        /// The worker's queue.
        queue: QueueName,
    },
    /// Two handlers were added for one job type. Nothing was consumed.
    DuplicateHandler {
        /// The job type.
        job_type: JobType,
    },
    /// The queue is described otherwise than when the client was made. Nothing was consumed.
    DifferentDescription {
        /// The queue.
        queue: QueueName,
        /// The first setting that differs, by the name of its setter.
        setting: &'static str,
    },
    /// The subscription could not be begun. Nothing was consumed.
    Subscribe(SubscribeError),
    /// The broker ended the subscription for good, or its connection cannot come back.
    Ended(SubscriptionError),
    /// The client was closed before the worker had ended.
    Closed,
    /// The runtime drops the worker's tasks instead of running them. What was delivered goes back to the broker.
    NoTasks,
    /// The client has stopped without having been shut down.
    Stopped(Stopped),
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHandler { queue } => write!(
                f,
                "the worker of queue \"{queue}\" has no handler and would give up every job: add one for each job type"
            ),
            Self::DuplicateHandler { job_type } => {
                write!(f, "the worker has two handlers for job type {job_type:?}: remove one")
            }
            Self::DifferentDescription { queue, setting } => write!(
                f,
                "queue \"{queue}\" is described with another {setting} than when this client was made: describe it \
                 once and share the description"
            ),
            Self::Subscribe(error) => error.fmt(f),
            Self::Ended(error) => error.fmt(f),
            Self::Closed => f.write_str("the client was closed while the worker ran"),
            Self::NoTasks => f.write_str(
                "the runtime does not run the worker's tasks: run the worker inside the runtime in which its client \
                 was connected, and before that runtime shuts down",
            ),
            Self::Stopped(stopped) => stopped.fmt(f),
        }
    }
}

impl std::error::Error for WorkerError {}
