//! The client: from a configuration to handles.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use leveret_core::envelope::JobId;
use leveret_core::session::{Closed, ConnectError, EnqueueError, QueueCounts, RequestError, RequestId};
use leveret_core::text::ShortString;
use leveret_core::time::Instant;
use leveret_core::topology::Queue;

use crate::config::Config;
use crate::driver::Driver;
use crate::handle::{Handle, WhenFull};
use crate::job::Job;
use crate::producer::{self, Producer};
use crate::runtime::Spawn;
use crate::shared::{Answer, End, State, Stopped};
use crate::waiters::Waiters;
use crate::worker::Worker;

/// A client that is not connected yet: where to connect, and the queues that it may use.
#[derive(Clone, Debug)]
#[must_use = "a client does nothing until it is connected"]
pub struct Client<R> {
    runtime: R,
    config: Config,
}

impl<R: Spawn + Default> Client<R> {
    /// A client on the current runtime. Does no I/O.
    pub fn new(config: Config) -> Self {
        Self::on(R::default(), config)
    }
}

impl<R: Spawn> Client<R> {
    /// A client on `runtime`. Does no I/O.
    pub const fn on(runtime: R, config: Config) -> Self {
        Self { runtime, config }
    }

    /// One more queue that this client may use. It is declared when the client connects, and again when it has to
    /// connect anew.
    pub fn queue(mut self, queue: Queue) -> Self {
        self.config.session_mut().queues.push(queue);
        self
    }

    /// Connects, logs in and declares the queues; answers when that is done.
    ///
    /// The connection over which jobs are consumed is opened by the first worker. A connection that is lost later
    /// comes back by itself.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] when the configuration cannot be used, no endpoint can be connected to within its bound, the
    /// login is refused, or the broker refuses a queue. Nothing is left open then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what was opened.
    pub async fn connect(self) -> Result<ConnectedClient, ConnectError> {
        let Self { runtime, config } = self;
        let config = config.into_session();
        let handle = Handle::new(config, runtime.clone()).map_err(ConnectError::Config)?;
        let shared = handle.shared.clone();
        let client = ConnectedClient::new(Arc::new(handle));
        // It cannot have stopped yet.
        let _ = shared.command(|state, now, _| {
            state.connecting.add(());
            state.session.connect(now);
        });
        let connected = Answer::new(&shared, |state| &mut state.connecting, ());
        runtime.spawn(Driver::new(runtime.clone(), shared));
        match connected.await {
            Ok(Some(result)) => result.map(|()| client),
            Ok(None) | Err(_) => Err(ConnectError::Closed),
        }
    }
}

/// A connected client. Clones are handles on the same connections, for any task and thread.
///
/// When the last handle, producer and running worker is dropped, the client closes its connections in the
/// background; [`shutdown`](Self::shutdown) does the same in the foreground and says how it went.
#[derive(Clone)]
pub struct ConnectedClient {
    handle: Arc<Handle>,
}

impl ConnectedClient {
    pub(crate) const fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// Puts a job on its queue, and answers with its id when the broker has routed and confirmed it.
    ///
    /// The job is encoded by this call; nothing is sent before the future is polled. While too many jobs wait for
    /// the broker, it waits for room.
    ///
    /// # Errors
    ///
    /// [`EnqueueError`] says for each cause whether the job is surely not enqueued or nobody knows.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it was polled has sent nothing. After that the job may be enqueued or not.
    pub fn enqueue<J: Job>(
        &self,
        queue: &Queue,
        job: &J,
    ) -> impl Future<Output = Result<JobId, EnqueueError>> + Send + use<J> {
        producer::enqueue(&self.handle, queue, job, Duration::ZERO, WhenFull::Wait)
    }

    /// The same, but the job does not run before `delay` has passed, counted from when the broker took it.
    ///
    /// The delay is rounded up to the queue's granularity. At most about 24.8 days.
    ///
    /// # Errors
    ///
    /// As [`Self::enqueue`], and [`EnqueueError::DelayTooLong`]: a delay is never shortened.
    ///
    /// # Cancel safety
    ///
    /// As [`Self::enqueue`].
    pub fn enqueue_in<J: Job>(
        &self,
        queue: &Queue,
        job: &J,
        delay: Duration,
    ) -> impl Future<Output = Result<JobId, EnqueueError>> + Send + use<J> {
        producer::enqueue(&self.handle, queue, job, delay, WhenFull::Wait)
    }

