//! Each command is asked once and answered once, in order, whatever else is in flight.

use std::num::NonZeroU16;

use super::script::Done;
use super::*;
use crate::table::Table;
use crate::topology::{
    Binding, BindingDestination, ExchangeDeclaration, ExchangeKind, ExchangeName, QueueDeclaration,
    RoutingKey,
};

fn exchange(name: &str) -> ExchangeName {
    ExchangeName::new(name).unwrap()
}

fn binding(destination: BindingDestination) -> Binding {
    Binding {
        source: exchange("orders"),
        destination,
        routing_key: RoutingKey::new("eu.#").unwrap(),
        arguments: Table::new(),
    }
}

type Command = fn(&mut Connection) -> Result<(), CommandError>;

/// Every command that is answered: what it sends, the answer, and the event.
fn commands() -> Vec<(Command, &'static str, Vec<u8>, Event)> {
    let channel = id(1);
    vec![
        (
            |client| {
                let topic = ExchangeDeclaration::durable(exchange("orders"), ExchangeKind::Topic);
                client.declare_exchange(id(1), &topic)
            },
            "1 declare exchange orders topic",
            script::done(1, Done::ExchangeDeclare),
            Event::ExchangeDeclared { channel },
        ),
        (
            |client| client.delete_exchange(id(1), &exchange("orders"), true),
            "1 delete exchange orders",
            script::done(1, Done::ExchangeDelete),
            Event::ExchangeDeleted { channel },
        ),
        (
            |client| client.bind(id(1), &binding(BindingDestination::Exchange(exchange("archive")))),
            "1 bind exchange archive to orders",
            script::done(1, Done::ExchangeBind),
            Event::Bound { channel },
        ),
        (
            |client| client.unbind(id(1), &binding(BindingDestination::Exchange(exchange("archive")))),
            "1 unbind exchange archive from orders",
            script::done(1, Done::ExchangeUnbind),
            Event::Unbound { channel },
        ),
        (
            |client| client.declare_queue(id(1), &QueueDeclaration::passive(short("q"))),
            "1 declare q",
            script::declare_ok(1, "q"),
            Event::QueueDeclared { channel, name: short("q"), messages: 2, consumers: 1 },
        ),
        (
            |client| client.bind(id(1), &binding(BindingDestination::Queue(short("q")))),
            "1 bind q to orders",
            script::done(1, Done::QueueBind),
            Event::Bound { channel },
        ),
        (
            |client| client.unbind(id(1), &binding(BindingDestination::Queue(short("q")))),
            "1 unbind q from orders",
            script::done(1, Done::QueueUnbind),
            Event::Unbound { channel },
        ),
        (
            |client| client.purge_queue(id(1), &short("q")),
            "1 purge q",
            script::purge_ok(1),
            Event::QueuePurged { channel, messages: 2 },
        ),
        (
            |client| client.delete_queue(id(1), &short("q"), DeleteIf::UNUSED_AND_EMPTY),
            "1 delete q",
            script::delete_ok(1),
            Event::QueueDeleted { channel, messages: 2 },
        ),
        (
            |client| client.get(id(1), &short("q"), false),
            "1 get q",
            script::get_empty(1),
            Event::GetEmpty { channel },
        ),
        (
            |client| client.recover(id(1)),
            "1 recover true",
            script::done(1, Done::Recover),
            Event::Recovered { channel },
        ),
        (
            |client| client.set_flow(id(1), false),
            "1 flow false",
            script::channel_flow_ok(1, false),
            Event::FlowSet { channel, active: false },
        ),
        (
            |client| client.tx_select(id(1)),
            "1 tx.select",
            script::done(1, Done::TxSelect),
            Event::TxSelected { channel },
        ),
        (
            |client| client.tx_commit(id(1)),
            "1 tx.commit",
            script::done(1, Done::TxCommit),
            Event::TxCommitted { channel },
        ),
        (
            |client| client.tx_rollback(id(1)),
            "1 tx.rollback",
            script::done(1, Done::TxRollback),
            Event::TxRolledBack { channel },
        ),
    ]
}

