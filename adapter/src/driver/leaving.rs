//! A socket that the session is done with: what is left is written, within a bound.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use leveret_core::connection::SendBuf;
use leveret_core::time::Instant;

use super::link::{Open, write_some};
use crate::runtime::Transport;

/// How long a peer has to take what is left: a last `close-ok` is worth a moment, and a peer that does not read is
/// not worth more.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// Reads and writes per turn.
const STEPS_PER_TURN: usize = 16;

/// How much of what is thrown away is read at once.
const DISCARD_CHUNK: usize = 4096;

pub(super) struct Leaving<T> {
    transport: T,
    output: SendBuf,
    discarded: BytesMut,
    closed: bool,
    deadline: Instant,
}

impl<T: Transport> Leaving<T> {
    pub(super) fn new(socket: Open<T>, now: Instant) -> Self {
        Self {
            transport: socket.transport,
            output: socket.output,
            discarded: BytesMut::new(),
            closed: false,
            deadline: now + LEAVE_WITHIN,
        }
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Ready when it can be dropped.
    pub(super) fn drive(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if now >= self.deadline {
            return Poll::Ready(());
        }
        for _ in 0..STEPS_PER_TURN {
            let step = if self.output.has_remaining() {
                write_some(&mut self.transport, &mut self.output, cx).map(|written| written.is_err())
            } else if !self.closed {
                self.poll_close(cx)
            } else {
                self.poll_peer_closed(cx)
            };
            match step {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(true) => return Poll::Ready(()),
                Poll::Ready(false) => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ready with whether there is no point in going on.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let flushed = self.transport.poll_flush(cx);
        match flushed {
            Poll::Ready(Ok(())) => self.transport.poll_close(cx).map(|closed| {
                self.closed = true;
                closed.is_err()
            }),
            Poll::Ready(Err(_)) => Poll::Ready(true),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Reads what still comes and throws it away: a socket that is closed with unread input is reset, and the reset
    /// can overtake what was written last.
    fn poll_peer_closed(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.discarded.clear();
        self.discarded.reserve(DISCARD_CHUNK);
        self.transport.poll_read(cx, &mut self.discarded).map(|read| !matches!(read, Ok(1..)))
    }
}
