//! What the suites of leveret stand on.
//!
//! [`rabbitmq`] finds or starts real RabbitMQ servers.
#![forbid(unsafe_code)]

#[cfg(unix)]
pub mod rabbitmq;
