use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use crate::shared::{Shared, Stopped};
use crate::testing::{CountingWaker, Greet, MemoryRuntime, connected, queue};
use crate::{ConnectedClient, EnqueueError};

const ROOM_FOR_MANY: usize = 100;

/// How many wait for a verdict, and how many for room.
fn waiting(client: &ConnectedClient) -> (usize, usize) {
    client.shared().with(|state, _| (state.publishes.len(), state.room.len())).unwrap()
}

fn break_it(shared: &Shared) {
    let broken = catch_unwind(AssertUnwindSafe(|| shared.with(|_, _| panic!("a bug"))));
    assert!(broken.is_err());
}

#[test]
fn an_enqueue_that_is_dropped_is_forgotten() {
    let runtime = MemoryRuntime::default();
    let (client, mut broker) = connected(&runtime, ROOM_FOR_MANY);
    let mut enqueue = Box::pin(client.enqueue(&queue(), &Greet::new("ada")));
    broker.serve(&runtime);
    assert_eq!((waiting(&client), broker.published()), ((0, 0), 0), "nothing happens before the first poll");
    assert!(runtime.poll(&mut enqueue).is_pending());
    broker.serve(&runtime);
    assert_eq!((waiting(&client), broker.published()), ((1, 0), 1));
    drop(enqueue);
    assert_eq!(waiting(&client), (0, 0));
}

#[test]
fn who_finds_no_room_waits_or_is_told_as_asked() {
    let runtime = MemoryRuntime::default();
    let (client, _broker) = connected(&runtime, 1);
    let mut first = Box::pin(client.enqueue(&queue(), &Greet::new("ada")));
    let mut second = Box::pin(client.enqueue(&queue(), &Greet::new("bob")));
    assert!(runtime.poll(&mut first).is_pending());
    assert!(runtime.poll(&mut second).is_pending());
    assert_eq!(waiting(&client), (1, 1));
    let mut third = Box::pin(client.try_enqueue(&queue(), &Greet::new("eve")));
    assert_eq!(runtime.poll(&mut third), Poll::Ready(Err(EnqueueError::Full)));
    drop(second);
    assert_eq!(waiting(&client), (1, 0));
}

#[test]
fn a_driver_that_is_dropped_ends_everything_that_waits() {
    let runtime = MemoryRuntime::default();
    let (client, _broker) = connected(&runtime, 1);
    let waker = CountingWaker::new();
    let mut accepted = Box::pin(client.enqueue(&queue(), &Greet::new("ada")));
    let mut full = Box::pin(client.enqueue(&queue(), &Greet::new("bob")));
    let mut run = Box::pin(client.worker(&queue()).handler(|_: Greet, _| async { Ok(()) }).run());
    assert!(accepted.as_mut().poll(&mut waker.context()).is_pending());
    assert!(full.as_mut().poll(&mut waker.context()).is_pending());
    assert!(run.as_mut().poll(&mut waker.context()).is_pending());

    runtime.drop_tasks();

    assert_eq!(waker.count(), 3);
    // This one may have been written.
    assert_eq!(runtime.poll(&mut accepted), Poll::Ready(Err(EnqueueError::Unconfirmed)));
    // These were not.
    assert_eq!(runtime.poll(&mut full), Poll::Ready(Err(EnqueueError::Closed)));
    let mut late = Box::pin(client.enqueue(&queue(), &Greet::new("eve")));
    assert_eq!(runtime.poll(&mut late), Poll::Ready(Err(EnqueueError::Closed)));
    let stopped = crate::WorkerError::Stopped(Stopped::DriverGone);
    assert_eq!(runtime.poll(&mut run), Poll::Ready(Err(stopped)));
    assert_eq!(runtime.block_on(client.shutdown(Duration::ZERO)), Err(Stopped::DriverGone));
}

#[test]
fn a_panic_under_the_lock_ends_everything_that_waits() {
    let runtime = MemoryRuntime::default();
    let (client, broker) = connected(&runtime, ROOM_FOR_MANY);
    let mut enqueue = Box::pin(client.enqueue(&queue(), &Greet::new("ada")));
    assert!(runtime.poll(&mut enqueue).is_pending());
    let waker = CountingWaker::new();
    assert!(enqueue.as_mut().poll(&mut waker.context()).is_pending());

    break_it(client.shared());

    assert_eq!(waker.count(), 1);
    assert_eq!(runtime.poll(&mut enqueue), Poll::Ready(Err(EnqueueError::Unconfirmed)));
    assert!(broker.peer().is_closed());
    assert_eq!(runtime.tasks(), 0, "the driver has ended");
    assert_eq!(runtime.block_on(client.shutdown(Duration::ZERO)), Err(Stopped::Poisoned));
}

