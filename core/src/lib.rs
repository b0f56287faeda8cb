//! Reliable jobs and message handling on RabbitMQ, as values and state machines.
#![forbid(unsafe_code)]

pub mod connection;
pub mod delay;
pub mod envelope;
pub mod message;
pub mod retry;
pub mod rng;
pub mod session;
pub mod settle;
pub mod table;
pub mod text;
pub mod time;
pub mod topology;

mod wire;
