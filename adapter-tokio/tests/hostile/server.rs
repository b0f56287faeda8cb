//! A broker that does as it is told: it answers like one, except where a test wants it to misbehave.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What the client says first, as if it were a method.
pub(crate) const GREETING: (u16, u16) = (0, 0);
pub(crate) const START_OK: (u16, u16) = (10, 11);
pub(crate) const TUNE_OK: (u16, u16) = (10, 31);
pub(crate) const OPEN: (u16, u16) = (10, 40);
pub(crate) const CLOSE: (u16, u16) = (10, 50);
pub(crate) const CHANNEL_OPEN: (u16, u16) = (20, 10);
pub(crate) const CHANNEL_CLOSE: (u16, u16) = (20, 40);
const CHANNEL_CLOSE_OK: (u16, u16) = (20, 41);
pub(crate) const DECLARE: (u16, u16) = (50, 10);
pub(crate) const QOS: (u16, u16) = (60, 10);
pub(crate) const CONSUME: (u16, u16) = (60, 20);
pub(crate) const CANCEL: (u16, u16) = (60, 30);
pub(crate) const PUBLISH: (u16, u16) = (60, 40);
pub(crate) const ACK: (u16, u16) = (60, 80);
pub(crate) const CONFIRM_SELECT: (u16, u16) = (85, 10);

const FRAME_MAX: u32 = 131_072;
const CHANNEL_MAX: u16 = 2_047;

/// A method of the client.
pub(crate) struct Heard {
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
    pub(crate) channel: u16,
    pub(crate) method: (u16, u16),
    /// How many of this kind came on this connection before it.
    pub(crate) before: usize,
    /// Class, method and arguments.
    pub(crate) payload: Vec<u8>,
}

impl Heard {
    /// The tag that the client chose for its consumer.
    pub(crate) fn consumer_tag(&self) -> &[u8] {
        let queue = usize::from(self.payload[6]);
        let tag = &self.payload[7 + queue..];
        &tag[1..][..usize::from(tag[0])]
    }
}

pub(crate) enum Answer {
    /// What a broker says.
    Usual,
    /// That, and then this.
    UsualAnd(Vec<u8>),
    /// This.
    Bytes(Vec<u8>),
    /// Nothing to this and to all that follows.
    Silence,
    /// `channel.close` with a reason; what the client still says on that channel is ignored until it agrees.
    CloseChannel(u16, &'static str),
    /// The end of the connection.
    HangUp,
    /// This, and a moment later the end of the connection.
    LastWords(Vec<u8>),
    /// This over and over, until the client has hung up.
    Flood(Vec<u8>),
}

/// Listens on a free port of this machine until it is dropped.
pub(crate) struct Server {
    addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    behave: Box<dyn Fn(&Heard) -> Answer + Send + Sync>,
    stopped: AtomicBool,
    connections: AtomicUsize,
    heartbeats: bool,
}

impl Server {
    /// A server that shows with heartbeats that it lives, whatever else it does.
    pub(crate) fn start(behave: impl Fn(&Heard) -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(Box::new(behave), true)
    }

    /// The same without heartbeats.
    pub(crate) fn without_heartbeats(behave: impl Fn(&Heard) -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(Box::new(behave), false)
    }

    #[expect(clippy::disallowed_methods, reason = "a server listens, in a thread of its own")]
    fn listen(behave: Box<dyn Fn(&Heard) -> Answer + Send + Sync>, heartbeats: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            behave,
            stopped: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            heartbeats,
        });
        let accepting = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (shared, stream) = (accepting.clone(), stream.unwrap());
                let number = shared.connections.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || Peer::new(shared, stream, number).serve());
            }
        });
        Self { addr, shared }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many connections have come.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    #[expect(clippy::disallowed_methods, reason = "std knows no other way to end a blocking accept")]
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.addr));
    }
}

/// One connection, seen from the server.
struct Peer {
    shared: Arc<Shared>,
    stream: TcpStream,
    number: usize,
    input: Vec<u8>,
    heard: Vec<(u16, u16)>,
    /// By channel.
    published: BTreeMap<u16, u64>,
    closing: BTreeSet<u16>,
    silent: bool,
}

