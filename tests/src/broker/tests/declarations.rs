//! Queues and exchanges: what may be declared, and what is the same.

use amq_protocol::protocol::{AMQPClass, exchange, queue};
use amq_protocol::types::{AMQPValue, FieldTable};

use super::world::{Peer, World, declaration, int, table, text};

fn declared(world: &mut World, peer: &mut Peer, declare: queue::Declare) -> queue::DeclareOk {
    world.queue(peer, queue::AMQPMethod::Declare(declare));
    match world.methods(peer).pop() {
        Some((1, AMQPClass::Queue(queue::AMQPMethod::DeclareOk(ok)))) => ok,
        other => panic!("{other:?}"),
    }
}

fn refused(world: &mut World, peer: &mut Peer, arguments: &[(&str, AMQPValue)]) -> String {
    world.declare(peer, "q", arguments);
    let (code, text) = world.channel_error(peer);
    assert_eq!(code, 406, "{text}");
    text
}

#[test]
fn a_missing_queue_is_found_missing() {
    let mut world = World::new();
    let mut peer = world.connect();
    let passive = queue::Declare { passive: true, ..declaration("q", &[]) };
    world.queue(&mut peer, queue::AMQPMethod::Declare(passive));
    let expected = (404, "NOT_FOUND - no queue 'q' in vhost '/'".to_owned());
    assert_eq!(world.channel_error(&mut peer), expected);
}

#[test]
fn an_answer_counts_what_is_ready_and_who_consumes() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[]);
    for body in ["1", "2", "3"] {
        world.publish(&mut peer, "q", body);
    }
    world.consume(&mut peer, "q", "c", 1);
    world.frames(&mut peer);
    let ok = declared(&mut world, &mut peer, declaration("q", &[]));
    assert_eq!((ok.message_count, ok.consumer_count), (2, 1));
}

#[test]
fn another_value_is_inequivalent_and_the_text_says_which() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[("x-message-ttl", int(1000))]);
    let start = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': ";
    for (arguments, end) in [
        (vec![("x-message-ttl", int(5000))], "received '5000' but current is '1000'"),
        (vec![], "received none but current is the value '1000' of type 'long'"),
    ] {
        assert_eq!(refused(&mut world, &mut peer, &arguments), format!("{start}{end}"));
    }
    let more = [("x-message-ttl", int(1000)), ("x-max-priority", AMQPValue::LongInt(10))];
    assert_eq!(
        refused(&mut world, &mut peer, &more),
        "PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue 'q' in vhost '/': \
         received the value '10' of type 'signedint' but current is none"
    );
    let transient = queue::Declare { durable: false, ..declaration("q", &[]) };
    world.queue(&mut peer, queue::AMQPMethod::Declare(transient));
    assert_eq!(
        world.channel_error(&mut peer).1,
        "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': \
         received 'false' but current is 'true'"
    );
}

#[test]
fn a_channel_confirms_or_works_in_transactions() {
    use amq_protocol::protocol::{confirm, tx};
    let confirm = || AMQPClass::Confirm(confirm::AMQPMethod::Select(confirm::Select { nowait: false }));
    let select = || AMQPClass::Tx(tx::AMQPMethod::Select(tx::Select {}));
    let commit = || AMQPClass::Tx(tx::AMQPMethod::Commit(tx::Commit {}));
    for (methods, why) in [
        (vec![commit()], "channel is not transactional"),
        (vec![confirm(), select()], "cannot switch from confirm to tx mode"),
        (vec![select(), select(), confirm()], "cannot switch from tx to confirm mode"),
    ] {
        let mut world = World::new();
        let mut peer = world.connect();
        for method in methods {
            world.send(&mut peer, 1, method);
        }
        let expected = (406, format!("PRECONDITION_FAILED - {why}"));
        assert_eq!(world.channel_error(&mut peer), expected);
    }
}

#[test]
fn integers_of_all_widths_are_the_same() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[("x-max-priority", int(10)), ("x-message-ttl", int(100))]);
    for (priority, ttl) in [
        (AMQPValue::ShortShortInt(10), AMQPValue::LongUInt(100)),
        (AMQPValue::ShortShortUInt(10), AMQPValue::ShortUInt(100)),
        (AMQPValue::ShortInt(10), AMQPValue::LongInt(100)),
    ] {
        world.make(&mut peer, "q", &[("x-max-priority", priority), ("x-message-ttl", ttl)]);
    }
}