    /// As [`Self::enqueue`], but it does not wait for room.
    ///
    /// # Errors
    ///
    /// As [`Self::enqueue`], and [`EnqueueError::Full`] when too many jobs wait for the broker.
    ///
    /// # Cancel safety
    ///
    /// As [`Self::enqueue`].
    pub fn try_enqueue<J: Job>(
        &self,
        queue: &Queue,
        job: &J,
    ) -> impl Future<Output = Result<JobId, EnqueueError>> + Send + use<J> {
        producer::enqueue(&self.handle, queue, job, Duration::ZERO, WhenFull::Fail)
    }

    /// A handle that enqueues to one queue.
    ///
    /// # Errors
    ///
    /// [`EnqueueError::UnknownQueue`] and [`EnqueueError::DifferentDescription`]: the queue is not one that this
    /// client was given.
    pub fn producer(&self, queue: &Queue) -> Result<Producer, EnqueueError> {
        Producer::new(self.handle.clone(), queue)
    }

    /// A worker for one queue. It does nothing before it is [run](Worker::run).
    pub fn worker(&self, queue: &Queue) -> Worker {
        Worker::new(self.handle.clone(), queue.clone())
    }

    /// How much is in a queue; `None` where there is no such queue. Any queue of the virtual host can be asked
    /// about, also a dead-letter or hold queue. Asking creates nothing.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    ///
    /// # Cancel safety
    ///
    /// Nothing depends on the answer.
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Option<QueueCounts>, RequestError> {
        let name = short(name.as_ref())?;
        self.request(|state, now| state.session.inspect(now, &name), |state| &mut state.inspections).await
    }

    /// Deletes a queue with everything in it, and answers with how many messages were ready. A queue that does not
    /// exist counts as deleted.
    ///
    /// # Errors
    ///
    /// [`RequestError`].
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it was polled has asked for nothing. After that the queue may be deleted or
    /// not.
    pub async fn delete(&self, name: impl AsRef<str>) -> Result<u32, RequestError> {
        let name = short(name.as_ref())?;
        self.request(|state, now| state.session.delete_queue(now, &name), |state| &mut state.deletions).await
    }

    /// Ends the client in order, and answers when it has ended.
    ///
    /// Workers start no further job, and what they have not started goes back to the broker. Running handlers have
    /// `grace` to finish; what they enqueue until then and what they decided is confirmed and acknowledged. Once none is
    /// running, new jobs are refused and the connections are closed. What is left after the grace the broker delivers
    /// again. While the connection is down, handlers have the grace all the same, but what they decided is lost and
    /// they can enqueue nothing.
    ///
    /// A second call waits for the same end. Every other handle of this client answers that it is closed from then on.
    ///
    /// # Errors
    ///
    /// [`Stopped`] when the client's driver was torn away before it could close anything.
    ///
    /// # Cancel safety
    ///
    /// The client ends also when the future is dropped after it was polled.
    pub async fn shutdown(&self, grace: Duration) -> Result<Closed, Stopped> {
        let shared = &self.handle.shared;
        let ended = shared.command(|state, now, wakes| match &state.end {
            Some(End::Closed(closed)) => Err(closed.clone()),
            _ => {
                let running = state.shut_down(now, grace, wakes);
                let ticket = state.ticket();
                state.closing.add(ticket);
                Ok((running, Answer::new(shared, |state| &mut state.closing, ticket)))
            }
        });
        match ended? {
            Err(closed) => Ok(closed),
            Ok((running, answer)) => {
                tracing::info!(target: "leveret", "shutting down: {running} handlers have up to {grace:?}");
                answer.await?.ok_or(Stopped::DriverGone)
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &crate::shared::Shared {
        &self.handle.shared
    }

    async fn request<T>(
        &self,
        ask: impl FnOnce(&mut State, Instant) -> Result<RequestId, RequestError>,
        table: fn(&mut State) -> &mut Waiters<RequestId, Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        let shared = &self.handle.shared;
        let asked = shared.command(|state, now, _| {
            let request = ask(state, now)?;
            table(state).add(request);
            Ok(Answer::new(shared, table, request))
        });
        let answer = asked.unwrap_or(Err(RequestError::Closed))?;
        answer.await.ok().flatten().unwrap_or(Err(RequestError::Closed))
    }
}

fn short(name: &str) -> Result<ShortString, RequestError> {
    ShortString::new(name).map_err(|too_long| RequestError::NameTooLong { bytes: too_long.bytes })
}

impl fmt::Debug for ConnectedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectedClient").field("queues", &self.handle.queues.keys()).finish()
    }
}
