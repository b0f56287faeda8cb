//! A broker that says several things at once before it is gone: the session hears of each while nothing can be
//! sent any more.

use std::time::Duration;

use leveret_core::envelope::RawPayload;
use leveret_core::session::{EnqueueError, LinkId, NewJob, Outcome, Session, SessionEvent};
use leveret_testkit::broker::{BrokerConfig, ConfirmStyle};
use leveret_testkit::world::{ClientId, World, raw_job};

use super::{emails, fail, only_job, seconds, session, settlements};

/// The broker closes the connections of one link, in the words of an operator.
fn close(world: &mut World, link: &str) {
    let now = world.now();
    for connection in world.broker().connections() {
        if connection.name.as_ref().is_none_or(|name| name.ends_with(link)) {
            world.broker_mut().close_connection(now, connection.id, 320, "CONNECTION_FORCED");
        }
    }
}

/// Until the broker has opened the connection, and the client has not heard of it.
fn until_opened(world: &mut World, client: ClientId) {
    while world.broker().connections().is_empty() {
        world.round();
        world.send(client);
    }
}

fn verdicts(world: &mut World, client: ClientId) -> Vec<Result<(), EnqueueError>> {
    let events = world.take_events(client);
    let verdict = |event| match event {
        SessionEvent::Enqueued { result, .. } => Some(result),
        _ => None,
    };
    events.into_iter().filter_map(verdict).collect()
}

fn large_job(bytes: usize) -> NewJob {
    let payload = RawPayload::from_serialize(&"x".repeat(bytes)).expect("text is JSON");
    NewJob::new(raw_job("large").job_type, payload)
}

#[test]
fn jobs_that_come_back_with_the_close_of_the_connection_are_sent_again() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    let now = world.now();
    assert!(world.broker_mut().delete_queue(now, "emails"));
    for _ in 0..3 {
        world.enqueue(client, &emails(), raw_job("send-email"));
    }
    world.send(client);
    close(&mut world, "");
    world.run_for(seconds(30));
    assert_eq!(verdicts(&mut world, client), [Ok(()), Ok(()), Ok(())]);
    assert_eq!(world.ready("emails"), 3);
}

#[test]
fn a_retry_that_comes_back_with_the_close_of_the_connection_is_sent_again() {
    let mut world = World::new(1);
    let queue = emails();
    let client = world.connect([queue.clone()]);
    world.subscribe(client, &queue);
    world.enqueue(client, &queue, raw_job("send-email"));
    let job = only_job(&mut world, client);
    let outcome = Outcome::DeadLetter { reason: "fatal".to_owned() };
    let now = world.now();
    assert!(world.broker_mut().delete_queue(now, "emails.dead"));
    world.settle(client, job.delivery, &outcome).expect("it is in hand");
    world.send(client);
    // The oldest connection is the one that publishes.
    let connection = world.broker().connections()[0].id;
    world.broker_mut().close_connection(now, connection, 320, "CONNECTION_FORCED");
    world.run_for(seconds(30));
    assert_eq!(settlements(&mut world, client).len(), 1);
    assert_eq!((world.ready("emails.dead"), world.unacked("emails")), (1, 0));
}

#[test]
fn jobs_whose_channel_and_connection_end_at_once_are_answered() {
    let config = BrokerConfig::default().max_message_bytes(10_000).confirms(ConfirmStyle::Withheld);
    let mut world = World::with_broker(config, 1);
    let client = world.connect([emails()]);
    for delay in [0, 5] {
        world.enqueue(client, &emails(), raw_job("small").after(seconds(delay)));
        world.enqueue(client, &emails(), large_job(20_000).after(seconds(delay)));
    }
    world.send(client);
    close(&mut world, "");
    world.run_for(seconds(30));
    assert_eq!(verdicts(&mut world, client).len(), 4, "each is answered, and none waits for ever");
}

#[test]
fn a_retry_whose_channel_and_connection_end_at_once_is_sent_again() {
    let config = BrokerConfig::default().max_message_bytes(10_000);
    let mut world = World::with_broker(config, 1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    world.broker_mut().set_confirms(ConfirmStyle::Withheld);
    world.settle(client, job.delivery, &fail("no")).expect("it is in hand");
    world.enqueue(client, &emails(), large_job(20_000).after(seconds(2)));
    world.send(client);
    world.broker_mut().set_confirms(ConfirmStyle::Immediate);
    let (now, connection) = (world.now(), world.broker().connections()[0].id);
    world.broker_mut().close_connection(now, connection, 320, "CONNECTION_FORCED");
    world.run_for(seconds(1));
    world.run_for(seconds(29));
    let again = world.take_jobs(client);
    assert!(again.iter().any(|job| job.envelope.attempt() == 2), "its next attempt runs");
    assert_eq!(settlements(&mut world, client).len(), 1);
}

#[test]
fn confirms_that_came_too_late_with_the_close_of_the_connection_are_not_forgotten() {
    let mut world = World::with_broker(BrokerConfig::default().confirms(ConfirmStyle::Withheld), 1);
    let client = world.connect([emails()]);
    for _ in 0..3 {
        world.enqueue(client, &emails(), raw_job("send-email").after(seconds(4)));
    }
    world.run_for(seconds(5));
    let now = world.now();
    world.broker_mut().release_confirms(now);
    close(&mut world, "");
    world.broker_mut().set_confirms(ConfirmStyle::Immediate);
    world.run_for(seconds(60));
    assert_eq!(verdicts(&mut world, client), [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn a_connection_that_is_closed_with_its_first_breath_is_tried_again() {
    let mut world = World::new(1);
    let mut config = World::config([emails()]);
    config.reconnect.base = Duration::ZERO;
    let client = world.add(Session::new(config, 1).expect("a good configuration"));
    let now = world.now();
    world.session(client).connect(now);
    world.settle_down();
    world.cut(client, LinkId::Publish);
    world.session(client).handle_timeout(now);
    until_opened(&mut world, client);
    close(&mut world, "");
    world.run_for(seconds(30));
    world.enqueue(client, &emails(), raw_job("send-email"));
    world.settle_down();
    assert_eq!(world.ready("emails"), 1, "the session goes on");
}

#[test]
fn a_first_connection_that_is_closed_with_its_first_breath_is_told() {
    let mut world = World::new(1);
    let client = world.add(session([emails()]));
    let now = world.now();
    world.session(client).connect(now);
    until_opened(&mut world, client);
    close(&mut world, "");
    world.run_for(seconds(30));
    let events = world.take_events(client);
    let Some(SessionEvent::ConnectFailed(error)) = events.last() else { panic!("it is told: {events:?}") };
    assert!(error.to_string().contains("320"), "the broker's reason is told: {error}");
}
