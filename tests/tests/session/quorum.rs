use leveret_core::retry::RetryPolicy;
use leveret_core::session::{Outcome, Settlement};
use leveret_core::table::Value;
use leveret_core::topology::Queue;
use leveret_testkit::broker::{BrokerConfig, BrokerEvent, ConfirmStyle};
use leveret_testkit::world::{World, raw_job};

use super::{emails, fail, millis, only_job, seconds, settlements};

/// How often something was published to a queue since this was last asked.
fn published(world: &mut World, queue: &str) -> usize {
    let events = world.take_broker_events();
    let to_it = |event: &&BrokerEvent| matches!(event, BrokerEvent::Published { routing_key, .. } if *routing_key == queue);
    events.iter().filter(to_it).count()
}

#[test]
fn a_job_of_a_quorum_queue_is_retried_through_replicated_holds_and_buried_in_the_end() {
    let mut world = World::new(1);
    let queue = emails().quorum();
    let client = world.connect([queue.clone()]);
    world.subscribe(client, &queue);
    let accepted = world.enqueue(client, &queue, raw_job("send-email"));
    for attempt in 1..=3 {
        let job = only_job(&mut world, client);
        assert_eq!((job.envelope.job_id(), job.envelope.attempt()), (accepted.job, attempt));
        world.settle(client, job.delivery, &fail("connection refused")).expect("it is in hand");
        world.run_for(millis(1_999));
        assert_eq!(world.take_jobs(client).len(), 0, "not before two seconds");
        world.run_for(millis(2));
    }
    let settled = settlements(&mut world, client);
    assert!(
        matches!(&settled[0], Settlement::Retried { waits_in, .. } if *waits_in == "emails.held.2000"),
        "{settled:?}"
    );
    assert_eq!(world.ready("emails.dead"), 1);
    assert_eq!((world.ready("emails"), world.unacked("emails")), (0, 0));
    world.run_for(seconds(3_600));
    assert!(world.broker().queue("emails.held.2000").is_some(), "a replicated hold stays");
}

#[test]
fn a_deferred_job_of_a_quorum_queue_carries_the_priority_that_rabbitmq_4_takes_as_high() {
    let mut world = World::new(1);
    let queue = emails().quorum();
    let client = world.connect([queue.clone()]);
    world.subscribe(client, &queue);
    world.enqueue(client, &queue, raw_job("send-email"));
    let job = only_job(&mut world, client);
    let outcome = Outcome::Defer { delay: seconds(0), reason: "429".to_owned() };
    world.settle(client, job.delivery, &outcome).expect("it is in hand");
    world.run_for(millis(1_001));
    let again = only_job(&mut world, client);
    assert_eq!((again.envelope.attempt(), again.envelope.deferrals(), again.envelope.priority()), (1, 1, 9));
}

#[test]
fn a_confirm_of_a_replicated_hold_may_take_longer_than_the_delay_and_makes_no_second_copy() {
    let mut world = World::new(1);
    // In front of a classic queue, which is a choice of its own.
    let queue = emails().replicated_holds([millis(2_500)]);
    let client = world.connect([queue.clone()]);
    world.broker_mut().set_confirms(ConfirmStyle::Batched { delay: seconds(30) });
    for _ in 0..3 {
        world.enqueue(client, &queue, raw_job("send-email").after(millis(2_500)));
        world.run_for(seconds(100));
    }
    assert_eq!(published(&mut world, "emails.held.2500"), 3);
    assert_eq!(world.ready("emails"), 3);
}

#[test]
fn a_replicated_hold_that_somebody_deleted_is_declared_again_and_the_job_goes_into_it() {
    let mut world = World::new(1);
    let queue = emails().quorum();
    let client = world.connect([queue.clone()]);
    world.enqueue(client, &queue, raw_job("send-email").after(seconds(2)));
    world.run_for(seconds(3));
    let now = world.now();
    assert!(world.broker_mut().delete_queue(now, "emails.held.2000"));
    world.enqueue(client, &queue, raw_job("send-email").after(seconds(2)));
    world.run_for(seconds(3));
    assert_eq!(world.ready("emails"), 2, "returned, declared, published again");
}

#[test]
fn a_job_that_is_requeued_too_often_is_where_the_broker_put_it() {
    let mut world = World::new(1);
    let queue = emails().quorum().delivery_limit(2);
    let client = world.connect([queue.clone()]);
    world.subscribe(client, &queue);
    world.enqueue(client, &queue, raw_job("send-email"));
    for _ in 0..3 {
        let job = only_job(&mut world, client);
        world.settle(client, job.delivery, &Outcome::Requeue).expect("it is in hand");
    }
    world.settle_down();
    assert!(world.take_jobs(client).is_empty());
    let dead = world.broker().queue("emails.dead").expect("it is declared").messages;
    assert_eq!(
        dead[0].header("x-first-death-reason").as_ref().and_then(Value::as_str),
        Some("delivery_limit")
    );
}

#[test]
fn coarse_delays_put_jittered_retries_into_few_holds() {
    let mut world = World::with_broker(BrokerConfig::default(), 1);
    let queue = Queue::new("emails").expect("a good name").coarse_delays(true);
    let queue = queue.retry(RetryPolicy::fixed(2, seconds(109)));
    let client = world.connect([queue.clone()]);
    for delay in 100..=110 {
        world.enqueue(client, &queue, raw_job("send-email").after(seconds(delay)));
    }
    world.settle_down();
    assert_eq!((world.ready("emails.deferred.100000"), world.ready("emails.deferred.110000")), (1, 10));
}

#[test]
fn links_that_break_while_jobs_are_in_replicated_holds_lose_none() {
    let mut world = World::new(1);
    let queue = emails().quorum();
    let client = world.connect([queue.clone()]);
    for n in 0..20 {
        world.enqueue(client, &queue, raw_job("send-email").after(millis(1_000 * (1 + n % 3))));
        if n % 5 == 0 {
            world.cut(client, leveret_core::session::LinkId::Publish);
        }
        world.run_for(millis(300));
    }
    world.run_for(seconds(60));
    assert!(world.ready("emails") >= 20, "{} arrived", world.ready("emails"));
}
