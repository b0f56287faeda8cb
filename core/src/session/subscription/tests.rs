//! A subscription against a scripted server.

use bytes::{Buf, BytesMut};

use super::*;
use crate::connection::{ConnectionConfig, Credentials, SendBuf};
use crate::topology::Queue;
use crate::wire::script;

const NOW: Instant = Instant::ORIGIN;

/// What the client sends next.
fn sent(connection: &mut Connection) -> Vec<String> {
    let mut out = SendBuf::default();
    let mut bytes = Vec::new();
    while connection.poll_transmit(NOW, &mut out) > 0 {
        while out.has_remaining() {
            bytes.extend_from_slice(out.chunk());
            out.advance(out.chunk().len());
        }
    }
    script::describe(&bytes)
}

fn feed(connection: &mut Connection, bytes: &[u8]) {
    let _ = connection.handle_read(NOW, &mut BytesMut::from(bytes));
    while connection.poll_event().is_some() {}
}

/// A connection on which `basic.consume` was sent and not answered.
fn starting(plan: &QueuePlan) -> (Connection, Subscription) {
    let mut connection = Connection::new(ConnectionConfig::new(Credentials::default()), NOW);
    // The first bytes are the protocol header, which is no frame.
    connection.poll_transmit(NOW, &mut SendBuf::default());
    for bytes in [script::start("PLAIN"), script::tune(2_047, 131_072, 60), script::open_ok()] {
        feed(&mut connection, &bytes);
        sent(&mut connection);
    }
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
