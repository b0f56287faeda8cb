//! Dead-lettering, its header `x-death`, and hostile headers.

use amq_protocol::frame::AMQPFrame;
use amq_protocol::protocol::{AMQPClass, BasicProperties, basic};
use amq_protocol::types::{AMQPValue, FieldTable};

use super::world::{Peer, World, dead_letter_to, encoded, int, table, text};
use crate::broker::{BrokerConfig, BrokerEvent, DeathReason};
use leveret_core::time::UnixMillis;

fn headers(properties: &BasicProperties) -> FieldTable {
    properties.headers().clone().unwrap_or_default()
}

fn deaths(properties: &BasicProperties) -> Vec<FieldTable> {
    match headers(properties).inner().get("x-death") {
        Some(AMQPValue::FieldArray(entries)) => {
            entries.as_slice().iter().map(|entry| entry.as_field_table().unwrap().clone()).collect()
        }
        other => panic!("x-death is {other:?}"),
    }
}

fn with_headers(fields: &[(&str, AMQPValue)]) -> BasicProperties {
    BasicProperties::default().with_headers(table(fields))
}

/// A hold of 300 ms in front of a work queue that is consumed.
fn hold_and_consumer() -> (World, Peer) {
    let mut world = World::with(BrokerConfig::default().started_at(UnixMillis(1_700_000_000_000)));
    let mut peer = world.connect();
    world.make(&mut peer, "work", &[]);
    let [exchange, key] = dead_letter_to("work");
    world.make(&mut peer, "hold", &[exchange, key, ("x-message-ttl", int(300))]);
    world.consume(&mut peer, "work", "c", 0);
    (world, peer)
}

#[test]
fn an_expired_message_says_where_it_died() {
    let (mut world, mut peer) = hold_and_consumer();
    let published = BasicProperties::default()
        .with_expiration("250".into())
        .with_delivery_mode(2)
        .with_message_id("m1".into())
        .with_priority(7)
        .with_headers(table(&[("mine", text("kept"))]));
    world.publish_with(&mut peer, "hold", published, "job");
    world.pass_ms(2000);
    let [delivery] = &world.contents(&mut peer)[..] else { panic!("one delivery") };

    let expected = table(&[
        ("count", int(1)),
        ("reason", text("expired")),
        ("queue", text("hold")),
        ("time", AMQPValue::Timestamp(1_700_000_000)),
        ("exchange", text("")),
        ("routing-keys", AMQPValue::FieldArray(vec![text("hold")].into())),
        ("original-expiration", text("250")),
    ]);
    assert_eq!(deaths(&delivery.properties), [expected]);
    let headers = headers(&delivery.properties);
    assert_eq!(headers.inner().get("x-first-death-queue"), Some(&text("hold")));
    assert_eq!(headers.inner().get("x-first-death-reason"), Some(&text("expired")));
    assert_eq!(headers.inner().get("x-first-death-exchange"), Some(&text("")));
    assert_eq!(headers.inner().get("mine"), Some(&text("kept")));
    assert_eq!(delivery.properties.expiration(), &None);
    assert_eq!(delivery.properties.delivery_mode(), &Some(2));
    assert_eq!(delivery.properties.priority(), &Some(7));
    assert_eq!(delivery.text(), "job");
}

#[test]
fn a_second_death_of_the_same_kind_is_counted_and_the_newest_stands_first() {
    let mut world = World::new();
    let mut peer = world.connect();
    let [exchange, key] = dead_letter_to("work");
    world.make(&mut peer, "wait", &[exchange, key, ("x-message-ttl", int(100))]);
    world.make(&mut peer, "work", &dead_letter_to("wait"));
    world.consume(&mut peer, "work", "c", 0);
    world.publish(&mut peer, "work", "job");
    for round in 1..=3 {
        let [delivery] = &world.contents(&mut peer)[..] else { panic!("one delivery in round {round}") };
        world.refuse(&mut peer, delivery.tag(), false);
        world.pass_ms(100);
    }
    let [delivery] = &world.contents(&mut peer)[..] else { panic!("one delivery") };
    let said: Vec<_> = deaths(&delivery.properties)
        .iter()
        .map(|death| (death.inner()["queue"].clone(), death.inner()["count"].clone()))
        .collect();
    assert_eq!(said, [(text("wait"), int(3)), (text("work"), int(3))]);
    // The first death of all stays named.
    assert_eq!(headers(&delivery.properties).inner()["x-first-death-queue"], text("work"));
}

#[test]
fn where_it_died_first_is_the_brokers_to_say() {
    let (mut world, mut peer) = hold_and_consumer();
    let claimed = with_headers(&[("x-first-death-queue", text("elsewhere")), ("x-first-death", int(1))]);
    world.publish_with(&mut peer, "hold", claimed, "job");
    world.pass_ms(300);
    let [delivery] = &world.contents(&mut peer)[..] else { panic!("one delivery") };
    let headers = headers(&delivery.properties);
    assert_eq!(headers.inner()["x-first-death-queue"], text("hold"));
    assert_eq!(headers.inner()["x-first-death"], int(1));
}