#[test]
fn a_queue_without_a_type_is_a_classic_one() {
    let classic = [("x-queue-type", text("classic"))];
    for (first, second) in [(&classic[..], &[][..]), (&[][..], &classic[..])] {
        let mut world = World::new();
        let mut peer = world.connect();
        world.make(&mut peer, "q", first);
        world.make(&mut peer, "q", second);
        assert_eq!(
            refused(&mut world, &mut peer, &[("x-queue-type", text("quorum"))]).rsplit(": ").next(),
            Some(if first.is_empty() {
                "received the value 'quorum' of type 'longstr' but current is none"
            } else {
                "received 'quorum' but current is 'classic'"
            })
        );
    }
}

#[test]
fn a_stream_is_refused_and_not_pretended() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.declare(&mut peer, "q", &[("x-queue-type", text("stream"))]);
    let (code, text) = world.connection_error(&mut peer);
    assert_eq!(code, 540);
    assert!(text.contains("no streams"), "{text}");
    assert!(world.broker.queue("q").is_none());
}

#[test]
fn arguments_are_validated() {
    let mut world = World::new();
    let mut peer = world.connect();
    let wrong: [(&str, AMQPValue, &str); 12] = [
        ("x-expires", int(0), ": {value_zero,0}"),
        ("x-expires", int(-1), ": {value_negative,-1}"),
        ("x-message-ttl", int(-1), ": {value_negative,-1}"),
        ("x-message-ttl", int(315_360_000_001), ": {value_too_large,315360000001}"),
        ("x-message-ttl", text("1000"), ": \"expected integer, got longstr\""),
        ("x-max-priority", int(256), ": {max_value_exceeded,256}"),
        ("x-max-length", int(-1), ": {value_negative,-1}"),
        ("x-overflow", text("explode"), ": invalid_overflow"),
        ("x-queue-type", text("heap"), ": \"unsupported queue type 'heap'\""),
        ("x-dead-letter-routing-key", text("q"), ": routing_key_but_no_dlx_defined"),
        ("x-dead-letter-strategy", text("at-least-once"), " of queue type rabbit_classic_queue"),
        ("x-delivery-limit", int(5), " of queue type rabbit_classic_queue"),
    ];
    for (name, value, why) in wrong {
        assert_eq!(
            refused(&mut world, &mut peer, &[(name, value)]),
            format!("PRECONDITION_FAILED - invalid arg '{name}' for queue 'q' in vhost '/'{why}")
        );
    }
    assert_eq!(
        refused(&mut world, &mut peer, &[("x-dead-letter-exchange", int(1))]),
        "PRECONDITION_FAILED - invalid type 'long' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'"
    );
    assert!(world.broker.queue("q").is_none());
    for (name, value) in
        [("x-message-ttl", int(0)), ("x-message-ttl", int(1 << 32)), ("x-max-priority", int(255))]
    {
        world.make(&mut peer, "q", &[(name, value)]);
        world.broker.delete_queue(world.now, "q");
    }
}

#[test]
fn a_table_of_arguments_that_nests_too_deep_is_refused_before_it_is_parsed() {
    let mut world = World::new();
    let mut peer = world.connect();
    let mut value = AMQPValue::FieldTable(FieldTable::default());
    for _ in 0..40 {
        value = AMQPValue::FieldTable(table(&[("t", value)]));
    }
    world.declare(&mut peer, "q", &[("x", value)]);
    assert_eq!(world.connection_error(&mut peer).0, 502);
}

#[test]
fn an_unnamed_queue_gets_a_name_and_is_meant_by_no_name() {
    let mut world = World::new();
    let mut peer = world.connect();
    let ok = declared(&mut world, &mut peer, declaration("", &[]));
    assert!(ok.queue.as_str().starts_with("amq.gen-"));
    let purge = queue::Purge { queue: "".into(), nowait: false };
    world.queue(&mut peer, queue::AMQPMethod::Purge(purge));
    assert!(matches!(
        world.methods(&mut peer)[..],
        [(1, AMQPClass::Queue(queue::AMQPMethod::PurgeOk(queue::PurgeOk { message_count: 0 })))]
    ));
    world.declare(&mut peer, "amq.mine", &[]);
    let expected = "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'";
    assert_eq!(world.channel_error(&mut peer), (403, expected.to_owned()));
}

