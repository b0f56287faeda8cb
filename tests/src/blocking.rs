//! A connection of the core over a plain blocking socket: the run loop of `leveret_core::connection`, step by step.
//!
//! One thread, no runtime. The numbers are those of the documentation of `leveret_core::connection`.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant as Clock};

use bytes::{Buf, BytesMut};
use leveret_core::connection::{Connection, ConnectionConfig, Event, ReadOutcome, SendBuf, Uri};
use leveret_core::time::Instant;

/// So long a write may keep us from reading. A broker that waits until we read does not wait for longer.
const WRITE_PATIENCE: Duration = Duration::from_millis(10);
/// So long a read lasts where no deadline is nearer.
const READ_PATIENCE: Duration = Duration::from_secs(60);

/// A connection, its socket, and the two buffers between them.
#[derive(Debug)]
pub struct BlockingConnection {
    connection: Connection,
    socket: TcpStream,
    input: BytesMut,
    out: SendBuf,
    /// Events that were taken out together, and not handed out yet.
    events: VecDeque<Event>,
    /// The origin of the connection's clock.
    origin: Clock,
}

impl BlockingConnection {
    /// Connects to a broker. The handshake goes on in [`event`](Self::event), whose first answer is
    /// [`Event::Opened`] where all is well.
    ///
    /// # Errors
    ///
    /// Where `uri` is none, asks for TLS, or nobody answers there.
    pub fn connect(uri: &str) -> io::Result<Self> {
        Self::with(uri, |config| config)
    }

    /// [`connect`](Self::connect), with what the URI does not say.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    #[expect(clippy::disallowed_methods, reason = "the socket and the clock of this loop")]
    pub fn with(uri: &str, change: impl FnOnce(ConnectionConfig) -> ConnectionConfig) -> io::Result<Self> {
        let uri = Uri::parse(uri).map_err(io::Error::other)?;
        if uri.tls().is_some() {
            return Err(io::Error::new(ErrorKind::Unsupported, "the blocking connection speaks no TLS"));
        }
        let socket = TcpStream::connect((uri.host(), uri.port()))?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(WRITE_PATIENCE))?;
        let connection = Connection::new(change(uri.connection_config()), Instant::ORIGIN);
        let (input, out) = (BytesMut::new(), SendBuf::default());
        Ok(Self { connection, socket, input, out, events: VecDeque::new(), origin: Clock::now() })
    }

    /// The connection, for commands. They leave with the next [`event`](Self::event).
    pub const fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The time by which deadlines are counted.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_origin(self.origin.elapsed())
    }

    /// Moves bytes until something happens. After [`Event::Closed`] there is nothing to wait for.
    ///
    /// # Errors
    ///
    /// Where it has ended and that was told.
    pub fn event(&mut self) -> io::Result<Event> {
        loop {
            // What is asked for meanwhile leaves together with the next turn, as few writes as it can.
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            // 1. Write what is to be sent, as far as the socket takes it.
            let written = self.write();
            // 2. The deadline, which is the longest that the read below may take.
            let deadline = self.connection.poll_timeout();
            // 3. The events.
            self.events.extend(std::iter::from_fn(|| self.connection.poll_event()));
            if !self.events.is_empty() {
                continue;
            }
            if self.connection.is_closed() {
                return Err(io::Error::new(ErrorKind::NotConnected, "its end was told"));
            }
            // 4. Read what is there, unless whole frames are left of what was read before.
            let arrived = match written {
                Ok(()) if self.connection.handle_read(self.now(), &mut self.input) == ReadOutcome::More => {
                    continue;
                }
                Ok(()) => self.read(deadline),
                Err(error) => Err(error),
            };
            // 5. Tell the connection what happened.
            match arrived {
                Ok(Some(0)) | Err(_) => self.connection.handle_eof(self.now()),
                Ok(Some(_)) => drop(self.connection.handle_read(self.now(), &mut self.input)),
                Ok(None) => self.connection.handle_timeout(self.now()),
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        // The buffer has room again once it was written.
        while self.connection.poll_transmit(self.now(), &mut self.out) > 0 || self.out.has_remaining() {
            while self.out.has_remaining() {
                match self.socket.write(self.out.chunk()) {
                    Ok(length) => self.out.advance(length),
                    Err(error) if is_timeout(&error) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// `Ok(None)`: nothing came in time.
    fn read(&mut self, deadline: Option<Instant>) -> io::Result<Option<usize>> {
        let wait = match deadline {
            _ if self.out.has_remaining() => WRITE_PATIENCE,
            Some(deadline) => deadline.saturating_duration_since(self.now()).min(READ_PATIENCE),
            None => READ_PATIENCE,
        };
        self.socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        let mut block = [0; 64 * 1024];
        match self.socket.read(&mut block) {
            Ok(length) => {
                self.input.extend_from_slice(&block[..length]);
                Ok(Some(length))
            }
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
