//! A service built on queuey and one built on leveret, with the same queue and the same kind of job.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use leveret_testkit::rabbitmq::unique_name;
use leveret_tokio::{Client, Config, ConnectedClient, Granularity, Queue};
use queuey_core::{Backend, EnqueueOptions, FnHandler, Producer, QueueConfig, QueueSet};
use queuey_rabbitmq::{RabbitMqBackend, RabbitMqOptions};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::watched::{Stop, Watched};
use super::{PATIENCE, seconds};

/// How often a job runs before it is a dead letter.
pub(crate) const ATTEMPTS: u32 = 5;
/// How long it waits before it is tried again, and before a deferral is over. A shorter wait could be doubled by the
/// slow confirm of a busy machine, and then a job is there twice.
pub(crate) const WAIT: Duration = seconds(2);

/// The queue of one story. queuey knows a queue and its jobs by their types, so each story has types of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Emails<const STORY: usize>;

impl<const STORY: usize> Emails<STORY> {
    /// As leveret describes it.
    pub(crate) fn queue(self) -> Queue {
        let queue = Queue::new(QueueSet::name(&self)).expect("a good name");
        // One at a time, so that what waits on the queue is sorted by priority until it runs.
        queue.prefetch(1).retry(leveret_tokio::RetryPolicy::fixed(ATTEMPTS, WAIT))
    }
}

impl<const STORY: usize> QueueSet for Emails<STORY> {
    fn all() -> &'static [Self] {
        &[Self]
    }

    fn name(&self) -> &'static str {
        static NAMES: [OnceLock<String>; 16] = [const { OnceLock::new() }; 16];
        NAMES[STORY].get_or_init(|| unique_name("shop.emails"))
    }

    /// As queuey describes it.
    fn config(&self) -> QueueConfig {
        QueueConfig::new(self.name()).prefetch(1).retry(queuey_core::RetryPolicy::fixed(ATTEMPTS, WAIT))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SendEmail<const STORY: usize> {
    pub(crate) to: String,
}

impl<const STORY: usize> queuey_core::Job for SendEmail<STORY> {
    type Queue = Emails<STORY>;
    const NAME: &'static str = "send-email";
    const QUEUE: Emails<STORY> = Emails;
}

impl<const STORY: usize> leveret_tokio::Job for SendEmail<STORY> {
    const NAME: &'static str = "send-email";
}

pub(crate) fn email<const STORY: usize>(to: &str) -> SendEmail<STORY> {
    SendEmail { to: to.to_owned() }
}

/// What a handler was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) to: String,
    pub(crate) attempt: u32,
    pub(crate) deferrals: u32,
    pub(crate) correlation_id: Option<String>,
}

/// What a handler answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Done,
    Fail,
    Defer,
    GiveUp,
}

/// Notes the runs of a worker, and says when they are as many as were wanted.
#[derive(Clone)]
struct Notes {
    runs: Arc<Mutex<Vec<Run>>>,
    wanted: usize,
}

impl Notes {
    fn new(wanted: usize) -> Self {
        Self { runs: Arc::default(), wanted }
    }

    fn take_down(&self, run: Run) -> bool {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.push(run);
        runs.len() >= self.wanted
    }

    fn runs(&self) -> Vec<Run> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A service with queuey.
pub(crate) struct Theirs<const STORY: usize> {
    pub(crate) backend: Arc<RabbitMqBackend>,
}

impl<const STORY: usize> Theirs<STORY> {
    /// Connects and, as its producer does, declares the queue.
    pub(crate) async fn connect(uri: &str) -> Self {
        let backend = connect_queuey(uri, RabbitMqOptions::default()).await;
        backend.declare(&[Emails::<STORY>.config()]).await.expect("queuey finds the queues as it wants them");
        Self { backend }
    }

    pub(crate) async fn enqueue(&self, to: &str, options: EnqueueOptions) -> String {
        let producer: Producer<Emails<STORY>, RabbitMqBackend> =
            Producer::new_undeclared(self.backend.clone());
        let id = producer.enqueue_with(&email::<STORY>(to), options).await;
        id.expect("queuey publishes the job").to_string()
    }

    /// Runs so many jobs in a worker of queuey's, and ends it. There should be no more: it would begin them.
    pub(crate) async fn run(&self, count: usize, answer: Answer) -> Vec<Run> {
        let notes = Notes::new(count);
        let noted = notes.clone();
        let handler = FnHandler::new(move |job: SendEmail<STORY>, context: queuey_core::JobContext| {
            let run = Run {
                id: context.job_id.to_string(),
                to: job.to,
                attempt: context.attempt,
                deferrals: context.deferrals,
                correlation_id: context.correlation_id,
            };
            noted.take_down(run);
            async move {
                match answer {
                    Answer::Done => Ok(()),
                    Answer::Fail => Err(queuey_core::JobError::retryable_msg("no answer")),
                    Answer::Defer => Err(queuey_core::JobError::deferred(WAIT)),
                    Answer::GiveUp => Err(queuey_core::JobError::fatal_msg("no such address")),
                }
            }
        });
        let stop = Stop::new(count);
        let backend = Arc::new(Watched { backend: self.backend.clone(), stop: stop.clone() });
        let worker = queuey_core::Worker::builder(backend).handler(handler).concurrency(1);
        let worker = worker.build().await.expect("queuey finds the queues as it wants them");
        let handle = worker.handle();
        stop.give(handle.clone());
        let ended = tokio::time::timeout(PATIENCE, worker.run()).await;
        let ended = ended.unwrap_or_else(|_| panic!("queuey waits for a job; it has run {:?}", notes.runs()));
        ended.expect("the worker runs");
        assert_eq!(handle.settle_failures(), 0, "queuey settles what it has run");
        notes.runs()
    }

