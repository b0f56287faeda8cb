//! Real RabbitMQ servers for the suites.
//!
//! [`brokers`] gives those that every test of a process shares. Where it takes them from, first match:
//!
//! 1. `LEVERET_AMQP_URLS`: AMQP URIs of running brokers, separated by commas; `none` for no broker at all.
//! 2. A Docker engine, where it answers and the feature `testcontainers` is on: one container of the image that
//!    `LEVERET_RABBITMQ_IMAGE` names, `rabbitmq:4` by default.
//! 3. This machine: its own `rabbitmq-server`, and the RabbitMQ 4 that `LEVERET_RABBITMQ4_ROOT` points to (a
//!    directory that `tests/rabbitmq4.sh install` made). Each is started on free ports of 127.0.0.1, with its own
//!    node name, cookie and directories, and is killed and cleaned away when the process ends, however it ends.
//!
//! Without any, tests that need one ([`needed_brokers`]) say that they are skipped; with `LEVERET_REQUIRE_BROKER=1`
//! that is an error. A broker that is there and does not work is always an error.
//!
//! A test of TLS starts servers of its own, with certificates that it has made: [`RealBroker::start_with_tls`].
//!
//! Tests share the servers, so a test uses a virtual host of its own ([`RealBroker::vhost`]) or names that nobody
//! else has ([`unique_name`]).

mod broker;
#[cfg(feature = "testcontainers")]
mod container;
mod error;
mod find;
mod host;
mod installation;
mod leash;
mod probe;
mod server;
#[cfg(test)]
mod tests;
mod tls;

pub use broker::RealBroker;
pub use error::RealBrokerError;
pub use find::{brokers, needed_brokers, needed_installations, our_brokers};
pub use host::unique_name;
pub use installation::Installation;
pub use tls::TlsListener;
