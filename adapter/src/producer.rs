//! Enqueueing jobs of typed payloads.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use leveret_core::envelope::{JobId, JobType, RawPayload};
use leveret_core::session::{EnqueueError, NewJob};
use leveret_core::topology::{Queue, QueueName};

use crate::handle::{Handle, Unusable, WhenFull};
use crate::job::Job;

/// Enqueues to one queue. Made by [`ConnectedClient::producer`](crate::ConnectedClient::producer). Clones share the
/// client's connection, and one costs two reference counts.
#[derive(Clone)]
pub struct Producer {
    handle: Arc<Handle>,
    queue: QueueName,
}

impl Producer {
    pub(crate) fn new(handle: Arc<Handle>, queue: &Queue) -> Result<Self, EnqueueError> {
        known(&handle, queue)?;
        Ok(Self { handle, queue: queue.name().clone() })
    }

    /// The queue that this enqueues to.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// Puts a job on the queue, as [`ConnectedClient::enqueue`](crate::ConnectedClient::enqueue) does.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub fn enqueue<J: Job>(
        &self,
        job: &J,
    ) -> impl Future<Output = Result<JobId, EnqueueError>> + Send + use<J> {
        self.send(job, Duration::ZERO, WhenFull::Wait)
    }

    /// The same after a delay, as [`ConnectedClient::enqueue_in`](crate::ConnectedClient::enqueue_in) does.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub fn enqueue_in<J: Job>(
        &self,
        job: &J,
        delay: Duration,
    ) -> impl Future<Output = Result<JobId, EnqueueError>> + Send + use<J> {
        self.send(job, delay, WhenFull::Wait)
    }

    /// The same without waiting for room, as [`ConnectedClient::try_enqueue`](crate::ConnectedClient::try_enqueue)
    /// does.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub fn try_enqueue<J: Job>(
        &self,
        job: &J,
    ) -> impl Future<Output = Result<JobId, EnqueueError>> + Send + use<J> {
        self.send(job, Duration::ZERO, WhenFull::Fail)
    }

    fn send<J: Job>(
        &self,
        job: &J,
        delay: Duration,
        when_full: WhenFull,
    ) -> impl Future<Output = Result<JobId, EnqueueError>> + Send + use<J> {
        let encoded = encode(job, delay);
        let Self { handle, queue } = self.clone();
        async move { handle.enqueue(&queue, encoded?, when_full).await }
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// Enqueues to any queue of the client.
///
/// The job is encoded before the future is made, so that the future borrows nothing and can be spawned.
pub(crate) fn enqueue<J: Job>(
    handle: &Arc<Handle>,
    queue: &Queue,
    job: &J,
    delay: Duration,
    when_full: WhenFull,
) -> impl Future<Output = Result<JobId, EnqueueError>> + Send + use<J> {
    let encoded = known(handle, queue).and_then(|()| encode(job, delay));
    let (handle, queue) = (handle.clone(), queue.name().clone());
    async move { handle.enqueue(&queue, encoded?, when_full).await }
}

fn known(handle: &Handle, queue: &Queue) -> Result<(), EnqueueError> {
    match handle.known(queue) {
        Ok(_) => Ok(()),
        Err(Unusable::DescribedOtherwise { queue, setting }) => {
            Err(EnqueueError::DifferentDescription { queue, setting })
        }
        Err(Unusable::Unknown(queue)) => Err(EnqueueError::UnknownQueue { queue }),
    }
}

fn encode<J: Job>(job: &J, delay: Duration) -> Result<NewJob, EnqueueError> {
    let job_type = const { JobType::from_static(J::NAME) };
    let payload = RawPayload::from_serialize(job).map_err(EnqueueError::Payload)?;
    Ok(NewJob::new(job_type, payload).after(delay))
}
