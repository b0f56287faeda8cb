//! Messages that are larger than the client takes.

use leveret_core::connection::{ConnectionConfig, Credentials, Event, Oversized};

use super::pair::{Pair, deliveries, short, to_queue};

#[test]
fn a_message_that_is_too_large_is_skipped_and_decided_on_like_the_others() {
    let mut config = ConnectionConfig::new(Credentials::default());
    config.max_message_bytes = 1_000;
    let mut pair = Pair::with(config);
    let channel = pair.channel();
    pair.queue(channel, "q");
    let publisher = pair.connect(ConnectionConfig::new(Credentials::default()));
    let theirs = pair.connection(publisher).open_channel().expect("a channel is free");
    for size in [1_000, 1_000_000, 3] {
        pair.connection(publisher).publish(theirs, &to_queue("q", vec![7; size])).expect("there is room");
    }
    pair.events_of(publisher);

    let got = pair.consume(channel, "q");
    let sizes: Vec<_> = got.iter().map(|delivery| delivery.content().body().map(bytes::Bytes::len)).collect();
    let oversized = Oversized { bytes: 1_000_000, limit: 1_000 };
    assert_eq!(sizes, [Ok(1_000), Err(oversized), Ok(3)]);
    assert_eq!(pair.counts("q"), (0, 3), "nobody decided anything yet");
    pair.client().ack(channel, 1, false).expect("it is outstanding");
    pair.client().ack(channel, 3, false).expect("it is outstanding");
    pair.client().nack(channel, 2, false, true).expect("it is outstanding");
    let again = deliveries(pair.events());
    assert_eq!(again[0].content().body(), Err(oversized));
    assert_eq!(pair.counts("q"), (0, 1));

    pair.client().cancel(channel, &short("c")).expect("the consumer is there");
    pair.client().nack(channel, again[0].delivery_tag(), false, true).expect("it is outstanding");
    pair.client().get(channel, &short("q"), true).expect("the channel is open");
    let events = pair.events();
    let Some(Event::Got { delivery, messages: 0 }) = events.last() else { panic!("{events:?}") };
    assert_eq!(delivery.content().body(), Err(oversized));
}
