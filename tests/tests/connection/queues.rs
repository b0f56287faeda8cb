//! Asking a queue for one message, emptying it, deleting it under a condition.

use leveret_core::connection::{ChannelClosed, DeleteIf, Event};

use super::pair::{Pair, numbered, short};

#[test]
fn messages_are_asked_for_one_by_one_until_there_is_none() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "q");
    pair.fill(channel, "q", numbered(2));
    for no_ack in [false, true, false] {
        pair.client().get(channel, &short("q"), no_ack).expect("the channel is open");
    }
    let events = pair.events();
    let [
        Event::Got { delivery: first, messages: 1 },
        Event::Got { delivery: second, messages: 0 },
        Event::GetEmpty { .. },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(first.content().body().expect("it is small"), "1");
    assert!(first.must_settle() && !second.must_settle());
    assert_eq!(pair.counts("q"), (0, 1));

    pair.client().nack(channel, first.delivery_tag(), false, true).expect("it is outstanding");
    pair.client().get(channel, &short("q"), false).expect("the channel is open");
    let events = pair.events();
    let [Event::Got { delivery: again, .. }] = &events[..] else { panic!("{events:?}") };
    assert!(again.redelivered());
    pair.client().ack(channel, again.delivery_tag(), false).expect("it is outstanding");
    assert_eq!((pair.events(), pair.counts("q")), (vec![], (0, 0)));
}

#[test]
fn a_purge_drops_what_is_ready_and_not_what_is_in_hand() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "q");
    pair.fill(channel, "q", numbered(3));
    pair.client().get(channel, &short("q"), false).expect("the channel is open");
    pair.client().purge_queue(channel, &short("q")).expect("the channel is open");
    let events = pair.events();
    assert_eq!(events[1..], [Event::QueuePurged { channel, messages: 2 }]);
    assert_eq!(pair.counts("q"), (0, 1));
    pair.client().nack(channel, 1, false, true).expect("it is outstanding");
    assert_eq!((pair.events(), pair.counts("q")), (vec![], (1, 0)));
}

#[test]
fn a_queue_that_is_used_or_holds_something_is_deleted_only_if_that_is_meant() {
    let mut pair = Pair::new();
    let channel = pair.channel();
    pair.queue(channel, "full");
    pair.fill(channel, "full", numbered(1));
    pair.queue(channel, "used");
    pair.consume(channel, "used");
    for (queue, only_if, why) in
        [("full", DeleteIf::EMPTY, "not empty"), ("used", DeleteIf::UNUSED, "in use")]
    {
        let other = pair.channel();
        pair.client().delete_queue(other, &short(queue), only_if).expect("the channel is open");
        let events = pair.events();
        let [Event::ChannelClosed { cause: ChannelClosed::Peer(reason), .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(reason.code, 406);
        assert!(reason.text.contains(why), "{reason}");
    }
    pair.client().delete_queue(channel, &short("full"), DeleteIf::UNUSED).expect("the channel is open");
    assert_eq!(pair.events(), [Event::QueueDeleted { channel, messages: 1 }]);
    pair.client().delete_queue(channel, &short("used"), DeleteIf::ALWAYS).expect("the channel is open");
    let events = pair.events();
    assert!(events.contains(&Event::QueueDeleted { channel, messages: 0 }), "{events:?}");
    let cancelled = |event: &Event| matches!(event, Event::ConsumerCancelled { by_server: true, .. });
    assert!(events.iter().any(cancelled), "{events:?}");
}
