//! A runtime in memory, on one thread and under a clock that the test sets.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use leveret_core::session::Endpoint;
use leveret_core::time::{Instant, UnixMillis};

use crate::panic::BoxFuture;
use crate::runtime::{Runtime, Spawn, Timer, Transport};

/// Polls of one task without a pause: more of them is a busy loop.
const PATIENCE: usize = 1_000;

/// Tasks, timers and sockets in memory. Clones are the same runtime.
#[derive(Clone, Default)]
pub(crate) struct MemoryRuntime(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    now: Instant,
    tasks: Vec<Task>,
    timers: Vec<Waker>,
    /// What the next connects find; after these, nothing ever answers.
    answers: VecDeque<io::Result<Memory>>,
    connects: usize,
}

struct Task {
    future: BoxFuture<()>,
    woken: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl MemoryRuntime {
    /// The next connect finds a peer.
    pub(crate) fn accept(&self) -> Peer {
        let (inbound, outbound) = (Pipe::default(), Pipe::default());
        let memory = Memory { inbound: inbound.clone(), outbound: outbound.clone() };
        self.world().answers.push_back(Ok(memory));
        Peer { inbound, outbound }
    }

    /// The next connect fails.
    pub(crate) fn refuse(&self) {
        self.world().answers.push_back(Err(io::ErrorKind::ConnectionRefused.into()));
    }

    /// How often a connect was tried.
    pub(crate) fn connects(&self) -> usize {
        self.world().connects
    }

    /// Tasks that have not ended.
    pub(crate) fn tasks(&self) -> usize {
        self.world().tasks.len()
    }

    /// Drops all tasks, as a runtime does that is shut down.
    pub(crate) fn drop_tasks(&self) {
        let tasks = std::mem::take(&mut self.world().tasks);
        drop(tasks);
    }

    /// Lets time pass and the timers notice.
    pub(crate) fn advance(&self, duration: Duration) {
        let timers = {
            let mut world = self.world();
            world.now += duration;
            std::mem::take(&mut world.timers)
        };
        timers.into_iter().for_each(Waker::wake);
    }

    /// Runs all tasks until each of them waits for something.
    pub(crate) fn run(&self) {
        for _ in 0..PATIENCE {
            let Some(mut task) = self.take_woken() else { return };
            let waker = Waker::from(task.woken.clone());
            if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                self.world().tasks.push(task);
            }
        }
        panic!("the tasks do not come to rest");
    }

    /// Polls `future` once, after all tasks have come to rest, and lets them do what it asked for.
    pub(crate) fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        self.run();
        let polled = std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()));
        self.run();
        polled
    }

    /// Runs until `future` is ready, which must need no time to pass.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = Box::pin(future);
        for _ in 0..PATIENCE {
            if let Poll::Ready(output) = self.poll(&mut future) {
                return output;
            }
        }
        panic!("the future waits for something that does not happen");
    }

    fn take_woken(&self) -> Option<Task> {
        let mut world = self.world();
        let at = world.tasks.iter().position(|task| task.woken.0.swap(false, Ordering::Relaxed))?;
        Some(world.tasks.remove(at))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

impl Runtime for MemoryRuntime {
    type Transport = Memory;
    type Timer = MemoryTimer;

    async fn connect(&self, _: &Endpoint) -> io::Result<Memory> {
        let answer = {
            let mut world = self.world();
            world.connects += 1;
            world.answers.pop_front()
        };
        match answer {
            Some(answer) => answer,
            None => poll_fn(|_| Poll::Pending).await,
        }
    }

    fn timer(&self, at: Instant) -> MemoryTimer {
        MemoryTimer { runtime: self.clone(), at }
    }

    fn now(&self) -> Instant {
        self.world().now
    }

    fn wall(&self) -> UnixMillis {
        UnixMillis(1_000)
    }

    fn seed(&self) -> u128 {
        7
    }
}

impl Spawn for MemoryRuntime {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        self.world().tasks.push(Task { future: Box::pin(task), woken });
    }
}

pub(crate) struct MemoryTimer {
    runtime: MemoryRuntime,
    at: Instant,
}

impl Timer for MemoryTimer {
    fn reset(&mut self, at: Instant) {
        self.at = at;
    }

    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut world = self.runtime.world();
        if world.now >= self.at {
            return Poll::Ready(());
        }
        world.timers.push(cx.waker().clone());
        Poll::Pending
    }
}

/// The client's end of a connection. Dropping it closes both directions.
pub(crate) struct Memory {
    inbound: Pipe,
    outbound: Pipe,
}

/// The other end.
pub(crate) struct Peer {
    inbound: Pipe,
    outbound: Pipe,
}

/// Bytes on their way in one direction.
#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<PipeState>>);

#[derive(Default)]
struct PipeState {
    bytes: BytesMut,
    closed: bool,
    /// Whether nothing can be written for now.
    stuck: bool,
    waker: Option<Waker>,
}

impl Pipe {
    fn state(&self) -> MutexGuard<'_, PipeState> {
        self.0.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut PipeState)) {
        let waker = {
            let mut state = self.state();
            change(&mut state);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Peer {
    pub(crate) fn send(&self, bytes: &[u8]) {
        self.inbound.change(|pipe| pipe.bytes.extend_from_slice(bytes));
    }

    /// Ends the peer's direction.
    pub(crate) fn close(&self) {
        self.inbound.change(|pipe| pipe.closed = true);
    }

    /// From now on the client's writes find no room.
    pub(crate) fn stop_reading(&self) {
        self.outbound.change(|pipe| pipe.stuck = true);
    }

    /// What the client wrote since the last call.
    pub(crate) fn received(&self) -> BytesMut {
        self.outbound.state().bytes.split()
    }

    /// Whether the client has ended its direction, or dropped the socket.
    pub(crate) fn is_closed(&self) -> bool {
        self.outbound.state().closed
    }
}

impl Transport for Memory {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        let mut pipe = self.inbound.state();
        let count = pipe.bytes.len().min(input.capacity() - input.len());
        if count == 0 && !pipe.closed {
            pipe.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        input.extend_from_slice(&pipe.bytes[..count]);
        pipe.bytes.advance(count);
        Poll::Ready(Ok(count))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut pipe = self.outbound.state();
        if pipe.stuck {
            pipe.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let first = output.iter().find(|slice| !slice.is_empty());
        let first = first.expect("the driver writes only when there is something");
        pipe.bytes.extend_from_slice(first);
        Poll::Ready(Ok(first.len()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outbound.change(|pipe| pipe.closed = true);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.outbound.change(|pipe| pipe.closed = true);
    }
}
