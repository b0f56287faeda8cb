//! Bytes both ways, and how they end.

use std::future::poll_fn;
use std::io::{self, IoSlice, Write};
use std::task::Poll;

use bytes::BytesMut;
use leveret_core::connection::TlsConfig;

use super::super::TlsStream;
use super::super::stream::{READ_CHUNK, WRITE_BUFFER};
use super::world::{Authority, Files, Hesitant, Identity, ONLY_12, ONLY_13, Server, Setup, agree, read};
use crate::runtime::Transport;
use crate::testing::{CountingWaker, Memory, MemoryRuntime};

/// Who has a certificate for `broker.test`, and a client that trusts it.
struct World {
    runtime: MemoryRuntime,
    identity: Identity,
    tls: TlsConfig,
    _files: Files,
}

impl World {
    fn new() -> Self {
        let (authority, files) = (Authority::new(), Files::new());
        let tls = files.trusting(&authority);
        Self {
            runtime: MemoryRuntime::default(),
            identity: authority.issue(&["broker.test"]),
            tls,
            _files: files,
        }
    }

    fn agreed(&self) -> (TlsStream<Memory>, Server) {
        let mut server = Setup::new(&self.identity).accept(&self.runtime);
        let stream = agree(&self.runtime, &mut server, "broker.test", self.tls.clone(), |memory| memory);
        (stream.unwrap(), server)
    }
}

/// Writes all of it in two slices per call, and serves the other end meanwhile.
fn write_all<T: Transport>(
    runtime: &MemoryRuntime,
    stream: &mut TlsStream<T>,
    server: &mut Server,
    mut words: &[u8],
) {
    while !words.is_empty() {
        let (one, other) = words.split_at(words.len() / 3);
        let mut writing = poll_fn(|cx| stream.poll_write(cx, &[IoSlice::new(one), IoSlice::new(other)]));
        if let Poll::Ready(written) = runtime.poll(&mut writing) {
            let written = written.unwrap();
            assert!(written > 0, "it says that there is room, and takes nothing");
            words = &words[written..];
        }
        server.serve();
    }
    while runtime.poll(&mut poll_fn(|cx| stream.poll_flush(cx))).is_pending() {
        server.serve();
    }
    server.serve();
}

fn read_exactly<T: Transport>(runtime: &MemoryRuntime, stream: &mut TlsStream<T>, count: usize) -> Vec<u8> {
    let mut heard = Vec::new();
    while heard.len() < count {
        if let Poll::Ready(read) = read(runtime, stream) {
            let read = read.unwrap();
            assert!(!read.is_empty(), "it ends after {} bytes", heard.len());
            heard.extend(read);
        }
    }
    heard
}

fn words(count: usize) -> Vec<u8> {
    (0..count).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

#[test]
fn every_byte_arrives_in_pieces_of_any_size_with_a_wait_before_each() {
    let world = World::new();
    for versions in [ONLY_12, ONLY_13] {
        for (piece, count) in [(1, 3_000), (7, 40_000), (16 << 10, 300_000)] {
            let mut server = Setup::new(&world.identity).speaking(versions).accept(&world.runtime);
            let stream = agree(&world.runtime, &mut server, "broker.test", world.tls.clone(), |inner| {
                Hesitant::new(inner, piece)
            });
            let mut stream = stream.unwrap();
            assert_eq!(server.tls.protocol_version(), Some(versions[0].version));
            let words = words(count);
            write_all(&world.runtime, &mut stream, &mut server, &words);
            assert!(server.heard == words, "pieces of {piece}");
            server.say(&words);
            assert!(read_exactly(&world.runtime, &mut stream, count) == words, "pieces of {piece}");
        }
    }
}

#[test]
fn large_bodies_arrive_both_ways() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    let words = words(3 << 20);
    write_all(&world.runtime, &mut stream, &mut server, &words);
    assert!(server.heard == words);
    server.say(&words);
    assert!(read_exactly(&world.runtime, &mut stream, words.len()) == words);
}

#[test]
fn the_end_of_tls_is_the_end_of_the_stream_and_comes_after_what_was_said() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    server.say(b"goodbye");
    server.tls.send_close_notify();
    server.serve();
    server.peer.close();
    let read = || read(&world.runtime, &mut stream).map(Result::unwrap);
    let told: Vec<_> = std::iter::repeat_with(read).take(3).collect();
    assert_eq!(told, [Poll::Ready(b"goodbye".to_vec()), Poll::Ready(vec![]), Poll::Ready(vec![])]);
}

