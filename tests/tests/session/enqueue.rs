use std::time::Duration;

use leveret_core::delay::Granularity;
use leveret_core::session::{EnqueueError, NewJob, Session, SessionEvent};
use leveret_core::table::{Table, Value};
use leveret_core::text::ShortString;
use leveret_core::topology::{Queue, QueueDeclaration};
use leveret_testkit::broker::{BrokerConfig, ConfirmStyle};
use leveret_testkit::world::{ClientId, World, raw_job};
use proptest::prelude::*;

use super::{emails, millis, seconds};

fn verdicts(world: &mut World, client: ClientId) -> Vec<Result<(), EnqueueError>> {
    world.settle_down();
    let events = world.take_events(client);
    events
        .into_iter()
        .filter_map(|event| match event {
            SessionEvent::Enqueued { result, .. } => Some(result),
            _ => None,
        })
        .collect()
}

#[test]
fn an_enqueued_job_is_on_its_queue_and_confirmed() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.enqueue(client, &emails(), raw_job("send-email"));
    assert_eq!(verdicts(&mut world, client), [Ok(())]);
    assert_eq!(world.ready("emails"), 1);
}

#[test]
fn a_job_is_not_done_before_the_broker_confirms_it() {
    let mut world = World::with_broker(BrokerConfig::default().confirms(ConfirmStyle::Withheld), 1);
    let client = world.connect([emails()]);
    world.enqueue(client, &emails(), raw_job("send-email"));
    assert_eq!(verdicts(&mut world, client), []);
    assert_eq!(world.ready("emails"), 1, "the broker has it and has not said so");
    let now = world.now();
    world.broker_mut().release_confirms(now);
    assert_eq!(verdicts(&mut world, client), [Ok(())]);
}

#[test]
fn the_queues_have_exactly_the_documented_arguments() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.enqueue(client, &emails(), raw_job("send-email").after(seconds(30)));
    world.settle_down();
    let argument = |queue: &str, name: &str| {
        let queue = world.broker().queue(queue).expect("the queue exists");
        assert!(queue.durable);
        queue.arguments.get(name).cloned()
    };
    let count = |queue: &str| world.broker().queue(queue).expect("the queue exists").arguments.len();

    assert_eq!(argument("emails", "x-queue-type"), Some(Value::from("classic")));
    assert_eq!(argument("emails", "x-max-priority"), Some(Value::I64(10)));
    assert_eq!(count("emails"), 2);

    assert_eq!(argument("emails.dead", "x-queue-type"), Some(Value::from("classic")));
    assert_eq!(count("emails.dead"), 1);

    let hold = "emails.deferred.30000";
    assert_eq!(argument(hold, "x-queue-type"), Some(Value::from("classic")));
    assert_eq!(argument(hold, "x-message-ttl"), Some(Value::I64(30_000)));
    assert_eq!(argument(hold, "x-expires"), Some(Value::I64(60_000)));
    assert_eq!(argument(hold, "x-dead-letter-exchange"), Some(Value::from("")));
    assert_eq!(argument(hold, "x-dead-letter-routing-key"), Some(Value::from("emails")));
    assert_eq!(count(hold), 5);
}

#[test]
fn a_delayed_job_waits_its_time_and_not_a_moment_less() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.enqueue(client, &emails(), raw_job("send-email").after(millis(2_500)));
    world.run_for(millis(2_999));
    assert_eq!(world.ready("emails"), 0, "2.5 s are rounded up to 3 s");
    world.run_for(millis(2));
    assert_eq!(world.ready("emails"), 1);
}

#[test]
fn a_short_wait_does_not_stand_behind_a_long_one() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.enqueue(client, &emails(), raw_job("late").after(seconds(10)));
    world.enqueue(client, &emails(), raw_job("soon").after(seconds(1)));
    world.run_for(millis(1_001));
    assert_eq!(world.ready("emails"), 1);
    world.run_for(seconds(9));
    assert_eq!(world.ready("emails"), 2);
}

