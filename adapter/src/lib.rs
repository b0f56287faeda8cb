//! What every runtime shares in leveret: handles, workers and the driver, generic over a [`Runtime`].
//!
//! Programs use the crate of their runtime, such as `leveret-tokio`, which gives the types here a runtime. This crate
//! is for those who bring leveret to another one: implement [`Runtime`], [`Spawn`], [`Transport`] and [`Timer`], and
//! [`Client`] works there.
//!
//! All decisions are made in `leveret-core`. What is here moves bytes, wakes tasks and runs handlers:
//!
//! | | |
//! |---|---|
//! | [`Client`], [`Config`] | from a configuration to a connection |
//! | [`ConnectedClient`], [`Producer`] | enqueue jobs |
//! | [`Worker`], [`Job`], [`JobContext`], [`JobError`] | run jobs |
//! | [`Runtime`], [`Spawn`], [`Transport`], [`Timer`] | what a runtime gives |
#![forbid(unsafe_code)]

mod client;
mod config;
mod driver;
mod handle;
mod job;
mod panic;
mod producer;
mod runtime;
mod shared;
mod text;
mod waiters;
mod worker;

#[cfg(test)]
mod testing;

pub use client::{Client, ConnectedClient};
pub use config::Config;
pub use job::{Job, JobContext, JobError};
pub use leveret_core::connection::UriError;
pub use leveret_core::delay::{Granularity, HoldTtl};
pub use leveret_core::envelope::{JobId, JobType};
pub use leveret_core::retry::RetryPolicy;
pub use leveret_core::session::{
    Closed, ConfigError, ConnectError, Endpoint, EnqueueError, JobSummary, LinkEnd, LinkError, QueueCounts,
    Reconnect, Refusal, RequestError, SessionConfig, Settled, Settlement, SubscribeError, SubscriptionError,
};
pub use leveret_core::text::ShortString;
pub use leveret_core::topology::{NameError, Queue, QueueError, QueueName};
pub use producer::Producer;
pub use runtime::{Runtime, Spawn, Timer, Transport};
pub use shared::Stopped;
pub use worker::{Worker, WorkerError, WorkerReport};
