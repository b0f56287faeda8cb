//! Settling: merged, mixed, given back, and never what is not outstanding.

use leveret_core::connection::{CommandError, ConsumeOptions, Event};
use leveret_testkit::broker::BrokerEvent;
use proptest::prelude::*;

use super::pair::{Pair, deliveries, numbered, short, tags};

#[test]
fn a_batch_that_is_settled_together_is_settled_to_the_last_delivery() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "q");
    pair.fill(channel, "q", numbered(1_000));
    for tag in tags(&pair.consume(channel, "q")) {
        pair.client().ack(channel, tag, false).expect("it is outstanding");
    }
    assert_eq!(pair.client().unsent_bytes(), 1_000 * 21, "as much as it can become at most");
    assert_eq!((pair.events(), pair.counts("q")), (vec![], (0, 0)));
}

#[test]
fn without_acknowledgement_nothing_is_outstanding() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "q");
    pair.fill(channel, "q", numbered(3));
    let got = pair.consume_with(channel, "q", &ConsumeOptions::without_acknowledgement());
    assert_eq!((tags(&got), pair.counts("q")), (vec![1, 2, 3], (0, 0)));
    assert!(got.iter().all(|delivery| !delivery.must_settle()));
    let refused = CommandError::NotOutstanding { channel, delivery_tag: 2 };
    assert_eq!(pair.client().ack(channel, 2, false), Err(refused));
    assert_eq!(pair.events(), [], "the broker has not heard of it");
}

#[test]
fn a_recover_brings_back_what_was_in_hand_under_other_tags() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "q");
    pair.fill(channel, "q", numbered(3));
    assert_eq!(tags(&pair.consume(channel, "q")), [1, 2, 3]);
    pair.client().ack(channel, 2, false).expect("it is outstanding");
    pair.client().recover(channel).expect("the channel is open");
    let mut events = pair.events();
    assert_eq!(events.remove(0), Event::Recovered { channel });
    let again = deliveries(events);
    assert_eq!(tags(&again), [4, 5]);
    assert!(again.iter().all(leveret_core::connection::Delivery::redelivered));
    let refused = CommandError::NotOutstanding { channel, delivery_tag: 3 };
    assert_eq!(pair.client().ack(channel, 3, false), Err(refused));
    pair.client().ack(channel, 5, true).expect("it is outstanding");
    assert_eq!((pair.events(), pair.counts("q")), (vec![], (0, 0)));
}

#[test]
fn what_was_delivered_before_a_cancel_is_settled_after_it() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "q");
    pair.fill(channel, "q", numbered(3));
    assert_eq!(pair.consume(channel, "q").len(), 3);
    pair.client().cancel(channel, &short("c")).expect("the consumer is there");
    assert!(matches!(pair.events()[..], [Event::ConsumerCancelled { by_server: false, .. }]));
    pair.client().reject(channel, 2, true).expect("it is outstanding");
    pair.client().ack(channel, 0, true).expect("two are outstanding");
    assert_eq!((pair.events(), pair.counts("q")), (vec![], (1, 0)));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Publish,
    Settle { back: u64, how: u8 },
    Get { no_ack: bool },
    Recover,
    Talk,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Publish),
        8 => (0..10_u64, 0..6_u8).prop_map(|(back, how)| Step::Settle { back, how }),
        1 => any::<bool>().prop_map(|no_ack| Step::Get { no_ack }),
        1 => prop::bool::weighted(0.2).prop_map(|recover| if recover { Step::Recover } else { Step::Talk }),
        3 => Just(Step::Talk),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever an application settles, in whatever order and however often: two consumers, one of them without
    /// acknowledgement, and gets on one channel. The broker never finds fault, and nothing is lost or settled
    /// that was not.
    #[test]
    fn the_broker_never_finds_fault(steps in prop::collection::vec(any_step(), 0..80)) {
        let mut pair = Pair::new();
        let channel = pair.channel();
        pair.queue(channel, "q");
        pair.queue(channel, "free");
        pair.consume(channel, "q");
        let options = ConsumeOptions::without_acknowledgement();
        pair.client().consume(channel, &short("free"), &short("f"), &options).expect("the channel is open");
        pair.events();
        let (mut published, mut last) = (0, 0);
        for step in steps {
            match step {
                Step::Publish => {
                    published += 1;
                    let queue = if published % 4 == 0 { "free" } else { "q" };
                    pair.client().publish(channel, &super::pair::to_queue(queue, "x")).expect("there is room");
                }
                Step::Settle { back, how } => {
                    let tag = u64::saturating_sub(last, back);
                    // Mostly wrong, sometimes right: the connection knows.
                    let _ = match how {
                        0..=2 => pair.client().ack(channel, tag, how == 2),
                        3 => pair.client().nack(channel, tag, false, false),
                        4 => pair.client().nack(channel, tag, true, false),
                        _ => pair.client().reject(channel, tag, false),
                    };
                }
                Step::Get { no_ack } => pair.client().get(channel, &short("q"), no_ack).expect("it is open"),
                Step::Recover => pair.client().recover(channel).expect("it is open"),
                Step::Talk => {
                    for event in pair.events() {
                        match event {
                            Event::Delivery(delivery) | Event::Got { delivery, .. } => last = delivery.delivery_tag(),
                            Event::GetEmpty { .. } | Event::Recovered { .. } => {}
                            other => prop_assert!(false, "{:?}", other),
                        }
                    }
                }
            }
        }
        pair.events();
        // All that is left is taken by one multiple.
        pair.client().ack(channel, 0, true).expect("it is open");
        pair.events();
        prop_assert_eq!(pair.counts("q"), (0, 0));
        let closed = |event: &BrokerEvent| matches!(event, BrokerEvent::ChannelClosed { .. });
        let events: Vec<BrokerEvent> = std::iter::from_fn(|| pair.broker.poll_event()).collect();
        prop_assert!(!events.iter().any(closed), "{:?}", events);
    }
}
