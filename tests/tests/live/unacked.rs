//! What the set of outstanding deliveries assumes of recovers and transactions. A broker that thinks otherwise closes
//! the channel with 406, which every wait here would find.

use std::num::NonZeroU16;

use leveret_core::connection::{ChannelId, CommandError, ConsumeOptions, Event};
use leveret_core::text::ShortString;
use leveret_testkit::stranger::bare;

use crate::{Client, everywhere};

/// A channel with so many deliveries in hand, whose tags are 1, 2, ...
fn holding(client: &mut Client, count: u16) -> (ChannelId, ShortString) {
    let channel = client.channel();
    let queue = client.queue(channel);
    for number in 1..=count {
        client.on().publish(channel, &bare(&queue, number.to_string())).expect("there is room");
    }
    let prefetch = NonZeroU16::new(count).expect("some");
    client.on().set_prefetch(channel, prefetch).expect("it is open");
    client
        .on()
        .consume(channel, &queue, &ShortString::EMPTY, &ConsumeOptions::default())
        .expect("it is open");
    client.expect("prefetch", |event| matches!(event, Event::PrefetchSet { .. }));
    client.expect("a consumer", |event| matches!(event, Event::ConsumeStarted { .. }));
    for tag in 1..=u64::from(count) {
        assert_eq!(client.delivery().delivery_tag(), tag);
    }
    (channel, queue)
}

/// Nothing is left of a queue, whatever is in hand elsewhere.
fn assert_empty(client: &mut Client, queue: &ShortString) {
    let channel = client.channel();
    client.on().get(channel, queue, false).expect("it is open");
    client.expect("nothing", |event| matches!(event, Event::GetEmpty { .. }));
}

fn refused(client: &mut Client, channel: ChannelId, tag: u64) {
    let settled = client.on().ack(channel, tag, false);
    assert!(matches!(settled, Err(CommandError::NotOutstanding { .. })), "{tag}: {settled:?}");
}

#[test]
fn a_recover_brings_back_what_was_in_hand_under_other_tags_and_nothing_else() {
    everywhere(|broker| {
        let mut client = Client::connect(broker);
        let (channel, queue) = holding(&mut client, 4);
        // All in one go: what was acknowledged before the recover stays so.
        client.on().ack(channel, 2, false).expect("it is in hand");
        client.on().recover(channel).expect("it is open");
        refused(&mut client, channel, 1);
        client.expect("recovered", |event| matches!(event, Event::Recovered { .. }));
        let mut again = Vec::new();
        for _ in 0..3 {
            let delivery = client.delivery();
            assert!(delivery.redelivered() && delivery.delivery_tag() > 4);
            again.push(delivery.content().body().expect("it is small").clone());
            client.on().ack(channel, delivery.delivery_tag(), false).expect("it is in hand");
        }
        again.sort_unstable();
        assert_eq!(again, ["1", "3", "4"], "RabbitMQ {}", broker.version());
        assert_empty(&mut client, &queue);
        client.close();
    });
}

#[test]
fn a_rollback_brings_settlements_back_under_the_same_tags() {
    everywhere(|broker| {
        let mut client = Client::connect(broker);
        let (channel, queue) = holding(&mut client, 4);
        client.on().tx_select(channel).expect("it is open");
        client.on().ack(channel, 1, false).expect("it is in hand");
        client.on().ack(channel, 3, true).expect("2 and 3 are in hand");
        refused(&mut client, channel, 2);
        client.on().tx_rollback(channel).expect("it is transactional");
        // Once more, in one go with the rollback, and this time for good.
        client.on().ack(channel, 3, true).expect("1, 2 and 3 are in hand again");
        client.on().reject(channel, 4, false).expect("it is in hand");
        client.on().tx_commit(channel).expect("it is transactional");
        client.expect("selected", |event| matches!(event, Event::TxSelected { .. }));
        client.expect("rolled back", |event| matches!(event, Event::TxRolledBack { .. }));
        client.expect("committed", |event| matches!(event, Event::TxCommitted { .. }));
        assert!(client.early.is_empty(), "a rollback delivers nothing");
        client.on().close_channel(channel).expect("it is open");
        client.expect("closed", |event| matches!(event, Event::ChannelClosed { .. }));
        assert_empty(&mut client, &queue);
        client.close();
    });
}

#[test]
fn what_a_transaction_settled_is_not_recovered_and_comes_back_with_its_rollback() {
    everywhere(|broker| {
        let mut client = Client::connect(broker);
        let (channel, queue) = holding(&mut client, 2);
        client.on().tx_select(channel).expect("it is open");
        client.on().ack(channel, 1, false).expect("it is in hand");
        client.on().recover(channel).expect("it is open");
        client.expect("selected", |event| matches!(event, Event::TxSelected { .. }));
        client.expect("recovered", |event| matches!(event, Event::Recovered { .. }));
        let again = client.delivery();
        assert_eq!(again.content().body().expect("it is small"), "2", "RabbitMQ {}", broker.version());
        client.on().tx_rollback(channel).expect("it is transactional");
        client.expect("rolled back", |event| matches!(event, Event::TxRolledBack { .. }));
        client.on().ack(channel, 1, false).expect("it is in hand again");
        client.on().ack(channel, again.delivery_tag(), false).expect("it is in hand");
        client.on().tx_commit(channel).expect("it is transactional");
        client.expect("committed", |event| matches!(event, Event::TxCommitted { .. }));
        assert_empty(&mut client, &queue);
        client.close();
    });
}
