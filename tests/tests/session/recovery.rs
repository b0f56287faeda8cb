use leveret_core::session::{LinkId, Outcome, SessionEvent, SettleError, Settlement};
use leveret_testkit::broker::ConfirmStyle;
use leveret_testkit::world::{World, raw_job};

use super::{emails, fail, only_job, seconds, settlements};

#[test]
fn jobs_enqueued_while_the_link_is_down_arrive_when_it_is_back() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.set_reachable(false);
    world.cut(client, LinkId::Publish);
    world.enqueue(client, &emails(), raw_job("send-email"));
    world.run_for(seconds(20));
    assert_eq!(world.ready("emails"), 0);
    world.set_reachable(true);
    world.run_for(seconds(40));
    assert_eq!(world.ready("emails"), 1);
    let events = world.take_events(client);
    assert!(
        events.iter().any(|event| matches!(event, SessionEvent::Disconnected { link: LinkId::Publish, .. }))
    );
    assert!(events.iter().any(|event| matches!(event, SessionEvent::Enqueued { result: Ok(()), .. })));
}

#[test]
fn a_job_that_cannot_be_sent_in_time_is_answered_with_an_error() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.set_reachable(false);
    world.cut(client, LinkId::Publish);
    world.enqueue(client, &emails(), raw_job("send-email"));
    world.run_for(seconds(61));
    let events = world.take_events(client);
    assert!(events.iter().any(|event| matches!(event, SessionEvent::Enqueued { result: Err(_), .. })));
    world.set_reachable(true);
    world.run_for(seconds(60));
    assert_eq!(world.ready("emails"), 0, "what was answered with an error is not sent later");
}

#[test]
fn what_had_no_verdict_at_a_cut_is_sent_again_under_the_same_id() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.broker_mut().set_confirms(ConfirmStyle::Withheld);
    let accepted = world.enqueue(client, &emails(), raw_job("send-email"));
    world.settle_down();
    world.broker_mut().set_confirms(ConfirmStyle::Immediate);
    world.cut(client, LinkId::Publish);
    world.run_for(seconds(30));
    let messages = world.broker().queue("emails").expect("declared").messages;
    assert_eq!(messages.len(), 2, "at least once: here twice");
    for message in messages {
        assert_eq!(message.message_id.as_deref(), Some(accepted.job.to_string().as_str()));
    }
}

#[test]
fn a_consumer_comes_back_and_a_job_that_was_running_is_delivered_again() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let running = only_job(&mut world, client);
    world.cut(client, LinkId::Consume);
    assert_eq!(settlements(&mut world, client), [Settlement::Stale]);
    world.run_for(seconds(30));
    let again = only_job(&mut world, client);
    assert!(again.redelivered);
    let late = world.settle(client, running.delivery, &Outcome::Done);
    assert_eq!(late, Err(SettleError::Stale));
    world.settle(client, again.delivery, &Outcome::Done).expect("it is in hand");
    world.settle_down();
    assert_eq!((world.ready("emails"), world.unacked("emails")), (0, 0));
}

#[test]
fn a_retry_that_waits_for_the_publishing_link_keeps_its_delivery_in_hand() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    world.set_reachable(false);
    world.cut(client, LinkId::Publish);
    world.settle(client, job.delivery, &fail("no")).expect("it is in hand");
    world.run_for(seconds(300));
    assert_eq!(world.unacked("emails"), 1, "it is neither acknowledged nor requeued");
    world.set_reachable(true);
    assert!(world.run_until(seconds(120), |world| world.unacked("emails") == 0));
    assert_eq!(world.ready("emails.deferred.2000"), 1);
}

#[test]
fn the_retry_of_a_stale_delivery_is_not_sent() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    world.set_reachable(false);
    world.cut(client, LinkId::Publish);
    world.settle(client, job.delivery, &fail("no")).expect("it is in hand");
    world.cut(client, LinkId::Consume);
    world.set_reachable(true);
    world.run_for(seconds(60));
    assert_eq!(world.ready("emails.deferred.2000"), 0);
    assert_eq!(
        only_job(&mut world, client).envelope.attempt(),
        1,
        "the broker delivers the first attempt again"
    );
}

#[test]
fn while_an_alarm_blocks_publishers_jobs_are_still_acknowledged_and_retries_wait() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("done"));
    world.enqueue(client, &emails(), raw_job("failed"));
    world.settle_down();
    let jobs = world.take_jobs(client);
    let now = world.now();
    world.broker_mut().block(now);
    world.enqueue(client, &emails(), raw_job("later"));
    world.settle_down();
    world.settle(client, jobs[0].delivery, &Outcome::Done).expect("it is in hand");
    world.settle(client, jobs[1].delivery, &fail("no")).expect("it is in hand");
    world.settle_down();
    assert_eq!(world.unacked("emails"), 1, "the done one is acknowledged, the failed one is kept");
    let now = world.now();
    world.broker_mut().unblock(now);
    world.settle_down();
    assert_eq!(world.ready("emails.deferred.2000"), 1);
    assert_eq!(only_job(&mut world, client).envelope.job_type().as_str(), "later");
}

#[test]
fn a_consumer_that_the_broker_cancels_declares_its_queue_again_and_goes_on() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    let now = world.now();
    assert!(world.broker_mut().delete_queue(now, "emails"));
    world.settle_down();
    world.enqueue(client, &emails(), raw_job("send-email"));
    only_job(&mut world, client);
}

#[test]
fn a_broker_that_closes_every_connection_gets_them_back_in_order() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    for connection in world.broker().connections() {
        let now = world.now();
        world.broker_mut().close_connection(now, connection.id, 320, "CONNECTION_FORCED - going down");
    }
    world.run_for(seconds(30));
    world.enqueue(client, &emails(), raw_job("send-email"));
    only_job(&mut world, client);
    assert_eq!(world.broker().connections().len(), 2);
    assert_eq!(world.broker().queue("emails").expect("declared").consumers, 1);
}

#[test]
fn a_process_that_dies_loses_nothing() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    for _ in 0..10 {
        world.enqueue(client, &emails(), raw_job("send-email"));
    }
    world.settle_down();
    assert_eq!(world.unacked("emails"), 10);
    world.kill(client);
    assert_eq!((world.ready("emails"), world.unacked("emails")), (10, 0));
    let next = world.connect([emails()]);
    world.subscribe(next, &emails());
    assert!(world.take_jobs(next).iter().all(|job| job.redelivered));
}

#[test]
fn after_a_sleep_of_the_machine_no_hold_queue_is_taken_for_younger_than_it_is() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.enqueue(client, &emails(), raw_job("before").after(seconds(10)));
    // The lease of the hold is 20 s. For the client no time has passed since it was declared.
    world.sleep(client, seconds(15));
    world.enqueue(client, &emails(), raw_job("after").after(seconds(10)));
    world.run_for(seconds(11));
    assert_eq!(world.ready("emails"), 2);
}
