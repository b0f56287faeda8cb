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