/// A client with channel 1 open, and in no mode.
fn plain() -> Pair {
    let mut pair = Pair::open(config());
    pair.client.open_channel().unwrap();
    pair.sent();
    pair.feed(script::channel_open_ok(1));
    pair.events();
    pair
}

#[test]
fn commands_in_flight_are_answered_in_their_order() {
    let mut pair = plain();
    for (command, ..) in commands() {
        command(&mut pair.client).unwrap();
    }
    assert_eq!(pair.sent(), commands().iter().map(|(_, sent, ..)| *sent).collect::<Vec<_>>());
    for (_, sent, answer, event) in commands() {
        pair.feed(answer);
        assert_eq!(pair.events(), [event], "{sent}");
    }
}

#[test]
fn an_answer_to_a_command_that_has_not_left_is_nobodys() {
    let mut pair = Pair::confirming(1, config());
    pair.client.set_prefetch(id(1), NonZeroU16::MIN).unwrap();
    pair.sent();
    pair.client.recover(id(1)).unwrap();
    pair.client.set_prefetch(id(1), NonZeroU16::MIN).unwrap();
    pair.feed(script::qos_ok(1));
    assert_eq!(pair.events(), [Event::PrefetchSet { channel: id(1) }], "this one has left");
    pair.feed(script::qos_ok(1));
    let expected = ProtocolError::UnexpectedMethod { channel: 1, class: 60, method: 11 };
    assert_eq!(pair.end(), ConnectionError::Protocol(expected));
}

#[test]
fn an_answer_out_of_turn_ends_the_connection_and_not_another_command() {
    let all = commands();
    for (n, (command, sent, answer, _)) in all.iter().enumerate() {
        if *sent == "1 tx.commit" || *sent == "1 tx.rollback" {
            continue;
        }
        let mut pair = plain();
        // Another command comes first.
        let (other, ..) = &all[(n + 1) % 12];
        other(&mut pair.client).unwrap();
        command(&mut pair.client).unwrap();
        pair.sent();
        pair.feed(answer);
        let error = pair.end();
        assert!(
            matches!(error, ConnectionError::Protocol(ProtocolError::UnexpectedMethod { channel: 1, .. })),
            "{sent}: {error}"
        );
    }
}

#[test]
fn a_command_at_the_wrong_time_changes_nothing() {
    let gone = CommandError::NoSuchChannel { channel: id(1) };
    let mut closing = plain();
    closing.client.close_channel(id(1)).unwrap();
    closing.sent();
    let mut ended = plain();
    ended.client.close(ended.now, 200, "bye");
    ended.sent();
    let mut early = Pair::new(config());
    early.sent();
    for (command, sent, ..) in commands() {
        assert_eq!(command(&mut closing.client), Err(gone), "{sent}");
        assert_eq!(command(&mut ended.client), Err(CommandError::NotOpen), "{sent}");
        assert_eq!(command(&mut early.client), Err(CommandError::NotOpen), "{sent}");
    }
    for pair in [&mut closing, &mut ended, &mut early] {
        assert!(pair.sent().is_empty() && pair.events().is_empty());
        assert_eq!(pair.client.unsent_bytes(), 0);
    }
}

#[test]
fn a_channel_confirms_or_works_in_transactions_and_not_both() {
    let mut pair = Pair::confirming(1, config());
    let other = Err(CommandError::OtherMode { channel: id(1) });
    assert_eq!(pair.client.tx_select(id(1)), other);
    assert_eq!(pair.client.tx_commit(id(1)), Err(CommandError::NotTransactional { channel: id(1) }));
    assert_eq!(pair.client.tx_rollback(id(1)), Err(CommandError::NotTransactional { channel: id(1) }));
    let channel = pair.client.open_channel().unwrap();
    pair.client.tx_select(channel).unwrap();
    assert_eq!(pair.client.confirm_select(channel), Err(CommandError::OtherMode { channel }));
    assert_eq!(pair.publish(2, "x"), Ok(0), "no verdict comes");
    pair.client.tx_select(channel).unwrap();
    pair.client.tx_commit(channel).unwrap();
    assert_eq!(
        pair.sent(),
        [
            "2 open",
            "2 tx.select",
            "2 publish q",
            "2 header of 1",
            "2 body of 1",
            "2 tx.select",
            "2 tx.commit"
        ]
    );
}

