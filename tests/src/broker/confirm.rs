//! Publisher confirms: what a channel still owes its publisher, and in which order it pays.

use std::collections::BTreeMap;
use std::time::Duration;

use leveret_core::rng::Rng;
use leveret_core::time::Instant;

/// When and in which order verdicts on publishes are sent. The return of an unroutable message is always sent
/// at once, so it comes before its own acknowledgement whatever the style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmStyle {
    /// Each before the next frame is read: one acknowledgement for one publish, in order.
    Immediate,
    /// As RabbitMQ does: what was published within `delay` (zero: in one burst of input) is acknowledged
    /// together, by `multiple` up to the first refused one and singly after it, and then the refusals.
    Batched {
        /// How long a verdict waits for others.
        delay: Duration,
    },
    /// In a random order, singly or by `multiple`, refusals last. Allowed by the protocol, and rare in
    /// practice, so worth testing against.
    OutOfOrder {
        /// How long a verdict waits for others.
        delay: Duration,
    },
    /// Not before [`Broker::release_confirms`](super::Broker::release_confirms). Until then every publish
    /// costs an entry of about 20 bytes.
    Withheld,
}

impl Default for ConfirmStyle {
    /// Batched within one burst of input.
    fn default() -> Self {
        Self::Batched { delay: Duration::ZERO }
    }
}

/// One `basic.ack` or `basic.nack` to the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) tag: u64,
    pub(super) multiple: bool,
    pub(super) ack: bool,
}

/// A channel in confirm mode.
#[derive(Debug, Default)]
pub(super) struct Confirms {
    /// Publishes counted since `confirm.select`.
    published: u64,
    /// Verdicts that were not sent yet: true is an acknowledgement.
    owed: BTreeMap<u64, bool>,
    /// When they are to be sent.
    due: Option<Instant>,
}

impl Confirms {
    /// Counts a publish: the first has tag 1.
    pub(super) const fn next_tag(&mut self) -> u64 {
        self.published += 1;
        self.published
    }

    /// Notes the verdict on a publish.
    pub(super) fn decide(&mut self, now: Instant, tag: u64, ack: bool, style: ConfirmStyle) {
        self.owed.insert(tag, ack);
        let due = match style {
            ConfirmStyle::Immediate => Some(now),
            ConfirmStyle::Batched { delay } | ConfirmStyle::OutOfOrder { delay } => Some(now + delay),
            ConfirmStyle::Withheld => None,
        };
        self.due = self.due.or(due);
    }

    /// When the next verdicts are to be sent.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes everything owed, in the order in which it is to be sent.
    pub(super) fn settle(&mut self, style: ConfirmStyle, rng: &mut Rng) -> Vec<Receipt> {
        self.due = None;
        let owed = std::mem::take(&mut self.owed);
        match style {
            ConfirmStyle::Immediate => {
                owed.into_iter().map(|(tag, ack)| Receipt { tag, multiple: false, ack }).collect()
            }
            ConfirmStyle::Batched { .. } | ConfirmStyle::Withheld => batched(&owed),
            ConfirmStyle::OutOfOrder { .. } => shuffled(owed, rng),
        }
    }
}

fn batched(owed: &BTreeMap<u64, bool>) -> Vec<Receipt> {
    let first_refused = owed.iter().find(|(_, ack)| !**ack).map_or(u64::MAX, |(tag, _)| *tag);
    let together = owed.range(..first_refused).count();
    let top = owed.range(..first_refused).next_back().map(|(tag, _)| *tag);
    let single = |(&tag, &ack): (&u64, &bool)| Receipt { tag, multiple: false, ack };
    let top = top.map(|tag| Receipt { tag, multiple: together > 1, ack: true });
    let rest = owed.range(first_refused..).filter(|(_, ack)| **ack).map(single);
    let refused = owed.iter().filter(|(_, ack)| !**ack).map(single);
    top.into_iter().chain(rest).chain(refused).collect()
}

fn shuffled(mut owed: BTreeMap<u64, bool>, rng: &mut Rng) -> Vec<Receipt> {
    let mut order: Vec<u64> = owed.iter().filter(|(_, ack)| **ack).map(|(tag, _)| *tag).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, index_below(rng, last + 1));
    }
    let mut receipts = Vec::new();
    for tag in order {
        if !owed.contains_key(&tag) {
            continue; // an earlier `multiple` covered it
        }
        let nothing_refused_below = owed.range(..tag).all(|(_, ack)| *ack);
        let multiple = nothing_refused_below && index_below(rng, 4) == 0;
        if multiple {
            owed = owed.split_off(&(tag + 1));
        } else {
            owed.remove(&tag);
        }
        receipts.push(Receipt { tag, multiple, ack: true });
    }
    receipts.extend(owed.into_keys().map(|tag| Receipt { tag, multiple: false, ack: false }));
    receipts
}

/// A number below `count`, which is not zero.
fn index_below(rng: &mut Rng, count: usize) -> usize {
    usize::try_from(rng.next_u64() % count as u64).expect("less than a usize")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use leveret_core::rng::Rng;

    fn styles() -> impl Strategy<Value = ConfirmStyle> {
        prop_oneof![
            Just(ConfirmStyle::Immediate),
            Just(ConfirmStyle::Batched { delay: Duration::ZERO }),
            Just(ConfirmStyle::OutOfOrder { delay: Duration::ZERO }),
            Just(ConfirmStyle::Withheld),
        ]
    }

    proptest! {
        /// Read as a publisher reads them, the receipts say of every publish exactly what was decided.
        #[test]
        fn every_publish_gets_its_own_verdict_once(
            verdicts in prop::collection::vec(any::<bool>(), 0..40),
            style in styles(),
            seed: u64,
        ) {
            let mut confirms = Confirms::default();
            let mut outstanding = BTreeMap::new();
            for ack in verdicts {
                let tag = confirms.next_tag();
                outstanding.insert(tag, ack);
                confirms.decide(Instant::ORIGIN, tag, ack, style);
            }
            for receipt in confirms.settle(style, &mut Rng::new(seed)) {
                prop_assert!(outstanding.contains_key(&receipt.tag));
                let from = if receipt.multiple { 0 } else { receipt.tag };
                let covered: Vec<u64> = outstanding.range(from..=receipt.tag).map(|(tag, _)| *tag).collect();
                for tag in covered {
                    prop_assert_eq!(outstanding.remove(&tag), Some(receipt.ack));
                }
            }
            prop_assert!(outstanding.is_empty());
        }
    }
}