#[test]
fn an_exclusive_queue_is_its_connections_own_and_goes_with_it() {
    let mut world = World::new();
    let (mut owner, mut other) = (world.connect(), world.connect());
    declared(&mut world, &mut owner, queue::Declare { exclusive: true, ..declaration("q", &[]) });
    let passive = queue::Declare { passive: true, ..declaration("q", &[]) };
    world.queue(&mut other, queue::AMQPMethod::Declare(passive));
    let (code, text) = world.channel_error(&mut other);
    assert_eq!(code, 405);
    let start = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'.";
    assert!(text.starts_with(start), "{text}");
    world.broker.handle_eof(world.now, owner.conn);
    assert!(world.broker.queue("q").is_none());
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_consumer_and_not_before_its_first() {
    let mut world = World::new();
    let mut peer = world.connect();
    declared(&mut world, &mut peer, queue::Declare { auto_delete: true, ..declaration("q", &[]) });
    world.pass_ms(60_000);
    assert!(world.broker.queue("q").is_some());
    let mut consumer = world.connect();
    world.consume(&mut consumer, "q", "c", 1);
    world.broker.cut(world.now, consumer.conn);
    assert!(world.broker.queue("q").is_none());
}

#[test]
fn a_queue_is_deleted_on_its_conditions() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[]);
    world.publish(&mut peer, "q", "job");
    let delete = |if_unused, if_empty| {
        queue::AMQPMethod::Delete(queue::Delete { queue: "q".into(), if_unused, if_empty, nowait: false })
    };
    world.queue(&mut peer, delete(true, true));
    let expected = "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty";
    assert_eq!(world.channel_error(&mut peer), (406, expected.to_owned()));
    for lost in [1, 0] {
        // The second time it is not there, which is fine.
        world.queue(&mut peer, delete(true, false));
        let Some((1, AMQPClass::Queue(queue::AMQPMethod::DeleteOk(ok)))) = world.methods(&mut peer).pop()
        else {
            panic!("no delete-ok");
        };
        assert_eq!(ok.message_count, lost);
    }
}

#[test]
fn an_exchange_routes_to_what_is_bound_until_it_is_unbound() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "q", &[]);
    let declare = exchange::Declare {
        exchange: "events".into(),
        kind: "topic".into(),
        passive: false,
        durable: true,
        auto_delete: true,
        internal: false,
        nowait: true,
        arguments: FieldTable::default(),
    };
    world.send(&mut peer, 1, AMQPClass::Exchange(exchange::AMQPMethod::Declare(declare)));
    let bind = queue::Bind {
        queue: "q".into(),
        exchange: "events".into(),
        routing_key: "user.*".into(),
        nowait: true,
        arguments: FieldTable::default(),
    };
    world.queue(&mut peer, queue::AMQPMethod::Bind(bind));
    for key in ["user.created", "order.created"] {
        let bytes = super::world::publish_bytes("events", key, false, Default::default(), key.as_bytes());
        world.write(&mut peer, &bytes);
    }
    assert_eq!(world.waiting("q"), Some(vec!["user.created".to_owned()]));
    let unbind = queue::Unbind {
        queue: "q".into(),
        exchange: "events".into(),
        routing_key: "user.*".into(),
        arguments: FieldTable::default(),
    };
    world.queue(&mut peer, queue::AMQPMethod::Unbind(unbind));
    // An auto-delete exchange goes with its last binding.
    let again = super::world::publish_bytes("events", "user.created", false, Default::default(), b"late");
    world.write(&mut peer, &again);
    assert_eq!(world.channel_error(&mut peer).0, 404);
}

#[test]
fn an_exchange_of_another_type_is_inequivalent() {
    let mut world = World::new();
    let mut peer = world.connect();
    let declare = exchange::Declare {
        exchange: "amq.direct".into(),
        kind: "fanout".into(),
        passive: false,
        durable: true,
        auto_delete: false,
        internal: false,
        nowait: false,
        arguments: FieldTable::default(),
    };
    world.send(&mut peer, 1, AMQPClass::Exchange(exchange::AMQPMethod::Declare(declare)));
    let expected = "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'amq.direct' in vhost '/': \
                    received 'fanout' but current is 'direct'";
    assert_eq!(world.channel_error(&mut peer), (406, expected.to_owned()));
}
