//! Running jobs: handlers, and the future that runs them.

mod dispatch;
mod error;
mod handlers;
mod report;
mod slot;

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use leveret_core::session::{Settled, SubscribeError, SubscriptionId};
use leveret_core::topology::Queue;

pub(crate) use dispatch::Dispatch;
use dispatch::{SlotId, Step};
pub use error::WorkerError;
use handlers::{Handlers, Registered};
pub use report::WorkerReport;
use slot::Slot;

use crate::handle::{Handle, Unusable};
use crate::job::{Job, JobContext, JobError};
use crate::panic::catch;
use crate::shared::End;

/// How long a worker that was told to stop waits for its running handlers, unless told otherwise.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

type Observer = Box<dyn Fn(&Settled) + Send + Sync>;

/// Runs the jobs of one queue. Made by [`ConnectedClient::worker`](crate::ConnectedClient::worker).
///
/// Every handler runs as a task of the runtime, so that jobs use all its threads; up to the queue's prefetch count
/// run at a time. A handler that blocks its thread holds up everything else on that thread, and on a runtime with
/// one thread that includes the heartbeats: give blocking work to the runtime's own threads for that.
///
/// What becomes of a job:
///
/// | the handler | the job |
/// |---|---|
/// | returns `Ok(())` | is acknowledged |
/// | returns [`JobError::retry`] or an error by `?`, or panics | is tried again as the queue's retry policy says, or dead-lettered when that was the last attempt |
/// | returns [`JobError::retry_after`] | the same, after a delay of its own |
/// | returns [`JobError::defer`] | comes back ahead of what waits, with no attempt used up |
/// | returns [`JobError::fatal`] | is dead-lettered |
/// | does not exist for its type, or cannot have its payload | is dead-lettered |
/// | is cut off by a crash or a lost connection | is delivered again |
///
/// `?` takes any error that implements [`std::error::Error`]. `anyhow::Error` and `Box<dyn Error + Send + Sync>` do
/// not: they take `.map_err(JobError::retry)?`.
#[must_use = "a worker does nothing until it is run"]
pub struct Worker {
    handle: Arc<Handle>,
    queue: Queue,
    handlers: Registered,
    observer: Option<Observer>,
    grace: Duration,
}

impl Worker {
    pub(crate) fn new(handle: Arc<Handle>, queue: Queue) -> Self {
        Self { handle, queue, handlers: Registered::default(), observer: None, grace: DEFAULT_GRACE }
    }

