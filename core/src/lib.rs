//! Reliable jobs and message handling on RabbitMQ, as values and state machines.
#![forbid(unsafe_code)]

pub mod connection;
pub mod message;
pub mod rng;
pub mod table;
pub mod text;
pub mod time;
pub mod topology;

mod wire;
