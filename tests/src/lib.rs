//! What the suites of leveret, and the tests of its users, run against.
//!
//! [`broker`] is an AMQP 0-9-1 server that behaves as RabbitMQ does in what a job queue relies on. It runs in
//! memory under virtual time, or on a TCP port: `cargo run -p leveret-testkit --bin broker -- --port 5673`.
//! [`world`] joins sessions to it in virtual time.
//! [`stranger`] publishes what another system might, and `rabbitmq` (on Unix) finds or starts real RabbitMQ servers.
#![forbid(unsafe_code)]

pub mod broker;
#[cfg(unix)]
pub mod rabbitmq;
pub mod skip;
pub mod stranger;
pub mod world;