#[test]
fn a_hold_queue_that_is_used_for_hours_never_drops_a_job() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    let mut enqueued = 0;
    for _ in 0..5_000 {
        world.enqueue(client, &emails(), raw_job("send-email").after(seconds(2)));
        enqueued += 1;
        world.run_for(millis(700));
    }
    world.run_for(seconds(5));
    assert_eq!(world.ready("emails"), enqueued);
    assert!(world.broker().queue("emails.deferred.2000").is_none(), "and it goes when nobody needs it");
}

#[test]
fn a_delay_that_cannot_be_kept_is_refused_before_anything_is_sent() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    let longest = Duration::from_millis(2_147_483_000);
    let too_long = raw_job("send-email").after(longest + millis(1));
    let refused = world.try_enqueue(client, &emails(), too_long).expect_err("it is refused");
    assert!(matches!(refused, EnqueueError::DelayTooLong(_)), "{refused}");
    world.settle_down();
    assert_eq!(world.broker().queues().len(), 2, "no hold queue was declared");
    world.enqueue(client, &emails(), raw_job("send-email").after(longest));
    world.settle_down();
    assert_eq!(world.ready("emails.deferred.2147483000"), 1);
}

#[test]
fn a_queue_that_was_not_described_is_refused() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    let other = Queue::new("other").expect("a good name");
    let refused = world.try_enqueue(client, &other, raw_job("send-email")).expect_err("it is refused");
    assert!(matches!(refused, EnqueueError::UnknownQueue { .. }), "{refused}");
}

#[test]
fn a_queue_that_somebody_deleted_is_declared_again_and_the_job_is_not_lost() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    let now = world.now();
    assert!(world.broker_mut().delete_queue(now, "emails"));
    world.enqueue(client, &emails(), raw_job("send-email"));
    assert_eq!(verdicts(&mut world, client), [Ok(())]);
    assert_eq!(world.ready("emails"), 1);
}

#[test]
fn a_hold_queue_that_somebody_deleted_is_declared_again() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.enqueue(client, &emails(), raw_job("first").after(seconds(60)));
    world.settle_down();
    let now = world.now();
    assert!(world.broker_mut().delete_queue(now, "emails.deferred.60000"));
    world.enqueue(client, &emails(), raw_job("second").after(seconds(60)));
    assert_eq!(verdicts(&mut world, client), [Ok(()), Ok(())]);
    assert_eq!(world.ready("emails.deferred.60000"), 1);
}

#[test]
fn when_too_much_waits_the_caller_is_told_and_told_again_when_there_is_room() {
    let mut world = World::with_broker(BrokerConfig::default().confirms(ConfirmStyle::Withheld), 1);
    let mut config = World::config([emails()]);
    config.max_waiting = 10;
    let client = world.add(Session::new(config, 1).expect("a good configuration"));
    let now = world.now();
    world.session(client).connect(now);
    world.settle_down();
    for _ in 0..10 {
        world.enqueue(client, &emails(), raw_job("send-email"));
    }
    let refused = world.try_enqueue(client, &emails(), raw_job("send-email"));
    assert_eq!(refused, Err(EnqueueError::Full));
    world.settle_down();
    let now = world.now();
    world.broker_mut().release_confirms(now);
    world.settle_down();
    let events = world.take_events(client);
    assert_eq!(events.iter().filter(|event| matches!(event, SessionEvent::Writable)).count(), 1);
    assert!(world.try_enqueue(client, &emails(), raw_job("send-email")).is_ok());
}

#[test]
fn ten_thousand_jobs_are_pipelined_and_each_gets_its_verdict() {
    for style in [
        ConfirmStyle::Immediate,
        ConfirmStyle::Batched { delay: millis(20) },
        ConfirmStyle::OutOfOrder { delay: millis(20) },
    ] {
        let mut world = World::with_broker(BrokerConfig::default().confirms(style), 5);
        let client = world.connect([emails()]);
        for _ in 0..10_000 {
            world.enqueue(client, &emails(), raw_job("send-email"));
        }
        world.run_for(seconds(2));
        assert_eq!(verdicts(&mut world, client).len(), 10_000, "{style:?}");
        assert_eq!(world.ready("emails"), 10_000, "{style:?}");
    }
}

