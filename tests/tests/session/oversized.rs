//! A message in a job queue that is larger than the client takes in: it is neither run nor copied, and neither
//! lost in silence nor thrown back and forth.

use leveret_core::session::{EnqueueError, Session, Settlement};
use leveret_core::topology::Queue;
use leveret_testkit::stranger::bare;
use leveret_testkit::world::{ClientId, World, raw_job};

use super::{emails, millis, only_job, seconds, settlements};

/// A client that takes bodies of a thousand bytes, subscribed to a queue that holds a larger one.
fn with_a_giant(queue: &Queue) -> (World, ClientId) {
    let mut world = World::new(1);
    let mut config = World::config([queue.clone()]);
    config.connection.max_message_bytes = 1_000;
    let client = world.add(Session::new(config, 1).expect("a good configuration"));
    let now = world.now();
    world.session(client).connect(now);
    world.settle_down();
    world.publish(&bare("emails", vec![b'x'; 5_000]));
    world.subscribe(client, queue);
    (world, client)
}

#[test]
fn it_is_told_and_goes_back_after_a_pause_and_others_run() {
    let (mut world, client) = with_a_giant(&emails());
    world.enqueue(client, &emails(), raw_job("send-email"));
    let job = only_job(&mut world, client);
    assert_eq!(job.envelope.job_type().as_str(), "send-email");
    assert_eq!(settlements(&mut world, client), [], "it rests");
    world.run_for(millis(999));
    assert_eq!(settlements(&mut world, client), []);

    let back =
        Settlement::Requeued { cause: Some(EnqueueError::BodyTooLarge { bytes: 5_000, limit: 1_000 }) };
    world.run_for(millis(1));
    assert_eq!(settlements(&mut world, client), [back]);
    assert_eq!(world.unacked("emails"), 2, "it came again, and rests again");
    world.run_for(seconds(10));
    assert_eq!(settlements(&mut world, client).len(), 10, "once a second, and no more often");
    assert!(world.take_jobs(client).is_empty());
    assert_eq!(world.ready("emails.dead"), 0);
}

#[test]
fn a_quorum_queue_buries_it_whole() {
    let (mut world, client) = with_a_giant(&emails().quorum());
    let settled = settlements(&mut world, client);
    assert!(matches!(&settled[..], [Settlement::Rejected { .. }]), "{settled:?}");
    world.run_for(seconds(1));
    assert_eq!((world.ready("emails"), world.ready("emails.dead")), (0, 1));
}

#[test]
fn where_no_dead_letters_are_kept_it_is_rejected_for_good() {
    let (mut world, client) = with_a_giant(&emails().dead_letters(false));
    let settled = settlements(&mut world, client);
    let [Settlement::Rejected { reason }] = &settled[..] else { panic!("{settled:?}") };
    assert!(reason.contains("5000 bytes") && reason.contains("max_message_bytes is 1000"), "{reason}");
    assert_eq!((world.ready("emails"), world.unacked("emails")), (0, 0));
}

#[test]
fn it_goes_back_at_once_when_the_link_ends() {
    let (mut world, client) = with_a_giant(&emails());
    world.cut(client, leveret_core::session::LinkId::Consume);
    world.run_for(seconds(30));
    let settled = settlements(&mut world, client);
    assert!(settled.contains(&Settlement::Stale), "{settled:?}");
    assert_eq!(world.ready("emails") + world.unacked("emails"), 1, "it is still there");
}
