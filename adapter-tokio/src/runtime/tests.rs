#![expect(clippy::disallowed_methods, reason = "a test is its own peer, with a socket of its own")]

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;

fn endpoint(listener: &TcpListener) -> Endpoint {
    Endpoint::new("127.0.0.1", listener.local_addr().unwrap().port())
}

#[tokio::test]
async fn bytes_go_both_ways_and_the_end_of_the_stream_is_seen() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut ours = Tokio::default().connect(&endpoint(&listener)).await.unwrap();
    let (mut theirs, _) = listener.accept().unwrap();

    let slices = [IoSlice::new(b"from "), IoSlice::new(b"us")];
    assert_eq!(poll_fn(|cx| ours.poll_write(cx, &slices)).await.unwrap(), 7);
    poll_fn(|cx| ours.poll_flush(cx)).await.unwrap();
    let mut got = [0; 7];
    theirs.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"from us");

    theirs.write_all(b"from them").unwrap();
    drop(theirs);
    let mut input = BytesMut::with_capacity(64);
    while poll_fn(|cx| ours.poll_read(cx, &mut input)).await.unwrap() > 0 {}
    assert_eq!(&input[..], b"from them");
}

#[tokio::test]
async fn a_read_takes_no_more_than_the_buffer_has_room_for() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut ours = Tokio::default().connect(&endpoint(&listener)).await.unwrap();
    let (mut theirs, _) = listener.accept().unwrap();
    theirs.write_all(&[7; 1000]).unwrap();
    let mut input = BytesMut::with_capacity(64);
    let room = input.capacity();
    assert!(poll_fn(|cx| ours.poll_read(cx, &mut input)).await.unwrap() <= room);
    assert_eq!(input.capacity(), room);
}

#[tokio::test]
async fn a_closed_stream_is_the_end_for_the_peer() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut ours = Tokio::default().connect(&endpoint(&listener)).await.unwrap();
    let (mut theirs, _) = listener.accept().unwrap();
    poll_fn(|cx| ours.poll_close(cx)).await.unwrap();
    assert_eq!(theirs.read(&mut [0; 1]).unwrap(), 0);
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_an_error() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let endpoint = endpoint(&listener);
    drop(listener);
    let error = Tokio::default().connect(&endpoint).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_host_without_an_address_is_an_error() {
    let endpoint = Endpoint::new("no-such-host.invalid", 5672);
    assert!(Tokio::default().connect(&endpoint).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_timer_expires_at_its_moment_and_can_be_set_again() {
    let runtime = Tokio::default();
    let start = runtime.now();
    let mut timer = runtime.timer(Instant::MAX);
    timer.reset(start + Duration::from_secs(3));
    poll_fn(|cx| timer.poll_expired(cx)).await;
    assert!(runtime.now() >= start + Duration::from_secs(3));

    timer.reset(start + Duration::from_secs(5));
    poll_fn(|cx| timer.poll_expired(cx)).await;
    assert!(runtime.now() >= start + Duration::from_secs(5));

    timer.reset(start); // Past: at once.
    poll_fn(|cx| timer.poll_expired(cx)).await;
}

#[test]
fn a_task_outside_of_a_runtime_is_dropped_and_not_a_panic() {
    let held = std::sync::Arc::new(());
    let in_task = held.clone();
    Tokio::default().spawn(async move { drop(in_task) });
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
}