#[test]
fn a_message_that_comes_around_without_a_rejection_is_dropped() {
    let mut world = World::new();
    let mut peer = world.connect();
    let [exchange, key] = dead_letter_to("b");
    world.make(&mut peer, "a", &[exchange, key, ("x-message-ttl", int(500))]);
    let [exchange, key] = dead_letter_to("a");
    world.make(&mut peer, "b", &[exchange, key, ("x-message-ttl", int(500))]);
    world.publish(&mut peer, "a", "job");
    world.pass_ms(500);
    assert_eq!(world.waiting("b"), Some(vec!["job".to_owned()]));
    world.pass_ms(500);
    assert_eq!((world.waiting("a"), world.waiting("b")), (Some(vec![]), Some(vec![])));
}

#[test]
fn a_copied_death_history_loses_the_message() {
    let (mut world, mut peer) = hold_and_consumer();
    let death = table(&[("queue", text("work")), ("reason", text("expired")), ("count", int(1))]);
    let copied = [("x-death", AMQPValue::FieldArray(vec![AMQPValue::FieldTable(death)].into()))];
    world.publish_with(&mut peer, "hold", with_headers(&copied), "job");
    world.events();
    world.pass_ms(300);
    assert!(world.contents(&mut peer).is_empty());
    assert!(world.events().iter().any(|event| matches!(
        event,
        BrokerEvent::DeadLettered { reason: DeathReason::Expired, queues: 0, .. }
    )));
}

#[test]
fn a_missing_target_discards_the_message_silently() {
    let mut world = World::new();
    let mut peer = world.connect_publisher();
    let [exchange, key] = dead_letter_to("nobody");
    world.make(&mut peer, "hold", &[exchange, key, ("x-message-ttl", int(100))]);
    let elsewhere = [("x-dead-letter-exchange", text("no such exchange")), ("x-message-ttl", int(100))];
    world.make(&mut peer, "other", &elsewhere);
    world.publish(&mut peer, "hold", "job");
    world.publish(&mut peer, "other", "job");
    world.frames(&mut peer);
    world.pass_ms(100);
    assert_eq!((world.waiting("hold"), world.waiting("other")), (Some(vec![]), Some(vec![])));
    assert!(world.frames(&mut peer).is_empty());
}

#[test]
fn a_full_queue_moves_its_oldest_message_on() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "dead", &[]);
    let [exchange, key] = dead_letter_to("dead");
    world.make(&mut peer, "q", &[exchange, key, ("x-max-length", int(2))]);
    for body in ["1", "2", "3"] {
        world.publish(&mut peer, "q", body);
    }
    assert_eq!(world.waiting("q"), Some(vec!["2".to_owned(), "3".to_owned()]));
    world.consume(&mut peer, "dead", "c", 0);
    let [delivery] = &world.contents(&mut peer)[..] else { panic!("one dead message") };
    assert_eq!(deaths(&delivery.properties)[0].inner()["reason"], text("maxlen"));
}

#[test]
fn a_full_work_queue_that_rejects_loses_what_is_released_to_it() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "work", &[("x-max-length", int(1)), ("x-overflow", text("reject-publish"))]);
    let [exchange, key] = dead_letter_to("work");
    world.make(&mut peer, "hold", &[exchange, key, ("x-message-ttl", int(100))]);
    for _ in 0..5 {
        world.publish(&mut peer, "hold", "job");
    }
    world.pass_ms(100);
    assert_eq!(world.broker.queue("work").unwrap().ready, 1);
    assert_eq!(world.broker.queue("hold").unwrap().ready, 0);
}

#[test]
fn a_dead_letter_exchange_without_a_routing_key_keeps_the_original_one() {
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "dead", &[]);
    let bind = amq_protocol::protocol::queue::Bind {
        queue: "dead".into(),
        exchange: "amq.topic".into(),
        routing_key: "q.#".into(),
        nowait: true,
        arguments: FieldTable::default(),
    };
    world.queue(&mut peer, amq_protocol::protocol::queue::AMQPMethod::Bind(bind));
    world.make(
        &mut peer,
        "q.one",
        &[("x-dead-letter-exchange", text("amq.topic")), ("x-message-ttl", int(1))],
    );
    world.publish(&mut peer, "q.one", "job");
    world.pass_ms(1);
    assert_eq!(world.waiting("dead"), Some(vec!["job".to_owned()]));
}

/// A table that holds a table that holds a table: `levels` of them, in a header named `deep`.
fn nested(levels: usize) -> Vec<u8> {
    let mut table = Vec::new();
    for _ in 0..levels {
        let mut outer = vec![1, b't', b'F'];
        outer.extend(u32::try_from(table.len()).unwrap().to_be_bytes());
        outer.extend(table);
        table = outer;
    }
    table
}

