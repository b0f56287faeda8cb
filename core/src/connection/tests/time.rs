//! Heartbeats, silence, and clocks that misbehave.

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An open connection whose heartbeat is that many seconds.
fn beating(seconds: u64) -> Pair {
    let mut config = config();
    config.heartbeat = secs(seconds);
    let mut pair = Pair::open(config);
    pair.sent();
    pair
}

#[test]
fn a_heartbeat_leaves_when_nothing_was_written_for_half_of_it() {
    let mut pair = beating(10);
    let start = pair.now;
    assert_eq!(pair.next_timeout(), TimerKind::HeartbeatSend);
    assert_eq!(pair.now, start + secs(5));
    assert_eq!(pair.sent(), ["0 heartbeat"]);

    pair.pass(secs(4));
    pair.client.open_channel().unwrap();
    assert_eq!(pair.sent(), ["1 open"]);
    assert_eq!(pair.next_timeout(), TimerKind::HeartbeatSend);
    assert_eq!(pair.now, start + secs(14), "anything written counts");
    assert_eq!(pair.sent(), ["0 heartbeat"]);
}

#[test]
fn a_heartbeat_that_is_due_is_not_sent_with_something_else() {
    let mut pair = beating(10);
    pair.next_timeout();
    pair.client.open_channel().unwrap();
    assert_eq!(pair.sent(), ["1 open"]);
    assert!(pair.sent().is_empty());
}

#[test]
fn a_deadline_moves_on_also_when_nothing_can_be_sent() {
    let mut pair = beating(10);
    pair.next_timeout();
    let mut full = SendBuf::new(1);
    pair.client.open_channel().unwrap();
    pair.client.poll_transmit(pair.now, &mut full);
    pair.next_timeout();
    assert_eq!(pair.client.poll_transmit(pair.now, &mut full), 0);
    assert!(pair.client.poll_timeout() > Some(pair.now), "a driver would spin");
}

#[test]
fn a_silent_peer_is_given_up_after_two_heartbeats_without_a_close() {
    let mut pair = beating(1);
    let start = pair.now;
    while pair.next_timeout() != TimerKind::PeerSilence {
        pair.sent();
    }
    assert_eq!(pair.now, start + secs(2));
    assert!(pair.sent().is_empty(), "nobody would read a close");
    assert_eq!(pair.end(), ConnectionError::PeerSilent);
}

#[test]
fn every_byte_counts_as_a_sign_of_life() {
    let mut pair = beating(10);
    let frame = script::heartbeat();
    for byte in &frame {
        pair.pass(secs(19));
        pair.feed([*byte]);
        pair.client.handle_timeout(pair.now);
        assert!(pair.client.is_open());
    }
    pair.pass(secs(19));
    pair.read();
    pair.pass(secs(1));
    pair.client.handle_timeout(pair.now);
    assert_eq!(pair.end(), ConnectionError::PeerSilent, "a read without bytes does not count");
}

#[test]
fn silence_is_not_the_peers_while_we_do_not_read() {
    let mut pair = beating(10);
    for _ in 0..600 {
        pair.feed([script::blocked("disk"), script::unblocked()].concat());
    }
    assert!(!pair.client.wants_read());
    pair.pass(secs(3_600));
    pair.client.handle_timeout(pair.now);
    assert!(pair.client.is_open());

    pair.events();
    pair.pass(secs(19));
    pair.read();
    pair.pass(secs(19));
    pair.client.handle_timeout(pair.now);
    assert!(pair.client.is_open(), "it counts from when reading went on");
    pair.pass(secs(1));
    pair.client.handle_timeout(pair.now);
    assert_eq!(pair.events().last().map(|event| matches!(event, Event::Closed(_))), Some(true));
}

#[test]
fn silence_is_not_the_peers_before_we_have_read_again() {
    let mut pair = beating(10);
    for _ in 0..600 {
        pair.feed([script::blocked("disk"), script::unblocked()].concat());
    }
    pair.pass(secs(20));
    pair.events();
    pair.client.handle_timeout(pair.now);
    assert!(pair.client.is_open(), "what came in the meantime was not looked at");
    pair.pass(secs(20));
    pair.client.handle_timeout(pair.now);
    assert_eq!(pair.end(), ConnectionError::PeerSilent, "nothing came although it could be read");
}

#[test]
fn without_heartbeats_time_makes_no_difference() {
    let mut config = config();
    config.heartbeat = secs(0);
    let mut pair = Pair::new(config);
    pair.feed(script::start("PLAIN"));
    pair.feed(script::tune(0, 0, 0));
    pair.feed(script::open_ok());
    pair.sent();
    assert_eq!(pair.client.poll_timeout(), None);
    pair.pass(secs(1_000_000));
    pair.client.handle_timeout(pair.now);
    assert!(pair.client.is_open() && pair.sent().is_empty());
}

#[test]
fn a_jump_of_hours_is_one_orderly_timeout() {
    let mut pair = beating(10);
    pair.pass(secs(36_000));
    pair.client.handle_timeout(pair.now);
    assert_eq!(pair.end(), ConnectionError::PeerSilent);
    pair.client.handle_timeout(pair.now);
    assert!(pair.events().is_empty());
}

#[test]
fn early_and_repeated_timeouts_are_harmless() {
    let mut pair = beating(10);
    let deadline = pair.client.poll_timeout();
    pair.pass(secs(1));
    for _ in 0..3 {
        pair.client.handle_timeout(pair.now);
    }
    assert_eq!(pair.client.poll_timeout(), deadline);
    assert!(pair.sent().is_empty());
}

#[test]
fn a_clock_that_steps_back_neither_ends_nor_silences_a_connection() {
    let mut pair = beating(10);
    pair.now = pair.now.saturating_sub(secs(3_600));
    pair.client.handle_timeout(pair.now);
    assert!(pair.client.is_open());
    assert_eq!(pair.client.poll_timeout(), Some(pair.now + secs(5)));
}
