use leveret_core::session::{
    Closed, Left, LinkEnd, LinkId, Outcome, SessionEvent, SettleError, Settlement, SubscribeError,
    SubscriptionError,
};
use leveret_testkit::broker::{BrokerConfig, ConfirmStyle};
use leveret_testkit::world::{ClientId, World, raw_job};

use super::{emails, fail, millis, only_job, seconds};

fn closed(world: &mut World, client: ClientId) -> Option<Closed> {
    world.settle_down();
    let mut events = world.take_events(client);
    match events.pop() {
        Some(SessionEvent::Closed(closed)) => Some(closed),
        last => {
            assert!(
                !events.iter().any(|event| matches!(event, SessionEvent::Closed(_))),
                "it is the last event"
            );
            drop(last);
            None
        }
    }
}

fn shut_down(world: &mut World, client: ClientId, grace: u64) {
    let now = world.now();
    world.session(client).shutdown(now, seconds(grace));
}

#[test]
fn an_idle_session_closes_both_links_with_the_handshake() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    shut_down(&mut world, client, 10);
    let closed = closed(&mut world, client).expect("nothing stands in the way");
    assert_eq!((closed.publish, closed.consume), (LinkEnd::Handshake, LinkEnd::Handshake));
    assert_eq!((closed.unconfirmed, closed.unsettled), (0, 0));
    assert!(world.broker().connections().is_empty());
}

#[test]
fn a_session_that_never_consumed_has_one_link_to_close() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    shut_down(&mut world, client, 10);
    let closed = closed(&mut world, client).expect("nothing stands in the way");
    assert_eq!((closed.publish, closed.consume), (LinkEnd::Handshake, LinkEnd::NeverOpened));
}

#[test]
fn running_jobs_are_waited_for_and_those_that_nobody_has_seen_go_back() {
    let mut world = World::new(1);
    let queue = emails().prefetch(8);
    let client = world.connect([queue.clone()]);
    for _ in 0..8 {
        world.enqueue(client, &queue, raw_job("send-email"));
    }
    world.settle_down();
    let now = world.now();
    let subscription = world.session(client).subscribe(now, queue.name()).expect("accepted");
    world.settle_down();
    // The driver of this world takes events out at once, so that all eight are running.
    let jobs = world.take_jobs(client);
    assert_eq!(jobs.len(), 8);
    world.session(client).unsubscribe(now, subscription, seconds(10));
    world.settle_down();
    for job in &jobs[..3] {
        world.settle(client, job.delivery, &Outcome::Done).expect("it is in hand");
    }
    world.settle(client, jobs[3].delivery, &fail("no")).expect("it is in hand");
    world.run_for(seconds(5));
    assert!(!ended(&mut world, client), "four are still running");
    world.run_for(seconds(6));
    let events = world.take_events(client);
    let left = events.iter().find_map(|event| match event {
        SessionEvent::SubscriptionEnded { result: Ok(Left { unsettled, .. }), .. } => Some(*unsettled),
        _ => None,
    });
    assert_eq!(left, Some(4));
    assert_eq!(
        world.ready("emails"),
        5,
        "four that were not settled, and the retry whose two seconds are over"
    );
    assert_eq!(world.unacked("emails"), 0);
    let late = world.settle(client, jobs[7].delivery, &Outcome::Done);
    assert_eq!(late, Err(SettleError::Stale));
}

fn ended(world: &mut World, client: ClientId) -> bool {
    world.take_events(client).iter().any(|event| matches!(event, SessionEvent::SubscriptionEnded { .. }))
}

#[test]
fn nothing_is_requeued_before_the_consumer_is_gone() {
    // Requeueing earlier would bring the jobs straight to the consumer that does not want them.
    let mut world = World::new(1);
    let queue = emails().prefetch(4);
    let client = world.connect([queue.clone()]);
    let subscription = world.subscribe(client, &queue);
    for _ in 0..2 {
        world.enqueue(client, &queue, raw_job("send-email"));
    }
    let now = world.now();
    world.settle_down();
    world.take_jobs(client);
    world.session(client).unsubscribe(now, subscription, seconds(0));
    world.enqueue(client, &queue, raw_job("send-email"));
    world.settle_down();
    assert_eq!(world.take_jobs(client).len(), 0);
    assert_eq!((world.ready("emails"), world.unacked("emails")), (3, 0));
}

#[test]
fn what_the_application_requeues_waits_for_the_end_of_the_consumer_too() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    let subscription = world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    let now = world.now();
    world.session(client).unsubscribe(now, subscription, seconds(10));
    world.settle(client, job.delivery, &Outcome::Requeue).expect("it is in hand");
    world.send(client);
    assert_eq!((world.ready("emails"), world.unacked("emails")), (0, 1), "cancel-ok has not come yet");
    world.settle_down();
    assert_eq!((world.ready("emails"), world.unacked("emails")), (1, 0));
    assert!(ended(&mut world, client));
}

#[test]
fn a_subscription_can_be_started_again_after_it_ended() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    for _ in 0..3 {
        let subscription = world.subscribe(client, &emails());
        world.enqueue(client, &emails(), raw_job("send-email"));
        let job = only_job(&mut world, client);
        world.settle(client, job.delivery, &Outcome::Done).expect("it is in hand");
        let now = world.now();
        world.session(client).unsubscribe(now, subscription, seconds(1));
        world.settle_down();
        assert!(ended(&mut world, client));
    }
}

