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
//! # What a handler says
//!
//! | the handler | the job |
//! |---|---|
//! | returns `Ok(())` | is acknowledged |
//! | returns [`JobError::retry`] or an error by `?`, or panics | is tried again as the queue's [`RetryPolicy`] says; after the last attempt it is a dead letter |
//! | returns [`JobError::retry_after`] | the same, after a delay of its own |
//! | returns [`JobError::defer`] | comes back ahead of what waits, with no attempt used up |
//! | returns [`JobError::fatal`] | is a dead letter |
//! | returns [`JobError::discard`] | is acknowledged and gone; log, observer and report tell |
//! | does not exist for this type of job, or cannot read the payload | is a dead letter, and nothing runs |
//!
//! [`Worker`] has the rest, [`Worker::handler`] shows how a handler shares state with the program, and [`JobError`]
//! what to write for `anyhow::Error`.
//!
//! # The runtime
//!
//! A client belongs to the runtime in which it is connected, which needs its I/O and time drivers
//! (`#[tokio::main]` has both). Shut the client down before that runtime ends.
//!
//! # TLS
//!
//! `amqps://` needs the cargo feature `tls`, which is off by default. The server's certificate is checked against the
//! system's authorities, or those of `cacertfile` in the URI; `certfile` and `keyfile` are for a certificate of ours:
//! [`TlsConfig`] has the rest. Why there is no TLS is told by a [`TlsFailure`].
//!
//! # Logs
//!
//! Everything is logged through `tracing` with target `leveret`, never with a payload or a password; the errors that
//! handlers return are. ERROR is a dead letter, or something that does not come back by itself; WARN a failed attempt
//! or a lost connection; INFO a connection, and a worker that stops.
//!
//! # Tests
//!
//! `leveret-testkit` has a broker that a test starts on a port of its own. A small granularity makes waits short:
//!
//! ```
//! use std::time::Duration;
//! use leveret_testkit::broker::{BrokerConfig, tcp::TcpBroker};
//! use leveret_tokio::{Client, Config, Granularity, Queue};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let broker = TcpBroker::start(BrokerConfig::default(), ("127.0.0.1", 0))?;
//! let emails = Queue::new("myapp.emails")?.granularity(Granularity::new(Duration::from_millis(250))?);
//! let client = Client::new(Config::from_uri(&broker.uri())?).queue(emails.clone()).connect().await?;
//! // Enqueue, run a worker, then look:
//! assert_eq!(client.inspect(emails.name().dead()).await?.map(|dead| dead.ready), Some(0));
//! # client.shutdown(Duration::ZERO).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A paused tokio clock does not help there: see [`Tokio`].
#![forbid(unsafe_code)]

mod runtime;

// All of it, so that a program needs no other crate to name what it meets. `Client` below takes the place of theirs.
#[doc(inline)]
pub use leveret_adapter::*;
#[doc(no_inline)]
pub use leveret_core;
pub use runtime::{Sleep, Tcp, Tokio};

/// A client on tokio that is not connected yet.
pub type Client = leveret_adapter::Client<Tokio>;
