//! Reliable jobs on RabbitMQ, as values and state machines without I/O.
//!
//! This crate decides *what* must happen on the broker: in which queue a job waits and for how long, at which
//! priority it comes back, when the original may be acknowledged, what to do when a link is cut. It asks no clock,
//! opens no socket, spawns no task and draws no random number: time, bytes and a seed come in as arguments, and
//! bytes, deadlines and events come out. Most programs use it through `leveret-tokio`. Use it directly to run jobs
//! in an event loop of your own, to test rules by themselves, or to speak AMQP without a runtime.
//!
//! | you want | look at |
//! |---|---|
//! | the whole job queue, in your own loop | [`session`], whose documentation numbers the run loop |
//! | one AMQP 0-9-1 connection | [`connection`] |
//! | names and descriptions of queues and exchanges, and what is wrong with them | [`topology`] |
//! | rounding of delays, leases of hold queues | [`delay`] |
//! | when to try again | [`retry`] |
//! | the JSON of a job | [`envelope`] |
//! | one at a time per key, the rest side by side | [`lane`] |
//! | the order *publish, confirm, acknowledge* | [`settle`] |
//! | the values that all of these share | [`text`], [`table`], [`message`], [`time`], [`rng`] |
//!
//! # An example without a broker
//!
//! ```
//! use std::time::Duration;
//! use leveret_core::delay::Granularity;
//! use leveret_core::topology::QueueName;
//!
//! let emails = QueueName::new("myapp.emails")?;
//! let hold = Granularity::default().round_up(Duration::from_millis(2_300))?.expect("more than no delay");
//! assert_eq!(emails.hold(hold), "myapp.emails.deferred.3000");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod connection;
pub mod delay;
pub mod envelope;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod lane;
pub mod message;
pub mod retry;
pub mod rng;
pub mod session;
pub mod settle;
pub mod table;
pub mod text;
pub mod time;
pub mod topology;

mod duration;
mod wire;
