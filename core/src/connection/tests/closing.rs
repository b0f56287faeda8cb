//! Channels and connections that end, from both sides.

use super::*;

fn lost(sequence: u64, cause: ChannelClosed) -> Event {
    Event::Verdict { channel: id(1), sequence, verdict: Verdict::Unknown(cause) }
}

fn ended(cause: ChannelClosed) -> Event {
    Event::ChannelClosed { channel: id(1), cause }
}

#[test]
fn a_channel_that_the_server_closes_takes_its_publishes_with_it() {
    let mut pair = Pair::confirming(2, config());
    for _ in 0..3 {
        pair.publish(1, "x").unwrap();
    }
    pair.publish(2, "x").unwrap();
    pair.sent();
    pair.feed(script::ack(1, 2, false));
    pair.events();
    pair.feed(script::channel_close(1, 404, "NOT_FOUND - no exchange 'nope'"));

    let cause = ChannelClosed::Peer(close_reason(404, "NOT_FOUND - no exchange 'nope'"));
    assert_eq!(pair.events(), [lost(1, cause.clone()), lost(3, cause.clone()), ended(cause)]);
    assert_eq!(pair.sent(), ["1 close-ok"]);
    pair.feed(script::ack(2, 1, false));
    assert_eq!(verdicts(pair.events()), [(1, Verdict::Ok)], "the other channel goes on");
}

#[test]
fn nothing_but_the_close_ok_is_sent_on_a_channel_that_the_server_closed() {
    let mut pair = Pair::confirming(1, config());
    pair.publish(1, vec![1; 400_000]).unwrap();
    pair.deliver(1, 1..=5);
    for tag in 1..=5 {
        pair.client.ack(id(1), tag, false).unwrap();
    }
    let mut out = SendBuf::new(1);
    pair.client.poll_transmit(pair.now, &mut out);
    assert_eq!(script::describe(&out.copy_to_bytes(out.remaining())).len(), 3, "the publish is begun");

    pair.feed(script::channel_close(1, 406, "PRECONDITION_FAILED"));
    assert_eq!(pair.sent(), ["1 close-ok"]);
    assert_eq!(pair.client.unsent_bytes(), 0);
    assert_eq!(pair.client.ack(id(1), 6, false), Err(CommandError::NoSuchChannel { channel: id(1) }));
    assert_eq!(pair.publish(1, "x"), Err(PublishError::NoSuchChannel { channel: id(1) }));
    assert!(pair.sent().is_empty());
}

#[test]
fn a_number_comes_back_when_the_end_of_its_channel_is_told() {
    let mut pair = Pair::confirming(2, config());
    pair.feed(script::channel_close(1, 406, "x"));
    assert_eq!(pair.client.open_channel(), Ok(id(3)), "nobody knows yet that 1 has ended");
    pair.events();
    assert_eq!(pair.client.open_channel(), Ok(id(1)));
    assert_eq!(pair.sent(), ["1 close-ok", "3 open", "1 open"]);
}

#[test]
fn numbers_are_reused_and_run_out() {
    let mut pair = Pair::open({
        let mut config = config();
        config.channel_max = 10;
        config
    });
    for _ in 0..70_000 {
        let channel = pair.client.open_channel().unwrap();
        assert_eq!(channel, id(1));
        pair.client.close_channel(channel).unwrap();
        pair.sent();
        pair.feed([script::channel_open_ok(1), script::channel_close_ok(1)].concat());
        assert_eq!(pair.events(), [ended(ChannelClosed::Ours)]);
    }
    for number in 1..=10 {
        assert_eq!(pair.client.open_channel(), Ok(id(number)));
    }
    assert_eq!(pair.client.open_channel(), Err(CommandError::ChannelsExhausted { limit: 10 }));
}

#[test]
fn closing_a_channel_ends_what_waits_on_it() {
    let mut pair = Pair::confirming(1, config());
    pair.client.consume(id(1), &short("q"), &short("tag"), &ConsumeOptions::default()).unwrap();
    pair.client.cancel(id(1), &short("tag")).unwrap();
    pair.publish(1, "x").unwrap();
    pair.client.close_channel(id(1)).unwrap();
    assert_eq!(pair.client.close_channel(id(1)), Err(CommandError::NoSuchChannel { channel: id(1) }));
    assert_eq!(
        pair.sent(),
        ["1 consume q as tag", "1 cancel tag", "1 publish q", "1 header of 1", "1 body of 1", "1 close 200"]
    );
    pair.feed(script::channel_close_ok(1));
    assert_eq!(pair.events(), [lost(1, ChannelClosed::Ours), ended(ChannelClosed::Ours)]);
}

