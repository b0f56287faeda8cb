//! `Connection` against the embedded broker, in virtual time: what someone does who uses nothing but the AMQP
//! client.
//!
//! Each file tells one part of the story: [`exchanges`], [`queues`], [`settling`], [`transactions`],
//! [`oversized`], [`channels`].

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on says why")]

mod channels;
mod exchanges;
mod oversized;
mod pair;
mod queues;
mod settling;
mod transactions;
