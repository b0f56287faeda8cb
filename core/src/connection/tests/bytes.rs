//! The same bytes, however they are cut; and bytes that mean nothing.

use proptest::prelude::*;

use super::*;

/// Everything a server says in a lively session with two channels, to a client that takes bodies of 4,600 bytes.
fn recording() -> Vec<u8> {
    use script::Done;
    [
        script::start("PLAIN AMQPLAIN"),
        script::tune(2047, 131_072, 60),
        script::open_ok(),
        script::channel_open_ok(1),
        script::select_ok(1),
        script::heartbeat(),
        script::consume_ok(1, "tag"),
        script::channel_open_ok(2),
        script::deliver(1, "tag", 1),
        script::header(1, 5, None),
        script::done(2, Done::TxSelect),
        script::body(1, b"hello"),
        script::returned(1, Some(2)),
        script::ack(1, 3, true),
        script::deliver(1, "tag", 2),
        script::header(1, 4_500, None),
        script::body(1, &[1; 4_200]),
        script::done(2, Done::ExchangeDeclare),
        script::done(2, Done::QueueBind),
        script::done(2, Done::ExchangeBind),
        script::blocked("disk"),
        script::body(1, &[2; 300]),
        script::unblocked(),
        script::deliver(1, "tag", 3),
        script::header(1, 5_000, None),
        script::get_ok(2, 1),
        script::body(1, &[3; 4_500]),
        script::header(2, 4_601, None),
        script::body(2, &[4; 4_096]),
        script::body(1, &[3; 500]),
        script::body(2, &[4; 505]),
        script::get_empty(2),
        script::purge_ok(2),
        script::done(2, Done::Recover),
        script::channel_flow(1, false),
        script::channel_flow(1, true),
        script::done(2, Done::TxRollback),
        script::cancel(1, "tag", true),
        script::channel_close(1, 406, "PRECONDITION_FAILED"),
        script::connection_close(320, "CONNECTION_FORCED"),
    ]
    .concat()
}

/// What the client asks for as soon as it is open.
fn ask(client: &mut Connection) -> Result<(), CommandError> {
    use crate::topology::{
        Binding, BindingDestination, ExchangeDeclaration, ExchangeKind, ExchangeName, RoutingKey,
    };
    let channel = client.open_channel()?;
    client.confirm_select(channel)?;
    client.consume(channel, &short("q"), &short("tag"), &ConsumeOptions::default())?;
    for _ in 0..3 {
        client.publish(channel, &message("x")).unwrap();
    }
    let name = |name: &str| ExchangeName::new(name).unwrap();
    let binding = |destination| Binding {
        source: name("e"),
        destination,
        routing_key: RoutingKey::new("k").unwrap(),
        arguments: crate::table::Table::new(),
    };
    let other = client.open_channel()?;
    client.tx_select(other)?;
    client.declare_exchange(other, &ExchangeDeclaration::durable(name("e"), ExchangeKind::Direct))?;
    client.bind(other, &binding(BindingDestination::Queue(short("q"))))?;
    client.bind(other, &binding(BindingDestination::Exchange(name("d"))))?;
    client.get(other, &short("q"), false)?;
    client.get(other, &short("q"), true)?;
    client.purge_queue(other, &short("q"))?;
    client.recover(other)?;
    client.tx_rollback(other)
}

/// What a client makes of the recording, cut at these places.
fn replay(recording: &[u8], cuts: impl IntoIterator<Item = usize>) -> (Vec<Event>, Vec<u8>) {
    let mut config = config();
    config.max_message_bytes = 4_600;
    let mut pair = Pair::new(config);
    let (mut events, mut sent) = (Vec::new(), pair.sent_bytes());
    let mut asked = false;
    let mut fed = 0;
    for end in cuts.into_iter().chain([recording.len()]) {
        let end = end.clamp(fed, recording.len());
        pair.input.extend_from_slice(&recording[fed..end]);
        fed = end;
        // Frame by frame, so that the commands come at the same point however the bytes were cut.
        while let Some(frame) = frame::peek(&pair.input, u32::MAX).unwrap() {
            let rest = pair.input.split_off(frame.len());
            pair.read();
            pair.input.unsplit(rest);
            sent.extend_from_slice(&pair.sent_bytes());
            if pair.client.is_open() && !asked {
                asked = true;
                ask(&mut pair.client).unwrap();
                sent.extend_from_slice(&pair.sent_bytes());
            }
            for event in pair.events() {
                if let Event::Delivery(delivery) | Event::Got { delivery, .. } = &event {
                    pair.client.ack(delivery.channel(), delivery.delivery_tag(), false).unwrap_or_default();
                }
                events.push(event);
            }
            sent.extend_from_slice(&pair.sent_bytes());
        }
        pair.read();
    }
    (events, sent)
}