#[test]
fn what_comes_on_a_closing_channel_is_discarded_and_the_next_one_starts_clean() {
    let mut pair = Pair::confirming(1, config());
    pair.feed([script::deliver(1, "tag", 1), script::header(1, 10, None)].concat());
    pair.client.close_channel(id(1)).unwrap();
    pair.sent();
    pair.feed(script::body(1, b"12345"));
    pair.feed(script::deliver(1, "tag", 2));
    pair.feed(script::raw(1, 1, &[0, 60, 0, 80, 1]));
    pair.feed(script::channel_close_ok(1));
    assert_eq!(pair.events(), [ended(ChannelClosed::Ours)]);

    assert_eq!(pair.client.open_channel(), Ok(id(1)));
    pair.sent();
    pair.feed([script::channel_open_ok(1), script::deliver(1, "t", 1), script::header(1, 0, None)].concat());
    assert!(matches!(pair.events()[..], [Event::ChannelOpened { .. }, Event::Delivery(_)]));
}

#[test]
fn a_channel_may_be_refused_instead_of_opened_and_closed_before_it_is() {
    let mut pair = Pair::open(config());
    let refused = pair.client.open_channel().unwrap();
    pair.client.confirm_select(refused).unwrap();
    pair.publish(1, "x").unwrap();
    assert_eq!(pair.sent().len(), 5);
    pair.feed(script::channel_close(1, 406, "x"));
    let cause = ChannelClosed::Peer(close_reason(406, "x"));
    assert_eq!(pair.events(), [lost(1, cause.clone()), ended(cause)]);
    assert_eq!(pair.sent(), ["1 close-ok"]);

    let unwanted = pair.client.open_channel().unwrap();
    assert_eq!(unwanted, id(1));
    pair.client.close_channel(unwanted).unwrap();
    assert_eq!(pair.sent(), ["1 open", "1 close 200"]);
    pair.feed([script::channel_open_ok(1), script::channel_close_ok(1)].concat());
    assert_eq!(pair.events(), [ended(ChannelClosed::Ours)]);
}

#[test]
fn the_first_reason_is_the_one_that_is_told() {
    let mut pair = Pair::confirming(2, config());
    pair.publish(1, "x").unwrap();
    pair.publish(2, "x").unwrap();
    pair.sent();
    pair.feed([script::channel_close(1, 404, "first"), script::connection_close(320, "second")].concat());
    pair.client.handle_eof(pair.now);
    let events = pair.events();
    let first = ChannelClosed::Peer(close_reason(404, "first"));
    assert_eq!(events[..2], [lost(1, first.clone()), ended(first)]);
    let Some(Event::Closed(error)) = events.last() else { panic!("{events:?}") };
    assert!(matches!(&**error, ConnectionError::ClosedByPeer(reason) if reason.code == 320), "{error}");
    let second = ChannelClosed::ConnectionEnded(Arc::clone(error));
    assert_eq!(
        events[2..4],
        [
            Event::Verdict { channel: id(2), sequence: 1, verdict: Verdict::Unknown(second.clone()) },
            Event::ChannelClosed { channel: id(2), cause: second }
        ]
    );
    assert_eq!(events.len(), 5, "each end is told once");
}

#[test]
fn a_close_that_was_not_sent_cannot_be_answered() {
    let mut pair = Pair::confirming(1, config());
    pair.client.close_channel(id(1)).unwrap();
    pair.feed(script::channel_close_ok(1));
    let expected = ProtocolError::UnexpectedMethod { channel: 1, class: 20, method: 41 };
    assert_eq!(pair.end(), ConnectionError::Protocol(expected));
}

#[test]
fn closes_of_a_channel_may_cross() {
    let cause = ChannelClosed::Peer(close_reason(406, "x"));
    // Ours was sent: the server answers it, and we answer the server's.
    let mut pair = Pair::confirming(1, config());
    pair.client.close_channel(id(1)).unwrap();
    assert_eq!(pair.sent(), ["1 close 200"]);
    pair.feed(script::channel_close(1, 406, "x"));
    assert_eq!(pair.sent(), ["1 close-ok"]);
    assert!(pair.events().is_empty());
    pair.feed(script::channel_close_ok(1));
    assert_eq!(pair.events(), [ended(cause.clone())]);

    // Ours was not sent: it never will be.
    let mut pair = Pair::confirming(1, config());
    pair.client.close_channel(id(1)).unwrap();
    pair.feed(script::channel_close(1, 406, "x"));
    assert_eq!(pair.sent(), ["1 close-ok"]);
    assert_eq!(pair.events(), [ended(cause)]);
}

