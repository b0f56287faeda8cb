//! What is settled, and in how few frames.

use super::*;

fn not_outstanding(delivery_tag: u64) -> Result<(), CommandError> {
    Err(CommandError::NotOutstanding { channel: id(1), delivery_tag })
}

/// A client that was given deliveries on channel 1.
fn holding(tags: impl IntoIterator<Item = u64>) -> Pair {
    let mut pair = Pair::confirming(1, config());
    pair.deliver(1, tags);
    pair
}

#[test]
fn a_thousand_acknowledgements_that_are_due_together_are_one_frame() {
    let mut pair = holding(1..=1_000);
    for tag in 1..=1_000 {
        pair.client.ack(id(1), tag, false).unwrap();
    }
    assert_eq!(pair.sent(), ["1 ack 1000 multiple"]);
    assert_eq!(pair.client.unsent_bytes(), 0);
}

#[test]
fn a_very_large_batch_leaves_in_a_few_steps() {
    let mut pair = holding(1..=10_000);
    pair.client.ack(id(1), 10_000, true).unwrap();
    let mut out = SendBuf::new(1);
    pair.client.poll_transmit(pair.now, &mut out);
    assert_eq!(script::describe(&out.copy_to_bytes(out.remaining())), ["1 ack 4096 multiple"]);
    pair.feed(script::channel_flow(1, true));
    pair.deliver(1, [10_001]);
    pair.client.ack(id(1), 10_001, false).unwrap();
    assert_eq!(pair.sent(), ["1 flow-ok true", "1 ack 8192 multiple", "1 ack 10001 multiple"]);
    assert_eq!(pair.client.unsent_bytes(), 0);
}

#[test]
fn acknowledgements_behind_a_delivery_in_hand_leave_one_by_one() {
    let mut pair = holding(1..=8);
    for tag in [2, 1, 4, 6, 5] {
        pair.client.ack(id(1), tag, false).unwrap();
    }
    assert_eq!(pair.sent(), ["1 ack 2 multiple", "1 ack 4", "1 ack 6", "1 ack 5"]);
    pair.client.ack(id(1), 7, false).unwrap();
    pair.client.ack(id(1), 3, false).unwrap();
    assert_eq!(pair.sent(), ["1 ack 7 multiple"]);
    pair.client.ack(id(1), 8, false).unwrap();
    assert_eq!(pair.sent(), ["1 ack 8"], "one alone needs no multiple");
}

#[test]
fn a_rejection_between_acknowledgements_keeps_its_place_and_is_not_covered() {
    let mut pair = holding(1..=6);
    pair.client.ack(id(1), 1, false).unwrap();
    pair.client.ack(id(1), 3, false).unwrap();
    pair.client.nack(id(1), 2, false, true).unwrap();
    pair.client.ack(id(1), 5, false).unwrap();
    pair.client.ack(id(1), 4, false).unwrap();
    pair.client.reject(id(1), 6, false).unwrap();
    assert_eq!(pair.sent(), ["1 ack 1", "1 ack 3", "1 nack 2", "1 ack 5 multiple", "1 reject 6"]);
}

#[test]
fn nothing_is_settled_twice_and_nothing_that_did_not_come() {
    let mut pair = holding(1..=4);
    assert_eq!(pair.client.ack(id(1), 5, false), not_outstanding(5));
    assert_eq!(pair.client.ack(id(1), 5, true), not_outstanding(5));
    assert_eq!(pair.client.ack(id(1), 0, false), not_outstanding(0));
    pair.client.ack(id(1), 2, false).unwrap();
    assert_eq!(pair.client.ack(id(1), 2, false), not_outstanding(2), "before it was sent");
    assert_eq!(pair.client.ack(id(1), 2, true), not_outstanding(2), "though 1 is in hand");
    assert_eq!(pair.sent(), ["1 ack 2"]);
    assert_eq!(pair.client.reject(id(1), 2, true), not_outstanding(2), "after it was sent");
    pair.client.nack(id(1), 3, true, true).unwrap();
    for tag in 1..=3 {
        assert_eq!(pair.client.ack(id(1), tag, false), not_outstanding(tag));
    }
    assert_eq!(pair.sent(), ["1 nack 3 multiple"]);
    pair.client.ack(id(1), 0, true).unwrap();
    pair.client.ack(id(1), 0, true).unwrap();
    assert_eq!(pair.sent(), ["1 ack 4"]);
}

#[test]
fn all_means_all_that_was_taken_and_not_what_still_waits_to_be() {
    let mut pair = holding(1..=2);
    pair.feed([script::deliver(1, "tag", 3), script::header(1, 0, None)].concat());
    assert_eq!(pair.client.ack(id(1), 3, false), not_outstanding(3), "nobody was given it");
    pair.client.ack(id(1), 0, true).unwrap();
    assert_eq!(pair.sent(), ["1 ack 2 multiple"]);
    pair.events();
    pair.client.nack(id(1), 0, true, true).unwrap();
    assert_eq!(pair.sent(), ["1 nack 3 multiple"]);
}

#[test]
fn acknowledgements_do_not_overtake_what_was_asked_for_before_on_their_channel() {
    let mut pair = holding(1..=3);
    pair.client.ack(id(1), 1, false).unwrap();
    pair.publish(1, "x").unwrap();
    pair.client.ack(id(1), 2, false).unwrap();
    pair.client.ack(id(1), 3, false).unwrap();
    assert_eq!(pair.sent(), ["1 ack 1", "1 publish q", "1 header of 1", "1 body of 1", "1 ack 3 multiple"]);
}

