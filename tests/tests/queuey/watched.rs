//! A backend of queuey's that ends its worker when enough jobs are settled.
//!
//! A worker that is told to stop drops its channel at once, and what is still running cannot be acknowledged: it is
//! delivered again. So a handler is too early to say it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use queuey_core::{
    Backend, Delivery, DeliveryStream, Envelope, QueueConfig, Result, WorkerHandle, async_trait,
};
use queuey_rabbitmq::RabbitMqBackend;
use tokio_stream::StreamExt as _;

/// Ends a worker at the last of so many settlements.
#[derive(Clone)]
pub(crate) struct Stop(Arc<Left>);

struct Left {
    left: AtomicUsize,
    worker: OnceLock<WorkerHandle>,
}

impl Stop {
    pub(crate) fn new(settlements: usize) -> Self {
        Self(Arc::new(Left { left: AtomicUsize::new(settlements), worker: OnceLock::new() }))
    }

    /// The worker to end, before it runs.
    pub(crate) fn give(&self, worker: WorkerHandle) {
        assert!(self.0.worker.set(worker).is_ok(), "a worker of its own for each");
    }

    fn settled(&self) {
        if self.0.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.worker.get().expect("it is given before it runs").shutdown();
        }
    }
}

/// The real backend, and a count of what is settled.
pub(crate) struct Watched {
    pub(crate) backend: Arc<RabbitMqBackend>,
    pub(crate) stop: Stop,
}

#[async_trait]
impl Backend for Watched {
    async fn declare(&self, queues: &[QueueConfig]) -> Result<()> {
        self.backend.declare(queues).await
    }

    async fn publish(&self, envelope: &Envelope, delay: Option<Duration>) -> Result<()> {
        self.backend.publish(envelope, delay).await
    }

    async fn defer(&self, envelope: &Envelope, delay: Duration) -> Result<()> {
        self.backend.defer(envelope, delay).await
    }

    async fn consume(&self, queue: &QueueConfig) -> Result<DeliveryStream> {
        let stop = self.stop.clone();
        let deliveries = self.backend.consume(queue).await?;
        Ok(Box::pin(deliveries.map(move |delivery| {
            let stop = stop.clone();
            delivery.map(|delivery| Box::new(WatchedDelivery { delivery, stop }) as Box<dyn Delivery>)
        })))
    }

    async fn close(&self) -> Result<()> {
        self.backend.close().await
    }
}

struct WatchedDelivery {
    delivery: Box<dyn Delivery>,
    stop: Stop,
}

#[async_trait]
impl Delivery for WatchedDelivery {
    fn envelope(&self) -> &Envelope {
        self.delivery.envelope()
    }

    async fn ack(self: Box<Self>) -> Result<()> {
        let settled = self.delivery.ack().await;
        self.stop.settled();
        settled
    }

    async fn dead_letter(self: Box<Self>, reason: &str) -> Result<()> {
        let settled = self.delivery.dead_letter(reason).await;
        self.stop.settled();
        settled
    }

    async fn retry(self: Box<Self>, next: Envelope, delay: Duration) -> Result<()> {
        let settled = self.delivery.retry(next, delay).await;
        self.stop.settled();
        settled
    }

    async fn defer(self: Box<Self>, next: Envelope, delay: Duration) -> Result<()> {
        let settled = self.delivery.defer(next, delay).await;
        self.stop.settled();
        settled
    }
}
