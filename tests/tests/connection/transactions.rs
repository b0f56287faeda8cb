//! Publishes and settlements that are done together, or not.

use leveret_core::connection::{ChannelId, Event};

use super::pair::{Pair, numbered, tags, to_queue};

/// A transactional channel with three deliveries of `q` in hand, and the queue `done`.
fn working() -> (Pair, ChannelId) {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "done");
    pair.queue(channel, "q");
    pair.fill(channel, "q", numbered(3));
    pair.client().tx_select(channel).expect("the channel is open");
    assert_eq!(pair.events(), [Event::TxSelected { channel }]);
    assert_eq!(tags(&pair.consume(channel, "q")), [1, 2, 3]);
    (pair, channel)
}

#[test]
fn a_commit_does_all_of_it_and_nothing_before() {
    let (mut pair, channel) = working();
    pair.client().publish(channel, &to_queue("done", "1")).expect("there is room");
    pair.client().ack(channel, 1, false).expect("it is outstanding");
    pair.client().nack(channel, 2, false, false).expect("it is outstanding");
    assert_eq!(pair.events(), []);
    assert_eq!((pair.counts("done"), pair.counts("q")), ((0, 0), (0, 3)));
    pair.client().tx_commit(channel).expect("it is transactional");
    assert_eq!(pair.events(), [Event::TxCommitted { channel }]);
    assert_eq!((pair.counts("done"), pair.counts("q")), ((1, 0), (0, 1)));
}

#[test]
fn after_a_rollback_the_same_deliveries_are_settled_anew() {
    let (mut pair, channel) = working();
    pair.client().publish(channel, &to_queue("done", "1")).expect("there is room");
    pair.client().ack(channel, 3, true).expect("it is outstanding");
    pair.client().tx_rollback(channel).expect("it is transactional");
    // Without waiting for the answer: they are the channel's again once the rollback is.
    pair.client().ack(channel, 1, false).expect("it is outstanding again");
    pair.client().nack(channel, 3, true, true).expect("it is outstanding again");
    pair.client().tx_commit(channel).expect("it is transactional");
    let mut events = pair.events();
    assert_eq!(events[..2], [Event::TxRolledBack { channel }, Event::TxCommitted { channel }]);
    assert_eq!(tags(&super::pair::deliveries(events.split_off(2))), [4, 5]);
    assert_eq!((pair.counts("done"), pair.counts("q")), ((0, 0), (0, 2)));
}

#[test]
fn what_reaches_no_queue_comes_back_with_the_commit() {
    let (mut pair, channel) = working();
    pair.client().publish(channel, &to_queue("nowhere", "lost?")).expect("there is room");
    assert_eq!(pair.events(), []);
    pair.client().tx_commit(channel).expect("it is transactional");
    let events = pair.events();
    let [Event::Returned { returned, content, .. }, Event::TxCommitted { .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((returned.code, content.routing_key().as_str()), (312, "nowhere"));
    assert_eq!(content.body().expect("it is small"), "lost?");
}

#[test]
fn what_was_not_committed_is_undone_by_the_end_of_the_channel() {
    let (mut pair, channel) = working();
    pair.client().publish(channel, &to_queue("done", "1")).expect("there is room");
    pair.client().ack(channel, 2, true).expect("it is outstanding");
    pair.client().close_channel(channel).expect("it is open");
    assert!(matches!(pair.events()[..], [Event::ChannelClosed { .. }]));
    assert_eq!((pair.counts("done"), pair.counts("q")), ((0, 0), (3, 0)));
}
