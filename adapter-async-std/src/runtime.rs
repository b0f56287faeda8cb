//! async-std's sockets, timers and tasks, as the adapter wants them.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_std::io::{Read, Write};
use async_std::net::TcpStream;
use async_std::task;
use bytes::BytesMut;
use leveret_adapter::{Endpoint, Runtime, Spawn, Timer, Transport};
use leveret_core::time::Instant;

/// async-std's global runtime, with a clock that starts when this is made.
#[derive(Clone, Copy, Debug)]
pub struct AsyncStd {
    origin: std::time::Instant,
}

impl Default for AsyncStd {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the monotonic clock on async-std")]
    fn default() -> Self {
        Self { origin: std::time::Instant::now() }
    }
}

impl Runtime for AsyncStd {
    type Transport = Tcp;
    type Timer = Sleep;

    async fn connect(&self, endpoint: &Endpoint) -> io::Result<Tcp> {
        // async-std resolves the host and tries its addresses in turn.
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Tcp(stream))
    }

    fn timer(&self, at: Instant) -> Sleep {
        let mut timer = Sleep { runtime: *self, sleep: Box::pin(std::future::pending()) };
        timer.reset(at);
        timer
    }

    fn now(&self) -> Instant {
        Instant::from_origin(self.origin.elapsed())
    }
}

impl Spawn for AsyncStd {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(task::spawn(task)); // Dropping the handle detaches the task.
    }
}

/// A TCP connection.
#[derive(Debug)]
pub struct Tcp(TcpStream);

impl Transport for Tcp {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        // async-std reads into initialised memory only, and zeroing much for a read that finds little is a waste.
        const ROOM: usize = 16 << 10;
        let filled = input.len();
        input.resize(input.capacity().min(filled + ROOM), 0);
        let read = Pin::new(&mut self.0).poll_read(cx, &mut input[filled..]);
        let got = match &read {
            Poll::Ready(Ok(count)) => *count,
            _ => 0,
        };
        input.truncate(filled + got);
        read
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, output)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx)
    }
}

/// A timer.
pub struct Sleep {
    runtime: AsyncStd,
    sleep: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Timer for Sleep {
    fn reset(&mut self, at: Instant) {
        // About ten years are as good as never, and no clock overflows.
        const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
        let left = at.saturating_duration_since(self.runtime.now()).min(FAR);
        self.sleep = Box::pin(task::sleep(left));
    }

    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().poll(cx)
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
