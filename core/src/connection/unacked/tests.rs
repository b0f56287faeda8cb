//! Against a broker that keeps the outstanding tags in a set, and refuses what RabbitMQ refuses.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const ACK: Settlement = Settlement::Ack { multiple: false };

/// What a broker makes of the frames of one channel, in order.
#[derive(Default)]
struct Broker {
    outstanding: BTreeSet<u64>,
    /// What became of each tag.
    settled: BTreeMap<u64, &'static str>,
    frames: usize,
}

impl Broker {
    fn read(&mut self, tag: u64, settlement: Settlement) {
        self.frames += 1;
        assert!(self.outstanding.contains(&tag), "406: unknown delivery tag {tag}");
        let what = match settlement {
            Settlement::Ack { .. } => "ack",
            Settlement::Nack { .. } => "nack",
            Settlement::Reject { .. } => "reject",
        };
        let later = self.outstanding.split_off(&(tag + 1));
        let covered = std::mem::replace(&mut self.outstanding, later);
        for covered in covered {
            if covered == tag || settlement.is_multiple() {
                self.settled.insert(covered, what);
            } else {
                self.outstanding.insert(covered);
            }
        }
    }
}

/// A channel: what is queued on it in order, as `outgoing` keeps it.
#[derive(Default)]
struct Line {
    unacked: Unacked,
    items: VecDeque<Item>,
    broker: Broker,
}

enum Item {
    Acks(usize),
    Frame(u64, Settlement),
    Recover,
    /// Something that acknowledgements must not overtake.
    Publish,
}

impl Line {
    fn deliver(&mut self, tag: u64, must_settle: bool) {
        assert!(self.unacked.delivered(tag, must_settle));
        self.unacked.taken(tag);
        if must_settle {
            self.broker.outstanding.insert(tag);
        }
    }

    fn settle(&mut self, tag: u64, settlement: Settlement) -> Result<(), NotOutstanding> {
        match self.unacked.settle(tag, settlement)? {
            Due::Nothing => {}
            Due::Acks(count) => match self.items.back_mut() {
                Some(Item::Acks(before)) => *before += count,
                _ => self.items.push_back(Item::Acks(count)),
            },
            Due::Frame { delivery_tag, settlement } => {
                self.items.push_back(Item::Frame(delivery_tag, settlement));
            }
        }
        Ok(())
    }

    fn recover(&mut self) {
        self.unacked.recover();
        self.items.push_back(Item::Recover);
    }

    fn transmit(&mut self) {
        while let Some(item) = self.items.pop_front() {
            match item {
                Item::Publish => {}
                Item::Acks(count) => {
                    let broker = &mut self.broker;
                    self.unacked
                        .take_acks(count, |tag, multiple| broker.read(tag, Settlement::Ack { multiple }));
                }
                Item::Frame(tag, settlement) => {
                    self.unacked.sent(tag, settlement);
                    self.broker.read(tag, settlement);
                }
                Item::Recover => {
                    self.unacked.recover_sent();
                    self.broker.outstanding.clear();
                    self.unacked.recovered();
                }
            }
        }
    }
}

#[test]
fn work_and_memory_do_not_grow_with_what_has_passed() {
    let mut line = Line::default();
    line.deliver(1, true);
    for tag in 2..100_000 {
        line.deliver(tag, tag % 3 > 0);
        if tag % 3 > 0 {
            assert_eq!(line.settle(tag, ACK), Ok(()));
        }
        line.transmit();
        assert!(line.unacked.slots.len() <= 2 * MAX_GONE + 4);
    }
    assert_eq!(line.settle(1, ACK), Ok(()));
    line.transmit();
    assert!(line.broker.outstanding.is_empty() && line.unacked.slots.is_empty());
}

/// Work that grew with what is settled and not sent would not end here in a minute.
#[test]
fn a_settlement_costs_the_same_whatever_waits_to_be_sent() {
    const COUNT: u64 = 200_000;
    let mut line = Line::default();
    for tag in 1..=COUNT {
        line.deliver(tag, true);
    }
    for tag in (3..=COUNT).rev().step_by(2) {
        assert_eq!(line.settle(tag, ACK), Ok(()));
    }
    for tag in (2..=COUNT).filter(|tag| line.unacked.is_open(*tag)).collect::<Vec<_>>() {
        assert_eq!(line.settle(tag, Settlement::Ack { multiple: true }), Ok(()));
    }
    line.transmit();
    assert_eq!(line.broker.frames, 1);
    assert!(line.broker.outstanding.is_empty() && line.unacked.slots.is_empty());
}

#[derive(Clone, Debug)]
enum Op {
    Deliver { must_settle: bool, gap: u64 },
    Settle { back: u64, settlement: Settlement },
    Publish,
    Recover,
    Transmit,
}

