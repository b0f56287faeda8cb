//! Another system's publisher: puts any message on a broker, also one that is no job.
//!
//! It is one `Connection` of `leveret-core` in a blocking loop, so it doubles as the smallest example of driving
//! one.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use leveret_core::connection::{Connection, Event, SendBuf, Uri, Verdict};
use leveret_core::message::{Message, Properties};
use leveret_core::text::ShortString;
use leveret_core::time::Instant;
use leveret_core::topology::QueueDeclaration;

/// Publishes `message` to the broker at `uri` over a connection of its own, and waits for the verdict.
///
/// # Errors
///
/// When the broker cannot be reached, refuses the login or does not answer within ten seconds.
pub fn publish(uri: &str, message: &Message) -> io::Result<Verdict> {
    let uri = Uri::parse(uri).map_err(io::Error::other)?;
    if uri.tls().is_some() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the stranger speaks no TLS"));
    }
    #[expect(clippy::disallowed_methods, reason = "this publisher owns its socket")]
    let mut socket = TcpStream::connect((uri.host(), uri.port()))?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    // It lives for one message, so that no timer matters: time may stand still.
    let now = Instant::ORIGIN;
    let mut stranger = Stranger::new(Connection::new(uri.connection_config(), now));
    let (mut out, mut input) = (SendBuf::default(), BytesMut::new());
    loop {
        stranger.connection.poll_transmit(now, &mut out);
        while out.has_remaining() {
            let written = socket.write(out.chunk())?;
            out.advance(written);
        }
        if let Some(verdict) = stranger.turn(now, Errand::Publish(message))? {
            return Ok(verdict);
        }
        if stranger.has_work {
            stranger.has_work = false;
            continue;
        }
        let mut block = [0; 16 * 1024];
        match socket.read(&mut block)? {
            0 => stranger.connection.handle_eof(now),
            length => {
                input.extend_from_slice(&block[..length]);
                let _ = stranger.connection.handle_read(now, &mut input);
            }
        }
    }
}

/// Publishes bare bytes to a queue, with no properties at all.
///
/// # Errors
///
/// As [`publish`], and when no queue takes them.
pub fn publish_body(uri: &str, queue: &str, body: impl Into<Bytes>) -> io::Result<()> {
    match publish(uri, &bare(queue, body))? {
        Verdict::Ok => Ok(()),
        verdict => Err(io::Error::other(format!("queue {queue:?} did not take the message: {verdict:?}"))),
    }
}

/// A mandatory message to a queue with these bytes and no properties.
#[must_use]
pub fn bare(queue: &str, body: impl Into<Bytes>) -> Message {
    Message {
        exchange: ShortString::EMPTY,
        routing_key: ShortString::truncated(queue),
        mandatory: true,
        properties: Properties::default(),
        body: body.into(),
    }
}

/// What a stranger does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Errand<'a> {
    Publish(&'a Message),
    Declare(&'a QueueDeclaration),
}

/// A connection that runs one errand and closes.
#[derive(Debug)]
pub(crate) struct Stranger {
    pub(crate) connection: Connection,
    verdict: Option<Verdict>,
    /// A command was given, so there is something to transmit before the next read.
    has_work: bool,
}

impl Stranger {
    pub(crate) const fn new(connection: Connection) -> Self {
        Self { connection, verdict: None, has_work: false }
    }

    /// Handles what has happened. Gives the verdict once the connection is closed.
    pub(crate) fn turn(&mut self, now: Instant, errand: Errand<'_>) -> io::Result<Option<Verdict>> {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Opened { .. } => {
                    let channel = self.connection.open_channel().map_err(io::Error::other)?;
                    self.connection.confirm_select(channel).map_err(io::Error::other)?;
                    match errand {
                        Errand::Publish(message) => {
                            self.connection.publish(channel, message).map_err(io::Error::other)?;
                        }
                        Errand::Declare(queue) => {
                            self.connection.declare_queue(channel, queue).map_err(io::Error::other)?;
                        }
                    }
                    self.has_work = true;
                }
                Event::Verdict { verdict, .. } => self.done(now, verdict),
                Event::QueueDeclared { .. } => self.done(now, Verdict::Ok),
                Event::Closed(error) => {
                    return self.verdict.take().map(Some).ok_or_else(|| io::Error::other(error));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn done(&mut self, now: Instant, verdict: Verdict) {
        self.verdict = Some(verdict);
        self.connection.close(now, 200, "done");
        self.has_work = true;
    }
}
