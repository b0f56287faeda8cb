use leveret_core::envelope::{DecodeError, JobType, RawPayload};
use leveret_core::retry::RetryPolicy;
use leveret_core::session::{EnqueueError, NewJob, Outcome, Session, SettleError, Settlement};
use leveret_testkit::broker::{BrokerConfig, ConfirmStyle};
use leveret_testkit::world::{World, raw_job};

use super::{emails, fail, millis, only_job, seconds, settlements};

#[test]
fn a_job_that_is_done_is_gone() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    assert_eq!(job.envelope.attempt(), 1);
    world.settle(client, job.delivery, &Outcome::Done).expect("it is in hand");
    assert_eq!(settlements(&mut world, client), [Settlement::Done]);
    assert_eq!((world.ready("emails"), world.unacked("emails")), (0, 0));
}

#[test]
fn a_failed_job_comes_back_after_its_delay_until_its_attempts_are_used_up() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    let accepted = world.enqueue(client, &emails(), raw_job("send-email"));
    for attempt in 1..=3 {
        let job = only_job(&mut world, client);
        assert_eq!((job.envelope.job_id(), job.envelope.attempt()), (accepted.job, attempt));
        world.settle(client, job.delivery, &fail("connection refused")).expect("it is in hand");
        world.run_for(millis(1_999));
        assert_eq!(world.take_jobs(client).len(), 0, "not before two seconds");
        world.run_for(millis(2));
    }
    assert_eq!(world.take_jobs(client).len(), 0, "three attempts are all");
    let dead = world.broker().queue("emails.dead").expect("it is declared").messages;
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].message_id.as_deref(), Some(accepted.job.to_string().as_str()));
    let settled = settlements(&mut world, client);
    assert!(
        matches!(&settled[0], Settlement::Retried { attempt: 2, waits_in, .. } if *waits_in == "emails.deferred.2000")
    );
    assert!(matches!(&settled[2], Settlement::DeadLettered { reason, into }
        if reason.contains("connection refused") && *into == "emails.dead"));
}

#[test]
fn the_original_is_not_acknowledged_before_its_successor_is_confirmed() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    world.broker_mut().set_confirms(ConfirmStyle::Withheld);
    world.settle(client, job.delivery, &fail("no")).expect("it is in hand");
    world.settle_down();
    assert_eq!(world.unacked("emails"), 1, "published, and not confirmed");
    assert_eq!(world.ready("emails.deferred.2000"), 1);
    let now = world.now();
    world.broker_mut().release_confirms(now);
    world.settle_down();
    assert_eq!(world.unacked("emails"), 0);
}

#[test]
fn a_confirm_that_comes_too_late_for_the_hold_makes_a_second_copy_and_never_a_loss() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    let accepted = world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    world.broker_mut().set_confirms(ConfirmStyle::Batched { delay: seconds(30) });
    world.settle(client, job.delivery, &fail("no")).expect("it is in hand");
    assert!(world.run_until(seconds(600), |world| world.unacked("emails") == 0
        || !world.take_jobs(client).is_empty()));
    world.broker_mut().set_confirms(ConfirmStyle::Immediate);
    let mut seen = 0;
    world.run_for(seconds(600));
    for job in world.take_jobs(client) {
        assert_eq!(job.envelope.job_id(), accepted.job);
        seen += 1;
    }
    assert!(seen + world.unacked("emails") + world.ready("emails") >= 1, "it runs at least once more");
}

#[test]
fn a_deferred_job_overtakes_the_backlog_and_keeps_its_attempt() {
    let mut world = World::new(1);
    let queue = emails().prefetch(1);
    let client = world.connect([queue.clone()]);
    world.subscribe(client, &queue);
    let deferred = world.enqueue(client, &queue, raw_job("send-email"));
    let first = only_job(&mut world, client);
    for _ in 0..5 {
        world.enqueue(client, &queue, raw_job("send-email"));
    }
    let outcome = Outcome::Defer { delay: seconds(1), reason: "429".to_owned() };
    world.settle(client, first.delivery, &outcome).expect("it is in hand");
    world.run_for(millis(1_001));
    let running = only_job(&mut world, client);
    world.settle(client, running.delivery, &Outcome::Done).expect("it is in hand");
    let next = only_job(&mut world, client);
    assert_eq!(next.envelope.job_id(), deferred.job, "it runs second, ahead of four that came before");
    assert_eq!((next.envelope.attempt(), next.envelope.deferrals()), (1, 1));
}

#[test]
fn a_retried_job_joins_the_back() {
    let mut world = World::new(1);
    let queue = emails().prefetch(1).retry(RetryPolicy::fixed(3, seconds(0)));
    let client = world.connect([queue.clone()]);
    world.subscribe(client, &queue);
    let failed = world.enqueue(client, &queue, raw_job("send-email"));
    world.enqueue(client, &queue, raw_job("other"));
    let first = only_job(&mut world, client);
    world.settle(client, first.delivery, &fail("no")).expect("it is in hand");
    let other = only_job(&mut world, client);
    assert_ne!(other.envelope.job_id(), failed.job);
    world.settle(client, other.delivery, &Outcome::Done).expect("it is in hand");
    assert_eq!(only_job(&mut world, client).envelope.job_id(), failed.job);
}

