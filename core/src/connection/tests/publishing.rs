//! Publishes, their order on the wire, and their verdicts.

use super::*;
use crate::table::Table;

fn told(pair: &mut Pair, frames: &[Vec<u8>]) -> Vec<(u64, Verdict)> {
    pair.feed(frames.concat());
    verdicts(pair.events())
}

fn published(count: u64) -> Pair {
    let mut pair = Pair::confirming(1, config());
    for sequence in 1..=count {
        assert_eq!(pair.publish(1, "same"), Ok(sequence));
    }
    pair.sent();
    pair
}

#[test]
fn confirms_come_in_any_order_single_and_multiple() {
    let mut pair = published(10);
    let told = told(
        &mut pair,
        &[
            script::ack(1, 3, false),
            script::ack(1, 1, false),
            script::nack(1, 2, false),
            script::ack(1, 7, true),
            script::ack(1, 9, false),
            script::nack(1, 10, true),
        ],
    );
    let nacked: Vec<u64> = told.iter().filter(|(_, v)| *v == Verdict::Nacked).map(|(s, _)| *s).collect();
    assert_eq!(nacked, [2, 8, 10]);
    assert_eq!(told.len(), 10);
    assert_eq!(pair.client.unmatched(), Unmatched::default());
}

#[test]
fn a_return_belongs_to_the_publish_whose_mark_it_brings_back() {
    let mut pair = published(4);
    let told = told(
        &mut pair,
        &[
            script::ack(1, 1, false),
            script::returned(1, Some(2)),
            script::returned(1, Some(4)),
            script::ack(1, 4, true),
        ],
    );
    assert_eq!(
        told,
        [(2, unroutable()), (4, unroutable())].into_iter().fold(
            vec![(1, Verdict::Ok), (2, Verdict::Ok), (3, Verdict::Ok), (4, Verdict::Ok)],
            |mut all, (sequence, verdict)| {
                all[usize::try_from(sequence).unwrap() - 1].1 = verdict;
                all
            },
        )
    );
}

#[test]
fn acks_of_others_may_stand_between_a_return_and_its_own() {
    let mut pair = published(3);
    assert!(told(&mut pair, &[script::returned(1, Some(2))]).is_empty());
    assert_eq!(told(&mut pair, &[script::ack(1, 1, false)]), [(1, Verdict::Ok)]);
    assert_eq!(told(&mut pair, &[script::ack(1, 3, false)]), [(3, Verdict::Ok)]);
    assert_eq!(told(&mut pair, &[script::ack(1, 2, false)]), [(2, unroutable())]);
}

#[test]
fn returns_and_confirms_of_nobody_are_counted() {
    let mut pair = published(1);
    let nothing = told(
        &mut pair,
        &[
            script::returned(1, None),
            script::returned(1, Some(9)),
            script::returned(1, Some(-1)),
            script::ack(1, 9, false),
            script::ack(1, 9, true),
            script::ack(1, 0, false),
        ],
    );
    assert!(nothing.is_empty());
    assert_eq!(pair.client.unmatched(), Unmatched { confirms: 3, returns: 3 });
    assert_eq!(told(&mut pair, &[script::ack(1, 0, true)]), [(1, Verdict::Ok)]);
}

#[test]
fn the_body_of_a_return_is_read_over() {
    let mut pair = published(1);
    let mut frames = script::returned(1, Some(1));
    let header = script::header(1, 0, Some(1));
    frames.truncate(frames.len() - header.len());
    frames.extend_from_slice(&script::header(1, 4, Some(1)));
    frames.extend_from_slice(&script::body(1, b"sa"));
    frames.extend_from_slice(&script::body(1, b"me"));
    assert_eq!(told(&mut pair, &[frames, script::ack(1, 1, false)]), [(1, unroutable())]);
}

