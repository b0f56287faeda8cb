//! Publisher confirms of one channel: which publishes have no verdict yet.
//!
//! RabbitMQ confirms out of order, one by one or all up to a tag, and the acknowledgements of a batch before its
//! rejections. A return comes before the acknowledgement of its publish, but others may stand between, so it is
//! recorded when it comes and told when the acknowledgement does.

use std::collections::VecDeque;

use super::event::Returned;

/// What a confirm says about one publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Confirmed {
    Ok,
    Unroutable(Returned),
    Nacked,
}

/// The publishes of a channel from the first without a verdict on.
///
/// A ring indexed by sequence number, so that a confirm costs the same whatever its order.
#[derive(Debug)]
pub(super) struct Confirms {
    /// The sequence number of the first slot.
    base: u64,
    /// The first one is never [`Slot::Settled`].
    slots: VecDeque<Slot>,
    /// The last publish that was handed out to be sent. A confirm of a later one is made up.
    sent: u64,
}

#[derive(Debug)]
enum Slot {
    Waiting,
    /// In a box, because it is rare and a slot should stay small.
    Returned(Box<Returned>),
    Settled,
}

impl Confirms {
    /// The server counts from 1, starting with the first publish after `confirm.select`.
    pub(super) const fn new() -> Self {
        Self { base: 1, slots: VecDeque::new(), sent: 0 }
    }

