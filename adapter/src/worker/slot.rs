//! A task that runs one job after another.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use leveret_core::session::{JobDelivery, SubscriptionId};
use leveret_core::settle::{DeliveryId, Outcome};

use super::dispatch::SlotId;
use super::handlers::{Handlers, Ran};
use crate::handle::Handle;

/// One of the places where a worker's jobs run.
///
/// It keeps the client alive, so that a job that is running when the last handle is dropped can be settled.
pub(super) struct Slot {
    handle: Arc<Handle>,
    handlers: Arc<Handlers>,
    subscription: SubscriptionId,
    id: SlotId,
    /// Whether the runtime has begun to run it.
    started: bool,
    /// The job that is running.
    holding: Option<DeliveryId>,
}

impl Slot {
    pub(super) const fn new(
        handle: Arc<Handle>,
        handlers: Arc<Handlers>,
        subscription: SubscriptionId,
        id: SlotId,
    ) -> Self {
        Self { handle, handlers, subscription, id, started: false, holding: None }
    }

    /// Runs jobs until no further one will come.
    pub(super) async fn run(mut self) {
        self.started = true;
        let mut next = self.wait().await;
        while let Some(job) = next {
            self.holding = Some(job.delivery);
            let ran = self.handlers.run(&job).await;
            self.holding = None;
            log(&self.handlers, &job, &ran.outcome);
            next = match self.settle(job.delivery, &ran) {
                Some(job) => Some(job),
                None => self.wait().await,
            };
        }
    }

    /// Waits for a job.
    async fn wait(&self) -> Option<JobDelivery> {
        poll_fn(|cx| self.poll_wait(cx)).await
    }

    fn poll_wait(&self, cx: &Context<'_>) -> Poll<Option<JobDelivery>> {
        let polled =
            self.handle.shared.with(|state, wakes| match state.workers.get_mut(&self.subscription) {
                Some(worker) if state.end.is_none() => worker.next(self.id, cx, wakes),
                _ => Poll::Ready(None),
            });
        polled.unwrap_or(Poll::Ready(None))
    }

    /// Reports the outcome of one job and takes the next, if one is there, under the same lock.
    fn settle(&self, delivery: DeliveryId, ran: &Ran) -> Option<JobDelivery> {
        let settled = self.handle.shared.command(|state, now, wakes| {
            let settled = state.session.settle(now, delivery, &ran.outcome);
            let next = state.workers.get_mut(&self.subscription).and_then(|worker| {
                if ran.unreadable && settled.is_ok() {
                    worker.unreadable(delivery);
                }
                worker.finish(wakes);
                worker.take()
            });
            (settled, next)
        });
        match settled {
            Ok((Ok(()), next)) => next,
            Ok((Err(error), next)) => {
                tracing::debug!(target: "leveret", queue = %self.handlers.queue(), %delivery, %error, "settled too late");
                next
            }
            Err(_stopped) => None,
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A task that is dropped while its job runs says nothing about the job: it has not failed.
        if let Some(delivery) = self.holding {
            let _ = self.handle.shared.command(|state, now, wakes| {
                if let Some(worker) = state.workers.get_mut(&self.subscription) {
                    worker.finish(wakes);
                }
                state.session.settle(now, delivery, &Outcome::Requeue)
            });
        }
        let _ = self.handle.shared.with(|state, wakes| {
            if let Some(worker) = state.workers.get_mut(&self.subscription) {
                worker.leave(self.id, self.started, wakes);
            }
        });
    }
}

/// Says what the handler answered. A dead letter is told by the driver, once the broker has it.
fn log(handlers: &Handlers, job: &JobDelivery, outcome: &Outcome) {
    macro_rules! event {
        ($level:ident, $($field:tt)*) => {
            tracing::$level!(
                target: "leveret",
                queue = %handlers.queue(),
                job_id = %job.envelope.job_id(),
                job_type = %job.envelope.job_type(),
                attempt = job.envelope.attempt(),
                $($field)*
            )
        };
    }
    match outcome {
        Outcome::Done => event!(debug, "job done"),
        Outcome::Retry { error, .. } => {
            let (attempt, max) = (job.envelope.attempt(), handlers.max_attempts());
            event!(warn, max_attempts = max, %error, "attempt {attempt} of {max} failed");
        }
        Outcome::Defer { delay, .. } => event!(debug, ?delay, "job deferred"),
        _ => {}
    }
}