#[test]
fn a_connection_is_closed_with_a_handshake_that_drops_what_is_queued() {
    let mut pair = Pair::confirming(1, config());
    pair.publish(1, vec![1; 400_000]).unwrap();
    let mut out = SendBuf::new(1);
    pair.client.poll_transmit(pair.now, &mut out);
    pair.client.close(pair.now, 200, "bye");
    pair.client.close(pair.now, 500, "bye again");
    assert!(!pair.client.is_open());
    assert_eq!(pair.publish(1, "x"), Err(PublishError::NotOpen));
    assert_eq!(pair.sent(), ["0 close 200"]);

    pair.feed([script::ack(1, 1, false), script::deliver(9, "t", 1), script::body(9, b"x")].concat());
    assert!(pair.events().is_empty(), "everything but the answer is discarded");
    pair.feed(script::connection_close_ok());
    let events = pair.events();
    let [Event::Verdict { sequence: 1, verdict, .. }, Event::ChannelClosed { .. }, Event::Closed(error)] =
        &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(**error, ConnectionError::ClosedLocally { acknowledged: true });
    assert_eq!(*verdict, Verdict::Unknown(ChannelClosed::ConnectionEnded(Arc::clone(error))));
}

#[test]
fn a_close_that_is_not_answered_ends_at_its_deadline_also_while_blocked() {
    for blocked in [false, true] {
        let mut pair = Pair::confirming(1, config());
        if blocked {
            pair.feed(script::blocked("disk"));
        }
        pair.client.close(pair.now, 200, "bye");
        let deadline = pair.now + Duration::from_secs(5);
        assert_eq!(pair.sent(), ["0 close 200"]);
        while pair.next_timeout() != TimerKind::CloseDeadline {}
        assert_eq!(pair.now, deadline);
        assert_eq!(pair.end(), ConnectionError::ClosedLocally { acknowledged: false });
    }
}

#[test]
fn closes_of_a_connection_may_cross_and_anything_else_may_end_it() {
    let mut pair = Pair::confirming(1, config());
    pair.client.close(pair.now, 200, "bye");
    pair.sent();
    pair.feed(script::connection_close(320, "CONNECTION_FORCED"));
    assert_eq!(pair.sent(), ["0 close-ok"]);
    assert_eq!(pair.end(), ConnectionError::ClosedLocally { acknowledged: false });

    let mut pair = Pair::confirming(1, config());
    pair.client.close(pair.now, 200, "bye");
    pair.client.handle_eof(pair.now);
    assert_eq!(pair.end(), ConnectionError::ClosedLocally { acknowledged: false });

    let mut pair = Pair::confirming(1, config());
    pair.client.close(pair.now, 200, "bye");
    pair.feed(script::raw(9, 0, b""));
    assert_eq!(pair.end(), ConnectionError::ClosedLocally { acknowledged: false });
}

#[test]
fn a_close_of_the_connection_that_was_not_sent_is_not_acknowledged() {
    let mut pair = Pair::confirming(1, config());
    pair.deliver(1, [1]);
    pair.client.ack(id(1), 1, false).unwrap();
    pair.client.close(pair.now, 200, "bye");
    pair.client.poll_transmit(pair.now, &mut SendBuf::new(1));
    pair.feed(script::connection_close_ok());
    assert_eq!(pair.end(), ConnectionError::ClosedLocally { acknowledged: false });
}

#[test]
fn a_forced_close_within_a_large_publish_is_answered_and_told_to_everyone() {
    let mut pair = Pair::confirming(2, config());
    pair.publish(1, vec![1; 1_000_000]).unwrap();
    let mut out = SendBuf::new(1);
    pair.client.poll_transmit(pair.now, &mut out);
    pair.feed(script::connection_close(320, "CONNECTION_FORCED - broker forced connection closure"));

    assert_eq!(pair.sent(), ["0 close-ok"]);
    assert!(!pair.client.wants_read());
    let events = pair.events();
    assert_eq!(events.len(), 4);
    assert!(matches!(&events[0], Event::Verdict { verdict: Verdict::Unknown(_), .. }));
    assert!(matches!(&events[1], Event::ChannelClosed { channel, .. } if *channel == id(1)));
    assert!(matches!(&events[2], Event::ChannelClosed { channel, .. } if *channel == id(2)));
    let Event::Closed(error) = &events[3] else { panic!("{events:?}") };
    assert!(error.to_string().contains("broker forced connection closure"));
    assert!(!error.is_permanent());
}

#[test]
fn many_publishes_whose_verdicts_nobody_took_do_not_hinder_a_close() {
    let mut pair = Pair::confirming(1, config());
    for _ in 0..10_000 {
        pair.publish(1, "x").unwrap();
    }
    pair.sent();
    pair.feed(script::ack(1, 10_000, true));
    assert!(!pair.client.wants_read());
    pair.client.close(pair.now, 200, "bye");
    assert_eq!(pair.sent(), ["0 close 200"]);
    assert_eq!(pair.events().len(), 10_000);
    pair.feed(script::connection_close_ok());
    assert_eq!(pair.end(), ConnectionError::ClosedLocally { acknowledged: true });
}
