//! Much at once: many channels, large bodies, many returns.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use bytes::Bytes;
use leveret_core::connection::{ConsumeOptions, Event, PublishError, Verdict};
use leveret_core::rng::Rng;
use leveret_core::text::ShortString;
use leveret_testkit::stranger::bare;

use crate::{Client, everywhere, name};

#[test]
fn sixty_four_channels_publish_and_consume_at_once_and_every_message_is_accounted_for() {
    const MESSAGES: u64 = 150;
    everywhere(|broker| {
        let mut client = Client::connect(broker);
        let mut queues = BTreeMap::new();
        for _ in 0..64 {
            let channel = client.channel();
            queues.insert(channel, client.queue(channel));
        }
        for (channel, queue) in &queues {
            let prefetch = NonZeroU16::new(50).expect("some");
            client.on().confirm_select(*channel).expect("it is open");
            client.on().set_prefetch(*channel, prefetch).expect("it is open");
            client
                .on()
                .consume(*channel, queue, &ShortString::EMPTY, &ConsumeOptions::default())
                .expect("it is open");
            for number in 0..MESSAGES {
                let body =
                    format!("{channel} {number} {}", "x".repeat(usize::try_from(number * 7).expect("small")));
                client.on().publish(*channel, &bare(queue, body)).expect("there is room");
            }
        }
        let all: BTreeSet<_> =
            queues.keys().flat_map(|c| (0..MESSAGES).map(move |n| format!("{c} {n}"))).collect();
        let (mut confirmed, mut delivered) = (BTreeSet::new(), BTreeSet::new());
        while confirmed.len() < all.len() || delivered.len() < all.len() {
            match client.event() {
                Event::Verdict { channel, sequence, verdict } => {
                    assert_eq!(verdict, Verdict::Ok);
                    assert!(confirmed.insert((channel, sequence)));
                }
                Event::Delivery(delivery) => {
                    let body = String::from_utf8_lossy(delivery.content().body().expect("it is small"));
                    let mut words = body.splitn(3, ' ');
                    let (channel, number) = (words.next().expect("one"), words.next().expect("two"));
                    assert_eq!(channel, delivery.channel().to_string(), "on the channel that asked");
                    assert!(delivered.insert(format!("{channel} {number}")), "once");
                    client
                        .on()
                        .ack(delivery.channel(), delivery.delivery_tag(), false)
                        .expect("it is in hand");
                }
                Event::ConfirmSelected { .. } | Event::PrefetchSet { .. } | Event::ConsumeStarted { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(delivered, all, "RabbitMQ {}", broker.version());
        client.close();
    });
}

#[test]
fn a_body_of_sixteen_mebibytes_goes_there_and_comes_back() {
    everywhere(|broker| {
        let mut client = Client::connect(broker);
        let channel = client.channel();
        let queue = client.queue(channel);
        let body: Bytes =
            (0..16 * 1024 * 1024_u32).map(|at| (at % 251).to_le_bytes()[0]).collect::<Vec<_>>().into();
        client.on().publish(channel, &bare(&queue, body.clone())).expect("it is taken alone");
        client.on().get(channel, &queue, true).expect("it is open");
        let Event::Got { delivery, .. } = client.event() else { panic!("it was published before") };
        assert!(delivery.content().body().expect("it is below the limit") == &body);
        client.close();
    });
}

#[test]
fn every_verdict_is_right_among_ten_thousand_identical_messages_a_third_of_which_come_back() {
    const MESSAGES: usize = 10_000;
    everywhere(|broker| {
        let mut client = Client::connect(broker);
        let channel = client.channel();
        let (queue, nowhere) = (client.queue(channel), name("nowhere"));
        client.on().confirm_select(channel).expect("it is open");
        client.expect("selected", |event| matches!(event, Event::ConfirmSelected { .. }));
        let mut rng = Rng::new(7);
        let (mut unroutable, mut verdicts) = (BTreeSet::new(), BTreeMap::new());
        let mut published = 0;
        while verdicts.len() < MESSAGES {
            while published < MESSAGES {
                let lost = rng.next_u64().is_multiple_of(3);
                let target = if lost { &nowhere } else { &queue };
                match client.on().publish(channel, &bare(target, "the same")) {
                    Ok(sequence) if lost => drop(unroutable.insert(sequence)),
                    Ok(_) => {}
                    Err(PublishError::Full { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
                published += 1;
            }
            if let Event::Verdict { sequence, verdict, .. } = client.event() {
                assert!(verdicts.insert(sequence, verdict).is_none(), "one verdict each");
            }
        }
        for (sequence, verdict) in &verdicts {
            let came_back = matches!(verdict, Verdict::Unroutable(_));
            assert_eq!(came_back, unroutable.contains(sequence), "{sequence}: {verdict:?}");
        }
        assert_eq!(client.on().unmatched().returns, 0, "RabbitMQ {}", broker.version());
        client.close();
    });
}
