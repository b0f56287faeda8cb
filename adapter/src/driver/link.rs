//! One link's socket and buffers, and what is known of it on either side of the lock.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use leveret_core::connection::{ReadOutcome, SendBuf};
use leveret_core::session::{Attempt, ConnectFailure, Disconnect, LinkId, Session};
use leveret_core::time::Instant;

use crate::runtime::Transport;
use crate::stream::{Connecting, Stream};

/// How much room is made for reading. A connection's input buffer is at most this and one incomplete frame.
const READ_CHUNK: usize = 64 << 10;

/// Room is made when less than this is left, and not sooner: while bodies of earlier messages are in use, it is a new
/// block every time.
const READ_LEAST: usize = 4 << 10;

/// Reads that are handed to the session per turn, each of them bounded by the session: a bound on how long the lock
/// is held.
const FEEDS_PER_TURN: usize = 4;

/// System calls for writing per turn.
const WRITES_PER_TURN: usize = 16;

/// Pieces of output per system call; Linux takes up to 1,024, and few outputs have more than this.
const SLICES: usize = 64;

/// One of the session's links.
pub(super) struct Link<T> {
    id: LinkId,
    socket: Option<(Attempt, Socket<T>)>,
}

enum Socket<T> {
    Connecting(Connecting<T>),
    /// The session has not been told yet.
    Failed(ConnectFailure),
    Open(Open<Stream<T>>),
}

/// A connected socket with its buffers. They live and end with it, so that no byte gets from one into the next.
pub(super) struct Open<T> {
    pub(super) transport: T,
    pub(super) output: SendBuf,
    input: BytesMut,
    /// Whether the session has been told that it is connected.
    known: bool,
    /// Whether the session wants to read.
    wanted: bool,
    /// Whether `input` may hold something that the session can take.
    fresh: bool,
    /// Whether the transport may hold back what was written.
    unflushed: bool,
    /// Why nothing can be written any more. What has arrived is read first: it may say why.
    broken: Option<Disconnect>,
    /// Why nothing comes any more. The session has not been told yet.
    ended: Option<Disconnect>,
    /// Whether the session has been told that it ended.
    over: bool,
}

impl<T: Transport> Link<T> {
    pub(super) const fn new(id: LinkId) -> Self {
        Self { id, socket: None }
    }

    pub(super) const fn id(&self) -> LinkId {
        self.id
    }

    /// Starts to connect, in place of any earlier socket.
    pub(super) fn connect(&mut self, attempt: Attempt, connecting: Connecting<T>) {
        self.socket = Some((attempt, Socket::Connecting(connecting)));
    }

    /// Takes the socket of this attempt away, if it is still the one; it comes back if it was connected.
    pub(super) fn drop_socket(&mut self, attempt: Attempt) -> Option<Open<Stream<T>>> {
        match self.socket.take_if(|(current, _)| *current == attempt) {
            Some((_, Socket::Open(open))) => Some(open),
            _ => None,
        }
    }

    /// Under the lock: tells the session what happened. Answers whether there is more to tell.
    pub(super) fn feed(&mut self, session: &mut Session, now: Instant) -> bool {
        let Some((attempt, socket)) = &mut self.socket else { return false };
        match socket {
            Socket::Connecting(_) => false,
            Socket::Failed(failure) => {
                session.handle_connect_failed(now, self.id, *attempt, failure.clone());
                self.socket = None;
                false
            }
            Socket::Open(open) => open.feed(session, now, self.id, *attempt),
        }
    }

    /// Under the lock: takes out of the session what is to be written.
    pub(super) fn fill(&mut self, session: &mut Session, now: Instant) {
        if let Some((_, Socket::Open(open))) = &mut self.socket {
            session.poll_transmit(now, self.id, &mut open.output);
        }
    }

    /// Under the lock, when the events have been taken out: asks whether to read on. Answers whether the session wants
    /// what has been read already.
    pub(super) fn look(&mut self, session: &Session) -> bool {
        let Some((_, Socket::Open(open))) = &mut self.socket else { return false };
        open.wanted = session.wants_read(self.id);
        open.wanted && open.fresh
    }