#[test]
fn a_message_that_was_asked_for_is_a_delivery_without_a_consumer() {
    let mut pair = plain();
    pair.client.get(id(1), &short("q"), false).unwrap();
    pair.client.get(id(1), &short("q"), true).unwrap();
    pair.client.purge_queue(id(1), &short("q")).unwrap();
    assert_eq!(pair.sent(), ["1 get q", "1 get q", "1 purge q"]);
    for tag in 1..=2 {
        pair.feed([script::get_ok(1, tag), script::header(1, 5, None), script::body(1, b"hello")].concat());
    }
    pair.feed(script::purge_ok(1));
    let events = pair.events();
    let [
        Event::Got { delivery: first, messages: 7 },
        Event::Got { delivery: second, .. },
        Event::QueuePurged { .. },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((first.consumer_tag().as_str(), first.delivery_tag(), first.must_settle()), ("", 1, true));
    assert_eq!(first.content().body().unwrap(), "hello");
    assert!(!second.must_settle());
    assert_eq!(
        pair.client.ack(id(1), 2, false),
        Err(CommandError::NotOutstanding { channel: id(1), delivery_tag: 2 })
    );
    pair.client.ack(id(1), 1, false).unwrap();
    assert_eq!(pair.sent(), ["1 ack 1"]);
}

#[test]
fn a_get_may_be_answered_while_a_consume_waits_and_not_within_content() {
    let mut pair = plain();
    let options = ConsumeOptions::default();
    pair.client.consume(id(1), &short("q"), &short("c"), &options).unwrap();
    pair.client.get(id(1), &short("q"), false).unwrap();
    pair.sent();
    pair.feed(script::get_empty(1));
    pair.feed(script::consume_ok(1, "c"));
    assert!(matches!(pair.events()[..], [Event::GetEmpty { .. }, Event::ConsumeStarted { .. }]));

    pair.client.get(id(1), &short("q"), false).unwrap();
    pair.sent();
    pair.feed([script::deliver(1, "c", 1), script::get_empty(1)].concat());
    let expected = ProtocolError::UnexpectedFrame { channel: 1 };
    assert_eq!(pair.end(), ConnectionError::Protocol(expected));
}

#[test]
fn consumers_without_a_name_get_one_that_is_free() {
    let mut pair = plain();
    let options = ConsumeOptions::default();
    let taken = pair.client.consume(id(1), &short("q"), &short("leveret-1"), &options).unwrap();
    assert_eq!(taken, "leveret-1");
    let first = pair.client.consume(id(1), &short("q"), &ShortString::EMPTY, &options).unwrap();
    let second = pair.client.consume(id(1), &short("q"), &ShortString::EMPTY, &options).unwrap();
    assert_eq!((first.as_str(), second.as_str()), ("leveret-2", "leveret-3"));
    assert_eq!(
        pair.client.consume(id(1), &short("q"), &first, &options),
        Err(CommandError::ConsumerTagInUse { channel: id(1) })
    );
    assert_eq!(
        pair.client.cancel(id(1), &short("nobody")),
        Err(CommandError::NoSuchConsumer { channel: id(1) })
    );
    assert_eq!(pair.sent().len(), 3);
}

#[test]
fn a_close_of_the_channel_ends_every_command_that_waits() {
    let mut pair = plain();
    for (command, ..) in commands() {
        command(&mut pair.client).unwrap();
    }
    pair.sent();
    pair.feed(script::channel_close(1, 404, "NOT_FOUND - no exchange 'orders'"));
    let cause = ChannelClosed::Peer(close_reason(404, "NOT_FOUND - no exchange 'orders'"));
    assert_eq!(pair.events(), [Event::ChannelClosed { channel: id(1), cause }]);
    assert_eq!(pair.sent(), ["1 close-ok"]);
}
