//! Handshake, heartbeats, closing, alarms, and clients that do not keep to the protocol.

use std::time::Duration;

use amq_protocol::frame::AMQPFrame;
use amq_protocol::protocol::{AMQPClass, BasicProperties, basic, channel, connection};
use bytes::BytesMut;
use leveret_core::text::ShortString;
use proptest::prelude::*;

use super::world::{Handshake, Peer, World, declaration, encoded, publish_bytes};
use crate::broker::{Broker, BrokerConfig, BrokerEvent, EndCause};

fn transmitted(world: &mut World, peer: &Peer) -> Vec<u8> {
    let mut out = BytesMut::new();
    while world.broker.poll_transmit(world.now, peer.conn, &mut out) > 0 {}
    out.to_vec()
}

fn heartbeats(world: &mut World, peer: &mut Peer) -> usize {
    world.frames(peer).iter().filter(|frame| **frame == AMQPFrame::Heartbeat).count()
}

#[test]
fn what_is_not_amqp_is_answered_with_the_version_spoken_here_and_closed() {
    for opening in [&b"GET / HTTP/1.1\r\n"[..], b"AMQP\x00\x01\x00\x00", b"AMQP\x01\x01\x09\x01", b"\x00"] {
        let mut world = World::new();
        let mut peer = world.accept();
        world.write(&mut peer, opening);
        assert_eq!(transmitted(&mut world, &peer), b"AMQP\x00\x00\x09\x01");
        assert!(world.is_closed(&peer));
    }
}

#[test]
fn a_handshake_comes_byte_by_byte_too() {
    let mut world = World::new();
    let mut peer = world.accept();
    for byte in b"AMQP\x00\x00\x09\x01" {
        world.write(&mut peer, &[*byte]);
    }
    assert!(matches!(
        world.methods(&mut peer)[..],
        [(0, AMQPClass::Connection(connection::AMQPMethod::Start(_)))]
    ));
}

#[test]
fn a_wrong_password_is_told_to_those_who_can_understand_it() {
    let mut world = World::new();
    let mut peer = world.accept();
    world.handshake(&mut peer, &Handshake { response: b"\0guest\0wrong".to_vec(), ..Handshake::default() });
    let expected = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see \
                    the broker logfile.";
    assert_eq!(world.connection_error(&mut peer), (403, expected.to_owned()));
}

#[test]
fn a_wrong_password_is_a_closed_socket_to_others() {
    let mut world = World::new();
    let mut peer = world.accept();
    let silent =
        Handshake { response: b"\0nobody\0guest".to_vec(), capabilities: vec![], ..Handshake::default() };
    world.handshake(&mut peer, &silent);
    let answers = world.methods(&mut peer);
    assert!(
        matches!(answers[..], [(0, AMQPClass::Connection(connection::AMQPMethod::Start(_)))]),
        "{answers:?}"
    );
    assert!(world.is_closed(&peer));
}

#[test]
fn a_table_of_login_and_password_opens_as_well() {
    let mut world = World::with(BrokerConfig::default().user("ada", "s3cret"));
    let mut peer = world.accept();
    let response = b"\x05LOGINS\x00\x00\x00\x03ada\x08PASSWORDS\x00\x00\x00\x06s3cret".to_vec();
    world.handshake(&mut peer, &Handshake { mechanism: "AMQPLAIN", response, ..Handshake::default() });
    world.frames(&mut peer);
    assert_eq!(world.broker.connections()[0].user, *"ada");
    assert_eq!(world.broker.connections()[0].name.as_deref(), Some("tester"));
}

#[test]
fn a_missing_virtual_host_is_not_allowed() {
    let mut world = World::new();
    let mut peer = world.accept();
    world.handshake(&mut peer, &Handshake { vhost: "nope", ..Handshake::default() });
    assert_eq!(world.connection_error(&mut peer), (530, "NOT_ALLOWED - vhost nope not found".to_owned()));
}

#[test]
fn virtual_hosts_have_queues_of_their_own() {
    let mut world = World::with(BrokerConfig::default().vhost(ShortString::from_static("other")));
    let mut here = world.connect();
    let mut there = world.accept();
    world.handshake(&mut there, &Handshake { vhost: "other", ..Handshake::default() });
    world.frames(&mut there);
    world.open_channel(&mut there, 1);
    world.make(&mut here, "q", &[]);
    world.publish(&mut there, "q", "job");
    assert_eq!(world.waiting("q"), Some(vec![]));
}