    /// Without the lock: moves bytes. Answers whether the session must know, or has more to write.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        let Some((_, socket)) = &mut self.socket else { return false };
        match socket {
            Socket::Connecting(connecting) => match connecting.as_mut().poll(cx) {
                Poll::Pending => false,
                Poll::Ready(Ok(transport)) => {
                    *socket = Socket::Open(Open::new(transport));
                    true
                }
                Poll::Ready(Err(failure)) => {
                    *socket = Socket::Failed(failure);
                    true
                }
            },
            Socket::Failed(_) => true,
            Socket::Open(open) if open.over => {
                self.socket = None;
                false
            }
            Socket::Open(open) => open.drive(cx),
        }
    }
}

impl<T: Transport> Open<T> {
    fn new(transport: T) -> Self {
        Self {
            transport,
            output: SendBuf::default(),
            input: BytesMut::new(),
            known: false,
            wanted: false,
            fresh: false,
            unflushed: false,
            broken: None,
            ended: None,
            over: false,
        }
    }

    fn feed(&mut self, session: &mut Session, now: Instant, link: LinkId, attempt: Attempt) -> bool {
        if !self.known {
            self.known = true;
            session.handle_connected(now, link, attempt);
        }
        // The events of the last turn were taken out, so a session that does not want to read now has its reasons.
        let wanted = session.wants_read(link);
        for _ in 0..FEEDS_PER_TURN {
            if !(self.fresh && session.wants_read(link)) {
                break;
            }
            self.fresh = session.handle_read(now, link, attempt, &mut self.input) == ReadOutcome::More;
        }
        if self.fresh && wanted {
            return true;
        }
        // What arrived before the end is heard first.
        if let Some(cause) = self.ended.take() {
            self.over = true;
            session.handle_closed(now, link, attempt, cause);
        }
        false
    }

    fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        if self.ended.is_some() {
            return true;
        }
        let wrote = self.broken.is_none() && self.write(cx);
        wrote | self.read(cx)
    }

    /// Answers whether the session may have more to write, or this has.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        let was_full = self.output.is_full();
        for _ in 0..WRITES_PER_TURN {
            match write_some(&mut self.transport, &mut self.output, cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok(true)) => self.unflushed = true,
                Poll::Ready(Ok(false)) => {
                    if self.unflushed {
                        match self.transport.poll_flush(cx) {
                            Poll::Pending => {}
                            Poll::Ready(Ok(())) => self.unflushed = false,
                            Poll::Ready(Err(error)) => self.broken = Some(Disconnect::Io(error.to_string())),
                        }
                    }
                    return was_full;
                }
                Poll::Ready(Err(error)) => {
                    self.broken = Some(Disconnect::Io(error.to_string()));
                    return false;
                }
            }
        }
        true
    }

    /// Answers whether there is something for the session.
    fn read(&mut self, cx: &mut Context<'_>) -> bool {
        // While the session wants nothing, the socket's own buffer fills up and the peer has to wait.
        let read = if self.wanted && !self.fresh {
            if self.input.capacity() - self.input.len() < READ_LEAST {
                self.input.reserve(READ_CHUNK);
            }
            self.transport.poll_read(cx, &mut self.input)
        } else {
            Poll::Pending
        };
        self.ended = match read {
            Poll::Ready(Ok(0)) => Some(Disconnect::Eof),
            Poll::Ready(Ok(_)) => {
                self.fresh = true;
                return true;
            }
            Poll::Ready(Err(error)) => Some(Disconnect::Io(error.to_string())),
            Poll::Pending => self.broken.take(),
        };
        self.ended.is_some()
    }
}

/// Writes the front of `output`, in one system call. Answers whether there was something to write.
pub(super) fn write_some<T: Transport>(
    transport: &mut T,
    output: &mut SendBuf,
    cx: &mut Context<'_>,
) -> Poll<io::Result<bool>> {
    if !output.has_remaining() {
        return Poll::Ready(Ok(false));
    }
    let mut slices = [IoSlice::new(&[]); SLICES];
    let count = output.chunks_vectored(&mut slices);
    match transport.poll_write(cx, &slices[..count]) {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
        Poll::Ready(Ok(written)) => {
            output.advance(written.min(output.remaining()));
            Poll::Ready(Ok(true))
        }
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
    }
}
