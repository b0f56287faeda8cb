//! The broker on a TCP port, with threads: for demonstrations, for clients in other languages, and for the
//! tests of users.
//!
//! One thread accepts, one waits for deadlines, and each connection has one that reads and one that writes.
//! They share the [`Broker`] behind a lock that is never held across a system call on a socket.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use leveret_core::time::{Instant, UnixMillis};

use super::{Broker, BrokerConfig, ConnectionId};

/// How much is read from a socket at a time.
const READ_BYTES: usize = 16 * 1024;
/// How long a client may leave its socket full before it counts as gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A [`Broker`] that serves a TCP port until it is dropped.
pub struct TcpBroker {
    shared: Arc<Shared>,
    addr: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Something happened: there may be bytes to write, room to read, another deadline.
    changed: Condvar,
    clock: Clock,
}

struct State {
    broker: Broker,
    stopping: bool,
    sockets: BTreeMap<ConnectionId, TcpStream>,
    workers: Vec<JoinHandle<()>>,
}

impl TcpBroker {
    /// Listens on `addr` and serves. Port 0 takes a free one, see [`TcpBroker::addr`]. The wall clock of the
    /// configuration is set to now.
    ///
    /// # Errors
    ///
    /// Those of binding to the address and of starting a thread.
    pub fn start(config: BrokerConfig, addr: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = bind(addr)?;
        let addr = listener.local_addr()?;
        let clock = Clock::start();
        // Generated names need to differ between runs only.
        let seed = clock.wall.0;
        let broker = Broker::new(config.started_at(clock.wall), clock.now(), seed);
        let state = State { broker, stopping: false, sockets: BTreeMap::new(), workers: Vec::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), clock });
        let mut tcp = Self { shared: shared.clone(), addr, threads: Vec::new() };
        tcp.threads.push(spawn("broker timer", {
            let shared = shared.clone();
            move || shared.wait_for_deadlines()
        })?);
        tcp.threads.push(spawn("broker accept", move || shared.accept_from(&listener))?);
        Ok(tcp)
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URI of the virtual host `/` for the default user, such as `amqp://127.0.0.1:5673`.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("amqp://{}", reachable(self.addr))
    }

    /// Looks into the broker, or steers it, at the present moment. All clients wait meanwhile.
    pub fn with<T>(&self, act: impl FnOnce(&mut Broker, Instant) -> T) -> T {
        let mut state = self.shared.lock();
        let result = act(&mut state.broker, self.shared.clock.now());
        self.shared.announce(&mut state);
        result
    }
}

