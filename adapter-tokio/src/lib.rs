//! Reliable jobs on RabbitMQ for programs on tokio.
//!
//! ```no_run
//! use leveret_tokio::{Client, Config, Job, JobContext, JobError, Queue, RetryPolicy};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct SendEmail {
//!     to: String,
//! }
//!
//! impl Job for SendEmail {
//!     const NAME: &'static str = "send-email";
//! }
//!
//! # async fn deliver(to: &str) -> Result<(), std::io::Error> { Ok(()) }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let emails = Queue::new("myapp.emails")?.prefetch(32).retry(RetryPolicy::exponential(5));
//! let client = Client::new(Config::from_uri("amqp://localhost")?).queue(emails.clone()).connect().await?;
//!
//! client.enqueue(&emails, &SendEmail { to: "ada@example.org".into() }).await?;
//!
//! client
//!     .worker(&emails)
//!     .handler(|job: SendEmail, _: JobContext| async move { deliver(&job.to).await.map_err(JobError::retry) })
//!     .run_until(tokio::signal::ctrl_c())
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! A client belongs to the runtime in which it is connected, which needs its I/O and time drivers
//! (`#[tokio::main]` has both). Shut the client down before that runtime ends.
#![forbid(unsafe_code)]

mod runtime;

pub use leveret_adapter::{
    Closed, Config, ConfigError, ConnectError, ConnectedClient, Endpoint, EnqueueError, Granularity, HoldTtl,
    Job, JobContext, JobError, JobId, JobSummary, JobType, LinkEnd, LinkError, NameError, Producer, Queue,
    QueueCounts, QueueError, QueueName, Reconnect, Refusal, RequestError, RetryPolicy, SessionConfig,
    Settled, Settlement, ShortString, Stopped, SubscribeError, SubscriptionError, UriError, Worker,
    WorkerError, WorkerReport,
};
pub use runtime::{Sleep, Tcp, Tokio};

/// A client on tokio that is not connected yet.
pub type Client = leveret_adapter::Client<Tokio>;
