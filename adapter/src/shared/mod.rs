//! What the handles, the handlers and the driver share: the session behind a lock, and who waits for what.
//!
//! A handle locks, gives its command to the session, and wakes the driver; there is no command channel and no task
//! per publish. Three rules keep that safe: the lock is never held across a system call or an await, the work
//! under it is bounded, and wakers are collected under it and woken after it.

mod answer;
mod state;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use leveret_core::session::Session;
use leveret_core::time::{Instant, UnixMillis};

pub(crate) use answer::Answer;
pub(crate) use state::{End, Outside, State, Ticket};

use crate::panic::BoxFuture;
use crate::runtime::Spawn;
use crate::waiters::Wakes;

/// A session that tasks and threads share.
pub(crate) struct Shared {
    state: Mutex<State>,
    services: Box<dyn Services>,
}

/// What handles need of the runtime, with its type erased, so that no handle is generic.
trait Services: Send + Sync {
    fn now(&self) -> Instant;
    fn wall(&self) -> UnixMillis;
    fn spawn(&self, task: BoxFuture<()>);
}

impl<R: Spawn> Services for R {
    fn now(&self) -> Instant {
        self.now()
    }

    fn wall(&self) -> UnixMillis {
        self.wall()
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.spawn(task);
    }
}

/// The client has stopped without having been shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// The task that drives the connections is gone, usually with its runtime.
    DriverGone,
    /// A panic inside leveret left the session in an unknown state, so it is not used any further.
    Poisoned,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DriverGone => {
                "the client's driver is gone: was its runtime shut down, or is connect() called outside of one? \
                 Shut the client down first, and connect inside a runtime"
            }
            Self::Poisoned => {
                "a panic inside leveret stopped the client: connect anew, and report the panic as a bug"
            }
        })
    }
}

impl std::error::Error for Stopped {}

impl Shared {
    pub(crate) fn new(session: Session, runtime: impl Spawn) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::new(session)), services: Box::new(runtime) })
    }

    pub(crate) fn wall(&self) -> UnixMillis {
        self.services.wall()
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.services.spawn(Box::pin(task));
    }

    /// Runs `f` under the lock; what it collects is woken after it.
    ///
    /// # Errors
    ///
    /// [`Stopped::Poisoned`] when an earlier `f` panicked.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut State, &mut Wakes) -> T) -> Result<T, Stopped> {
        let mut wakes = Wakes::default();
        let result = self.lock(&mut wakes, f);
        wakes.wake();
        result
    }

    /// Runs `f`, which gives the session something to do, and wakes the driver to do it.
    ///
    /// # Errors
    ///
    /// [`Stopped`] when there is no driver any more that would.
    pub(crate) fn command<T>(
        &self,
        f: impl FnOnce(&mut State, Instant, &mut Wakes) -> T,
    ) -> Result<T, Stopped> {
        // A clock may be a system call. That `now` is a little old under the lock is a step back, which a session
        // tolerates.
        let (now, wall) = (self.services.now(), self.services.wall());
        let (result, driver) = self.with(|state, wakes| match &state.end {
            Some(End::Stopped(stopped)) => (Err(*stopped), None),
            _ => {
                state.session.handle_wall_clock(now, wall);
                (Ok(f(state, now, wakes)), state.driver.take())
            }
        })?;
        if let Some(driver) = driver {
            driver.wake();
        }
        result
    }

    /// The same as [`Self::with`], for a caller who brings its own memory and wakes by itself.
    pub(crate) fn lock<T>(
        &self,
        wakes: &mut Wakes,
        f: impl FnOnce(&mut State, &mut Wakes) -> T,
    ) -> Result<T, Stopped> {
        // Dropped after the guard: by then the lock is free, and poisoned.
        let _on_panic = EndOnPanic(self);
        match self.state.lock() {
            Ok(mut state) => Ok(f(&mut state, wakes)),
            Err(_) => Err(Stopped::Poisoned),
        }
    }

    /// Ends everything that waits, unless the session has ended in its own way.
    pub(crate) fn stop(&self, why: Stopped) {
        let mut wakes = Wakes::default();
        // What a panic left behind is not used: all it is asked for is who waits.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.end.get_or_insert(End::Stopped(why));
        state.wake_all(&mut wakes);
        drop(state);
        wakes.wake();
    }
}

struct EndOnPanic<'s>(&'s Shared);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        // `panicking` alone is not enough: a future may be dropped, and lock, while its task unwinds.
        if std::thread::panicking() && self.0.state.is_poisoned() {
            self.0.stop(Stopped::Poisoned);
        }
    }
}