fn any_op() -> impl Strategy<Value = Op> {
    let settlement = prop_oneof![
        4 => any::<bool>().prop_map(|often| Settlement::Ack { multiple: often }),
        6 => Just(ACK),
        2 => any::<(bool, bool)>().prop_map(|(multiple, requeue)| Settlement::Nack { multiple, requeue }),
        1 => any::<bool>().prop_map(|requeue| Settlement::Reject { requeue }),
    ];
    prop_oneof![
        8 => (prop::bool::weighted(0.9), prop_oneof![9 => Just(1_u64), 1 => 2..5_u64])
            .prop_map(|(must_settle, gap)| Op::Deliver { must_settle, gap }),
        8 => (0..12_u64, settlement).prop_map(|(back, settlement)| Op::Settle { back, settlement }),
        1 => Just(Op::Publish),
        1 => prop::bool::weighted(0.3).prop_map(|recover| if recover { Op::Recover } else { Op::Transmit }),
        2 => Just(Op::Transmit),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever is settled, and whenever it is sent: the broker takes every frame, and of each delivery learns
    /// exactly what was decided.
    #[test]
    fn the_broker_learns_of_each_delivery_what_was_decided(ops in prop::collection::vec(any_op(), 0..120)) {
        let mut line = Line::default();
        // The application's own view: what is in hand, and what it decided.
        let (mut in_hand, mut decided) = (BTreeSet::new(), BTreeMap::new());
        let (mut last, mut acks) = (0_u64, 0);
        for op in ops {
            match op {
                Op::Deliver { must_settle, gap } => {
                    last += gap;
                    // What comes before the answer to a recover is void, which a story of its own tells.
                    if line.unacked.recovering > 0 {
                        line.transmit();
                    }
                    line.deliver(last, must_settle);
                    if must_settle {
                        in_hand.insert(last);
                    }
                }
                Op::Settle { back, settlement } => {
                    let tag = if back == 11 { 0 } else { last.saturating_sub(back) };
                    let all = tag == 0 && settlement.is_multiple();
                    let expected = if all || in_hand.contains(&tag) { Ok(()) } else { Err(NotOutstanding) };
                    prop_assert_eq!(line.settle(tag, settlement), expected);
                    if expected.is_err() {
                        continue;
                    }
                    let covered: Vec<u64> = in_hand
                        .iter()
                        .copied()
                        .filter(|held| if settlement.is_multiple() { all || *held <= tag } else { *held == tag })
                        .collect();
                    let what = match settlement {
                        Settlement::Ack { .. } => "ack",
                        Settlement::Nack { .. } => "nack",
                        Settlement::Reject { .. } => "reject",
                    };
                    for tag in covered {
                        in_hand.remove(&tag);
                        decided.insert(tag, what);
                        acks += 1;
                    }
                }
                Op::Publish => line.items.push_back(Item::Publish),
                Op::Recover => {
                    line.recover();
                    in_hand.clear();
                }
                Op::Transmit => line.transmit(),
            }
        }
        line.transmit();
        prop_assert_eq!(&line.broker.settled, &decided);
        prop_assert_eq!(&line.broker.outstanding, &in_hand);
        prop_assert!(line.broker.frames <= acks);
        prop_assert_eq!(line.unacked.slots.iter().filter(|slot| slot.state == State::Gone).count(), line.unacked.gone);
    }

    /// Between transactions the broker holds settlements back, and a rollback makes them outstanding again.
    #[test]
    fn transactions_settle_what_was_committed(
        ops in prop::collection::vec((0..6_u8, 0..6_u64, any::<bool>()), 0..60)
    ) {
        let mut unacked = Unacked::default();
        unacked.begin_transactions();
        let (mut outstanding, mut held) = (BTreeSet::new(), BTreeSet::new());
        let mut last = 0;
        for (op, back, multiple) in ops {
            match op {
                0 | 1 => {
                    last += 1;
                    unacked.delivered(last, true);
                    unacked.taken(last);
                    outstanding.insert(last);
                }
                2 | 3 => {
                    let tag = last.saturating_sub(back);
                    let settlement = Settlement::Ack { multiple };
                    let known = outstanding.contains(&tag) || multiple && tag == 0;
                    let covers = |held: &u64| if multiple { tag == 0 || *held <= tag } else { *held == tag };
                    let covered: Vec<u64> = outstanding.iter().copied().filter(covers).collect();
                    match unacked.settle(tag, settlement) {
                        Err(NotOutstanding) => prop_assert!(!known),
                        Ok(Due::Nothing) => prop_assert!(covered.is_empty() && known),
                        Ok(due) => {
                            prop_assert!(known);
                            let delivery_tag = *covered.last().unwrap();
                            prop_assert_eq!(due, Due::Frame { delivery_tag, settlement });
                            for tag in covered {
                                outstanding.remove(&tag);
                                held.insert(tag);
                            }
                        }
                    }
                }
                4 => {
                    unacked.commit();
                    held.clear();
                }
                _ => {
                    unacked.roll_back();
                    outstanding.append(&mut held);
                }
            }
        }
    }
}
