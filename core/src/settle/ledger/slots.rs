//! Deliveries by their ids, in slots that are used again.
//!
//! A map by growing ids would allocate nodes for ever, and a ring would grow over a handler that runs for hours while
//! others come and go. Slots are as many as there were deliveries in hand at once; each id carries its slot, and a
//! sequence number that tells it from all others that had the slot before.

use std::fmt;

use super::State;

/// A delivery in hand. Ids grow in the order in which deliveries were accepted, and are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId {
    // First, so that ids are ordered by it.
    sequence: u64,
    slot: usize,
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delivery {}", self.sequence)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// The first of the free slots, each of which names the next.
    free: Option<usize>,
    taken: usize,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Free { next: Option<usize> },
    Taken { sequence: u64, state: State },
}

const _: () = assert!(size_of::<Slot>() <= 24, "the documentation of the ledger says what a delivery takes");

impl Slots {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: None, taken: 0, next: 0 }
    }

    pub(super) fn insert(&mut self, state: State) -> DeliveryId {
        let sequence = self.next;
        self.next += 1;
        self.taken += 1;
        let taken = Slot::Taken { sequence, state };
        let slot = match self.free {
            Some(slot) => {
                if let Slot::Free { next } = std::mem::replace(&mut self.slots[slot], taken) {
                    self.free = next;
                }
                slot
            }
            None => {
                self.slots.push(taken);
                self.slots.len() - 1
            }
        };
        debug_assert!(self.taken <= self.slots.len(), "every delivery has a slot of its own");
        DeliveryId { sequence, slot }
    }

    pub(super) fn get(&self, id: DeliveryId) -> Option<State> {
        match self.slots.get(id.slot) {
            Some(Slot::Taken { sequence, state }) if *sequence == id.sequence => Some(*state),
            _ => None,
        }
    }

    /// Changes the state of a delivery that has not ended.
    pub(super) fn set(&mut self, id: DeliveryId, new: State) {
        match self.slots.get_mut(id.slot) {
            Some(Slot::Taken { sequence, state }) if *sequence == id.sequence => *state = new,
            _ => debug_assert!(false, "{id} has ended"),
        }
    }

    /// Takes out a delivery that has not ended.
    pub(super) fn remove(&mut self, id: DeliveryId) {
        if self.get(id).is_none() {
            debug_assert!(false, "{id} has ended");
            return;
        }
        self.slots[id.slot] = Slot::Free { next: self.free };
        self.free = Some(id.slot);
        self.taken -= 1;
    }

    pub(super) const fn len(&self) -> usize {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_and_an_id_never() {
        let mut slots = Slots::new();
        let first = slots.insert(State::Stale);
        slots.remove(first);
        let second = slots.insert(State::Stale);
        assert_eq!((first.slot, slots.slots.len()), (second.slot, 1));
        assert!(first < second && slots.get(first).is_none() && slots.get(second).is_some());
    }

    #[test]
    fn a_delivery_that_stays_for_ever_does_not_keep_the_slots_of_others() {
        let mut slots = Slots::new();
        let stays = slots.insert(State::Stale);
        for _ in 0..1_000 {
            let pair = [slots.insert(State::Stale), slots.insert(State::Stale)];
            for id in pair {
                slots.remove(id);
            }
        }
        assert!(slots.get(stays).is_some());
        assert_eq!((slots.len(), slots.slots.len()), (1, 3));
    }
}
