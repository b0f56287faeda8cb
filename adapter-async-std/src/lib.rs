//! Reliable jobs on RabbitMQ for programs on async-std.
//!
//! async-std is no longer developed, and its authors point to smol. This crate is for programs that are still on
//! it; its README says how to move. `amqps://` needs the cargo feature `tls`, which is off by default: [`TlsConfig`] says
//! what it can be told.
#![forbid(unsafe_code)]

mod runtime;

// All of it, so that a program needs no other crate to name what it meets. `Client` below takes the place of theirs.
#[doc(inline)]
pub use leveret_adapter::*;
#[doc(no_inline)]
pub use leveret_core;
pub use runtime::{AsyncStd, Sleep, Tcp};

/// A client on async-std that is not connected yet.
pub type Client = leveret_adapter::Client<AsyncStd>;
