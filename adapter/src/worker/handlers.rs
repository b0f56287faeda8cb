//! Which handler runs which job, and what its answer means.

use std::collections::BTreeMap;
use std::future::Future;
use std::num::NonZeroU32;

use leveret_core::envelope::{JobType, RawPayload};
use leveret_core::session::JobDelivery;
use leveret_core::settle::Outcome;
use leveret_core::topology::{QueueName, QueuePlan};

use super::WorkerError;
use crate::job::{Job, JobContext, JobError};
use crate::panic::{BoxFuture, Caught, catch};
use crate::text::bounded;

/// A handler of any job type: it decodes the payload and starts the run, or says why the payload does not decode.
type Handler =
    Box<dyn Fn(&RawPayload, JobContext) -> Result<BoxFuture<Result<(), JobError>>, String> + Send + Sync>;

/// The handlers of one worker, by job type.
pub(super) struct Handlers {
    plan: QueuePlan,
    by_type: BTreeMap<JobType, Handler>,
}

/// How a run ended.
pub(super) struct Ran {
    pub(super) outcome: Outcome,
    /// Whether it did not begin because the payload does not decode.
    pub(super) unreadable: bool,
}

impl From<Outcome> for Ran {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, unreadable: false }
    }
}

/// Handlers as they are added, in order; not checked yet.
#[derive(Default)]
pub(super) struct Registered(Vec<(JobType, Handler)>);

impl Registered {
    pub(super) fn add<J, F, T>(&mut self, handler: F)
    where
        J: Job,
        F: Fn(J, JobContext) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        let start = move |payload: &RawPayload, context: JobContext| {
            let job = payload.deserialize::<J>().map_err(|error| error.to_string())?;
            let run: BoxFuture<_> = Box::pin(handler(job, context));
            Ok(run)
        };
        let job_type = const { JobType::from_static(J::NAME) };
        self.0.push((job_type, Box::new(start)));
    }

    /// # Errors
    ///
    /// [`WorkerError::NoHandler`] and [`WorkerError::DuplicateHandler`].
    pub(super) fn check(self, plan: QueuePlan) -> Result<Handlers, WorkerError> {
        let mut by_type = BTreeMap::new();
        for (job_type, handler) in self.0 {
            if by_type.contains_key(&job_type) {
                return Err(WorkerError::DuplicateHandler { job_type });
            }
            by_type.insert(job_type, handler);
        }
        if by_type.is_empty() {
            return Err(WorkerError::NoHandler { queue: plan.name().clone() });
        }
        Ok(Handlers { plan, by_type })
    }
}

impl Handlers {
    /// Runs one job to its end. Never panics, whatever the handler does.
    pub(super) async fn run(&self, delivery: &JobDelivery) -> Ran {
        let Some(handler) = self.by_type.get(delivery.envelope.job_type()) else {
            return Ran::from(Outcome::DeadLetter { reason: self.no_handler(delivery) });
        };
        let context = JobContext::new(self.queue().clone(), delivery);
        // A panic may come from the payload's `Deserialize` and from the handler before its first await.
        let result = match catch(|| handler(delivery.envelope.payload(), context)) {
            Ok(Ok(run)) => match Caught::new(run).await {
                Ok(result) => result,
                Err(panic) => Err(JobError::panicked(panic)),
            },
            Ok(Err(reason)) => {
                return Ran { outcome: Outcome::DeadLetter { reason }, unreadable: true };
            }
            Err(panic) => Err(JobError::panicked(panic)),
        };
        Ran::from(match result {
            Ok(()) => Outcome::Done,
            Err(error) => error.into_outcome(),
        })
    }

    pub(super) const fn queue(&self) -> &QueueName {
        self.plan.name()
    }

    pub(super) const fn max_attempts(&self) -> NonZeroU32 {
        self.plan.retry().max_attempts()
    }

    fn no_handler(&self, delivery: &JobDelivery) -> String {
        let known: Vec<&str> = self.by_type.keys().map(JobType::as_str).collect();
        bounded(format_args!(
            "no handler for job type {:?}; this worker has {}",
            delivery.envelope.job_type().as_str(),
            known.join(", ")
        ))
    }
}
