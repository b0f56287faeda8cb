#![expect(clippy::disallowed_methods, reason = "a test is its own peer, with a socket of its own")]

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;

fn endpoint(listener: &TcpListener) -> Endpoint {
    Endpoint::new("127.0.0.1", listener.local_addr().unwrap().port())
}

#[test]
fn bytes_go_both_ways_and_the_end_of_the_stream_is_seen() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    task::block_on(async {
        let mut ours = AsyncStd::default().connect(&endpoint(&listener)).await.unwrap();
        let (mut theirs, _) = listener.accept().unwrap();

        let slices = [IoSlice::new(b"from us")];
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
    });
}

#[test]
fn a_port_that_nobody_listens_on_is_an_error() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let endpoint = endpoint(&listener);
    drop(listener);
    let error = task::block_on(AsyncStd::default().connect(&endpoint)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_timer_expires_not_before_its_moment_and_can_be_set_again() {
    let runtime = AsyncStd::default();
    let start = runtime.now();
    let mut timer = runtime.timer(Instant::MAX);
    for millis in [5, 10, 0] {
        timer.reset(start + Duration::from_millis(millis));
        task::block_on(poll_fn(|cx| timer.poll_expired(cx)));
        assert!(runtime.now() >= start + Duration::from_millis(millis));
    }
}
