//! A future that waits for one answer of the session.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{End, Shared, State, Stopped};
use crate::waiters::Waiters;

/// The table in which an answer will be found.
type Table<K, T> = fn(&mut State) -> &mut Waiters<K, T>;

/// Waits for the answer to `key`, which was added to the table before.
///
/// Its output is the answer, or why none will come: `Ok(None)` when the session ended without one. Dropping it
/// forgets the question; what was asked for may still happen.
pub(crate) struct Answer<K: Ord, T> {
    shared: Arc<Shared>,
    table: Table<K, T>,
    key: K,
    taken: bool,
}

impl<K: Ord, T> Answer<K, T> {
    pub(crate) fn new(shared: &Arc<Shared>, table: Table<K, T>, key: K) -> Self {
        Self { shared: shared.clone(), table, key, taken: false }
    }
}

impl<K: Ord + Unpin, T> Future for Answer<K, T> {
    type Output = Result<Option<T>, Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let polled = this.shared.with(|state, wakes| match (this.table)(state).poll(&this.key, cx, wakes) {
            Poll::Ready(answer) => Poll::Ready(Ok(Some(answer))),
            Poll::Pending => match &state.end {
                None => Poll::Pending,
                Some(End::Stopped(stopped)) => Poll::Ready(Err(*stopped)),
                Some(End::Closed(_) | End::NotConnected) => Poll::Ready(Ok(None)),
            },
        });
        let polled = polled.unwrap_or_else(|stopped| Poll::Ready(Err(stopped)));
        this.taken = matches!(polled, Poll::Ready(Ok(Some(_))));
        polled
    }
}

impl<K: Ord, T> Drop for Answer<K, T> {
    fn drop(&mut self) {
        if !self.taken {
            // Where the lock is poisoned there is no table left to tidy.
            let _ = self.shared.with(|state, wakes| (self.table)(state).forget(&self.key, wakes));
        }
    }
}
