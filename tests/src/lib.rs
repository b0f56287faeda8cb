//! What the suites of leveret, and the tests of its users, run against.
//!
//! [`broker`] is an AMQP 0-9-1 server that behaves as RabbitMQ does in what a job queue relies on. It runs in
//! memory under virtual time, or on a TCP port: `cargo run -p leveret-testkit --bin broker -- --port 5673`.
//! [`world`] joins sessions to it in virtual time.
//! [`blocking`] is a connection of the core over a plain socket, in a loop that is short enough to be copied.
//! [`stranger`] publishes what another system might, `rabbitmq` (on Unix) finds or starts real RabbitMQ servers, and
//! [`skip`](skip::skip) is for a test that has nothing to run on.
//!
//! The crate lies in the folder `tests` of the workspace, and the suites that tell of the whole product in
//! `tests/tests`, as Cargo has it: `session` in virtual time, `jobs` on every broker,
//! `live` with a connection alone on real ones, `queuey` with a neighbour's
//! workers on the same queues, `structure` over the source.
//!
//! # Test your handlers
//!
//! Give each test a broker of its own, [`TcpBroker`](broker::tcp::TcpBroker) on port 0, and run the real client and
//! worker against it, with a granularity of 250 ms for quick retries. `Worker::on_settled` tells how each job ended,
//! and [`TcpBroker::with`](broker::tcp::TcpBroker::with) what lies in the dead-letter queue and why.
//! `tests/tests/your_handlers.rs` is such a test, to be copied; this is its core:
//!
//! ```
//! # use std::time::Duration;
//! # use leveret_testkit::broker::{BrokerConfig, tcp::TcpBroker};
//! # use leveret_tokio::{Client, Config, Granularity, Job, JobContext, JobError, Queue};
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct SendEmail { to: String }
//! # impl Job for SendEmail { const NAME: &'static str = "send-email"; }
//! # async fn send_email(_: SendEmail, _: JobContext) -> Result<(), JobError> {
//! #     Err(JobError::fatal(std::io::Error::other("no such address")))
//! # }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let broker = TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0")?;
//! let emails = Queue::new("emails")?.granularity(Granularity::new(Duration::from_millis(250))?);
//! let client = Client::new(Config::from_uri(&broker.uri())?).queue(emails.clone()).connect().await?;
//! client.enqueue(&emails, &SendEmail { to: "nobody".into() }).await?;
//!
//! let (settled, mut settlements) = tokio::sync::mpsc::unbounded_channel();
//! let worker = client.worker(&emails).handler(send_email).on_settled(move |event| {
//!     let _ = settled.send(event.settlement.clone());
//! });
//! let report = worker.run_until(settlements.recv()).await?;
//! assert_eq!(report.dead_lettered, 1);
//!
//! let dead = broker.with(|broker, _now| broker.queue("emails.dead")).ok_or("there is no such queue")?;
//! let reason = dead.messages[0].header("x-death-reason").ok_or("there is no such header")?;
//! assert_eq!(reason.as_str(), Some("no such address"));
//! # Ok(())
//! # }
//! ```
//!
//! A [`World`](world::World) runs no handlers. It is for what a queue's description does over hours and days.
#![forbid(unsafe_code)]

pub mod blocking;
pub mod broker;
#[cfg(unix)]
pub mod rabbitmq;
pub mod skip;
pub mod stranger;
pub mod world;
