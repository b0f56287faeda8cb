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
//!
//! What the types here show in their signatures, fields and errors has its name here too. The crate of a runtime
//! re-exports all of it, so that a program needs that crate alone.
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
mod stream;
mod text;
#[cfg(feature = "tls")]
mod tls;
mod waiters;
mod worker;

#[cfg(test)]
mod testing;

pub use client::{Client, ConnectedClient};
pub use config::Config;
pub use job::{Job, JobContext, JobError};
pub use leveret_core::connection::{
    ChannelId, ClientCertificate, CloseReason, CommandError, ConnectionConfig, ConnectionError, Credentials,
    ForeignPeer, HandshakeStage, Mechanism, MechanismsError, PlainPeer, ProtocolError, ProtocolVersion,
    TlsConfig, TlsFailure, TlsFile, TlsFileProblem, Uri, UriBuilder, UriError, UriList, UriListError,
    Verification,
};
pub use leveret_core::delay::{
    DelayTooLong, ExactDelaysError, Granularity, GranularityError, HoldKind, HoldTtl,
};
pub use leveret_core::envelope::{JobId, JobIdError, JobType, JobTypeError, PayloadError};
pub use leveret_core::retry::{Backoff, Exponential, RetryPolicy};
pub use leveret_core::session::{
    Closed, ConfigError, ConnectError, ConnectFailure, DeliveryId, Endpoint, EnqueueError, JobSummary,
    LinkEnd, LinkError, QueueCounts, Reconnect, Refusal, RequestError, SessionConfig, Settled, Settlement,
    SubscribeError, SubscriptionError, SubscriptionId,
};
pub use leveret_core::text::{ShortString, TextTooLong};
pub use leveret_core::time::{Instant, UnixMillis};
pub use leveret_core::topology::{
    HoldPlan, Mismatch, NameError, Queue, QueueDeclaration, QueueError, QueueName, QueuePlan, SuffixError,
    Suffixes,
};
pub use producer::Producer;
pub use runtime::{Runtime, Spawn, Timer, Transport};
pub use shared::Stopped;
pub use worker::{Worker, WorkerError, WorkerReport};
