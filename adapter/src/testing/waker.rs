//! A waker that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

/// A waker that counts how often it was woken.
pub(crate) struct CountingWaker {
    count: Arc<Count>,
    waker: Waker,
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl CountingWaker {
    pub(crate) fn new() -> Self {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        Self { waker: Waker::from(count.clone()), count }
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    pub(crate) fn count(&self) -> usize {
        self.count.0.load(Ordering::Relaxed)
    }
}
