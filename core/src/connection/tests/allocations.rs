//! What a message costs the allocator in steady state. The buffers that are read into are the caller's.

use allocation_counter::measure;

use super::*;

/// Messages that are measured together.
const BATCH: u64 = 512;

/// Heap allocations of one round after three that made the buffers as large as they need to be.
fn steady(mut round: impl FnMut(u64)) -> u64 {
    for number in 0..3 {
        round(number);
    }
    measure(|| round(3)).count_total
}

fn drained(pair: &mut Pair, out: &mut SendBuf) {
    while pair.client.poll_transmit(pair.now, out) > 0 {
        out.clear();
    }
}

/// Each with a body of its own, whose block is the application's, and a confirm of its own. What is counted is all
/// that the connection does from the command to the verdict: queueing, sending, reading, telling.
#[test]
fn a_confirmed_publish_takes_two_allocations_at_most() {
    let mut pair = Pair::confirming(1, config());
    let messages: Vec<Vec<Message>> =
        (0..4).map(|_| (0..BATCH).map(|_| message(vec![7; 256])).collect()).collect();
    let confirms: Vec<Vec<u8>> = (0..4)
        .map(|round| (1..=BATCH).flat_map(|n| script::ack(1, round * BATCH + n, false)).collect())
        .collect();
    let mut out = SendBuf::default();
    pair.input.reserve(64 * 1024);
    let count = steady(|round| {
        let round = usize::try_from(round).unwrap();
        for message in &messages[round] {
            pair.client.publish(id(1), message).unwrap();
        }
        drained(&mut pair, &mut out);
        pair.input.extend_from_slice(&confirms[round]);
        pair.read();
        let mut told = 0;
        while let Some(event) = pair.client.poll_event() {
            assert!(matches!(event, Event::Verdict { verdict: Verdict::Ok, .. }));
            told += 1;
        }
        assert_eq!(told, BATCH);
    });
    assert!(count <= 2 * BATCH, "{count} allocations for {BATCH} publishes");
}

#[test]
fn a_delivery_and_its_acknowledgement_take_two_allocations() {
    let mut pair = Pair::confirming(1, config());
    pair.client.consume(id(1), &short("q"), &short("tag"), &ConsumeOptions::default()).unwrap();
    pair.sent();
    pair.feed(script::consume_ok(1, "tag"));
    pair.events();
    let delivery = |tag| {
        [script::deliver(1, "tag", tag), script::header(1, 256, None), script::body(1, &[7; 256])].concat()
    };
    let rounds: Vec<Vec<u8>> =
        (0..4).map(|round| (1..=BATCH).flat_map(|n| delivery(round * BATCH + n)).collect()).collect();
    let mut out = SendBuf::default();
    pair.input.reserve(1024 * 1024);
    // Twice as many come before as are measured, so that nothing is left to grow: one for the properties, one for the
    // body. Reading the properties is the application's choice.
    let count = steady(|round| {
        pair.input.extend_from_slice(&rounds[usize::try_from(round).unwrap()]);
        pair.read();
        while let Some(event) = pair.client.poll_event() {
            let Event::Delivery(delivery) = event else { panic!("{event:?}") };
            pair.client.ack(id(1), delivery.delivery_tag(), false).unwrap();
        }
        drained(&mut pair, &mut out);
    });
    assert!(count <= 2 * BATCH, "{count} allocations for {BATCH} deliveries");
}