#[test]
fn a_command_wakes_the_driver_once_until_it_has_run() {
    let runtime = MemoryRuntime::default();
    let (client, _broker) = connected(&runtime, ROOM_FOR_MANY);
    let sleeps = || client.shared().with(|state, _| state.driver.is_some()).unwrap();
    runtime.run();
    assert!(sleeps());
    client.shared().command(|_, _, _| ()).unwrap();
    assert!(!sleeps());
    client.shared().command(|_, _, _| ()).unwrap();
    runtime.run();
    assert!(sleeps());
}

#[test]
fn the_last_handle_that_is_dropped_shuts_the_client_down() {
    let runtime = MemoryRuntime::default();
    let (client, mut broker) = connected(&runtime, ROOM_FOR_MANY);
    let producer = client.producer(&queue()).unwrap();
    drop(client.clone());
    drop(client);
    broker.serve(&runtime);
    assert!(!broker.peer().is_closed());
    drop(producer);
    broker.serve(&runtime);
    assert!(broker.peer().is_closed());
    broker.peer().close();
    runtime.run();
    assert_eq!(runtime.tasks(), 0);
}

#[test]
fn a_client_that_was_shut_down_says_so_every_time() {
    let runtime = MemoryRuntime::default();
    let (client, mut broker) = connected(&runtime, ROOM_FOR_MANY);
    let mut first = Box::pin(client.shutdown(Duration::from_secs(1)));
    let mut second = Box::pin(client.shutdown(Duration::from_secs(1)));
    assert!(runtime.poll(&mut first).is_pending());
    assert!(runtime.poll(&mut second).is_pending());
    broker.serve(&runtime);
    let closed = runtime.block_on(first).unwrap();
    assert_eq!(closed.publish, crate::LinkEnd::Handshake);
    assert_eq!(closed.consume, crate::LinkEnd::NeverOpened);
    assert_eq!(runtime.block_on(second), Ok(closed.clone()));
    assert_eq!(runtime.block_on(client.shutdown(Duration::ZERO)), Ok(closed));
    let late = runtime.block_on(client.enqueue(&queue(), &Greet::new("ada")));
    assert_eq!(late, Err(EnqueueError::Closed));
}

#[test]
fn a_queue_that_is_described_otherwise_is_refused_before_anything_is_sent() {
    let runtime = MemoryRuntime::default();
    let (client, mut broker) = connected(&runtime, ROOM_FOR_MANY);
    let other = queue().prefetch(99);
    let name = other.name().clone();
    let refused = runtime.block_on(client.enqueue(&other, &Greet::new("ada")));
    assert_eq!(refused, Err(EnqueueError::DifferentDescription { queue: name.clone(), setting: "prefetch" }));
    let refused = runtime.block_on(client.worker(&other).handler(|_: Greet, _| async { Ok(()) }).run());
    assert_eq!(refused, Err(crate::WorkerError::DifferentDescription { queue: name, setting: "prefetch" }));
    let unknown = crate::Queue::new("unknown").unwrap();
    assert!(matches!(client.producer(&unknown), Err(EnqueueError::UnknownQueue { .. })));
    broker.serve(&runtime);
    assert_eq!(broker.published(), 0);
}

#[test]
fn handles_and_their_futures_can_be_sent_to_other_threads() {
    fn is_sent<T: Send>(value: T) -> T {
        value
    }
    fn is_shared<T: Sync>(_: &T) {}

    let (client, _broker) = connected(&MemoryRuntime::default(), ROOM_FOR_MANY);
    let client = is_sent(client);
    is_shared(&client);
    let greet = Greet::new("ada");
    drop(is_sent(client.enqueue(&queue(), &greet)));
    drop(is_sent(client.inspect(queue().name())));
    drop(is_sent(client.shutdown(Duration::ZERO)));
    let producer = is_sent(client.producer(&queue()).unwrap());
    is_shared(&producer);
    drop(is_sent(producer.enqueue(&greet)));
    drop(is_sent(client.worker(&queue()).handler(|_: Greet, _| async { Ok(()) }).run()));
}