#[test]
fn deliveries_without_acknowledgement_are_not_settled_and_stand_in_nobodys_way() {
    let mut pair = Pair::confirming(1, config());
    let options = ConsumeOptions::without_acknowledgement();
    let free = pair.client.consume(id(1), &short("q"), &ShortString::EMPTY, &options).unwrap();
    pair.client.consume(id(1), &short("q"), &short("tag"), &ConsumeOptions::default()).unwrap();
    pair.sent();
    // Before its consume-ok: the tag is known since the command.
    pair.feed([script::deliver(1, &free, 1), script::header(1, 0, None)].concat());
    pair.feed([script::consume_ok(1, &free), script::consume_ok(1, "tag")].concat());
    let events = pair.events();
    let Event::Delivery(delivery) = &events[0] else { panic!("{events:?}") };
    assert!(!delivery.must_settle());
    assert_eq!(pair.client.ack(id(1), 1, false), not_outstanding(1));

    pair.deliver(1, 2..=3);
    pair.feed([script::deliver(1, &free, 4), script::header(1, 0, None)].concat());
    pair.events();
    pair.deliver(1, [5]);
    for tag in [2, 3, 5] {
        pair.client.ack(id(1), tag, false).unwrap();
    }
    assert_eq!(pair.sent(), ["1 ack 5 multiple"]);
}

#[test]
fn a_recover_gives_everything_back_that_was_told_before_its_answer() {
    let mut pair = holding(1..=3);
    pair.client.ack(id(1), 1, false).unwrap();
    pair.client.recover(id(1)).unwrap();
    assert_eq!(pair.client.ack(id(1), 2, false), not_outstanding(2));
    assert_eq!(pair.sent(), ["1 ack 1", "1 recover true"]);
    // Sent before the server read the recover.
    pair.deliver(1, [4]);
    assert_eq!(pair.client.ack(id(1), 4, false), not_outstanding(4));
    pair.feed(script::done(1, script::Done::Recover));
    assert_eq!(pair.events(), [Event::Recovered { channel: id(1) }]);
    pair.deliver(1, 5..=7);
    pair.client.ack(id(1), 7, true).unwrap();
    assert_eq!(pair.sent(), ["1 ack 7 multiple"]);
}

#[test]
fn a_rollback_takes_settlements_back() {
    let mut pair = Pair::open(config());
    pair.client.open_channel().unwrap();
    pair.client.tx_select(id(1)).unwrap();
    pair.sent();
    pair.feed([script::channel_open_ok(1), script::done(1, script::Done::TxSelect)].concat());
    pair.events();
    pair.deliver(1, 1..=3);
    pair.client.ack(id(1), 1, false).unwrap();
    pair.client.ack(id(1), 2, false).unwrap();
    assert_eq!(pair.client.ack(id(1), 1, false), not_outstanding(1));
    pair.client.tx_rollback(id(1)).unwrap();
    pair.client.ack(id(1), 2, true).unwrap();
    pair.client.tx_commit(id(1)).unwrap();
    assert_eq!(pair.client.ack(id(1), 2, false), not_outstanding(2));
    pair.client.tx_rollback(id(1)).unwrap();
    assert_eq!(pair.client.ack(id(1), 1, false), not_outstanding(1), "it was committed");
    assert_eq!(
        pair.sent(),
        ["1 ack 1", "1 ack 2", "1 tx.rollback", "1 ack 2 multiple", "1 tx.commit", "1 tx.rollback"]
    );
}

#[test]
fn a_close_of_the_connection_takes_what_was_settled_along() {
    let mut pair = holding(1..=5);
    pair.deliver(1, [6]);
    for tag in [1, 2, 4] {
        pair.client.ack(id(1), tag, false).unwrap();
    }
    pair.publish(1, "x").unwrap();
    pair.client.nack(id(1), 5, false, true).unwrap();
    pair.client.close(pair.now, 200, "bye");
    assert_eq!(pair.sent(), ["1 ack 2 multiple", "1 ack 4", "1 nack 5", "0 close 200"]);
    assert_eq!(pair.client.unsent_bytes(), 0);
}

#[test]
fn a_delivery_that_is_held_for_long_keeps_no_memory_of_the_others() {
    let mut pair = holding([1]);
    for tag in 2..=5_000 {
        pair.deliver(1, [tag]);
        pair.client.ack(id(1), tag, false).unwrap();
        assert_eq!(pair.sent(), [format!("1 ack {tag}")]);
    }
    let kept = format!("{:?}", pair.client.channels.get(id(1)).unwrap().unacked);
    assert!(kept.matches("Slot").count() < 200, "{kept}");
    pair.client.ack(id(1), 1, false).unwrap();
    assert_eq!(pair.sent(), ["1 ack 1"]);
}

#[test]
fn nothing_is_settled_on_a_channel_that_was_closed_over_a_late_acknowledgement() {
    let text = "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out";
    let mut pair = holding(1..=3);
    pair.client.ack(id(1), 1, false).unwrap();
    pair.feed(script::channel_close(1, 406, text));
    assert_eq!(pair.sent(), ["1 close-ok"], "what was queued goes with the channel");
    let events = pair.events();
    let [Event::ChannelClosed { cause: ChannelClosed::Peer(reason), .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((reason.code, reason.text.as_str()), (406, text));
    assert_eq!(pair.client.ack(id(1), 2, false), Err(CommandError::NoSuchChannel { channel: id(1) }));
    assert_eq!(pair.client.open_channel(), Ok(id(1)));
    assert_eq!(pair.client.ack(id(1), 2, false), not_outstanding(2), "tags belong to their channel");
    assert_eq!(pair.sent(), ["1 open"]);
}