#[test]
fn a_job_whose_confirm_never_comes_is_answered_all_the_same() {
    let mut world = World::with_broker(BrokerConfig::default().confirms(ConfirmStyle::Withheld), 1);
    let client = world.connect([emails()]);
    world.enqueue(client, &emails(), raw_job("send-email"));
    world.run_for(seconds(59));
    assert_eq!(verdicts(&mut world, client), []);
    world.run_for(seconds(2));
    assert_eq!(verdicts(&mut world, client), [Err(EnqueueError::Unconfirmed)]);
    let now = world.now();
    world.broker_mut().release_confirms(now);
    assert_eq!(verdicts(&mut world, client), [], "a late confirm changes nothing");
}

#[test]
fn a_hold_queue_that_the_broker_refuses_costs_only_the_jobs_that_need_it() {
    let mut world = World::new(1);
    let others = Queue::new("others").expect("a good name");
    let client = world.connect([emails(), others.clone()]);
    world.declare(&QueueDeclaration::durable(ShortString::from_static("emails.deferred.5000"), Table::new()));
    for _ in 0..10 {
        world.enqueue(client, &emails(), raw_job("refused").after(seconds(5)));
        world.enqueue(client, &emails(), raw_job("held").after(seconds(6)));
        world.enqueue(client, &emails(), raw_job("now"));
        world.enqueue(client, &others, raw_job("now"));
    }
    let verdicts = verdicts(&mut world, client);
    let refused = verdicts.iter().filter(|verdict| matches!(verdict, Err(EnqueueError::Refused(_)))).count();
    assert_eq!((verdicts.len(), refused), (40, 10));
    assert_eq!((world.ready("emails"), world.ready("others")), (10, 10));
    // Those that shared the channel with a refused declare were sent again: at least once each.
    assert!(world.ready("emails.deferred.6000") >= 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the delay, the granularity, the kind of the holds and the slowness of the broker's confirms: on time, once or more often,
    /// and never early.
    #[test]
    fn no_delay_is_ever_shortened_and_no_job_is_ever_lost(
        delays in prop::collection::vec(0_u64..20_000, 1..12),
        step in 100_u64..3_000,
        holds in 0..4,
        confirm_after in 0_u64..4_000,
        pause in 0_u64..5_000,
    ) {
        let style = ConfirmStyle::Batched { delay: millis(confirm_after) };
        let mut world = World::with_broker(BrokerConfig::default().confirms(style), 3);
        let queue = emails().granularity(Granularity::new(millis(step)).expect("in range"));
        let queue = match holds {
            0 => queue,
            1 => queue.coarse_delays(true),
            2 => queue.replicated_holds(delays.iter().map(|delay| millis(delay + 100))),
            _ => queue.quorum(),
        };
        let client = world.connect([queue.clone()]);
        let mut due = Vec::new();
        for delay in &delays {
            let job: NewJob = raw_job("send-email").after(millis(*delay));
            let accepted = world.enqueue(client, &queue, job);
            due.push((accepted.job.to_string(), world.now() + millis(*delay)));
            world.run_for(millis(pause));
            assert_none_early(&world, &due)?;
        }
        for _ in 0..200 {
            world.run_for(millis(997));
            assert_none_early(&world, &due)?;
        }
        let arrived = arrived(&world);
        for (id, _) in &due {
            prop_assert!(arrived.contains(id), "a job is lost");
        }
    }
}

fn arrived(world: &World) -> Vec<String> {
    let queue = world.broker().queue("emails").expect("the queue exists");
    queue.messages.iter().filter_map(|message| message.message_id.as_ref().map(ToString::to_string)).collect()
}

fn assert_none_early(
    world: &World,
    due: &[(String, leveret_core::time::Instant)],
) -> Result<(), TestCaseError> {
    for id in arrived(world) {
        let (_, at) = due.iter().find(|(known, _)| *known == id).expect("only our jobs are there");
        prop_assert!(world.now() >= *at, "a job came early");
    }
    Ok(())
}
