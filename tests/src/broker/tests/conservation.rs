//! Whatever clients do, no message is lost or doubled.

use std::collections::BTreeMap;

use amq_protocol::protocol::BasicProperties;
use leveret_core::text::ShortString;
use proptest::prelude::*;

use super::world::{Peer, World, dead_letter_to, int};
use crate::broker::BrokerEvent;

#[derive(Clone, Debug)]
enum Step {
    PublishToWork,
    PublishToHold,
    Settle { oldest: bool, how: How },
    Reconnect,
    CloseByBroker,
    Pass(u64),
}

#[derive(Clone, Copy, Debug)]
enum How {
    Ack,
    Requeue,
    Reject,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![3 => Just(How::Ack), 2 => Just(How::Requeue), 1 => Just(How::Reject)];
    let step = prop_oneof![
        4 => Just(Step::PublishToWork),
        4 => Just(Step::PublishToHold),
        6 => (any::<bool>(), how).prop_map(|(oldest, how)| Step::Settle { oldest, how }),
        1 => Just(Step::Reconnect),
        1 => Just(Step::CloseByBroker),
        3 => (1_u64..400).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..60)
}

/// A consumer with its deliveries in hand, by tag.
struct Worker {
    peer: Peer,
    in_hand: Vec<u64>,
}

impl Worker {
    fn start(world: &mut World) -> Self {
        let mut peer = world.connect();
        world.consume(&mut peer, "work", "c", 3);
        Self { peer, in_hand: Vec::new() }
    }

    fn settle(&mut self, world: &mut World, oldest: bool, how: How) {
        self.in_hand.extend(world.contents(&mut self.peer).iter().map(super::world::Content::tag));
        if self.in_hand.is_empty() {
            return;
        }
        let tag = self.in_hand.remove(if oldest { 0 } else { self.in_hand.len() - 1 });
        match how {
            How::Ack => world.ack(&mut self.peer, tag),
            How::Requeue => world.refuse(&mut self.peer, tag, true),
            How::Reject => world.refuse(&mut self.peer, tag, false),
        }
    }
}

/// Which messages left for good, and how often.
fn count_gone(world: &mut World, gone: &mut BTreeMap<ShortString, usize>) {
    for event in world.events() {
        if let BrokerEvent::Acked { message_id, .. } = event {
            *gone.entry(message_id.expect("every message here has an id")).or_default() += 1;
        }
    }
}

proptest! {
    #[test]
    fn every_message_is_in_one_place(steps in steps()) {
        let mut world = World::new();
        let mut publisher = world.connect_publisher();
        world.make(&mut publisher, "dead", &[]);
        let [exchange, key] = dead_letter_to("dead");
        world.make(&mut publisher, "work", &[exchange, key, ("x-max-priority", int(10))]);
        let [exchange, key] = dead_letter_to("work");
        world.make(&mut publisher, "hold", &[exchange, key, ("x-message-ttl", int(200))]);
        let mut worker = Worker::start(&mut world);
        let (mut published, mut gone) = (0_u8, BTreeMap::new());

        for step in steps {
            match step {
                Step::PublishToWork | Step::PublishToHold => {
                    let queue = if matches!(step, Step::PublishToWork) { "work" } else { "hold" };
                    let properties = BasicProperties::default()
                        .with_message_id(published.to_string().into())
                        .with_priority(published % 4);
                    world.publish_with(&mut publisher, queue, properties, "job");
                    published += 1;
                }
                Step::Settle { oldest, how } => worker.settle(&mut world, oldest, how),
                Step::Reconnect => {
                    world.broker.handle_eof(world.now, worker.peer.conn);
                    worker = Worker::start(&mut world);
                }
                Step::CloseByBroker => {
                    world.broker.close_connection(world.now, worker.peer.conn, 320, "CONNECTION_FORCED - test");
                    worker = Worker::start(&mut world);
                }
                Step::Pass(ms) => world.pass_ms(ms),
            }
            count_gone(&mut world, &mut gone);
            prop_assert!(gone.values().all(|times| *times == 1), "acknowledged twice: {gone:?}");
            let queues = world.broker.queues();
            let kept: usize = queues.iter().map(|queue| queue.ready + queue.unacked).sum();
            prop_assert_eq!(kept + gone.len(), usize::from(published));
            let work = world.broker.queue("work").expect("nobody deletes it");
            prop_assert!(work.unacked <= 3, "more in hand than the prefetch");
            let ranks: Vec<u8> = work.messages.iter().map(|message| message.priority).collect();
            prop_assert!(ranks.is_sorted_by(|one, next| one >= next), "priorities out of order: {ranks:?}");
        }
    }
}