#[test]
fn a_publish_that_was_not_sent_cannot_be_confirmed() {
    let mut pair = Pair::confirming(1, config());
    pair.publish(1, "x").unwrap();
    assert!(told(&mut pair, &[script::ack(1, 1, false), script::ack(1, 0, true)]).is_empty());
    pair.sent();
    assert_eq!(told(&mut pair, &[script::ack(1, 1, false)]), [(1, Verdict::Ok)]);
}

#[test]
fn without_confirms_there_is_no_number_and_no_verdict() {
    let mut pair = Pair::open(config());
    let channel = pair.client.open_channel().unwrap();
    pair.sent();
    pair.feed(script::channel_open_ok(1));
    pair.events();
    assert_eq!(pair.client.publish(channel, &message("x")), Ok(0));
    pair.feed(script::ack(1, 1, false));
    assert!(pair.events().is_empty());
    assert_eq!(pair.client.unmatched(), Unmatched { confirms: 1, returns: 0 });
    pair.feed(script::returned(1, None));
    let events = pair.events();
    let [Event::Returned { returned, content, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        (returned.code, content.routing_key().as_str(), content.body().unwrap().len()),
        (312, "nowhere", 0)
    );
}

#[test]
fn commands_may_be_queued_before_the_channel_is_open() {
    let mut pair = Pair::open(config());
    let channel = pair.client.open_channel().unwrap();
    pair.client.confirm_select(channel).unwrap();
    assert_eq!(pair.client.publish(channel, &message("x")), Ok(1));
    pair.client.confirm_select(channel).unwrap();
    assert_eq!(pair.client.publish(channel, &message("y")), Ok(2));
    assert_eq!(
        pair.sent(),
        [
            "1 open",
            "1 confirm.select",
            "1 publish q",
            "1 header of 1",
            "1 body of 1",
            "1 confirm.select",
            "1 publish q",
            "1 header of 1",
            "1 body of 1"
        ]
    );
}

#[test]
fn a_publish_before_the_channel_confirms_has_no_number_also_when_it_leaves_later() {
    let mut pair = Pair::open(config());
    let channel = pair.client.open_channel().unwrap();
    assert_eq!(pair.publish(1, "x"), Ok(0));
    pair.client.confirm_select(channel).unwrap();
    assert_eq!(pair.publish(1, "y"), Ok(1));
    assert_eq!(pair.sent().len(), 8);
    pair.feed([script::channel_open_ok(1), script::select_ok(1)].concat());
    pair.events();
    assert_eq!(told(&mut pair, &[script::ack(1, 0, true)]), [(1, Verdict::Ok)]);
}

#[test]
fn an_empty_body_has_no_frame() {
    let mut pair = Pair::confirming(1, config());
    pair.publish(1, "").unwrap();
    assert_eq!(pair.sent(), ["1 publish q", "1 header of 0"]);
    assert_eq!(pair.client.unsent_bytes(), 0);
}

#[test]
fn the_content_of_a_publish_is_contiguous_on_its_channel() {
    let mut pair = Pair::confirming(1, config());
    pair.publish(1, vec![1; 300_000]).unwrap();
    pair.deliver(1, 6..=7);
    pair.client.ack(id(1), 7, true).unwrap();
    pair.client.delete_queue(id(1), &short("old"), DeleteIf::ALWAYS).unwrap();

    let mut out = SendBuf::new(1);
    let mut bytes = Vec::new();
    while pair.client.poll_transmit(pair.now, &mut out) > 0 {
        assert!(out.is_full());
        bytes.extend_from_slice(&out.copy_to_bytes(out.remaining()));
    }
    assert_eq!(
        script::describe(&bytes),
        [
            "1 publish q",
            "1 header of 300000",
            "1 body of 131064",
            "1 body of 131064",
            "1 body of 37872",
            "1 ack 7 multiple",
            "1 delete old"
        ]
    );
    assert_eq!(pair.client.unsent_bytes(), 0);
}

#[test]
fn acks_overtake_the_publishes_of_other_channels_and_publishes_take_turns() {
    let mut pair = Pair::confirming(3, config());
    pair.publish(1, vec![1; 200_000]).unwrap();
    pair.publish(2, vec![2; 200_000]).unwrap();
    pair.publish(2, "second").unwrap();
    pair.deliver(2, [1]);
    pair.deliver(3, 1..=2);
    pair.client.ack(id(2), 1, false).unwrap();
    pair.client.ack(id(3), 1, false).unwrap();

    let mut out = SendBuf::new(1);
    let mut lines = Vec::new();
    while pair.client.poll_transmit(pair.now, &mut out) > 0 {
        lines.extend(script::describe(&out.copy_to_bytes(out.remaining())));
        if lines.len() == 4 {
            // Came last, leaves next, between the frames of channel 1.
            pair.client.nack(id(3), 2, false, true).unwrap();
        }
    }
    assert_eq!(
        lines,
        [
            "3 ack 1",
            "1 publish q",
            "1 header of 200000",
            "1 body of 131064",
            "3 nack 2",
            "2 publish q",
            "2 header of 200000",
            "2 body of 131064",
            "1 body of 68936",
            "2 body of 68936",
            "2 publish q",
            "2 header of 6",
            "2 body of 6",
            "2 ack 1",
        ]
    );
}

#[test]
fn a_large_body_is_not_copied() {
    let mut pair = Pair::confirming(1, config());
    let body = Bytes::from(vec![1; 10_000]);
    pair.publish(1, body.clone()).unwrap();
    let mut out = SendBuf::default();
    pair.client.poll_transmit(pair.now, &mut out);
    let mut slices = [std::io::IoSlice::new(&[]); 4];
    assert_eq!(out.chunks_vectored(&mut slices), 3);
    assert_eq!(slices[1].as_ptr(), body.as_ptr());
}

#[test]
fn headers_that_fit_no_frame_are_refused_before_anything_is_sent() {
    let mut pair = Pair::confirming(1, config());
    let mut large = message("x");
    large.properties.headers = Table::new().with(short("h"), "h".repeat(200_000));
    let error = pair.client.publish(id(1), &large).unwrap_err();
    assert!(matches!(error, PublishError::HeadersTooLarge { bytes: 200_000.., limit: 131_072 }), "{error}");
    let mut deep = message("x");
    deep.properties.headers = (0..100).fold(Table::new(), |inner, _| Table::new().with(short("t"), inner));
    assert_eq!(
        pair.client.publish(id(1), &deep),
        Err(PublishError::HeadersTooDeep { limit: MAX_TABLE_DEPTH })
    );
    assert!(pair.sent().is_empty());
    assert_eq!(pair.publish(1, "x"), Ok(1), "a refused publish takes no number");
}

#[test]
fn a_header_as_large_as_a_frame_is_sent() {
    let mut pair = Pair::confirming(1, config());
    let mut exact = message("");
    exact.mandatory = false;
    // Frame, class to body size, flags, table, name and letter and length of the one field.
    let room = 131_072 - 8 - 12 - 2 - 4 - (2 + 1 + 4);
    exact.properties.headers = Table::new().with(short("h"), "h".repeat(room));
    pair.client.publish(id(1), &exact).unwrap();
    assert_eq!(pair.sent(), ["1 publish q", "1 header of 0"]);
    exact.properties.headers = Table::new().with(short("h"), "h".repeat(room + 1));
    assert!(pair.client.publish(id(1), &exact).is_err());
}

#[test]
fn a_body_is_cut_where_a_frame_ends() {
    const ROOM: usize = 131_072 - 8;
    for (size, frames) in [
        (1, vec![1]),
        (ROOM - 1, vec![ROOM - 1]),
        (ROOM, vec![ROOM]),
        (ROOM + 1, vec![ROOM, 1]),
        (2 * ROOM, vec![ROOM, ROOM]),
        (2 * ROOM + 1, vec![ROOM, ROOM, 1]),
    ] {
        let mut pair = Pair::confirming(1, config());
        pair.publish(1, vec![1; size]).unwrap();
        let unsent = pair.client.unsent_bytes();
        let sent = pair.sent_bytes();
        assert_eq!(unsent, sent.len());
        let bodies: Vec<String> = frames.iter().map(|bytes| format!("1 body of {bytes}")).collect();
        assert_eq!(script::describe(&sent)[2..], bodies);
    }
}

#[test]
fn a_full_queue_refuses_and_tells_when_it_has_room() {
    let mut config = config();
    config.max_unsent_bytes = 100_000;
    let mut pair = Pair::confirming(1, config);
    for _ in 0..9 {
        pair.publish(1, vec![0; 10_000]).unwrap();
    }
    assert_eq!(pair.publish(1, vec![0; 10_000]), Err(PublishError::Full { limit: 100_000 }));

    let mut out = SendBuf::new(1);
    for expected_frames in 1..=4 {
        pair.client.poll_transmit(pair.now, &mut out);
        out.clear();
        assert!(pair.events().is_empty(), "{expected_frames} of 9 are sent");
    }
    pair.client.poll_transmit(pair.now, &mut out);
    assert_eq!(pair.events(), [Event::Writable]);
    pair.sent();
    assert!(pair.events().is_empty(), "it is told once");
    assert_eq!(pair.publish(1, vec![0; 200_000]), Ok(10), "a larger one goes alone");
}

#[test]
fn a_queue_without_room_takes_one_publish_at_a_time_and_tells_when_it_has_left() {
    let mut config = config();
    config.max_unsent_bytes = 0;
    let mut pair = Pair::confirming(1, config);
    assert_eq!(pair.publish(1, "x"), Ok(1));
    assert_eq!(pair.publish(1, "x"), Err(PublishError::Full { limit: 0 }));
    pair.sent();
    assert_eq!(pair.events(), [Event::Writable]);
    assert_eq!(pair.publish(1, "x"), Ok(2));
}

#[test]
fn unconfirmed_publishes_and_unanswered_commands_are_limited() {
    let mut config = config();
    config.max_unconfirmed = 3;
    let mut pair = Pair::confirming(1, config);
    for _ in 0..3 {
        pair.publish(1, "x").unwrap();
    }
    assert_eq!(pair.publish(1, "x"), Err(PublishError::TooManyUnconfirmed { limit: 3 }));
    pair.sent();
    pair.feed(script::ack(1, 1, false));
    assert_eq!(pair.publish(1, "x"), Ok(4));

    let count = std::num::NonZeroU16::new(1).unwrap();
    let limit = std::iter::repeat_with(|| pair.client.set_prefetch(id(1), count)).take_while(Result::is_ok);
    assert_eq!(limit.count(), 4_096);
    assert_eq!(pair.client.set_prefetch(id(1), count), Err(CommandError::TooManyUnanswered { limit: 4_096 }));
}

#[test]
fn while_blocked_no_publish_begins_and_everything_else_goes_on() {
    let mut pair = Pair::confirming(2, config());
    pair.publish(1, vec![1; 200_000]).unwrap();
    let mut out = SendBuf::new(1);
    pair.client.poll_transmit(pair.now, &mut out);
    pair.feed(script::blocked("low on memory"));
    assert!(pair.client.is_blocked());
    assert_eq!(pair.events(), [Event::Blocked { reason: short("low on memory") }]);

    pair.publish(1, "x").unwrap();
    pair.deliver(1, [1]);
    pair.deliver(2, [2]);
    pair.client.ack(id(1), 1, false).unwrap();
    pair.client.ack(id(2), 2, false).unwrap();
    assert_eq!(pair.sent(), ["2 ack 2", "1 body of 68936"], "what was begun is ended");
    pair.feed(script::unblocked());
    assert_eq!(pair.events(), [Event::Unblocked]);
    assert_eq!(pair.sent(), ["1 publish q", "1 header of 1", "1 body of 1", "1 ack 1"]);
}

#[test]
fn a_flow_is_answered_before_the_publishes_that_it_holds() {
    let mut pair = Pair::confirming(1, config());
    pair.publish(1, "").unwrap();
    pair.feed(script::channel_flow(1, false));
    assert_eq!(pair.sent(), ["1 flow-ok false"]);
    pair.feed([script::channel_flow(1, true), script::channel_flow(1, false)].concat());
    assert_eq!(pair.sent(), ["1 flow-ok false"]);
    pair.feed(script::channel_flow(1, true));
    assert_eq!(pair.sent(), ["1 flow-ok true", "1 publish q", "1 header of 0"]);

    // Not within a publish that was begun.
    pair.publish(1, vec![1; 200_000]).unwrap();
    pair.publish(1, "").unwrap();
    pair.client.poll_transmit(pair.now, &mut SendBuf::new(1));
    pair.feed(script::channel_flow(1, false));
    assert_eq!(pair.sent(), ["1 body of 68936", "1 flow-ok false"]);
}

#[test]
fn a_channel_without_flow_holds_its_publishes_alone() {
    let mut pair = Pair::confirming(2, config());
    pair.feed(script::channel_flow(1, false));
    pair.publish(1, "x").unwrap();
    pair.publish(2, "").unwrap();
    assert_eq!(pair.sent(), ["1 flow-ok false", "2 publish q", "2 header of 0"]);
    pair.feed(script::channel_flow(1, true));
    assert_eq!(pair.sent(), ["1 flow-ok true", "1 publish q", "1 header of 1", "1 body of 1"]);
}

#[test]
fn a_channel_that_is_opened_anew_counts_its_publishes_from_one() {
    let mut pair = Pair::confirming(1, config());
    for _ in 0..3 {
        pair.publish(1, "x").unwrap();
    }
    pair.sent();
    pair.feed(script::channel_close(1, 406, "PRECONDITION_FAILED"));
    pair.events();
    assert_eq!(pair.client.open_channel(), Ok(id(1)));
    pair.client.confirm_select(id(1)).unwrap();
    assert_eq!(pair.publish(1, "first"), Ok(1));
    assert_eq!(pair.sent()[..3], ["1 close-ok", "1 open", "1 confirm.select"], "selected before any publish");
    pair.feed([script::channel_open_ok(1), script::select_ok(1), script::ack(1, 1, false)].concat());
    let events = pair.events();
    assert_eq!(verdicts(events[2..].to_vec()), [(1, Verdict::Ok)]);
    assert_eq!(pair.client.unmatched(), Unmatched::default());
}

#[test]
fn many_rounds_of_publishes_and_confirms_leave_nothing_behind() {
    let mut config = config();
    config.max_unconfirmed = 100;
    let mut pair = Pair::confirming(1, config);
    for round in 1..=200 {
        for _ in 0..100 {
            pair.publish(1, "x").unwrap();
        }
        pair.sent_bytes();
        pair.feed(script::ack(1, round * 100, true));
        assert_eq!(verdicts(pair.events()).len(), 100);
        assert_eq!(pair.client.unsent_bytes(), 0);
        let channel = pair.client.channels.get(id(1)).unwrap();
        assert_eq!(channel.confirms.as_ref().unwrap().span(), 0);
    }
}

#[test]
fn a_body_above_the_limit_is_refused_before_anything_is_sent() {
    let mut config = config();
    config.max_message_bytes = 10;
    let mut pair = Pair::confirming(1, config);
    assert_eq!(pair.publish(1, "01234567890"), Err(PublishError::BodyTooLarge { bytes: 11, limit: 10 }));
    assert!(pair.sent().is_empty());
    assert_eq!(pair.publish(1, "0123456789"), Ok(1), "its neighbours go on, and no number was used");
}
