//! A transport over a transport.

use std::io::{self, BufRead, IoSlice, Write};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use rustls::ClientConnection;

use super::failure;
use crate::runtime::Transport;

/// How much is read at once: a whole record (RFC 8446, 5.2), so that most calls bring one.
pub(super) const READ_CHUNK: usize = 17 << 10;

/// The most that is encrypted ahead of what the transport takes. Plaintext waits where it is until there is room.
pub(super) const WRITE_BUFFER: usize = 64 << 10;

/// Reads per call that bring no plaintext. A server may send what is not for us, and must not hold the driver with it.
const STEPS: usize = 32;

/// What the driver is told when a stream ends without TLS's own word for it: bytes may be missing.
const CUT: &str = "the stream ended in the middle of TLS, without its close";

/// How much of what a server says first is kept, to tell what it speaks where that is not TLS: the head of a record,
/// with less of which TLS can do nothing.
const OPENING: usize = 5;

/// TLS over `T`. Ciphertext is bounded both ways by a buffer of some tens of kilobytes, received plaintext by a record
/// or two, as rustls takes no more before that is read.
pub(crate) struct TlsStream<T> {
    inner: T,
    tls: ClientConnection,
    /// What rustls has not taken yet.
    received: BytesMut,
    /// The first [`OPENING`] bytes of the server.
    opening: Vec<u8>,
    /// Whether the transport has come to its end.
    ended: bool,
    /// Why nothing comes after the plaintext that is there.
    fault: Option<io::Error>,
    closing: bool,
}

/// Why nothing more comes.
#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    Tls(rustls::Error),
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Io(error) => error,
            Fault::Tls(error) => Self::new(io::ErrorKind::InvalidData, failure::of_connection(&error)),
        }
    }
}

impl<T: Transport> TlsStream<T> {
    pub(super) fn new(inner: T, mut tls: ClientConnection) -> Self {
        tls.set_buffer_limit(Some(WRITE_BUFFER));
        Self {
            inner,
            tls,
            received: BytesMut::new(),
            opening: Vec::with_capacity(OPENING),
            ended: false,
            fault: None,
            closing: false,
        }
    }

    /// Whether TLS has not been agreed on yet.
    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the transport has come to its end.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// What the server said first, at most [`OPENING`] bytes.
    pub(super) fn opening(&self) -> &[u8] {
        &self.opening
    }

    /// How much was received and not read: what rustls has not taken, and plaintext.
    #[cfg(test)]
    pub(super) fn held(&mut self) -> usize {
        let plaintext = self.tls.process_new_packets().map_or(0, |state| state.plaintext_bytes_to_read());
        self.received.len() + plaintext
    }

    /// Lets rustls take what was received, or is received now; it learns of the end of the transport as well.
    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        while !self.ended && (self.received.is_empty() || self.opening.len() < OPENING) {
            self.received.reserve(READ_CHUNK);
            let before = self.received.len();
            let count = ready!(self.inner.poll_read(cx, &mut self.received)).map_err(Fault::Io)?;
            self.ended = count == 0;
            let room = OPENING - self.opening.len();
            self.opening.extend(self.received[before..].iter().take(room));
        }
        let taken = self.tls.read_tls(&mut &self.received[..]).map_err(Fault::Io)?;
        self.received.advance(taken);
        match self.tls.process_new_packets() {
            Ok(_) => Poll::Ready(Ok(())),
            Err(error) => {
                // Tells the server why, if it can be told at once.
                let _ = self.poll_send(cx);
                Poll::Ready(Err(Fault::Tls(error)))
            }
        }
    }

    /// Hands all ciphertext that is there to the transport.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            let mut transport = Sink { inner: &mut self.inner, cx };
            match self.tls.write_tls(&mut transport) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Moves plaintext that is there to `input`. `None` where there is none.
    fn take_plaintext(&mut self, input: &mut BytesMut) -> Option<io::Result<usize>> {
        let before = input.len();
        let mut reader = self.tls.reader();
        while input.capacity() > input.len() {
            match reader.fill_buf() {
                Ok([]) if input.len() == before => return Some(Ok(0)),
                Ok([]) => break,
                Ok(chunk) => {
                    let count = chunk.len().min(input.capacity() - input.len());
                    input.extend_from_slice(&chunk[..count]);
                    reader.consume(count);
                }
                // With something read the end is told by the next call.
                Err(_) if input.len() > before => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Some(Err(io::Error::new(error.kind(), CUT)));
                }
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(input.len() - before))
    }
}

impl<T: Transport> Transport for TlsStream<T> {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        for _ in 0..STEPS {
            if let Some(read) = self.take_plaintext(input) {
                return Poll::Ready(read);
            }
            if let Some(fault) = self.fault.take() {
                return Poll::Ready(Err(fault));
            }
            // What was received before a fault is read first: it may say why.
            self.fault = ready!(self.poll_receive(cx)).err().map(io::Error::from);
            // An answer of TLS itself, such as to a server that wants to negotiate again (RFC 5246, 7.2.2). A failure to
            // write is found again by whoever writes.
            let _ = self.poll_send(cx);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        // What is left from before goes first. Where it does not, there may still be room behind it.
        let sent = self.poll_send(cx)?;
        let written = self.tls.writer().write_vectored(output)?;
        if written == 0 && sent.is_pending() {
            return Poll::Pending;
        }
        // What does not go at once is for `poll_flush`, or the next call.
        let _ = self.poll_send(cx)?;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        self.inner.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closing {
            self.closing = true;
            self.tls.send_close_notify();
        }
        ready!(self.poll_flush(cx))?;
        self.inner.poll_close(cx)
    }
}

/// The transport, as rustls writes to it.
struct Sink<'s, 'c, T> {
    inner: &'s mut T,
    cx: &'s mut Context<'c>,
}

impl<T: Transport> Write for Sink<'_, '_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, output: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.inner.poll_write(self.cx, output) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // rustls does not ask for it.
    }
}
