//! The same bytes, however they are cut; and bytes that mean nothing.

use proptest::prelude::*;

use super::*;

/// Everything a server says in a lively session with one channel.
fn recording() -> Vec<u8> {
    [
        script::start("PLAIN AMQPLAIN"),
        script::tune(2047, 131_072, 60),
        script::open_ok(),
        script::channel_open_ok(1),
        script::select_ok(1),
        script::heartbeat(),
        script::consume_ok(1, "tag"),
        script::deliver(1, "tag", 1),
        script::header(1, 5, None),
        script::body(1, b"hello"),
        script::returned(1, Some(2)),
        script::ack(1, 3, true),
        script::deliver(1, "tag", 2),
        script::header(1, 9_000, None),
        script::body(1, &[1; 5_000]),
        script::blocked("disk"),
        script::body(1, &[2; 4_000]),
        script::unblocked(),
        script::cancel(1, "tag", true),
        script::channel_close(1, 406, "PRECONDITION_FAILED"),
        script::connection_close(320, "CONNECTION_FORCED"),
    ]
    .concat()
}

/// What a client makes of the recording, cut at these places.
fn replay(recording: &[u8], cuts: impl IntoIterator<Item = usize>) -> (Vec<Event>, Vec<u8>) {
    let mut pair = Pair::new(config());
    let (mut events, mut sent) = (Vec::new(), pair.sent_bytes());
    let mut asked = false;
    let mut fed = 0;
    for end in cuts.into_iter().chain([recording.len()]) {
        let end = end.clamp(fed, recording.len());
        pair.input.extend_from_slice(&recording[fed..end]);
        fed = end;
        // Frame by frame, so that the commands come at the same point however the bytes were cut.
        while !pair.input.is_empty() {
            let whole = frame::peek(&pair.input, u32::MAX).unwrap();
            let Some(frame) = whole else { break };
            let rest = pair.input.split_off(frame.len());
            pair.read();
            pair.input.unsplit(rest);
            sent.extend_from_slice(&pair.sent_bytes());
            if pair.client.is_open() && !asked {
                asked = true;
                let channel = pair.client.open_channel().unwrap();
                pair.client.confirm_select(channel).unwrap();
                pair.client.consume(channel, &short("q"), &short("tag"), &ConsumeOptions::default()).unwrap();
                for _ in 0..3 {
                    pair.publish(1, "x").unwrap();
                }
                sent.extend_from_slice(&pair.sent_bytes());
            }
        }
        pair.read();
        events.extend(pair.events());
        sent.extend_from_slice(&pair.sent_bytes());
    }
    (events, sent)
}

#[test]
fn a_session_reads_the_same_at_once_and_byte_by_byte() {
    let recording = recording();
    let whole = replay(&recording, []);
    assert!(matches!(whole.0.last(), Some(Event::Closed(_))));
    assert_eq!(whole.0.iter().filter(|event| matches!(event, Event::Delivery(_))).count(), 2);
    assert_eq!(replay(&recording, 1..recording.len()), whole);
}

#[test]
fn a_session_reads_the_same_at_every_cut() {
    let recording = recording();
    let whole = replay(&recording, []);
    for cut in 1..recording.len() {
        assert_eq!(replay(&recording, [cut]), whole, "cut at {cut}");
    }
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
        5 => pair.feed(script::deliver(1, "tag", 1)),
        6 => pair.feed([script::deliver(1, "tag", 1), script::header(1, 100, None)].concat()),
        7 => pair.client.close_channel(id(1)).unwrap(),
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