#[test]
fn limits_above_the_brokers_are_not_allowed() {
    for (wrong, text) in [
        (
            Handshake { frame_max: 131_073, ..Handshake::default() },
            "NOT_ALLOWED - negotiated frame_max = 131073 is higher than the maximum allowed value (131072)",
        ),
        (
            Handshake { frame_max: 1024, ..Handshake::default() },
            "NOT_ALLOWED - negotiated frame_max = 1024 is lower than the minimum allowed value (4096)",
        ),
        (
            Handshake { channel_max: 0, ..Handshake::default() },
            "NOT_ALLOWED - negotiated channel_max = 0 is higher than the maximum allowed value (2047)",
        ),
    ] {
        let mut world = World::new();
        let mut peer = world.accept();
        world.handshake(&mut peer, &wrong);
        assert_eq!(world.connection_error(&mut peer), (530, text.to_owned()));
    }
}

#[test]
fn a_client_that_is_silent_in_the_handshake_is_given_up() {
    let mut world = World::new();
    let mut peer = world.accept();
    world.write(&mut peer, b"AMQP\x00\x00");
    world.pass(Duration::from_millis(9999));
    assert!(!world.is_closed(&peer));
    world.pass_ms(1);
    assert!(world.is_closed(&peer));
}

#[test]
fn heartbeats_go_out_every_half_interval_and_silence_ends_the_connection() {
    let mut world = World::new();
    let mut peer = world.accept();
    world.handshake(&mut peer, &Handshake { heartbeat: 10, ..Handshake::default() });
    world.frames(&mut peer);
    for _ in 0..4 {
        world.pass(Duration::from_secs(5));
        assert_eq!(heartbeats(&mut world, &mut peer), 1);
    }
    // Any byte counts, also half a frame.
    world.write(&mut peer, &[8, 0]);
    world.pass(Duration::from_millis(24_999));
    assert_eq!(world.broker.connections().len(), 1);
    world.events();
    world.pass_ms(1);
    let ended = BrokerEvent::Ended { conn: peer.conn, cause: EndCause::HeartbeatMissed };
    assert!(world.events().contains(&ended));
}

#[test]
fn heartbeats_do_not_pile_up_for_a_client_that_does_not_read() {
    let mut world = World::new();
    let mut peer = world.accept();
    world.handshake(&mut peer, &Handshake { heartbeat: 10, ..Handshake::default() });
    world.frames(&mut peer);
    for _ in 0..100 {
        world.pass(Duration::from_secs(10));
        world.write(&mut peer, &encoded(&AMQPFrame::Heartbeat));
    }
    assert_eq!(heartbeats(&mut world, &mut peer), 1);
}

#[test]
fn a_late_timer_is_one_orderly_step() {
    let mut world = World::new();
    let mut peer = world.accept();
    world.handshake(&mut peer, &Handshake { heartbeat: 10, ..Handshake::default() });
    world.frames(&mut peer);
    world.now += Duration::from_secs(20);
    world.broker.handle_timeout(world.now);
    world.broker.handle_timeout(world.now);
    assert_eq!(heartbeats(&mut world, &mut peer), 1);
}

#[test]
fn a_close_is_answered_and_what_was_held_goes_back() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[]);
    world.publish(&mut peer, "q", "job");
    world.consume(&mut peer, "q", "c", 1);
    world.frames(&mut peer);
    let close = connection::Close { reply_code: 200, reply_text: "".into(), class_id: 0, method_id: 0 };
    world.send(&mut peer, 0, AMQPClass::Connection(connection::AMQPMethod::Close(close)));
    assert!(matches!(
        world.methods(&mut peer)[..],
        [(0, AMQPClass::Connection(connection::AMQPMethod::CloseOk(_)))]
    ));
    assert!(world.is_closed(&peer));
    assert_eq!(world.waiting("q"), Some(vec!["job".to_owned()]));
}

#[test]
fn a_forced_close_ends_with_the_answer_and_without_one() {
    for answers in [true, false] {
        let mut world = World::new();
        let mut peer = world.connect();
        let text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'";
        world.broker.close_connection(world.now, peer.conn, 320, text);
        assert_eq!(world.connection_error(&mut peer), (320, text.to_owned()));
        world.events();
        // What was on its way is not executed.
        world.declare(&mut peer, "q", &[]);
        assert!(world.broker.queue("q").is_none());
        if answers {
            let ok = connection::AMQPMethod::CloseOk(connection::CloseOk {});
            world.send(&mut peer, 0, AMQPClass::Connection(ok));
        } else {
            world.pass(Duration::from_secs(10));
        }
        assert!(world.is_closed(&peer));
    }
}

