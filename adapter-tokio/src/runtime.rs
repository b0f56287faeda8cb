//! tokio's sockets, timers and tasks, as the adapter wants them.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use leveret_adapter::{Endpoint, Runtime, Spawn, Timer, Transport};
use leveret_core::time::Instant;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

/// Further away than this, a deadline is as good as never: about ten years. tokio's clock would overflow.
const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The tokio runtime in which it is used. Its clock is tokio's.
///
/// A test of a timer alone can pause that clock. A test with a socket cannot: once every task waits, a paused clock
/// jumps to the next timer, also where bytes are on their way, and the client gives the broker up.
#[derive(Clone, Copy, Debug)]
pub struct Tokio {
    origin: tokio::time::Instant,
}

impl Default for Tokio {
    fn default() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

impl Tokio {
    fn instant(self, at: Instant) -> tokio::time::Instant {
        self.origin + at.saturating_duration_since(Instant::ORIGIN).min(self.origin.elapsed() + FAR)
    }
}

impl Runtime for Tokio {
    type Transport = Tcp;
    type Timer = Sleep;

    async fn connect(&self, endpoint: &Endpoint) -> io::Result<Tcp> {
        // tokio resolves the host and tries its addresses in turn.
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Tcp(stream))
    }

    fn timer(&self, at: Instant) -> Sleep {
        Sleep { runtime: *self, sleep: Box::pin(tokio::time::sleep_until(self.instant(at))) }
    }

    fn now(&self) -> Instant {
        Instant::from_origin(self.origin.elapsed())
    }
}

impl Spawn for Tokio {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(task)),
            // Whoever waits for the task learns that it was dropped.
            Err(error) => tracing::error!(target: "leveret", %error, "no task can run here"),
        }
    }
}

/// A TCP connection.
#[derive(Debug)]
pub struct Tcp(TcpStream);

impl Transport for Tcp {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_buf(&mut *input) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, output)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A timer.
#[derive(Debug)]
pub struct Sleep {
    runtime: Tokio,
    sleep: Pin<Box<tokio::time::Sleep>>,
}

impl Timer for Sleep {
    fn reset(&mut self, at: Instant) {
        self.sleep.as_mut().reset(self.runtime.instant(at));
    }

    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests;
