//! A subscription against a scripted server.

use super::super::testing::{NOW, open_connection, sent};
use super::*;
use crate::topology::Queue;

/// A connection on which `basic.consume` was sent and not answered.
fn starting(plan: &QueuePlan) -> (Connection, Subscription) {
    let mut connection = open_connection();
    let mut subscription = Subscription::new(SubscriptionId(0), 0);
    subscription.open(&mut connection, plan).unwrap();
    subscription.prefetch_ok(&mut connection, plan).unwrap();
    let frames = sent(&mut connection);
    assert!(frames.iter().any(|frame| frame.contains("consume")), "{frames:?}");
    (connection, subscription)
}

#[test]
fn a_consumer_that_has_not_started_is_cancelled_once_it_has() {
    let plan = Queue::new("q").unwrap().plan().unwrap();
    let (mut connection, mut subscription) = starting(&plan);
    subscription.stop(Some(&mut connection), NOW + Duration::from_secs(10)).unwrap();
    assert_eq!(sent(&mut connection), [""; 0], "not before the consume is answered");
    assert_eq!(subscription.consume_ok(NOW, &mut connection), Ok(false));
    let frames = sent(&mut connection);
    assert!(matches!(&frames[..], [frame] if frame.contains("cancel")), "{frames:?}");
}

#[test]
fn a_consumer_that_never_starts_is_given_up_with_the_grace() {
    let plan = Queue::new("q").unwrap().plan().unwrap();
    let (mut connection, mut subscription) = starting(&plan);
    let by = NOW + Duration::from_secs(10);
    subscription.stop(Some(&mut connection), by).unwrap();
    assert_eq!(subscription.poll_timeout(), Some(by));
    assert_eq!(subscription.advance(by, false, Some(&mut connection)), Ok(false));
    let frames = sent(&mut connection);
    assert!(matches!(&frames[..], [frame] if frame.contains("close")), "{frames:?}");
}