impl Drop for TcpBroker {
    /// Closes all sockets and waits for all threads.
    fn drop(&mut self) {
        let workers = {
            let mut state = self.shared.lock();
            state.stopping = true;
            for socket in state.sockets.values() {
                // An error is of a socket that is broken already.
                let _ = socket.shutdown(Shutdown::Both);
            }
            self.shared.changed.notify_all();
            std::mem::take(&mut state.workers)
        };
        wake_accept(self.addr);
        for thread in self.threads.drain(..).chain(workers) {
            // A thread that panicked has already said so.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for TcpBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpBroker").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl State {
    /// Whether the broker still has this connection, and is not being stopped.
    fn serves(&self, conn: ConnectionId) -> bool {
        !self.stopping && self.broker.connections.contains_key(&conn)
    }
}

impl Shared {
    /// A panic of another thread leaves the broker as it was between two calls, so it can go on.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// 1. Sockets are accepted.
    fn accept_from(self: Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.lock().stopping {
                return;
            }
            // An error here is of the one client that went away, or of too many open files: the next may do.
            if let Ok(stream) = stream {
                let _ = self.clone().serve(stream);
            }
        }
    }

    fn serve(self: Arc<Self>, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let (reading, writing) = (stream.try_clone()?, stream.try_clone()?);
        let mut state = self.lock();
        if state.stopping {
            return Ok(());
        }
        let conn = state.broker.accept(self.clock.now());
        state.sockets.insert(conn, stream);
        state.workers.retain(|worker| !worker.is_finished());
        let (for_reader, for_writer) = (self.clone(), self.clone());
        let reader = spawn("broker read", move || for_reader.read(conn, reading));
        let writer = spawn("broker write", move || for_writer.write(conn, writing));
        match (reader, writer) {
            (Ok(reader), Ok(writer)) => state.workers.extend([reader, writer]),
            (reader, writer) => {
                // Without both threads there is no connection.
                state.broker.handle_eof(self.clock.now(), conn);
                state.workers.extend(reader.into_iter().chain(writer));
                if let Some(socket) = state.sockets.remove(&conn) {
                    socket.shutdown(Shutdown::Both)?;
                }
            }
        }
        self.announce(&mut state);
        Ok(())
    }

    /// 2. Bytes are read, whole frames handled; 6. not while the broker does not want them.
    fn read(&self, conn: ConnectionId, mut stream: TcpStream) {
        let mut input = BytesMut::new();
        let mut chunk = [0; READ_BYTES];
        loop {
            let read = match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            input.extend_from_slice(&chunk[..read]);
            let mut state = self.lock();
            loop {
                state.broker.handle_read(self.clock.now(), conn, &mut input);
                self.announce(&mut state);
                if state.broker.wants_read(conn) || !state.serves(conn) {
                    break;
                }
                while state.serves(conn) && !state.broker.wants_read(conn) {
                    state = self.wait(state);
                }
            }
        }
        let mut state = self.lock();
        state.broker.handle_eof(self.clock.now(), conn);
        self.announce(&mut state);
    }

    /// 4. What is to be sent is written, and the socket closed after the last of it.
    fn write(&self, conn: ConnectionId, mut stream: TcpStream) {
        let mut out = BytesMut::new();
        let mut state = self.lock();
        loop {
            if state.broker.poll_transmit(self.clock.now(), conn, &mut out) > 0 {
                self.announce(&mut state);
                drop(state);
                let written = stream.write_all(&out);
                out.clear();
                state = self.lock();
                if written.is_err() {
                    state.broker.handle_eof(self.clock.now(), conn);
                    self.announce(&mut state);
                }
            } else if !state.serves(conn) {
                state.sockets.remove(&conn);
                drop(state);
                // An error is of a socket that is broken already. The reader finds its end.
                let _ = stream.shutdown(Shutdown::Both);
                return;
            } else {
                state = self.wait(state);
            }
        }
    }

    /// 3. and 7. Deadlines are waited for.
    fn wait_for_deadlines(&self) {
        let mut state = self.lock();
        while !state.stopping {
            let now = self.clock.now();
            match state.broker.poll_timeout() {
                Some(due) if due <= now => {
                    state.broker.handle_timeout(now);
                    self.announce(&mut state);
                }
                Some(due) => {
                    let left = due.saturating_duration_since(now);
                    let waited = self.changed.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => state = self.wait(state),
            }
        }
    }

    /// Everybody is woken: what one client did may be bytes for another, room to read, or a deadline.
    ///
    /// 5. needs no event here, since a writer sees for itself that the broker has forgotten its connection. The
    ///    log stays for [`TcpBroker::with`]; it is bounded by the configuration.
    fn announce(&self, state: &mut State) {
        state.broker.events.forget_closes();
        self.changed.notify_all();
    }
}

/// Monotonic time from the start of the broker, and the wall clock at that moment.
struct Clock {
    start: std::time::Instant,
    wall: UnixMillis,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the TCP form asks the clocks")]
    fn start() -> Self {
        // A wall clock before 1970 counts as 1970; it shows in `x-death` only.
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        let wall = UnixMillis(u64::try_from(wall).unwrap_or(u64::MAX));
        Self { start: std::time::Instant::now(), wall }
    }

    fn now(&self) -> Instant {
        Instant::from_origin(self.start.elapsed())
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where the TCP form listens")]
fn bind(addr: impl ToSocketAddrs) -> io::Result<TcpListener> {
    TcpListener::bind(addr)
}

/// A blocked `accept` ends with the next connection, so one is made.
#[expect(clippy::disallowed_methods, reason = "std knows no other way to end a blocking accept")]
fn wake_accept(addr: SocketAddr) {
    // If nobody accepts any more there is nobody to wake.
    drop(TcpStream::connect(reachable(addr)));
}

/// The address to connect to for one that is listened on.
fn reachable(mut addr: SocketAddr) -> SocketAddr {
    if addr.ip().is_unspecified() {
        addr.set_ip(match addr.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    addr
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(run)
}
