//! Who waits for which answer.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

/// The futures that wait for an answer, by the name of the question.
///
/// Its size is that of the futures that exist: a future that is dropped forgets its question, and the answer is
/// then ignored.
pub(crate) struct Waiters<K, T>(BTreeMap<K, Waiter<T>>);

enum Waiter<T> {
    /// Not answered yet; the waker of the last poll, if there was one.
    Waiting(Option<Waker>),
    Answered(T),
}

impl<K: Ord, T> Waiters<K, T> {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Notes that somebody waits for `key`.
    pub(crate) fn add(&mut self, key: K) {
        self.0.insert(key, Waiter::Waiting(None));
    }

    /// Keeps the first answer, if anybody still waits for it.
    pub(crate) fn answer(&mut self, key: &K, answer: T, wakes: &mut Wakes) {
        if let Some(waiter @ Waiter::Waiting(_)) = self.0.get_mut(key)
            && let Waiter::Waiting(waker) = std::mem::replace(waiter, Waiter::Answered(answer))
        {
            wakes.extend(waker);
        }
    }

    /// Gives all who wait the same answer, in the order of their keys.
    pub(crate) fn answer_all(&mut self, answer: impl Fn() -> T, wakes: &mut Wakes) {
        for waiter in self.0.values_mut() {
            if let Waiter::Waiting(waker) = waiter {
                wakes.extend(waker.take());
                *waiter = Waiter::Answered(answer());
            }
        }
    }

    /// Takes the answer out, or notes whom to wake. Nothing comes for a question that was not added.
    pub(crate) fn poll(&mut self, key: &K, cx: &Context<'_>, wakes: &mut Wakes) -> Poll<T> {
        match self.0.get_mut(key) {
            Some(Waiter::Waiting(waker)) => wakes.register(waker, cx),
            Some(Waiter::Answered(_)) => {
                if let Some(Waiter::Answered(answer)) = self.0.remove(key) {
                    return Poll::Ready(answer);
                }
            }
            None => {}
        }
        Poll::Pending
    }

    /// Nobody waits for `key` any more.
    pub(crate) fn forget(&mut self, key: &K, wakes: &mut Wakes) {
        if let Some(Waiter::Waiting(waker)) = self.0.remove(key) {
            wakes.retire(waker);
        }
    }

    /// Whom to wake because no answer will come. Answers that are there stay.
    pub(crate) fn wake_all(&mut self, wakes: &mut Wakes) {
        for waiter in self.0.values_mut() {
            if let Waiter::Waiting(waker) = waiter {
                wakes.extend(waker.take());
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Wakers that were collected under the lock, to be woken or dropped after it.
///
/// A woken task may want the lock at once. So may a waker that is dropped: it can be what kept a task alive, and
/// that task's future may hold something that tidies up under the lock.
#[derive(Default)]
pub(crate) struct Wakes {
    woken: Vec<Waker>,
    retired: Vec<Waker>,
}

impl Wakes {
    /// To be woken.
    pub(crate) fn extend(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.woken.extend(wakers);
    }

    /// To be dropped.
    pub(crate) fn retire(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.retired.extend(wakers);
    }

    /// Keeps the waker of `cx` in `slot`, without a clone where it is the one that is there.
    pub(crate) fn register(&mut self, slot: &mut Option<Waker>, cx: &Context<'_>) {
        if !slot.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            self.retire(slot.replace(cx.waker().clone()));
        }
    }

    /// Wakes and drops all, and is empty again with its memory kept.
    pub(crate) fn wake(&mut self) {
        for waker in self.woken.drain(..) {
            waker.wake();
        }
        self.retired.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CountingWaker;

    #[test]
    fn an_answer_wakes_the_one_who_waits_for_it_and_nobody_else() {
        let mut waiters = Waiters::new();
        let (one, two) = (CountingWaker::new(), CountingWaker::new());
        let mut wakes = Wakes::default();
        waiters.add(1);
        waiters.add(2);
        assert!(waiters.poll(&1, &one.context(), &mut wakes).is_pending());
        assert!(waiters.poll(&2, &two.context(), &mut wakes).is_pending());

        waiters.answer(&2, "routed", &mut wakes);
        wakes.wake();

        assert_eq!((one.count(), two.count()), (0, 1));
        assert_eq!(waiters.poll(&2, &two.context(), &mut wakes), Poll::Ready("routed"));
        assert!(waiters.poll(&1, &one.context(), &mut wakes).is_pending());
    }

    #[test]
    fn an_answer_that_comes_before_the_first_poll_is_kept() {
        let mut waiters = Waiters::new();
        let mut wakes = Wakes::default();
        waiters.add(1);
        waiters.answer(&1, "first", &mut wakes);
        waiters.answer(&1, "second", &mut wakes);
        assert_eq!(waiters.poll(&1, &CountingWaker::new().context(), &mut wakes), Poll::Ready("first"));
    }

    #[test]
    fn what_nobody_waits_for_leaves_nothing_behind() {
        let mut waiters = Waiters::new();
        let mut wakes = Wakes::default();
        waiters.add(1);
        waiters.forget(&1, &mut wakes);
        waiters.answer(&1, (), &mut wakes);
        assert_eq!(waiters.len(), 0);

        waiters.add(2);
        waiters.answer(&2, (), &mut wakes);
        assert!(waiters.poll(&2, &CountingWaker::new().context(), &mut wakes).is_ready());
        assert_eq!(waiters.len(), 0);
    }

    #[test]
    fn the_waker_of_the_last_poll_is_woken() {
        let mut waiters = Waiters::new();
        let (first, last) = (CountingWaker::new(), CountingWaker::new());
        let mut wakes = Wakes::default();
        waiters.add(1);
        assert!(waiters.poll(&1, &first.context(), &mut wakes).is_pending());
        assert!(waiters.poll(&1, &last.context(), &mut wakes).is_pending());
        waiters.answer(&1, (), &mut wakes);
        wakes.wake();
        assert_eq!((first.count(), last.count()), (0, 1));
    }
}
