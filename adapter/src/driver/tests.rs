use std::task::Poll;
use std::time::Duration;

use leveret_core::session::LinkError;

#[cfg(not(feature = "tls"))]
use crate::Config;
use crate::testing::{MemoryRuntime, client, config, connected, queue};
use crate::{Client, ConnectError, LinkEnd};

const PROTOCOL_HEADER: &[u8] = b"AMQP\0\0\x09\x01";

#[test]
fn a_refused_connection_is_told_and_nothing_is_left() {
    let runtime = MemoryRuntime::default();
    runtime.refuse();
    let error = runtime.block_on(client(&runtime).connect()).unwrap_err();
    assert!(matches!(error, ConnectError::Link(LinkError::Unreachable { .. })), "{error:?}");
    runtime.run();
    assert_eq!(runtime.tasks(), 0);
}

#[test]
fn a_peer_that_says_nothing_is_given_up_after_the_bound_on_an_attempt() {
    let runtime = MemoryRuntime::default();
    let peer = runtime.accept();
    let mut connecting = Box::pin(client(&runtime).connect());
    assert!(runtime.poll(&mut connecting).is_pending());
    assert_eq!(&peer.received()[..], PROTOCOL_HEADER);

    runtime.advance(Duration::from_secs(9));
    assert!(runtime.poll(&mut connecting).is_pending());
    runtime.advance(Duration::from_secs(2));
    let error = runtime.block_on(connecting).unwrap_err();
    assert!(matches!(error, ConnectError::Link(LinkError::TimedOut { .. })), "{error:?}");
    runtime.advance(Duration::from_secs(2));
    runtime.run();
    assert!(peer.is_closed());
    assert_eq!(runtime.tasks(), 0);
}

#[test]
fn a_connect_that_never_answers_is_given_up_too() {
    let runtime = MemoryRuntime::default();
    let mut connecting = Box::pin(client(&runtime).connect());
    assert!(runtime.poll(&mut connecting).is_pending());
    assert_eq!(runtime.connects(), 1);
    runtime.advance(Duration::from_secs(11));
    let error = runtime.block_on(connecting).unwrap_err();
    assert!(matches!(error, ConnectError::Link(LinkError::TimedOut { .. })), "{error:?}");
    runtime.run();
    assert_eq!(runtime.tasks(), 0);
}

#[test]
fn what_a_peer_said_before_it_left_is_heard() {
    let runtime = MemoryRuntime::default();
    let peer = runtime.accept();
    peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    peer.close();
    let error = runtime.block_on(client(&runtime).connect()).unwrap_err();
    let ConnectError::Link(LinkError::Connection { error, .. }) = error else {
        panic!("the answer was read, so it is no mere end of the stream: {error:?}");
    };
    assert!(error.is_permanent(), "{error:?}");
}

#[test]
fn every_endpoint_is_tried_before_connecting_fails() {
    let runtime = MemoryRuntime::default();
    runtime.refuse();
    runtime.refuse();
    let client = Client::on(runtime.clone(), config().endpoint("other.test", 5673)).queue(queue());
    runtime.block_on(client.connect()).unwrap_err();
    assert_eq!(runtime.connects(), 2);
}

#[cfg(not(feature = "tls"))]
#[test]
fn an_endpoint_that_asks_for_tls_is_not_connected_to_without() {
    let runtime = MemoryRuntime::default();
    let uris = "amqps://ada:hunter2@one.test,amqps://ada:hunter2@two.test";
    let config = Config::from_uris(uris).unwrap().endpoint("three.test", 5671);
    let error = runtime.block_on(Client::on(runtime.clone(), config).queue(queue()).connect()).unwrap_err();
    let failure = crate::TlsFailure::NotBuilt;
    assert!(
        matches!(&error, ConnectError::Link(LinkError::Tls { failure: found, .. }) if **found == failure),
        "{error:?}"
    );
    assert!(error.to_string().contains("feature \"tls\""), "{error}");
    assert_eq!(runtime.connects(), 0, "nobody is told anything in the clear");
}

#[test]
fn a_connect_that_is_given_up_closes_what_it_opened() {
    let runtime = MemoryRuntime::default();
    let peer = runtime.accept();
    let mut connecting = Box::pin(client(&runtime).connect());
    assert!(runtime.poll(&mut connecting).is_pending());
    drop(connecting);
    for _ in 0..10 {
        runtime.run();
        runtime.advance(Duration::from_secs(2));
    }
    assert!(peer.is_closed());
    assert_eq!(runtime.tasks(), 0);
}

#[test]
fn a_runtime_that_ends_while_connecting_ends_the_waiting() {
    let runtime = MemoryRuntime::default();
    let mut connecting = Box::pin(client(&runtime).connect());
    assert!(runtime.poll(&mut connecting).is_pending());
    runtime.drop_tasks();
    assert!(matches!(runtime.poll(&mut connecting), Poll::Ready(Err(ConnectError::Closed))));
}

#[test]
fn a_configuration_that_cannot_be_used_connects_nowhere() {
    let runtime = MemoryRuntime::default();
    let client = client(&runtime).queue(queue().prefetch(0));
    let error = runtime.block_on(client.connect()).unwrap_err();
    assert!(matches!(error, ConnectError::Config(_)), "{error:?}");
    assert_eq!((runtime.connects(), runtime.tasks()), (0, 0));
}

#[test]
fn a_peer_that_does_not_read_cannot_hold_a_shutdown_up() {
    let runtime = MemoryRuntime::default();
    let (client, mut broker) = connected(&runtime, 100);
    broker.serve(&runtime);
    broker.peer().stop_reading();
    let mut shutdown = Box::pin(client.shutdown(Duration::from_secs(1)));
    let mut closed = None;
    for _ in 0..20 {
        match runtime.poll(&mut shutdown) {
            Poll::Ready(answer) => {
                closed = Some(answer.unwrap());
                break;
            }
            Poll::Pending => runtime.advance(Duration::from_secs(1)),
        }
    }
    assert_eq!(closed.unwrap().publish, LinkEnd::Cut);
    runtime.advance(Duration::from_secs(2));
    runtime.run();
    assert!(broker.peer().is_closed());
    assert_eq!(runtime.tasks(), 0);
}