/// The frames of a publish to `queue` whose properties are given as bytes.
fn raw_publish(queue: &str, flags: u16, values: &[u8], body: &[u8]) -> Vec<u8> {
    let publish = basic::AMQPMethod::Publish(basic::Publish {
        exchange: "".into(),
        routing_key: queue.into(),
        mandatory: false,
        immediate: false,
    });
    let mut bytes = encoded(&AMQPFrame::Method(1, AMQPClass::Basic(publish)));
    let mut header = vec![0, 60, 0, 0];
    header.extend((body.len() as u64).to_be_bytes());
    header.extend(flags.to_be_bytes());
    header.extend(values);
    bytes.extend([2, 0, 1]);
    bytes.extend(u32::try_from(header.len()).unwrap().to_be_bytes());
    bytes.extend(header);
    bytes.push(0xCE);
    bytes.extend(encoded(&AMQPFrame::Body(1, body.to_vec())));
    bytes
}

const HEADERS: u16 = 1 << 13;
const MESSAGE_ID: u16 = 1 << 7;

fn sized(table: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(table.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(table);
    bytes
}

/// What the broker has for a client as bytes: hostile headers are not to be parsed by the test either.
fn transmitted(world: &mut World, peer: &Peer) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    while world.broker.poll_transmit(world.now, peer.conn, &mut out) > 0 {}
    out.to_vec()
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

#[test]
fn headers_nested_thousands_deep_reach_the_consumer_byte_for_byte() {
    let (mut world, mut peer) = hold_and_consumer();
    let deep = nested(6000);
    world.write(&mut peer, &raw_publish("work", HEADERS, &sized(&deep), b"direct"));
    let direct = transmitted(&mut world, &peer);
    assert!(contains(&direct, &deep) && contains(&direct, b"direct"));

    // By way of a hold only `x-death` and its like are added.
    world.write(&mut peer, &raw_publish("hold", HEADERS, &sized(&deep), b"delayed"));
    world.pass_ms(300);
    let delayed = transmitted(&mut world, &peer);
    assert!(contains(&delayed, &deep) && contains(&delayed, b"x-death") && contains(&delayed, b"delayed"));
}

#[test]
fn text_that_is_not_utf8_is_relayed() {
    let (mut world, mut peer) = hold_and_consumer();
    let odd_key = [2, 0xFF, 0xFE, b't', 1];
    let mut values = sized(&odd_key);
    values.extend([3, b'i', b'd', 0x80]);
    world.write(&mut peer, &raw_publish("hold", HEADERS | MESSAGE_ID, &values, b"job"));
    world.pass_ms(300);
    let delivered = transmitted(&mut world, &peer);
    assert!(contains(&delivered, &odd_key) && contains(&delivered, &[3, b'i', b'd', 0x80]));
}

#[test]
fn an_x_death_that_cannot_be_parsed_is_replaced() {
    let (mut world, mut peer) = hold_and_consumer();
    let mut hostile = vec![7];
    hostile.extend(b"x-deathA");
    hostile.extend(sized(&{
        let mut entry = vec![b'F'];
        entry.extend(sized(&nested(3000)));
        entry
    }));
    world.write(&mut peer, &raw_publish("hold", HEADERS, &sized(&hostile), b"job"));
    world.pass_ms(300);
    let [delivery] = &world.contents(&mut peer)[..] else { panic!("one delivery") };
    assert_eq!(deaths(&delivery.properties).len(), 1);
}

#[test]
fn properties_that_are_none_close_the_connection() {
    for (flags, values) in [
        (HEADERS, sized(&[5, b'x'])),                  // a name longer than the table
        (HEADERS, vec![0, 0, 0, 9, 1, b'a', b't', 1]), // a table longer than the properties
        (HEADERS, sized(&[1, b'a', b'?', 0])),         // an unknown type
        (MESSAGE_ID, vec![9, b'x']),                   // a text longer than the properties
        (1, vec![]),                                   // more flags than there are properties
        (0, vec![1]),                                  // bytes that belong to nothing
    ] {
        let (mut world, mut peer) = hold_and_consumer();
        world.write(&mut peer, &raw_publish("work", flags, &values, b"job"));
        assert_eq!(world.connection_error(&mut peer).0, 502, "{flags:#x} {values:?}");
    }
}

#[test]
fn a_view_shows_the_headers_that_can_be_read() {
    let nested =
        |depth: usize| (0..depth).fold(text("core"), |inner, _| AMQPValue::FieldArray(vec![inner].into()));
    let mut world = World::new();
    let mut peer = world.connect();
    world.make(&mut peer, "work", &[]);
    let published =
        with_headers(&[("deep", nested(32)), ("readable", nested(31)), ("why", text("no route"))]);
    world.publish_with(&mut peer, "work", published, "job");

    let queue = world.broker.queue("work").unwrap();
    let [message] = &queue.messages[..] else { panic!("one message") };
    assert_eq!(message.header("why").unwrap().as_str(), Some("no route"));
    assert_eq!(message.header("missing"), None);
    assert!(message.header("readable").is_some());
    assert_eq!(message.header("deep"), None);
}
