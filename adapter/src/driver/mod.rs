//! The task that moves the bytes.
//!
//! It owns the sockets, their buffers and the timer, and makes no decision. One turn of its loop is:
//!
//! 1. under the lock: give the session what was read, what connected, what ended and whether the timer expired,
//!    then take out of it what to transmit, its deadline and its events, in this order, and end what has no more
//!    time;
//! 2. without the lock: wake who was answered, log, connect and drop sockets as told;
//! 3. write, read, and wait for the timer.
//!
//! It goes on while a turn left something to do, up to a bound, and then lets other tasks run.

mod leaving;
mod link;
mod log;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use leveret_core::session::{LinkId, SessionEvent};
use leveret_core::time::Instant;

use leaving::Leaving;
use link::Link;
use log::Log;

use crate::runtime::{Runtime, Timer};
use crate::shared::{Outside, Shared, Stopped};
use crate::stream::{Connector, Stream};
use crate::waiters::Wakes;

/// Turns per poll. With the bounds on a turn this keeps one busy client from starving the other tasks of its thread.
const TURNS_PER_POLL: usize = 16;

/// Events per turn: a bound on how long the lock is held.
const EVENTS_PER_TURN: usize = 512;

/// Runs one session until it has ended. Dropping it ends everything that waits, with an error.
pub(crate) struct Driver<R: Runtime> {
    runtime: R,
    connector: Connector,
    shared: Arc<Shared>,
    links: [Link<R::Transport>; LinkId::ALL.len()],
    /// Sockets that the session is done with, and that still have something to write.
    leaving: Vec<Leaving<Stream<R::Transport>>>,
    timer: Option<R::Timer>,
    /// What the timer is set to.
    armed: Option<Instant>,
    expired: bool,
    wakes: Wakes,
    outside: Vec<Outside>,
    log: Log,
}

/// What a turn under the lock found.
struct Turn {
    /// Whether there is more to do before anything is waited for.
    more: bool,
    /// When there is something to do at the latest.
    deadline: Option<Instant>,
    /// Whether the session has ended.
    ended: bool,
}

impl<R: Runtime> Driver<R> {
    pub(crate) fn new(runtime: R, shared: Arc<Shared>) -> Self {
        Self {
            runtime,
            connector: Connector::default(),
            shared,
            links: LinkId::ALL.map(Link::new),
            leaving: Vec::new(),
            timer: None,
            armed: None,
            expired: false,
            wakes: Wakes::default(),
            outside: Vec::new(),
            log: Log::default(),
        }
    }

    fn turn(&mut self, now: Instant, cx: &Context<'_>) -> Result<Turn, Stopped> {
        let Self { runtime, shared, links, expired, wakes, outside, .. } = self;
        let wall = runtime.wall();
        let turn = shared.lock(wakes, |state, wakes| {
            wakes.register(&mut state.driver, cx);
            let mut more = false;
            if state.end.is_none() {
                state.session.handle_wall_clock(now, wall);
                for link in &mut *links {
                    more |= link.feed(&mut state.session, now);
                }
                if std::mem::take(expired) {
                    state.session.handle_timeout(now);
                }
                for link in &mut *links {
                    link.fill(&mut state.session, now);
                }
            }
            let timeout = state.session.poll_timeout();
            let mut left = EVENTS_PER_TURN;
            while left > 0
                && let Some(event) = state.session.poll_event()
            {
                left -= 1;
                outside.extend(state.deliver(now, event, wakes));
            }
            let graces = state.handle_graces(now, wakes);
            more |= left == 0 || std::mem::take(&mut state.dirty);
            for link in &mut *links {
                more |= link.look(&state.session);
            }
            Turn { more, deadline: timeout.into_iter().chain(graces).min(), ended: state.end.is_some() }
        });
        wakes.wake();
        turn
    }

    /// Does what the session wants of the sockets, and says what an operator may want to know.
    fn act(&mut self, now: Instant) {
        for outside in self.outside.drain(..) {
            self.log.event(&outside);
            match outside.event {
                SessionEvent::Connect { link, attempt, endpoint } => {
                    let connecting = self.connector.connect(&self.runtime, endpoint);
                    let link = self.links.iter_mut().find(|known| known.id() == link);
                    link.expect("there is one for each of `LinkId::ALL`").connect(attempt, connecting);
                }
                SessionEvent::Drop { link, attempt, flush } => {
                    let link = self.links.iter_mut().find(|known| known.id() == link);
                    let socket = link.expect("there is one for each of `LinkId::ALL`").drop_socket(attempt);
                    self.leaving.extend(socket.filter(|_| flush).map(|socket| Leaving::new(socket, now)));
                }
                _ => {}
            }
        }
    }

    /// Moves bytes. Answers whether something came of it that the session must know.
    fn drive(&mut self, now: Instant, deadline: Option<Instant>, cx: &mut Context<'_>) -> bool {
        let mut more = false;
        for link in &mut self.links {
            more |= link.drive(cx);
        }
        self.leaving.retain_mut(|socket| socket.drive(now, cx).is_pending());
        let deadline = self.leaving.iter().map(Leaving::deadline).chain(deadline).min();
        more | self.wait_until(deadline, cx)
    }

    /// Sets the timer. Answers whether it has expired.
    fn wait_until(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> bool {
        let Some(at) = deadline else {
            return false; // A timer that is set to an earlier deadline may wake us once for nothing.
        };
        let timer = match &mut self.timer {
            Some(timer) => {
                if self.armed != Some(at) {
                    timer.reset(at);
                }
                timer
            }
            None => self.timer.insert(self.runtime.timer(at)),
        };
        self.armed = Some(at);
        if timer.poll_expired(cx).is_pending() {
            return false;
        }
        self.armed = None;
        self.expired = true;
        true
    }
}

// Nothing in it is pinned in place.
impl<R: Runtime> Unpin for Driver<R> {}

impl<R: Runtime> Future for Driver<R> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        for _ in 0..TURNS_PER_POLL {
            let now = this.runtime.now();
            let Ok(turn) = this.turn(now, cx) else {
                return Poll::Ready(()); // Poisoned: whoever waits has been told.
            };
            this.act(now);
            if turn.ended {
                this.links = LinkId::ALL.map(Link::new);
            }
            let more = this.drive(now, turn.deadline.filter(|_| !turn.ended), cx);
            if turn.ended && this.leaving.is_empty() {
                return Poll::Ready(());
            }
            if !(more || turn.more) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<R: Runtime> Drop for Driver<R> {
    fn drop(&mut self) {
        self.shared.stop(Stopped::DriverGone);
    }
}
