//! Channels come and go, and take nobody with them.

use leveret_core::connection::{ChannelClosed, Event, Verdict};
use leveret_core::topology::QueueDeclaration;

use super::pair::{Pair, numbered, short, to, to_queue};

#[test]
fn an_error_of_one_channel_leaves_the_others_and_its_number_comes_back() {
    let mut pair = Pair::new();
    let (first, second) = (pair.channel(), pair.channel());
    pair.queue(second, "q");
    pair.client().confirm_select(second).expect("the channel is open");
    pair.client()
        .declare_queue(first, &QueueDeclaration::passive(short("nope")))
        .expect("the channel is open");
    pair.client().publish(second, &to_queue("q", "x")).expect("there is room");
    let events = pair.events();
    let closed = |event: &Event| {
        matches!(event, Event::ChannelClosed { channel, cause: ChannelClosed::Peer(reason) }
            if *channel == first && reason.code == 404)
    };
    assert!(events.iter().any(closed), "{events:?}");
    assert!(events.contains(&Event::Verdict { channel: second, sequence: 1, verdict: Verdict::Ok }));
    assert_eq!(pair.channel(), first);
}

#[test]
fn everything_queued_behind_an_error_is_dropped_and_told() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "q");
    pair.fill(channel, "q", numbered(5));
    assert_eq!(pair.consume(channel, "q").len(), 5);
    pair.client().confirm_select(channel).expect("the channel is open");
    pair.client().publish(channel, &to("nope", "k", "x")).expect("there is room");
    pair.client().publish(channel, &to_queue("q", vec![0; 300_000])).expect("there is room");
    pair.client().ack(channel, 0, true).expect("five are outstanding");
    let events = pair.events();
    let told =
        events.iter().filter(|event| matches!(event, Event::Verdict { verdict: Verdict::Unknown(_), .. }));
    assert_eq!(told.count(), 2);
    assert!(matches!(events.last(), Some(Event::ChannelClosed { .. })), "{events:?}");
    assert_eq!(pair.counts("q"), (5, 0), "no acknowledgement arrived");
    assert!(pair.client().is_open());
}

#[test]
fn channels_are_opened_and_closed_without_end() {
    let mut pair = Pair::new();
    for _ in 0..3_000 {
        let channel = pair.channel();
        assert_eq!(channel.get(), 1);
        pair.client().close_channel(channel).expect("it is open");
        assert_eq!(pair.events(), [Event::ChannelClosed { channel, cause: ChannelClosed::Ours }]);
    }
}

#[test]
fn a_pause_is_what_rabbitmq_does_not_know_and_a_resumption_is_answered() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.client().set_flow(channel, true).expect("the channel is open");
    assert_eq!(pair.events(), [Event::FlowSet { channel, active: true }]);
    pair.client().set_flow(channel, false).expect("the channel is open");
    let events = pair.events();
    let Some(Event::Closed(error)) = events.last() else { panic!("{events:?}") };
    assert!(error.to_string().contains("540"), "{error}");
}

#[test]
fn a_connection_that_the_broker_does_not_read_is_closed_within_its_bound() {
    let mut pair = Pair::new();
    let (publishing, consuming) = (pair.channel(), pair.channel());
    pair.queue(consuming, "q");
    pair.fill(publishing, "q", numbered(3));
    let now = pair.now;
    pair.broker.block(now);
    assert!(matches!(pair.events()[..], [Event::Blocked { .. }]));
    pair.client().publish(publishing, &to_queue("q", "later")).expect("there is room");
    pair.client().close(now, 200, "bye");
    assert_eq!(pair.events(), [], "the broker does not read from a connection that has published");
    pair.pass(5);
    let events = pair.events();
    let Some(Event::Closed(error)) = events.last() else { panic!("{events:?}") };
    assert_eq!(error.to_string(), "closed, but the server did not acknowledge it");
}

#[test]
fn publishes_wait_for_the_end_of_an_alarm_in_their_order() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "q");
    // The broker stops connections that have published, and only those.
    pair.fill(channel, "q", numbered(1));
    pair.client().confirm_select(channel).expect("the channel is open");
    pair.events();
    let now = pair.now;
    pair.broker.block(now);
    assert!(matches!(pair.events()[..], [Event::Blocked { .. }]));
    for body in numbered(3) {
        pair.client().publish(channel, &to_queue("q", body)).expect("there is room");
    }
    assert_eq!((pair.events(), pair.counts("q")), (vec![], (1, 0)));
    pair.broker.unblock(now);
    let events = pair.events();
    assert_eq!(events[0], Event::Unblocked);
    let sequences = events[1..].iter().map(|event| match event {
        Event::Verdict { sequence, verdict: Verdict::Ok, .. } => *sequence,
        other => panic!("{other:?}"),
    });
    assert_eq!(sequences.collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(pair.counts("q"), (4, 0));
}

#[test]
fn a_connection_that_says_nothing_is_kept_by_heartbeats() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.pass(600);
    assert_eq!(pair.events(), []);
    pair.queue(channel, "q");
}
