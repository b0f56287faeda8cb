//! A panic in a handler is a failed attempt, not the end of the worker.
//!
//! Caught are panics in the handler itself before its first await, in any poll of its future, and in the drop of
//! that future. Where the program is built with `panic = "abort"` nothing can be caught: the process ends and the
//! broker delivers the job again.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::text::bounded;

/// A handler's future, boxed because a worker has handlers of many types.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs `f` and answers with its value, or with the text of its panic.
///
/// Whatever `f` was in the middle of is thrown away, so nobody sees it half done.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(text)
}

/// A future whose panics, also in its drop, are its output.
pub(crate) struct Caught<T>(Option<BoxFuture<T>>);

impl<T> Caught<T> {
    pub(crate) const fn new(future: BoxFuture<T>) -> Self {
        Self(Some(future))
    }
}

impl<T> Future for Caught<T> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else {
            return Poll::Pending; // It has ended, and a future is not polled after that.
        };
        let output = match catch(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => Err(panic),
        };
        let dropped = catch(|| self.0 = None);
        Poll::Ready(output.and_then(|output| dropped.map(|()| output)))
    }
}

fn text(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => bounded(format_args!("the handler panicked: {text}")),
        (_, Some(text)) => bounded(format_args!("the handler panicked: {text}")),
        _ => "the handler panicked with a value that is no text".to_owned(),
    };
    // The value may panic when it is dropped, and so may what comes out of that; the second one is left alone.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CountingWaker;

    fn run<T>(future: impl Future<Output = T> + Send + 'static) -> Poll<Result<T, String>> {
        Pin::new(&mut Caught::new(Box::pin(future))).poll(&mut CountingWaker::new().context())
    }

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }

    #[test]
    fn a_panic_is_told_in_its_own_words() {
        assert_eq!(run(async { 7 }), Poll::Ready(Ok(7)));
        assert_eq!(
            run(async { panic!("plain") }),
            Poll::Ready::<Result<(), _>>(Err("the handler panicked: plain".to_owned()))
        );
        let number = 5;
        assert_eq!(
            run(async move { panic!("number {number}") }),
            Poll::Ready::<Result<(), _>>(Err("the handler panicked: number 5".to_owned()))
        );
        assert_eq!(
            run(async { std::panic::panic_any(5_u8) }),
            Poll::Ready::<Result<(), _>>(Err("the handler panicked with a value that is no text".to_owned()))
        );
    }

    #[test]
    fn a_panic_while_the_finished_future_is_dropped_is_a_failure_too() {
        let held = PanicsWhenDropped;
        let future = std::future::poll_fn(move |_| {
            let _held = &held;
            Poll::Ready(())
        });
        assert_eq!(run(future), Poll::Ready(Err("the handler panicked: in drop".to_owned())));
    }

    #[test]
    fn a_panic_value_that_panics_when_it_is_dropped_is_contained() {
        let outcome = run(async { std::panic::panic_any(PanicsWhenDropped) });
        assert!(matches!(outcome, Poll::Ready::<Result<(), _>>(Err(_))));
    }
}
