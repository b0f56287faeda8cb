//! What leveret needs of a runtime: sockets, timers, clocks, and a place for tasks.
//!
//! An adapter for another runtime implements these four traits and nothing else: no decision is made here.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use bytes::BytesMut;
use leveret_core::session::Endpoint;
use leveret_core::time::{Instant, UnixMillis};

/// Sockets, timers and clocks.
///
/// A clone stands for the same runtime: its clock has the same origin.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// A connected byte stream.
    type Transport: Transport;
    /// A timer.
    type Timer: Timer;

    /// Resolves the host anew, tries its addresses in turn, and gives the first that connects.
    ///
    /// No bound of its own is needed: the driver drops the future when the attempt has taken too long. Small
    /// writes must leave at once (`TCP_NODELAY`).
    fn connect(&self, endpoint: &Endpoint) -> impl Future<Output = io::Result<Self::Transport>> + Send;

    /// A timer that expires at `at`, or at once where that is past.
    fn timer(&self, at: Instant) -> Self::Timer;

    /// The moment on a monotonic clock. The origin is the runtime's choice, the same for all clones.
    fn now(&self) -> Instant;

    /// The wall clock: written into messages, and compared with [`Self::now`] to notice that the machine has slept. No
    /// delay is computed from it. It is the same on every runtime but a simulated one.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the wall clock")]
    fn wall(&self) -> UnixMillis {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock that is set to before 1970 counts as 1970.
        UnixMillis(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
    }

    /// 128 bits that differ from process to process and from call to call; job ids and the spread of pauses come
    /// from them. A simulation gives the same ones again.
    fn seed(&self) -> u128 {
        process_seed()
    }
}

/// A runtime that runs tasks: the driver, and the handlers of jobs.
pub trait Spawn: Runtime {
    /// Runs `task` to its end, or drops it when the runtime ends or is not there.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);
}

/// A connected byte stream. After an error or the end of the stream it is dropped.
pub trait Transport: Send + Unpin + 'static {
    /// Appends what has arrived to `input`, at most its spare capacity, which is never empty. Answers how many
    /// bytes that were; 0 is the end of the stream.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>>;

    /// Writes the front of `output` and answers how many bytes that were.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn poll_write(&mut self, cx: &mut Context<'_>, output: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;

    /// Passes on what the transport itself holds back.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ends our direction of the stream.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// One timer that is set again and again.
pub trait Timer: Send + Unpin + 'static {
    /// Expires at `at` from now on, whatever it was set to.
    fn reset(&mut self, at: Instant);

    /// Ready at or after the moment that was set, never before.
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// 128 bits from the keys that the standard library draws from the operating system for its hash maps. It cannot
/// fail, and it needs no further dependency.
fn process_seed() -> u128 {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    half() << 64 | half()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seeds_differ_in_both_halves() {
        let (one, other) = (process_seed(), process_seed());
        assert_ne!(one >> 64, other >> 64);
        assert_ne!(one << 64, other << 64);
        assert_ne!(one >> 64, one << 64 >> 64);
    }
}
