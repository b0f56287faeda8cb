//! The session against the embedded broker, in virtual time.
//!
//! Each file tells one part of the story: [`enqueue`], [`inspect`], [`outcomes`], [`bad_news`], [`quorum`], [`recovery`],
//! [`last_words`], [`ending`], [`oversized`].

#![expect(clippy::expect_used, reason = "a test that cannot go on says why")]

mod bad_news;
mod chaos;
mod ending;
mod enqueue;
mod inspect;
mod last_words;
mod outcomes;
mod oversized;
mod quorum;
mod recovery;

use std::time::Duration;

use leveret_core::retry::RetryPolicy;
use leveret_core::session::{JobDelivery, Outcome, Session, SessionEvent, Settlement};
use leveret_core::topology::Queue;
use leveret_testkit::world::{ClientId, World};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Three attempts, two seconds apart.
fn emails() -> Queue {
    Queue::new("emails").expect("a good name").retry(RetryPolicy::fixed(3, seconds(2)))
}

/// The one job that was delivered.
fn only_job(world: &mut World, client: ClientId) -> JobDelivery {
    world.settle_down();
    let mut jobs = world.take_jobs(client);
    assert_eq!(jobs.len(), 1, "exactly one job is delivered");
    jobs.remove(0)
}

/// What became of the deliveries that were settled since this was last asked.
fn settlements(world: &mut World, client: ClientId) -> Vec<Settlement> {
    world.settle_down();
    let events = world.take_events(client);
    events
        .into_iter()
        .filter_map(|event| match event {
            SessionEvent::Settled(settled) => Some(settled.settlement),
            _ => None,
        })
        .collect()
}

fn fail(error: &str) -> Outcome {
    Outcome::Retry { delay: None, error: error.to_owned() }
}

fn session(queues: impl IntoIterator<Item = Queue>) -> Session {
    Session::new(World::config(queues), 7).expect("the queues are described well")
}
