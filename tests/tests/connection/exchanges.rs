//! Exchanges, and the routes between them and queues.

use leveret_core::connection::{ChannelClosed, ChannelId, Event, Verdict};
use leveret_core::message::Message;
use leveret_core::table::Table;
use leveret_core::topology::{
    Binding, BindingDestination, ExchangeDeclaration, ExchangeKind, ExchangeName, RoutingKey,
};

use super::pair::{Pair, short, to};

fn exchange(name: &str) -> ExchangeName {
    ExchangeName::new(name).expect("a good name")
}

/// A channel that confirms, the queues `a` and `b`, and an exchange of a kind.
fn with_exchange(kind: ExchangeKind) -> (Pair, ChannelId) {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "a");
    pair.queue(channel, "b");
    pair.client().confirm_select(channel).expect("the channel is open");
    declare(&mut pair, channel, "x", kind);
    (pair, channel)
}

fn declare(pair: &mut Pair, channel: ChannelId, name: &str, kind: ExchangeKind) {
    let declaration = ExchangeDeclaration::durable(exchange(name), kind);
    pair.client().declare_exchange(channel, &declaration).expect("the channel is open");
    let events = pair.events();
    assert_eq!(events.last(), Some(&Event::ExchangeDeclared { channel }));
}

fn binding(source: &str, destination: BindingDestination, key: &str, arguments: Table) -> Binding {
    let routing_key = RoutingKey::new(key).expect("a good key");
    Binding { source: exchange(source), destination, routing_key, arguments }
}

fn bind(pair: &mut Pair, channel: ChannelId, binding: &Binding) {
    pair.client().bind(channel, binding).expect("the channel is open");
    assert_eq!(pair.events(), [Event::Bound { channel }]);
}

fn bind_queue(pair: &mut Pair, channel: ChannelId, queue: &'static str, key: &str, arguments: Table) {
    bind(pair, channel, &binding("x", BindingDestination::Queue(short(queue)), key, arguments));
}

/// Publishes, and says what is ready in `a` and `b` afterwards.
fn publish(pair: &mut Pair, channel: ChannelId, message: &Message) -> (Verdict, usize, usize) {
    pair.client().publish(channel, message).expect("there is room");
    let mut events = pair.events();
    let Some(Event::Verdict { verdict, .. }) = events.pop() else { panic!("no verdict") };
    (verdict, pair.counts("a").0, pair.counts("b").0)
}

#[test]
fn a_direct_exchange_goes_by_the_key_and_a_fanout_does_not() {
    let (mut pair, channel) = with_exchange(ExchangeKind::Direct);
    bind_queue(&mut pair, channel, "a", "red", Table::new());
    bind_queue(&mut pair, channel, "b", "blue", Table::new());
    assert_eq!(publish(&mut pair, channel, &to("x", "red", "1")), (Verdict::Ok, 1, 0));
    assert_eq!(publish(&mut pair, channel, &to("x", "blue", "2")), (Verdict::Ok, 1, 1));
    let (verdict, ..) = publish(&mut pair, channel, &to("x", "green", "3"));
    assert!(matches!(verdict, Verdict::Unroutable(_)), "{verdict:?}");

    let (mut pair, channel) = with_exchange(ExchangeKind::Fanout);
    bind_queue(&mut pair, channel, "a", "red", Table::new());
    bind_queue(&mut pair, channel, "b", "blue", Table::new());
    assert_eq!(publish(&mut pair, channel, &to("x", "green", "1")), (Verdict::Ok, 1, 1));
}

#[test]
fn a_topic_exchange_goes_by_the_words_of_the_key() {
    let (mut pair, channel) = with_exchange(ExchangeKind::Topic);
    bind_queue(&mut pair, channel, "a", "orders.#", Table::new());
    bind_queue(&mut pair, channel, "b", "*.eu.new", Table::new());
    bind_queue(&mut pair, channel, "b", "*.eu.*", Table::new());
    assert_eq!(publish(&mut pair, channel, &to("x", "orders.us", "1")), (Verdict::Ok, 1, 0));
    assert_eq!(publish(&mut pair, channel, &to("x", "orders.eu.new", "2")), (Verdict::Ok, 2, 1));
}

