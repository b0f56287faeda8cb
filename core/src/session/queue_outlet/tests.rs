use super::super::testing::{NOW, open_connection, sent};
use super::*;
use crate::topology::Queue;

fn plan() -> QueuePlan {
    Queue::new("q").unwrap().plan().unwrap()
}

/// The broker closes the channel over the declare of the work queue.
fn declare_refused(code: u16) -> (Connection, QueueOutlet, Lost) {
    let mut connection = open_connection();
    let mut outlet = QueueOutlet::new(&plan());
    let channel = outlet.open(&mut connection, &plan()).unwrap();
    sent(&mut connection);
    let reason = CloseReason { code, text: ShortString::from_static("no"), class_id: 50, method_id: 10 };
    let lost = outlet.lost(NOW, reason, &plan());
    connection.close_channel(channel).unwrap();
    sent(&mut connection);
    (connection, outlet, lost)
}

#[test]
fn a_queue_whose_node_is_down_is_declared_again_after_a_pause() {
    let (mut connection, mut outlet, lost) = declare_refused(404);
    assert!(matches!(lost, Lost::QueueAbsent(_)));
    assert!(!outlet.is_resolved(), "what is published to it waits");
    let due = outlet.poll_timeout().expect("it is tried again");
    assert!(due > NOW);
    assert_eq!(outlet.open_if_due(NOW, &mut connection, &plan()), Ok(None), "not yet");
    assert!(outlet.open_if_due(due, &mut connection, &plan()).unwrap().is_some());
    assert!(sent(&mut connection).iter().any(|frame| frame.ends_with("declare q")));
    assert_eq!(outlet.poll_timeout(), None);
}

#[test]
fn a_queue_whose_node_is_down_has_no_deadline_while_the_link_is_down() {
    let (_, mut outlet, _) = declare_refused(404);
    outlet.link_down();
    assert_eq!(outlet.poll_timeout(), None, "nothing could be done then");
}

#[test]
fn without_a_channel_left_an_absent_queue_is_tried_again_later() {
    let (mut connection, mut outlet, _) = declare_refused(404);
    let due = outlet.poll_timeout().expect("it is tried again");
    while connection.open_channel().is_ok() {}
    assert!(outlet.open_if_due(due, &mut connection, &plan()).is_err());
    assert!(outlet.poll_timeout().expect("it is tried again") > due);
}

#[test]
fn a_queue_that_is_refused_for_good_is_not_declared_again() {
    let (_, outlet, lost) = declare_refused(406);
    assert!(matches!(lost, Lost::Queue(_)));
    assert!(outlet.refusal().is_some());
    assert_eq!(outlet.poll_timeout(), None);
}

#[test]
fn a_refused_hold_leaves_the_lease_of_another() {
    let mut connection = open_connection();
    let mut outlet = QueueOutlet::new(&plan());
    outlet.open(&mut connection, &plan()).unwrap();
    let ttl = |millis| HoldTtl::from_millis(millis).unwrap();
    outlet.cover(NOW, &mut connection, &plan(), ttl(5_000)).unwrap();
    outlet.cover(NOW, &mut connection, &plan(), ttl(9_000)).unwrap();
    // The queue, its dead letters, and the first hold are there.
    for _ in 0..3 {
        outlet.declare_ok(NOW);
    }
    let text = ShortString::from_static("no");
    let reason = CloseReason { code: 406, text, class_id: 50, method_id: 10 };
    let lost = outlet.lost(NOW, reason, &plan());
    assert!(matches!(lost, Lost::Hold(refused, _) if refused == ttl(9_000)), "{lost:?}");
    sent(&mut connection);

    outlet.open(&mut connection, &plan()).unwrap();
    outlet.cover(NOW, &mut connection, &plan(), ttl(5_000)).unwrap();
    let frames = sent(&mut connection);
    assert!(frames.iter().any(|frame| frame.ends_with("declare q")), "{frames:?}");
    assert!(!frames.iter().any(|frame| frame.ends_with("q.deferred.5000")), "{frames:?}");
}

/// An outlet with a hold of 5 s that was declared and answered.
fn with_a_hold() -> QueueOutlet {
    let mut connection = open_connection();
    let mut outlet = QueueOutlet::new(&plan());
    outlet.open(&mut connection, &plan()).unwrap();
    outlet.cover(NOW, &mut connection, &plan(), hold()).unwrap();
    for _ in 0..3 {
        outlet.declare_ok(NOW);
    }
    assert_eq!(outlet.holds.before_publish(NOW, hold()), Lease::Covered);
    outlet
}

fn hold() -> HoldTtl {
    HoldTtl::from_millis(5_000).unwrap()
}

#[test]
fn no_lease_outlives_the_link_or_a_channel_that_was_closed_over_a_publish() {
    let mut outlet = with_a_hold();
    outlet.link_down();
    assert_eq!(outlet.holds.before_publish(NOW, hold()), Lease::Declare);

    let mut outlet = with_a_hold();
    let text = ShortString::from_static("no");
    let lost = outlet.lost(NOW, CloseReason { code: 406, text, class_id: 60, method_id: 40 }, &plan());
    assert!(matches!(lost, Lost::Publish), "{lost:?}");
    assert_eq!(outlet.holds.before_publish(NOW, hold()), Lease::Declare);
}

#[test]
fn what_waits_for_a_renewal_has_no_verdict_when_the_channel_is_gone() {
    let mut outlet = with_a_hold();
    let cover = outlet.holds.publish_sent(NOW, hold());
    let Confirmed::Renew(late) = outlet.holds.after_confirm(NOW + Duration::from_secs(6), cover) else {
        panic!("there is time to renew");
    };
    outlet.confirmed_late(PublishId(7), late);
    assert_eq!(outlet.closed(), [PublishId(7)]);
}
