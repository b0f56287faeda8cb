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
//! # TLS
//!
//! The feature `tls`, off by default, connects to `amqps://`: TLS 1.2 and 1.3 by rustls with ring's algorithms, over the
//! [`Transport`] of any runtime. Without it an endpoint that asks for TLS is refused with [`TlsFailure::NotBuilt`] before
//! anything is connected to.
//!
//! * The server's certificate is checked against the authorities in [`TlsConfig::ca_file`], or else the system's (those
//!   that OpenSSL would find, also by the environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR`), and for the host, or
//!   else [`TlsConfig::server_name`]. A name is sent to the server (SNI), an address never. Lists of revoked certificates
//!   are not looked at.
//! * Agreeing on TLS counts towards [`Config::connect_timeout`], with the socket and the login.
//! * Files are read when a client first connects to an endpoint that names them, and not again by that client, on the
//!   thread that polls it: they are small. What is wrong with one is a [`TlsFailure::File`] and permanent. What a server
//!   shows or refuses is not permanent, as it can change: a client that was connected tries again.
//! * With TLS 1.3 a server looks at the client's certificate when TLS is up for the client already, so that a refusal comes
//!   as [`LinkError::Socket`] with the words of a [`TlsFailure::Refused`].
//!
//! # Names
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
    Finding, HoldPlan, Mismatch, NameError, Problem, Queue, QueueDeclaration, QueueError, QueueName,
    QueuePlan, Severity, Subject, SuffixError, Suffixes,
};
pub use producer::Producer;
pub use runtime::{Runtime, Spawn, Timer, Transport};
pub use shared::Stopped;
pub use worker::{Worker, WorkerError, WorkerReport};
