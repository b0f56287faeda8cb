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
fn a_connection_that_says_nothing_is_kept_by_heartbeats() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.pass(600);
    assert_eq!(pair.events(), []);
    pair.queue(channel, "q");
}