#[test]
fn a_session_reads_the_same_at_once_and_byte_by_byte() {
    let recording = recording();
    let whole = replay(&recording, []);
    let Some(Event::Closed(error)) = whole.0.last() else { panic!("{whole:?}") };
    assert!(matches!(**error, ConnectionError::ClosedByPeer(_)), "{error}");
    let count = |wanted: fn(&Event) -> bool| whole.0.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, Event::Delivery(_))), 3);
    let oversized = |delivery: &Delivery| delivery.content().body().is_err();
    let skipped = whole.0.iter().filter(|event| {
        matches!(event, Event::Delivery(delivery) | Event::Got { delivery, .. } if oversized(delivery))
    });
    assert_eq!(skipped.count(), 2);
    assert_eq!(count(|event| matches!(event, Event::Recovered { .. } | Event::TxRolledBack { .. })), 2);
    assert_eq!(replay(&recording, 1..recording.len()), whole);
}

/// At each of them, also within bodies.
#[test]
fn a_session_reads_the_same_at_every_cut() {
    let recording = recording();
    let whole = replay(&recording, []);
    for cut in 1..recording.len() {
        assert!(replay(&recording, [cut]) == whole, "cut at {cut}");
    }
}

/// The same without a look in between: what came is read as far as it goes, and said when all has been.
#[test]
fn a_session_that_is_read_in_one_go_tells_the_same() {
    let recording = recording();
    let opening: usize =
        [script::start("PLAIN AMQPLAIN"), script::tune(2047, 131_072, 60), script::open_ok()]
            .iter()
            .map(Vec::len)
            .sum();
    let in_pieces_of = |size: usize| {
        let mut config = config();
        config.max_message_bytes = 4_600;
        let mut pair = Pair::new(config);
        pair.feed(&recording[..opening]);
        ask(&mut pair.client).unwrap();
        pair.sent();
        recording[opening..].chunks(size).for_each(|piece| pair.feed(piece));
        (pair.events(), pair.sent_bytes())
    };
    let whole = in_pieces_of(recording.len());
    assert_eq!(whole.0.len(), replay(&recording, []).0.len());
    for size in [1, 7, 8, 9, 100, 1_000, 4_096] {
        assert!(in_pieces_of(size) == whole, "in pieces of {size}");
    }
}

/// However often, and wherever.
#[test]
fn a_session_reads_the_same_in_any_pieces() {
    let recording = recording();
    let whole = replay(&recording, []);
    proptest!(ProptestConfig::with_cases(64), |(sizes in prop::collection::vec(1..2_000_usize, 1..40))| {
        let mut end = 0;
        let cuts = sizes.iter().cycle().map(|size| { end += size; end }).take_while(|end| *end < recording.len());
        prop_assert!(replay(&recording, cuts.collect::<Vec<_>>()) == whole);
    });
}

#[test]
fn work_per_read_is_bounded_and_nothing_is_forgotten() {
    let mut pair = Pair::open(config());
    pair.input.extend_from_slice(&script::heartbeat().repeat(1_000));
    let mut calls = 1;
    while pair.client.handle_read(pair.now, &mut pair.input) == ReadOutcome::More {
        calls += 1;
    }
    assert!(pair.input.is_empty());
    assert_eq!(calls, 4);
}