#[test]
fn a_headers_exchange_goes_by_the_headers() {
    let (mut pair, channel) = with_exchange(ExchangeKind::Headers);
    let wanted = || Table::new().with(short("format"), "pdf").with(short("pages"), 3_i64);
    bind_queue(&mut pair, channel, "a", "", wanted());
    bind_queue(&mut pair, channel, "b", "", wanted().with(short("x-match"), "any"));
    let with = |headers| {
        let mut message = to("x", "anything", "1");
        message.properties.headers = headers;
        message
    };
    let pdf = with(Table::new().with(short("format"), "pdf"));
    assert_eq!(publish(&mut pair, channel, &pdf), (Verdict::Ok, 0, 1));
    assert_eq!(publish(&mut pair, channel, &with(wanted())), (Verdict::Ok, 1, 2));
    let (verdict, ..) = publish(&mut pair, channel, &with(Table::new()));
    assert!(matches!(verdict, Verdict::Unroutable(_)), "{verdict:?}");
}

#[test]
fn a_message_goes_through_bound_exchanges_once() {
    let (mut pair, channel) = with_exchange(ExchangeKind::Topic);
    declare(&mut pair, channel, "archive", ExchangeKind::Fanout);
    let onward = binding("x", BindingDestination::Exchange(exchange("archive")), "#", Table::new());
    bind(&mut pair, channel, &onward);
    // A circle of exchanges is allowed, and two ways to one queue are one.
    bind(
        &mut pair,
        channel,
        &binding("archive", BindingDestination::Exchange(exchange("x")), "", Table::new()),
    );
    bind(&mut pair, channel, &binding("archive", BindingDestination::Queue(short("a")), "", Table::new()));
    bind_queue(&mut pair, channel, "a", "#", Table::new());
    assert_eq!(publish(&mut pair, channel, &to("x", "k", "1")), (Verdict::Ok, 1, 0));

    pair.client().unbind(channel, &onward).expect("the channel is open");
    pair.client().unbind(channel, &onward).expect("the channel is open");
    let unbound = Event::Unbound { channel };
    assert_eq!(pair.events(), [unbound.clone(), unbound], "what is not there is not missed");
    assert_eq!(publish(&mut pair, channel, &to("archive", "k", "2")), (Verdict::Ok, 2, 0));
}

#[test]
fn a_route_ends_with_either_of_its_ends() {
    let (mut pair, channel) = with_exchange(ExchangeKind::Fanout);
    bind_queue(&mut pair, channel, "a", "", Table::new());
    pair.client().delete_exchange(channel, &exchange("x"), false).expect("the channel is open");
    pair.client().delete_exchange(channel, &exchange("x"), false).expect("the channel is open");
    let deleted = Event::ExchangeDeleted { channel };
    assert_eq!(pair.events(), [deleted.clone(), deleted], "what is not there is not missed");
    declare(&mut pair, channel, "x", ExchangeKind::Fanout);
    let (verdict, ..) = publish(&mut pair, channel, &to("x", "", "1"));
    assert!(matches!(verdict, Verdict::Unroutable(_)), "the exchange is a new one: {verdict:?}");
}

#[test]
fn what_the_broker_refuses_ends_the_channel_with_its_reason() {
    let refused = |command: fn(&mut Pair, ChannelId), code, text: &str| {
        let (mut pair, channel) = with_exchange(ExchangeKind::Fanout);
        bind_queue(&mut pair, channel, "a", "", Table::new());
        command(&mut pair, channel);
        let events = pair.events();
        let [Event::ChannelClosed { cause: ChannelClosed::Peer(reason), .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(reason.code, code);
        assert!(reason.text.contains(text), "{reason}");
        assert!(pair.client().is_open());
    };
    refused(
        |pair, channel| {
            let passive = ExchangeDeclaration {
                passive: true,
                ..ExchangeDeclaration::durable(exchange("nope"), ExchangeKind::Direct)
            };
            pair.client().declare_exchange(channel, &passive).expect("the channel is open");
        },
        404,
        "no exchange 'nope'",
    );
    refused(
        |pair, channel| {
            let other = ExchangeDeclaration::durable(exchange("x"), ExchangeKind::Topic);
            pair.client().declare_exchange(channel, &other).expect("the channel is open");
        },
        406,
        "inequivalent arg 'type'",
    );
    refused(
        |pair, channel| {
            pair.client().delete_exchange(channel, &exchange("x"), true).expect("the channel is open");
        },
        406,
        "in use",
    );
    refused(
        |pair, channel| {
            let nowhere = binding("nope", BindingDestination::Queue(short("a")), "", Table::new());
            pair.client().bind(channel, &nowhere).expect("the channel is open");
        },
        404,
        "no exchange 'nope'",
    );
}