#[test]
fn a_channel_error_leaves_the_other_channels_alone() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.open_channel(&mut peer, 2);
    world.make(&mut peer, "q", &[]);
    world.ack(&mut peer, 1); // nothing was delivered
    // On its way when the channel closed: ignored, content included.
    world.publish(&mut peer, "q", "lost");
    world.declare(&mut peer, "lost", &[]);
    assert_eq!(world.channel_error(&mut peer).0, 406);
    assert_eq!(world.waiting("q"), Some(vec![]));
    assert!(world.broker.queue("lost").is_none());
    assert_eq!(world.broker.connections()[0].channels, [1, 2]);
}

#[test]
fn a_frame_on_a_channel_that_is_not_open_closes_the_connection() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.ack(&mut peer, 1);
    world.frames(&mut peer);
    world.send(&mut peer, 1, AMQPClass::Channel(channel::AMQPMethod::CloseOk(channel::CloseOk {})));
    world.ack(&mut peer, 1);
    let expected = (504, "CHANNEL_ERROR - expected 'channel.open'".to_owned());
    assert_eq!(world.connection_error(&mut peer), expected);
}

#[test]
fn frames_out_of_place_close_the_connection() {
    let method = |method| encoded(&AMQPFrame::Method(1, method));
    let publish = publish_bytes("", "q", false, BasicProperties::default(), b"job");
    let declare =
        method(AMQPClass::Queue(amq_protocol::protocol::queue::AMQPMethod::Declare(declaration("q", &[]))));
    let publish_method = method(AMQPClass::Basic(basic::AMQPMethod::Publish(basic::Publish {
        exchange: "".into(),
        routing_key: "q".into(),
        mandatory: false,
        immediate: false,
    })));
    let body = encoded(&AMQPFrame::Body(1, b"job".to_vec()));
    let open_again = method(AMQPClass::Channel(channel::AMQPMethod::Open(channel::Open {})));
    for (code, bytes) in [
        (505, [publish_method.clone(), declare].concat()),
        (505, [publish_method.clone(), body.clone()].concat()),
        (505, [publish, body.clone()].concat()),
        (505, body),
        (504, open_again),
        (501, vec![9, 0, 1, 0, 0, 0, 0, 0xCE]),
        (501, vec![1, 0, 1, 0, 0, 0, 0, 0xCD]),
        (501, vec![1, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF]),
        (502, vec![1, 0, 1, 0, 0, 0, 4, 0, 60, 0, 40, 0xCE]),
        (502, vec![1, 0, 1, 0, 0, 0, 4, 0xAA, 0xAA, 0, 1, 0xCE]),
    ] {
        let mut world = World::new();
        let mut peer = world.connect();
        world.write(&mut peer, &bytes);
        let (found, text) = world.connection_error(&mut peer);
        assert_eq!(found, code, "{text}: {bytes:?}");
    }
}

#[test]
fn more_channels_than_agreed_are_not_allowed() {
    let mut world = World::new();
    let mut peer = world.accept();
    world.handshake(&mut peer, &Handshake { channel_max: 2, ..Handshake::default() });
    world.frames(&mut peer);
    world.open_channel(&mut peer, 1);
    world.open_channel(&mut peer, 9);
    world.send(&mut peer, 3, AMQPClass::Channel(channel::AMQPMethod::Open(channel::Open {})));
    assert_eq!(world.connection_error(&mut peer).0, 530);
}

#[test]
fn an_alarm_stops_publishers_with_all_they_send_and_nobody_else() {
    let mut world = World::new();
    let (mut publisher, mut consumer) = (world.connect_publisher(), world.connect());
    world.make(&mut publisher, "q", &[]);
    world.publish(&mut publisher, "q", "1");
    world.frames(&mut publisher);
    world.consume(&mut consumer, "q", "c", 0);
    world.broker.block(world.now);
    let [(0, AMQPClass::Connection(connection::AMQPMethod::Blocked(blocked)))] =
        &world.methods(&mut publisher)[..]
    else {
        panic!("not told");
    };
    assert_eq!(blocked.reason.as_str(), "low on memory");
    world.publish(&mut publisher, "q", "2");
    assert!(!world.broker.wants_read(publisher.conn) && !publisher.input.is_empty());
    world.frames(&mut consumer);
    world.ack(&mut consumer, 1);
    assert_eq!(world.broker.queue("q").unwrap().unacked, 0);

    // A consumer that publishes is stopped after its first publish, before its acknowledgement.
    world.publish(&mut consumer, "q", "3");
    assert_eq!(world.bodies(&mut consumer), ["3"]);
    world.ack(&mut consumer, 2);
    assert_eq!(world.broker.queue("q").unwrap().unacked, 1);

    world.broker.unblock(world.now);
    for peer in [&mut publisher, &mut consumer] {
        assert!(world.broker.wants_read(peer.conn));
        world.write(peer, &[]);
    }
    assert!(matches!(
        world.methods(&mut publisher)[0],
        (0, AMQPClass::Connection(connection::AMQPMethod::Unblocked(_)))
    ));
    assert_eq!(world.bodies(&mut consumer), ["2"]);
    assert_eq!(world.broker.queue("q").unwrap().unacked, 1);
}