impl Peer {
    fn new(shared: Arc<Shared>, stream: TcpStream, number: usize) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        Self {
            shared,
            stream,
            number,
            input: Vec::new(),
            heard: Vec::new(),
            published: BTreeMap::new(),
            closing: BTreeSet::new(),
            silent: false,
        }
    }

    fn serve(mut self) {
        while !self.shared.stopped.load(Ordering::Relaxed) {
            if self.read().is_break() || self.work().is_break() {
                return;
            }
        }
    }

    fn read(&mut self) -> ControlFlow<()> {
        let mut bytes = [0; 16 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => ControlFlow::Break(()),
            Ok(read) => {
                self.input.extend_from_slice(&bytes[..read]);
                ControlFlow::Continue(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if self.shared.heartbeats && self.heard.contains(&TUNE_OK) {
                    self.send(&frame(8, 0, &[]))?;
                }
                ControlFlow::Continue(())
            }
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Works off what was read.
    fn work(&mut self) -> ControlFlow<()> {
        if self.heard.is_empty() {
            if self.input.len() < 8 {
                return ControlFlow::Continue(());
            }
            self.input.drain(..8);
            self.hear(0, GREETING, Vec::new())?;
        }
        while let Some(head) = self.input.first_chunk::<7>() {
            let (kind, channel) = (head[0], u16::from_be_bytes([head[1], head[2]]));
            let end = 8 + u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
            if self.input.len() < end {
                break;
            }
            let frame: Vec<u8> = self.input.drain(..end).collect();
            if kind == 1 {
                let payload = frame[7..end - 1].to_vec();
                let method = (
                    u16::from_be_bytes([payload[0], payload[1]]),
                    u16::from_be_bytes([payload[2], payload[3]]),
                );
                self.hear(channel, method, payload)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn hear(&mut self, channel: u16, method: (u16, u16), payload: Vec<u8>) -> ControlFlow<()> {
        if method == CHANNEL_CLOSE_OK {
            self.closing.remove(&channel);
        }
        if self.silent || self.closing.contains(&channel) {
            return ControlFlow::Continue(());
        }
        let before = self.heard.iter().filter(|heard| **heard == method).count();
        self.heard.push(method);
        let heard = Heard { connection: self.number, channel, method, before, payload };
        let usual = self.usual(&heard);
        match (self.shared.behave)(&heard) {
            Answer::Usual => self.send(&usual),
            Answer::UsualAnd(more) => self.send(&[usual, more].concat()),
            Answer::Bytes(bytes) => self.send(&bytes),
            Answer::Silence => {
                self.silent = true;
                ControlFlow::Continue(())
            }
            Answer::CloseChannel(code, text) => {
                self.closing.insert(channel);
                self.send(&close(channel, code, text, method))
            }
            Answer::HangUp => ControlFlow::Break(()),
            Answer::LastWords(bytes) => {
                self.send(&bytes)?;
                pause();
                ControlFlow::Break(())
            }
            Answer::Flood(bytes) => loop {
                if self.shared.stopped.load(Ordering::Relaxed) {
                    return ControlFlow::Break(());
                }
                self.send(&bytes)?;
            },
        }
    }

    fn send(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        match self.stream.write_all(bytes) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// What a broker would answer.
    fn usual(&mut self, heard: &Heard) -> Vec<u8> {
        let channel = heard.channel;
        match heard.method {
            GREETING => start(),
            START_OK => tune(CHANNEL_MAX, FRAME_MAX, 60),
            OPEN => method(0, (10, 41), &[0]),
            CLOSE => method(0, (10, 51), &[]),
            CHANNEL_OPEN => {
                self.published.remove(&channel);
                method(channel, (20, 11), &[0; 4])
            }
            CHANNEL_CLOSE => method(channel, (20, 41), &[]),
            DECLARE => {
                let name = &heard.payload[6..][..=usize::from(heard.payload[6])];
                method(channel, (50, 11), &[name, &[0; 8]].concat())
            }
            QOS => method(channel, (60, 11), &[]),
            CONSUME => method(channel, (60, 21), &short(heard.consumer_tag())),
            CANCEL => {
                let tag = &heard.payload[4..][..=usize::from(heard.payload[4])];
                method(channel, (60, 31), tag)
            }
            PUBLISH => {
                let published = self.published.entry(channel).or_default();
                *published += 1;
                ack(channel, *published, false)
            }
            CONFIRM_SELECT => method(channel, (85, 11), &[]),
            _ => Vec::new(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this thread has nothing else to do")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

// Frames, written by hand: what is wrong in them is wrong on purpose.

pub(crate) fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[kind][..], &channel.to_be_bytes(), &length, payload, &[0xCE]].concat()
}

pub(crate) fn method(channel: u16, (class, method): (u16, u16), arguments: &[u8]) -> Vec<u8> {
    frame(1, channel, &[&class.to_be_bytes()[..], &method.to_be_bytes(), arguments].concat())
}

pub(crate) fn start() -> Vec<u8> {
    let long = |text: &[u8]| [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], text].concat();
    method(0, (10, 10), &[&[0, 9, 0, 0, 0, 0][..], &long(b"PLAIN"), &long(b"en_US")].concat())
}

pub(crate) fn tune(channel_max: u16, frame_max: u32, heartbeat: u16) -> Vec<u8> {
    let arguments =
        [&channel_max.to_be_bytes()[..], &frame_max.to_be_bytes(), &heartbeat.to_be_bytes()].concat();
    method(0, (10, 30), &arguments)
}

/// `connection.close` on channel 0, `channel.close` on any other.
pub(crate) fn close(channel: u16, code: u16, text: &str, cause: (u16, u16)) -> Vec<u8> {
    let id = if channel == 0 { (10, 50) } else { (20, 40) };
    let cause = [cause.0.to_be_bytes(), cause.1.to_be_bytes()].concat();
    method(channel, id, &[&code.to_be_bytes()[..], &short(text.as_bytes()), &cause].concat())
}

pub(crate) fn ack(channel: u16, tag: u64, multiple: bool) -> Vec<u8> {
    method(channel, ACK, &[&tag.to_be_bytes()[..], &[u8::from(multiple)]].concat())
}

pub(crate) fn deliver(channel: u16, consumer_tag: &[u8], delivery_tag: u64, body: &[u8]) -> Vec<u8> {
    let arguments = [&short(consumer_tag)[..], &delivery_tag.to_be_bytes(), &[0, 0, 1, b'q']].concat();
    [
        method(channel, (60, 60), &arguments),
        header(channel, body.len() as u64, &[0, 0]),
        frame(3, channel, body),
    ]
    .concat()
}

/// A content header; `properties` are flags and values.
pub(crate) fn header(channel: u16, body_size: u64, properties: &[u8]) -> Vec<u8> {
    frame(2, channel, &[&[0, 60, 0, 0][..], &body_size.to_be_bytes(), properties].concat())
}

pub(crate) fn returned(channel: u16) -> Vec<u8> {
    let arguments = [&312_u16.to_be_bytes()[..], &short(b"NO_ROUTE"), &short(b""), &short(b"q")].concat();
    [method(channel, (60, 50), &arguments), header(channel, 1, &[0, 0]), frame(3, channel, b"x")].concat()
}

fn short(text: &[u8]) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap()][..], text].concat()
}