#[test]
fn a_retry_decided_in_the_grace_is_confirmed_and_then_its_original_acknowledged() {
    let config = BrokerConfig::default().confirms(ConfirmStyle::Batched { delay: millis(500) });
    let mut world = World::with_broker(config, 1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    world.run_for(seconds(1));
    let job = only_job(&mut world, client);
    shut_down(&mut world, client, 10);
    world.settle(client, job.delivery, &fail("no")).expect("it is in hand");
    world.run_for(seconds(2));
    let closed = closed(&mut world, client).expect("nothing stands in the way");
    assert_eq!((closed.unconfirmed, closed.unsettled), (0, 0));
    assert_eq!(world.unacked("emails") + world.ready("emails"), 1, "the retry, released from its hold");
}

#[test]
fn a_shutdown_ends_also_while_the_broker_blocks_and_answers_nothing() {
    let mut world = World::with_broker(BrokerConfig::default().confirms(ConfirmStyle::Withheld), 1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    world.settle_down();
    let now = world.now();
    world.broker_mut().block(now);
    world.enqueue(client, &emails(), raw_job("send-email"));
    shut_down(&mut world, client, 3);
    world.run_for(seconds(20));
    let events = world.take_events(client);
    let refused =
        events.iter().filter(|event| matches!(event, SessionEvent::Enqueued { result: Err(_), .. }));
    assert_eq!(refused.count(), 2, "each of the two is answered");
    let Some(SessionEvent::Closed(closed)) = events.last() else { panic!("it ends") };
    assert_eq!(closed.unconfirmed, 2);
    assert_eq!(closed.publish, LinkEnd::Cut);
}

#[test]
fn a_shutdown_ends_also_while_the_links_are_down() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.set_reachable(false);
    world.cut(client, LinkId::Publish);
    world.cut(client, LinkId::Consume);
    world.enqueue(client, &emails(), raw_job("send-email"));
    shut_down(&mut world, client, 5);
    world.run_for(seconds(6));
    let closed = closed(&mut world, client).expect("it ends");
    assert_eq!((closed.publish, closed.consume, closed.unconfirmed), (LinkEnd::Cut, LinkEnd::Cut, 1));
}

#[test]
fn a_publishing_link_that_cannot_come_back_ends_the_session_and_everybody_is_told_why() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    only_job(&mut world, client);
    let (now, publishing) = (world.now(), world.broker().connections()[0].id);
    world.broker_mut().close_connection(now, publishing, 530, "NOT_ALLOWED - vhost 'sales' is deleted");
    world.run_for(seconds(20));
    let events = world.take_events(client);
    let told = events.iter().find_map(|event| match event {
        SessionEvent::SubscriptionEnded { result, .. } => Some(result.clone()),
        _ => None,
    });
    assert!(matches!(told, Some(Err(SubscriptionError::Link(_)))), "{told:?}");
    let Some(SessionEvent::Closed(closed)) = events.last() else { panic!("it ends") };
    let cause = closed.cause.as_ref().expect("nobody asked it to end");
    assert!(cause.to_string().contains("vhost 'sales' is deleted"), "{cause}");
    assert_eq!((closed.unsettled, world.ready("emails")), (1, 1));
}

#[test]
fn what_was_settled_before_a_shutdown_without_grace_is_acknowledged() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    world.settle(client, job.delivery, &Outcome::Done).expect("it is in hand");
    shut_down(&mut world, client, 0);
    let closed = closed(&mut world, client).expect("nothing stands in the way");
    assert_eq!((closed.consume, closed.unsettled), (LinkEnd::Handshake, 0));
    assert_eq!((world.ready("emails"), world.unacked("emails")), (0, 0), "it does not run twice");
}

#[test]
fn shutting_down_twice_shortens_the_grace_and_ends_once() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    only_job(&mut world, client);
    shut_down(&mut world, client, 1_000);
    shut_down(&mut world, client, 2);
    shut_down(&mut world, client, 500);
    world.run_for(seconds(3));
    let events = world.take_events(client);
    assert_eq!(events.iter().filter(|event| matches!(event, SessionEvent::Closed(_))).count(), 1);
    assert!(events.iter().any(
        |event| matches!(event, SessionEvent::Settled(settled) if settled.settlement == Settlement::Stale)
    ));
    shut_down(&mut world, client, 0);
    world.run_for(seconds(10));
    assert!(world.take_events(client).is_empty());
}

#[test]
fn a_running_handler_may_enqueue_until_the_grace_is_over() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("first"));
    let running = only_job(&mut world, client);
    shut_down(&mut world, client, 10);
    world.enqueue(client, &emails(), raw_job("second"));
    world.settle(client, running.delivery, &Outcome::Done).expect("it is in hand");
    let closed = closed(&mut world, client).expect("nothing stands in the way");
    assert_eq!((closed.unconfirmed, closed.unsettled), (0, 0));
    assert_eq!(world.ready("emails"), 1);
    assert!(world.try_enqueue(client, &emails(), raw_job("third")).is_err());
}

#[test]
fn nothing_new_is_accepted_once_the_session_ends() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    shut_down(&mut world, client, 10);
    assert!(world.try_enqueue(client, &emails(), raw_job("send-email")).is_err());
    let now = world.now();
    let refused = world.session(client).subscribe(now, emails().name());
    assert_eq!(refused, Err(SubscribeError::Closed));
}

#[test]
fn a_session_that_was_never_connected_ends_at_once() {
    let mut world = World::new(1);
    let client = world.add(super::session([emails()]));
    shut_down(&mut world, client, 10);
    let closed = closed(&mut world, client).expect("nothing stands in the way");
    assert_eq!((closed.publish, closed.consume), (LinkEnd::NeverOpened, LinkEnd::NeverOpened));
}