#[test]
fn a_job_that_can_never_succeed_goes_to_the_dead_letter_queue_at_once() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    let outcome = Outcome::DeadLetter { reason: "no such address".to_owned() };
    world.settle(client, job.delivery, &outcome).expect("it is in hand");
    let settled = settlements(&mut world, client);
    assert!(matches!(&settled[..], [Settlement::DeadLettered { reason, .. }] if reason == "no such address"));
    assert_eq!(world.ready("emails.dead"), 1);
}

#[test]
fn without_a_dead_letter_queue_a_dead_job_is_rejected() {
    let mut world = World::new(1);
    let queue = emails().dead_letters(false);
    let client = world.connect([queue.clone()]);
    world.subscribe(client, &queue);
    world.enqueue(client, &queue, raw_job("send-email"));
    let job = only_job(&mut world, client);
    world.settle(client, job.delivery, &Outcome::DeadLetter { reason: "no".to_owned() }).expect("in hand");
    assert!(matches!(&settlements(&mut world, client)[..], [Settlement::Rejected { .. }]));
    assert_eq!(world.unacked("emails"), 0);
    assert!(world.broker().queue("emails.dead").is_none());
}

#[test]
fn a_job_that_is_requeued_is_delivered_again() {
    let mut world = World::new(1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    world.settle(client, job.delivery, &Outcome::Requeue).expect("it is in hand");
    let again = only_job(&mut world, client);
    assert!(again.redelivered);
    assert_eq!(again.envelope.attempt(), 1);
}

#[test]
fn a_job_that_is_dropped_is_gone_also_where_the_broker_keeps_what_is_rejected_and_somebody_hears_why() {
    // On a quorum queue the broker itself moves what is rejected to the dead-letter queue.
    for queue in [emails(), emails().dead_letters(false), emails().quorum()] {
        let mut world = World::new(1);
        let client = world.connect([queue.clone()]);
        world.subscribe(client, &queue);
        world.enqueue(client, &queue, raw_job("send-email"));
        let job = only_job(&mut world, client);
        let reason = "the account was closed".to_owned();
        world.settle(client, job.delivery, &Outcome::Drop { reason: reason.clone() }).expect("it is in hand");
        assert_eq!(settlements(&mut world, client), [Settlement::Dropped { reason }]);
        assert_eq!((world.ready("emails"), world.unacked("emails")), (0, 0));
        let dead = world.broker().queue("emails.dead").map_or(0, |queue| queue.messages.len());
        assert_eq!(dead, 0);
    }
}

#[test]
fn the_limits_of_a_session_hold_for_what_it_enqueues_and_for_what_it_is_delivered() {
    let job = |text| {
        let payload = RawPayload::from_serialize(text).expect("a text is JSON");
        NewJob::new(JobType::from_static("send-email"), payload)
    };
    let mut world = World::new(1);
    let wide = world.connect([emails()]);
    world.enqueue(wide, &emails(), job("Dear Ada"));
    world.settle_down();
    let written = world.broker().queue("emails").expect("it is declared").messages[0].body.len();
    // It can be read, and a copy whose counters have grown cannot.
    let mut config = World::config([emails()]);
    config.envelope_limits.max_bytes = written;
    let narrow = world.add(Session::new(config, 7).expect("a good configuration"));
    let now = world.now();
    world.session(narrow).connect(now);
    world.settle_down();
    let refused = world.try_enqueue(narrow, &emails(), job("Dear Ada"));
    assert!(matches!(refused, Err(EnqueueError::Unreadable(DecodeError::TooLarge { .. }))), "{refused:?}");

    world.subscribe(narrow, &emails());
    let delivered = only_job(&mut world, narrow);
    let defer = Outcome::Defer { delay: seconds(1), reason: "429".to_owned() };
    world.settle(narrow, delivered.delivery, &defer).expect("it is in hand");
    world.enqueue(wide, &emails(), job("Dear Ada!"));
    let settled = settlements(&mut world, narrow);
    let reasons: Vec<_> = settled
        .iter()
        .filter_map(|settled| match settled {
            Settlement::DeadLettered { reason, .. } => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    let says = [format!("a worker reads {written}"), format!("the limit is {written}")];
    assert_eq!(reasons.len(), says.len(), "{settled:?}");
    assert!(says.iter().zip(&reasons).all(|(says, reason)| reason.contains(says)), "{reasons:?}");
}

#[test]
fn a_job_is_settled_once() {
    let mut world = World::with_broker(BrokerConfig::default(), 1);
    let client = world.connect([emails()]);
    world.subscribe(client, &emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    world.settle(client, job.delivery, &Outcome::Done).expect("it is in hand");
    let second = world.settle(client, job.delivery, &fail("no"));
    assert_eq!(second, Err(SettleError::AlreadySettled));
    world.settle_down();
    assert_eq!(world.ready("emails.deferred.2000"), 0);
}

#[test]
fn a_worker_holds_no_more_than_its_prefetch() {
    let mut world = World::new(1);
    let queue = emails().prefetch(3);
    let client = world.connect([queue.clone()]);
    for _ in 0..10 {
        world.enqueue(client, &queue, raw_job("send-email"));
    }
    world.subscribe(client, &queue);
    assert_eq!(world.take_jobs(client).len(), 3);
    assert_eq!((world.unacked("emails"), world.ready("emails")), (3, 7));
}