    /// Adds the handler of one job type. It is called once for each run of a job; what it needs of the program it
    /// clones for that run:
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use leveret_adapter::{Job, JobContext, JobError, Worker};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct SendEmail { to: String }
    /// # impl Job for SendEmail { const NAME: &'static str = "send-email"; }
    /// # struct Mailer;
    /// # impl Mailer { async fn deliver(&self, to: &str) -> std::io::Result<()> { Ok(()) } }
    /// # fn with_handler(worker: Worker) -> Worker {
    /// let mailer = Arc::new(Mailer);
    /// let worker = worker.handler(move |job: SendEmail, _: JobContext| {
    ///     let mailer = mailer.clone();
    ///     async move { mailer.deliver(&job.to).await.map_err(JobError::retry) }
    /// });
    /// # worker
    /// # }
    /// ```
    ///
    /// A second one for the same type is refused when the worker runs.
    pub fn handler<J, F, T>(mut self, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, JobContext) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        self.handlers.add(handler);
        self
    }

    /// Shows every settlement to `observer`: what became of each delivery, and where it waits.
    ///
    /// It is called in the task that runs [`Self::run`], one call at a time, in the order in which the deliveries
    /// were settled. It may block that task and nothing else. If it falls behind by more than 4,096 settlements,
    /// the further ones are only counted ([`WorkerReport::unobserved`]). A panic in it is logged.
    pub fn on_settled(mut self, observer: impl Fn(&Settled) + Send + Sync + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// How long running handlers may go on when the worker is told to stop. Default 30 s.
    ///
    /// A handler that needs longer is not interrupted, but its outcome comes too late: the broker delivers the job
    /// again.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Runs until the client is shut down or the subscription ends by itself.
    ///
    /// # Errors
    ///
    /// As [`Self::run_until`].
    ///
    /// # Cancel safety
    ///
    /// As [`Self::run_until`].
    pub async fn run(self) -> Result<WorkerReport, WorkerError> {
        self.run_until(pending::<()>()).await
    }

    /// Runs until `stop` is ready, whatever its output.
    ///
    /// Then no further job is started, what was delivered and has not started goes back to the broker, and running
    /// handlers have the [grace](Self::grace) to finish; what they decided is confirmed and acknowledged before
    /// this returns. While the connection is down they have the grace too, but what they decided comes too late
    /// ([`WorkerReport::stale`]): the broker delivers their jobs again.
    ///
    /// # Errors
    ///
    /// [`WorkerError`]: a worker that cannot start, and a subscription that the broker ended for good. A connection
    /// that is lost is none: the subscription comes back by itself.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the worker in the same way, in the background.
    pub async fn run_until<S: Future>(self, stop: S) -> Result<WorkerReport, WorkerError> {
        let running = Running::start(self)?;
        let mut stop = pin!(stop);
        let mut stopping = false;
        loop {
            let next = poll_fn(|cx| {
                if !stopping && stop.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Next::Stop);
                }
                running.poll_step(cx)
            });
            match next.await {
                Next::Stop => {
                    stopping = true;
                    running.stop();
                }
                Next::Step(Step::Spawn(slots)) => running.spawn(slots),
                Next::Step(Step::Observe(settled)) => running.observe(settled),
                Next::Step(Step::NoTasks) => return Err(WorkerError::NoTasks),
                Next::Step(Step::Ended(result)) => return result.map_err(WorkerError::Ended),
                Next::Failed(error) => return Err(error),
            }
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("queue", self.queue.name())
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// What the future of a worker does next.
enum Next {
    Stop,
    Step(Step),
    Failed(WorkerError),
}

/// A worker with a subscription. Dropping it ends the subscription.
struct Running {
    handle: Arc<Handle>,
    handlers: Arc<Handlers>,
    observer: Option<Observer>,
    subscription: SubscriptionId,
    grace: Duration,
}

impl Running {
    fn start(worker: Worker) -> Result<Self, WorkerError> {
        let Worker { handle, queue, handlers, observer, grace } = worker;
        let plan = match handle.known(&queue) {
            Ok(plan) => plan.clone(),
            Err(Unusable::DescribedOtherwise { queue, setting }) => {
                return Err(WorkerError::DifferentDescription { queue, setting });
            }
            Err(Unusable::Unknown(queue)) => {
                return Err(WorkerError::Subscribe(SubscribeError::UnknownQueue { queue }));
            }
        };
        let handlers = Arc::new(handlers.check(plan.clone())?);
        let subscribed = handle.shared.command(|state, now, _| {
            let subscription = state.session.subscribe(now, queue.name())?;
            state.workers.insert(subscription, Dispatch::new(plan, observer.is_some()));
            Ok(subscription)
        });
        let subscription = subscribed.map_err(WorkerError::Stopped)?.map_err(WorkerError::Subscribe)?;
        Ok(Self { handle, handlers, observer, subscription, grace })
    }

    fn poll_step(&self, cx: &Context<'_>) -> Poll<Next> {
        let polled = self.handle.shared.with(|state, wakes| {
            if let Some(worker) = state.workers.get_mut(&self.subscription)
                && let Poll::Ready(step) = worker.step(cx, wakes)
            {
                if matches!(step, Step::Ended(_)) {
                    state.workers.remove(&self.subscription);
                }
                return Poll::Ready(Next::Step(step));
            }
            match &state.end {
                None => Poll::Pending,
                Some(End::Stopped(stopped)) => Poll::Ready(Next::Failed(WorkerError::Stopped(*stopped))),
                Some(_) => Poll::Ready(Next::Failed(WorkerError::Closed)),
            }
        });
        polled.unwrap_or_else(|stopped| Poll::Ready(Next::Failed(WorkerError::Stopped(stopped))))
    }

    fn spawn(&self, slots: Range<SlotId>) {
        for id in slots {
            let slot = Slot::new(self.handle.clone(), self.handlers.clone(), self.subscription, id);
            self.handle.shared.spawn(slot.run());
        }
    }

    fn observe(&self, settled: VecDeque<Settled>) {
        let Some(observer) = &self.observer else { return };
        for settled in settled {
            if let Err(panic) = catch(|| observer(&settled)) {
                tracing::error!(target: "leveret", queue = %self.handlers.queue(), %panic, "the observer panicked");
            }
        }
    }

    fn stop(&self) {
        let stopped = self
            .handle
            .shared
            .command(|state, now, wakes| state.unsubscribe(now, self.subscription, self.grace, wakes));
        // Where nothing can be commanded any more, the next step says why.
        if let Ok(Some(running)) = stopped {
            let (queue, grace) = (self.handlers.queue(), self.grace);
            tracing::info!(target: "leveret", %queue, "stopping: {running} handlers have up to {grace:?}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let abandoned = self.handle.shared.with(|state, wakes| {
            let worker = state.workers.get_mut(&self.subscription);
            worker.map(|worker| worker.abandon(wakes)).is_some()
        });
        if abandoned == Ok(true) {
            self.stop();
        }
    }
}