/// The states in which bytes can find a client.
fn in_state(state: u8) -> Pair {
    let mut pair = match state {
        0..=3 => Pair::new(config()),
        _ => Pair::confirming(2, config()),
    };
    match state {
        0 => {}
        1 => pair.feed(script::start("PLAIN")),
        2 | 3 => {
            pair.feed(script::start("PLAIN"));
            pair.feed(script::tune(0, 8_192, 1));
            if state == 3 {
                pair.feed(script::open_ok());
            }
        }
        4 => {
            pair.publish(1, vec![0; 10_000]).unwrap();
            pair.publish(1, "x").unwrap();
        }
        5 => {
            pair.client.get(id(1), &short("q"), false).unwrap();
            let other = pair.client.open_channel().unwrap();
            pair.client.tx_select(other).unwrap();
            pair.feed(script::deliver(1, "tag", 1));
        }
        6 => pair.feed([script::deliver(1, "tag", 1), script::header(1, 100, None)].concat()),
        7 => {
            pair.client.get(id(1), &short("q"), false).unwrap();
            pair.client.recover(id(1)).unwrap();
            pair.client.close_channel(id(1)).unwrap();
        }
        8 => pair.client.close(pair.now, 200, "bye"),
        _ => pair.feed(script::connection_close(320, "gone")),
    }
    pair
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        // Mostly methods that exist, with any arguments.
        (
            prop::sample::select(vec![10_u8, 20, 50, 60, 85]),
            prop::sample::select(vec![10_u8, 11, 20, 21, 30, 31, 40, 41, 50, 51, 60, 80, 120]),
            prop::collection::vec(any::<u8>(), 0..30),
        )
            .prop_map(|(class, method, arguments)| [&[0, class, 0, method][..], &arguments].concat()),
    ];
    prop_oneof![
        4 => (prop::sample::select(vec![1_u8, 1, 1, 2, 3, 8]), 0..4_u16, payload)
            .prop_map(|(kind, channel, payload)| script::raw(kind, channel, &payload)),
        2 => prop::sample::select(vec![
            script::ack(1, 1, true),
            script::nack(1, 2, false),
            script::returned(1, Some(1)),
            script::deliver(1, "tag", 1),
            script::header(1, 3, None),
            script::body(1, b"abc"),
            script::channel_close(1, 404, "x"),
            script::channel_close(2, 404, "x"),
            script::channel_close_ok(1),
            script::channel_flow(2, false),
            script::blocked("disk"),
            script::connection_close_ok(),
            script::get_ok(1, 2),
            script::get_empty(2),
            script::channel_flow_ok(2, true),
            script::done(1, script::Done::Recover),
            script::done(2, script::Done::TxCommit),
        ]),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// No bytes make a client panic, hang or grow; and every publish has exactly one verdict in the end.
    #[test]
    fn any_bytes_in_any_state(state in 0..10_u8, frames in prop::collection::vec(any_frame(), 0..40)) {
        let mut pair = in_state(state);
        let mut events = pair.events();
        for frame in &frames {
            pair.input.extend_from_slice(frame);
            for _ in 0..100 {
                if pair.client.handle_read(pair.now, &mut pair.input) == ReadOutcome::Idle {
                    break;
                }
            }
            prop_assert!(pair.input.len() < 131_072);
            prop_assert!(pair.client.unsent_bytes() < 20_000);
            events.extend(pair.events());
            pair.sent_bytes();
            prop_assert!(pair.client.unsent_bytes() == 0 || pair.client.is_blocked());
        }
        pair.client.handle_eof(pair.now);
        events.extend(pair.events());
        prop_assert!(pair.client.is_closed());
        prop_assert_eq!(pair.client.poll_timeout(), None);

        let closed = events.iter().filter(|event| matches!(event, Event::Closed(_))).count();
        prop_assert_eq!(closed, 1);
        prop_assert!(matches!(events.last(), Some(Event::Closed(_))));
        if state == 4 {
            let mut told: Vec<u64> = events
                .iter()
                .filter_map(|event| match event {
                    Event::Verdict { sequence, .. } => Some(*sequence),
                    _ => None,
                })
                .collect();
            told.sort_unstable();
            prop_assert_eq!(told, [1, 2]);
        }
    }
}
