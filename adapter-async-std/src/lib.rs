//! Reliable jobs on RabbitMQ for programs on async-std.
//!
//! async-std is no longer developed, and its authors point to smol. This crate is for programs that are still on
//! it; its README says how to move.
#![forbid(unsafe_code)]

mod runtime;

pub use leveret_adapter::{
    Closed, Config, ConfigError, ConnectError, ConnectedClient, Endpoint, EnqueueError, Granularity, HoldTtl,
    Job, JobContext, JobError, JobId, JobSummary, JobType, LinkEnd, LinkError, NameError, Producer, Queue,
    QueueCounts, QueueError, QueueName, Reconnect, Refusal, RequestError, RetryPolicy, SessionConfig,
    Settled, Settlement, ShortString, Stopped, SubscribeError, SubscriptionError, UriError, Worker,
    WorkerError, WorkerReport,
};
pub use runtime::{AsyncStd, Sleep, Tcp};

/// A client on async-std that is not connected yet.
pub type Client = leveret_adapter::Client<AsyncStd>;