#[test]
fn a_stream_that_is_cut_is_no_end() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    server.say(b"goodb");
    server.peer.close();
    assert_eq!(read_exactly(&world.runtime, &mut stream, 5), b"goodb");
    for _ in 0..2 {
        let Poll::Ready(Err(error)) = read(&world.runtime, &mut stream) else { panic!("it is cut") };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn what_is_no_tls_after_tls_is_an_error_after_what_was_said() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    server.say(b"well");
    server.peer.send(b"AMQP\0\0\x09\x01");
    assert_eq!(read_exactly(&world.runtime, &mut stream, 4), b"well");
    let Poll::Ready(Err(error)) = read(&world.runtime, &mut stream) else { panic!("that was no TLS") };
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().starts_with("TLS failed"), "{error}");
}

#[test]
fn bytes_that_were_changed_on_the_way_are_not_given_out() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    server.tls.writer().write_all(b"pay ada").unwrap();
    let mut record = Vec::new();
    server.tls.write_tls(&mut record).unwrap();
    *record.last_mut().unwrap() ^= 1;
    server.peer.send(&record);
    assert!(matches!(read(&world.runtime, &mut stream), Poll::Ready(Err(_))));
}

#[test]
fn closing_says_so_to_the_peer_and_still_reads() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    let closed = world.runtime.poll(&mut poll_fn(|cx| stream.poll_close(cx)));
    assert!(matches!(closed, Poll::Ready(Ok(()))));
    server.serve();
    assert!(server.client_closed && server.peer.is_closed());
    server.say(b"one more");
    assert_eq!(read_exactly(&world.runtime, &mut stream, 8), b"one more");
}

#[test]
fn a_peer_that_does_not_read_is_waited_for_with_a_bounded_buffer() {
    let world = World::new();
    let (mut stream, server) = world.agreed();
    server.peer.stop_reading();
    let block = vec![0; 10_000];
    let mut taken = 0;
    let mut write = || world.runtime.poll(&mut poll_fn(|cx| stream.poll_write(cx, &[IoSlice::new(&block)])));
    while let Poll::Ready(written) = write() {
        let written = written.unwrap();
        assert!(written > 0, "it says that there is room, and takes nothing");
        taken += written;
        assert!(taken <= WRITE_BUFFER, "{taken} bytes are held for a peer that does not read");
    }
    assert!(taken > 0);
    assert!(world.runtime.poll(&mut poll_fn(|cx| stream.poll_flush(cx))).is_pending());
    assert!(world.runtime.poll(&mut poll_fn(|cx| stream.poll_close(cx))).is_pending());
}

#[test]
fn a_reader_that_takes_little_is_given_as_much_and_holds_little() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    let words = words(200_000);
    server.say(&words);
    let mut heard = Vec::new();
    while heard.len() < words.len() {
        let mut input = BytesMut::with_capacity(100);
        let read = world.runtime.poll(&mut poll_fn(|cx| stream.poll_read(cx, &mut input)));
        assert!(matches!(read, Poll::Ready(Ok(1..=100))), "{read:?}");
        heard.extend_from_slice(&input);
        assert!(stream.held() <= 3 * READ_CHUNK, "{} bytes wait in between", stream.held());
    }
    assert!(heard == words);
}

#[test]
fn who_waits_to_read_is_woken_by_what_comes_and_by_nothing_else() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    // Tickets for a later session may have come behind the handshake.
    while !matches!(read(&world.runtime, &mut stream), Poll::Pending) {}
    let waker = CountingWaker::new();
    let mut input = BytesMut::with_capacity(100);
    assert!(stream.poll_read(&mut waker.context(), &mut input).is_pending());
    assert_eq!(waker.count(), 0, "it waits and does not spin");
    server.say(b"here");
    assert!(waker.count() >= 1);
    assert!(matches!(stream.poll_read(&mut waker.context(), &mut input), Poll::Ready(Ok(4))));
}

#[test]
fn a_server_may_change_its_keys_now_and_then() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    for _ in 0..100 {
        server.tls.refresh_traffic_keys().unwrap();
        server.say(b"still here");
        assert_eq!(read_exactly(&world.runtime, &mut stream, 10), b"still here");
    }
    write_all(&world.runtime, &mut stream, &mut server, b"so are we");
    assert_eq!(server.heard, b"so are we");
}

#[test]
fn a_server_that_does_nothing_but_change_its_keys_is_given_up() {
    let world = World::new();
    let (mut stream, mut server) = world.agreed();
    for _ in 0..1_000 {
        server.tls.refresh_traffic_keys().unwrap();
        server.serve();
    }
    let end = (0..1_000).find_map(|_| match read(&world.runtime, &mut stream) {
        Poll::Ready(read) => Some(read),
        Poll::Pending => None,
    });
    assert!(matches!(end, Some(Err(_))), "{end:?}");
}