#[test]
fn an_alarm_is_no_reason_to_give_up_a_publisher() {
    let mut world = World::new();
    let mut peer = world.accept();
    world.handshake(&mut peer, &Handshake { heartbeat: 1, ..Handshake::default() });
    world.frames(&mut peer);
    world.open_channel(&mut peer, 1);
    world.publish(&mut peer, "q", "job");
    world.broker.block(world.now);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.broker.connections().len(), 1);
    world.broker.unblock(world.now);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.broker.connections().len(), 1);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.broker.connections().len(), 0);
}

/// A session that touches most of the protocol, for breaking.
fn recorded_session() -> Vec<u8> {
    let mut session = Vec::new();
    let mut record = |bytes: &[u8]| session.extend_from_slice(bytes);
    record(b"AMQP\x00\x00\x09\x01");
    let start_ok = connection::StartOk {
        client_properties: super::world::table(&[("product", super::world::text("fuzz"))]),
        mechanism: "PLAIN".into(),
        response: b"\0guest\0guest".to_vec().into(),
        locale: "en_US".into(),
    };
    let tune_ok = connection::TuneOk { channel_max: 10, frame_max: 8192, heartbeat: 30 };
    for method in [
        connection::AMQPMethod::StartOk(start_ok),
        connection::AMQPMethod::TuneOk(tune_ok),
        connection::AMQPMethod::Open(connection::Open { virtual_host: "/".into() }),
    ] {
        record(&encoded(&AMQPFrame::Method(0, AMQPClass::Connection(method))));
    }
    record(&encoded(&AMQPFrame::Method(1, AMQPClass::Channel(channel::AMQPMethod::Open(channel::Open {})))));
    let arguments = [("x-message-ttl", super::world::int(5)), super::world::dead_letter_to("q")[0].clone()];
    let declare = amq_protocol::protocol::queue::AMQPMethod::Declare(declaration("q", &arguments));
    record(&encoded(&AMQPFrame::Method(1, AMQPClass::Queue(declare))));
    let headers = super::world::table(&[("k", super::world::text("v"))]);
    record(&publish_bytes("", "q", true, BasicProperties::default().with_headers(headers), b"job"));
    let get = basic::AMQPMethod::Get(basic::Get { queue: "q".into(), no_ack: false });
    record(&encoded(&AMQPFrame::Method(1, AMQPClass::Basic(get))));
    let reject = basic::AMQPMethod::Reject(basic::Reject { delivery_tag: 1, requeue: true });
    record(&encoded(&AMQPFrame::Method(1, AMQPClass::Basic(reject))));
    session
}

/// Feeds bytes to a fresh broker in pieces, and returns what it answered.
fn feed(session: &[u8], pieces: &[usize]) -> Vec<u8> {
    let now = leveret_core::time::Instant::ORIGIN;
    let mut broker = Broker::new(BrokerConfig::default(), now, 1);
    let conn = broker.accept(now);
    let (mut input, mut answers) = (BytesMut::new(), BytesMut::new());
    let mut rest = session;
    for piece in pieces.iter().cycle() {
        let (part, later) = rest.split_at((*piece).min(rest.len()));
        input.extend_from_slice(part);
        broker.handle_read(now, conn, &mut input);
        assert!(input.len() <= 131_072 + 8);
        while broker.poll_transmit(now, conn, &mut answers) > 0 {}
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    broker.handle_timeout(now + Duration::from_secs(60));
    answers.to_vec()
}

#[test]
fn however_a_session_is_cut_into_reads_the_answers_are_the_same() {
    let session = recorded_session();
    let whole = feed(&session, &[session.len()]);
    for piece in [1, 2, 3, 7, 64] {
        assert_eq!(feed(&session, &[piece]), whole);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Bytes changed anywhere, cut anywhere: the broker answers something and goes on.
    #[test]
    fn no_bytes_of_a_client_make_the_broker_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        end in any::<prop::sample::Index>(),
        pieces in prop::collection::vec(1_usize..200, 1..5),
    ) {
        let mut session = recorded_session();
        for (at, byte) in changes {
            let at = at.index(session.len());
            session[at] = byte;
        }
        session.truncate(end.index(session.len()) + 1);
        feed(&session, &pieces);
    }
}