    /// The sequence number of the next publish.
    pub(super) fn next_sequence(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Slots in use: the publishes since the first without a verdict.
    pub(super) fn span(&self) -> usize {
        self.slots.len()
    }

    /// Takes the next sequence number.
    pub(super) fn publish(&mut self) -> u64 {
        let sequence = self.next_sequence();
        self.slots.push_back(Slot::Waiting);
        sequence
    }

    /// Notes that a publish is on its way. They leave in order.
    pub(super) fn mark_sent(&mut self, sequence: u64) {
        debug_assert!(sequence > self.sent && sequence < self.next_sequence(), "sent out of order");
        self.sent = sequence;
    }

    /// Records a return. False if no publish with that mark waits.
    pub(super) fn record_return(&mut self, sequence: u64, returned: Returned) -> bool {
        match self.slot(sequence) {
            Some(slot @ Slot::Waiting) => {
                *slot = Slot::Returned(Box::new(returned));
                true
            }
            _ => false,
        }
    }

    /// Takes a confirm and tells each verdict, in the order of the publishes. False if it covers none that
    /// waits.
    ///
    /// With `multiple` it covers all up to `tag`, and all that were sent where `tag` is 0 (AMQP 0-9-1,
    /// 1.8.3.13).
    pub(super) fn confirm(
        &mut self,
        tag: u64,
        multiple: bool,
        acked: bool,
        mut tell: impl FnMut(u64, Confirmed),
    ) -> bool {
        let last = if multiple && tag == 0 { self.sent } else { tag };
        if last > self.sent || last < self.base {
            return false;
        }
        let first = if multiple { self.base } else { last };
        let mut told = false;
        for sequence in first..=last {
            let Some(slot) = self.slot(sequence) else { continue };
            let confirmed = match std::mem::replace(slot, Slot::Settled) {
                Slot::Settled => continue,
                Slot::Returned(returned) => Confirmed::Unroutable(*returned),
                Slot::Waiting if acked => Confirmed::Ok,
                Slot::Waiting => Confirmed::Nacked,
            };
            told = true;
            tell(sequence, confirmed);
        }
        while matches!(self.slots.front(), Some(Slot::Settled)) {
            self.slots.pop_front();
            self.base += 1;
        }
        told
    }

    /// Tells all publishes that will have no verdict any more.
    pub(super) fn abandon(self) -> impl Iterator<Item = u64> {
        (self.base..)
            .zip(self.slots)
            .filter(|(_, slot)| !matches!(slot, Slot::Settled))
            .map(|(sequence, _)| sequence)
    }

    fn slot(&mut self, sequence: u64) -> Option<&mut Slot> {
        if sequence > self.sent {
            return None;
        }
        let index = sequence.checked_sub(self.base)?;
        self.slots.get_mut(usize::try_from(index).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::text::ShortString;

    fn published(count: u64) -> Confirms {
        let mut confirms = Confirms::new();
        for sequence in 1..=count {
            assert_eq!(confirms.publish(), sequence);
            confirms.mark_sent(sequence);
        }
        confirms
    }

    fn returned() -> Returned {
        Returned { code: 312, text: ShortString::from_static("NO_ROUTE") }
    }

    fn told(confirms: &mut Confirms, steps: &[(u64, bool, bool)]) -> Vec<(u64, Confirmed)> {
        let mut told = Vec::new();
        for &(tag, multiple, acked) in steps {
            confirms.confirm(tag, multiple, acked, |sequence, verdict| told.push((sequence, verdict)));
        }
        told
    }

    #[test]
    fn single_and_multiple_confirms_mix_in_any_order() {
        let mut confirms = published(10);
        let steps = [
            (3, false, true),
            (1, false, true),
            (2, false, false),
            (7, true, true),
            (9, false, true),
            (10, true, false),
        ];
        let told = told(&mut confirms, &steps);
        let order: Vec<u64> = told.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(order, [3, 1, 2, 4, 5, 6, 7, 9, 8, 10]);
        let nacked: Vec<u64> =
            told.iter().filter(|(_, verdict)| *verdict == Confirmed::Nacked).map(|(s, _)| *s).collect();
        assert_eq!(nacked, [2, 8, 10]);
        assert_eq!(confirms.span(), 0);
    }

    #[test]
    fn a_return_is_told_with_the_acknowledgement_of_its_own_tag() {
        let mut confirms = published(4);
        assert!(confirms.record_return(2, returned()));
        assert!(confirms.record_return(4, returned()));
        let told = told(&mut confirms, &[(1, false, true), (4, true, true)]);
        assert_eq!(
            told,
            [
                (1, Confirmed::Ok),
                (2, Confirmed::Unroutable(returned())),
                (3, Confirmed::Ok),
                (4, Confirmed::Unroutable(returned())),
            ]
        );
    }

    #[test]
    fn what_was_never_sent_cannot_be_confirmed_or_returned() {
        let mut confirms = published(1);
        assert_eq!(confirms.publish(), 2);
        assert!(!confirms.record_return(2, returned()));
        assert!(!confirms.confirm(2, false, true, |_, _| ()));
        assert!(!confirms.confirm(2, true, true, |_, _| ()));
        assert_eq!(told(&mut confirms, &[(0, true, true)]), [(1, Confirmed::Ok)]);
        assert_eq!(confirms.abandon().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn the_first_verdict_stays() {
        let mut confirms = published(2);
        assert!(confirms.confirm(2, false, false, |_, _| ()));
        assert!(!confirms.confirm(2, false, true, |_, _| ()));
        assert!(!confirms.confirm(0, false, true, |_, _| ()));
        assert!(!confirms.confirm(3, true, true, |_, _| ()));
        assert!(!confirms.confirm(u64::MAX, true, true, |_, _| ()));
        assert_eq!(told(&mut confirms, &[(2, true, true)]), [(1, Confirmed::Ok)]);
    }

    /// Work that grew with what is in flight would not end here in a minute.
    #[test]
    fn a_confirm_costs_the_same_whatever_is_in_flight() {
        const COUNT: u64 = 200_000;
        let mut confirms = published(COUNT);
        let mut told = 0;
        for tag in (2..=COUNT).rev() {
            assert!(confirms.confirm(tag, false, true, |_, _| told += 1));
        }
        assert_eq!((told, confirms.span()), (COUNT - 1, 200_000));
        assert!(confirms.confirm(COUNT, true, true, |sequence, _| assert_eq!(sequence, 1)));
        assert_eq!(confirms.span(), 0);
    }

    proptest! {
        /// Against a plain map of the outstanding tags.
        #[test]
        fn it_agrees_with_a_map(
            steps in prop::collection::vec((0_u64..40, any::<bool>(), any::<bool>(), any::<bool>()), 0..60)
        ) {
            let mut confirms = Confirms::new();
            let mut map = BTreeMap::new();
            let mut sent = 0;
            for (tag, multiple, acked, publish) in steps {
                if publish {
                    let sequence = confirms.publish();
                    confirms.mark_sent(sequence);
                    map.insert(sequence, ());
                    sent = sequence;
                    continue;
                }
                let covered: Vec<u64> = match (multiple, tag) {
                    _ if tag > sent => Vec::new(),
                    (true, 0) => map.keys().copied().collect(),
                    (true, _) => map.range(..=tag).map(|(tag, ())| *tag).collect(),
                    (false, _) => map.get(&tag).map(|()| tag).into_iter().collect(),
                };
                let verdict = if acked { Confirmed::Ok } else { Confirmed::Nacked };
                let mut told = Vec::new();
                let any = confirms.confirm(tag, multiple, acked, |tag, verdict| told.push((tag, verdict)));
                let expected: Vec<_> = covered.iter().map(|tag| (*tag, verdict.clone())).collect();
                prop_assert_eq!(any, !expected.is_empty());
                prop_assert_eq!(told, expected);
                for tag in covered {
                    map.remove(&tag);
                }
            }
            prop_assert_eq!(confirms.abandon().collect::<Vec<_>>(), map.into_keys().collect::<Vec<_>>());
        }
    }
}