    pub(crate) async fn end(self) {
        self.backend.close().await.expect("it closes in good order");
    }
}

/// A service with leveret.
pub(crate) struct Ours<const STORY: usize> {
    client: ConnectedClient,
    pub(crate) queue: Queue,
}

impl<const STORY: usize> Deref for Ours<STORY> {
    type Target = ConnectedClient;

    fn deref(&self) -> &ConnectedClient {
        &self.client
    }
}

impl<const STORY: usize> Ours<STORY> {
    /// Connects; leveret declares the queue by itself.
    pub(crate) async fn connect(uri: &str) -> Self {
        Self::connect_to(uri, Emails::<STORY>.queue()).await
    }

    /// The same with another queue.
    pub(crate) async fn connect_to(uri: &str, queue: Queue) -> Self {
        Self { client: connect_leveret(uri, &queue).await, queue }
    }

    pub(crate) async fn enqueue(&self, to: &str, delay: Duration) -> String {
        let id = self.client.enqueue_in(&self.queue, &email::<STORY>(to), delay).await;
        id.expect("leveret publishes the job").to_string()
    }

    /// Runs so many jobs in a worker of leveret's, and ends it.
    pub(crate) async fn run(&self, count: usize, answer: Answer) -> Vec<Run> {
        let notes = Notes::new(count);
        let (stop, stopped) = oneshot::channel();
        let (noted, stop) = (notes.clone(), Mutex::new(Some(stop)));
        let handler = move |job: SendEmail<STORY>, context: leveret_tokio::JobContext| {
            let run = Run {
                id: context.job_id().to_string(),
                to: job.to,
                attempt: context.attempt(),
                deferrals: context.deferrals(),
                correlation_id: context.correlation_id().map(str::to_owned),
            };
            if noted.take_down(run)
                && let Some(stop) = stop.lock().unwrap_or_else(PoisonError::into_inner).take()
            {
                stop.send(()).expect("the worker listens");
            }
            async move {
                match answer {
                    Answer::Done => Ok(()),
                    Answer::Fail => Err(leveret_tokio::JobError::retry("no answer")),
                    Answer::Defer => Err(leveret_tokio::JobError::defer(WAIT)),
                    Answer::GiveUp => Err(leveret_tokio::JobError::fatal("no such address")),
                }
            }
        };
        let worker = self.client.worker(&self.queue).handler(handler);
        let ended = tokio::time::timeout(PATIENCE, worker.run_until(stopped)).await;
        let ended =
            ended.unwrap_or_else(|_| panic!("leveret waits for a job; it has run {:?}", notes.runs()));
        let report = ended.expect("the worker runs");
        let settled = report.done + report.retried + report.deferred + report.dead_lettered;
        assert!(settled >= count as u64, "leveret settles what it has run: {report:?}");
        notes.runs()
    }

    /// How many messages are ready on a queue, once they are as many.
    pub(crate) async fn wait_for_ready(&self, queue: &str, ready: u32) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.ready(queue).await != Some(ready) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert!(waited.await.is_ok(), "{queue} does not come to {ready} ready messages");
    }

    /// How many messages are ready on a queue; `None` where there is no such queue.
    pub(crate) async fn ready(&self, queue: &str) -> Option<u32> {
        self.client.inspect(queue).await.expect("the broker answers").map(|counts| counts.ready)
    }

    pub(crate) async fn end(self) {
        for name in [self.queue.name().as_short().clone(), self.queue.name().dead()] {
            self.client.delete(name).await.expect("it is deleted");
        }
        self.client.shutdown(seconds(5)).await.expect("the driver runs");
    }
}

pub(crate) async fn connect_queuey(uri: &str, options: RabbitMqOptions) -> Arc<RabbitMqBackend> {
    // What fails is to be seen at once.
    let options = options.connection_name("queuey").reconnect(None);
    Arc::new(RabbitMqBackend::with_options(uri, options).await.expect("the broker is there"))
}

pub(crate) async fn connect_leveret(uri: &str, queue: &Queue) -> ConnectedClient {
    let config = Config::from_uri(uri).expect("a good URI").connection_name("leveret");
    Client::new(config).queue(queue.clone()).connect().await.expect("the broker is there")
}

/// Steps of so many milliseconds.
pub(crate) fn steps(millis: u64) -> Granularity {
    Granularity::new(Duration::from_millis(millis)).expect("a good granularity")
}
