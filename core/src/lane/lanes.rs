//! What may run: the scheduler of one subscription's lanes.

use std::fmt;

use super::count::{Lane, LanePlan};
use super::slots::{List, Slots};

#[cfg(test)]
mod tests;

/// The lanes of one subscription, with the deliveries that wait for them.
///
/// [`offer`](Self::offer) takes a delivery and answers with it where it may run at once; [`finish`](Self::finish) ends
/// a turn and answers with what its lane runs next. The answers depend on nothing but the calls and their order.
///
/// A delivery with a key waits for the lane of its key. One without waits for any: it runs in the next idle lane in
/// rotation, so that no lane is worn by all of them, and where none is idle, in the first that becomes free. It never
/// waits behind one slow handler while another lane has nothing to do. A lane that becomes free takes the oldest of
/// both, so neither kind starves the other.
///
/// # Links that end
///
/// The lanes outlive the link that their deliveries came from. When it ends, what waits is stale and is taken out with
/// [`take_waiting`](Self::take_waiting). The turns go on, as their handlers do: the broker delivers again what they
/// work on, and that must not run beside them. So the key's next delivery waits for the handler of the earlier one.
/// After a consumer was cancelled the same holds for what it was sent ([`take_waiting_if`](Self::take_waiting_if)).
///
/// # Memory
///
/// All of it is taken at construction: `prefetch` slots of one `T` and 24 bytes, and 8 bytes for every lane. Offering
/// and finishing allocate nothing. The slots are for what *waits*, so a new consumer's whole prefetch fits beside the
/// turns of an earlier link.
#[derive(Debug)]
pub struct Lanes<T> {
    plan: LanePlan,
    /// What waits for each lane. A lane for which something waits is not idle.
    waiting: Box<[List]>,
    /// What waits for any lane. No lane is idle while there is something.
    waiting_for_any: List,
    slots: Slots<T>,
    idle: IdleLanes,
    /// Where the next delivery without a key begins to look for an idle lane.
    rotation: u16,
}

/// A delivery that runs, with the turn that it has in its lane.
#[derive(Debug)]
#[must_use = "the lane waits until the turn is finished"]
pub struct Started<T> {
    /// To be given back when it is over.
    pub turn: Turn,
    /// The delivery.
    pub item: T,
}

/// The right to run in one lane, held by one delivery at a time. [`Lanes::finish`] takes it back.
///
/// A turn that is dropped instead keeps its lane for ever. So whoever runs a handler finishes its turn also when the
/// handler panics or is given up. A turn belongs to the [`Lanes`] that it came from.
#[derive(Debug)]
#[must_use = "the lane waits until the turn is finished"]
pub struct Turn(Lane);

impl Turn {
    /// The lane, for logs and metrics.
    #[must_use]
    pub const fn lane(&self) -> Lane {
        self.0
    }
}

/// As many deliveries wait as the prefetch count allows, so the broker has sent more than it was asked for, or what a
/// cancelled consumer was sent has not been taken out. It gives the delivery back, and nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T> {
    /// The delivery that was offered.
    pub item: T,
    /// How many wait.
    pub waiting: usize,
}

impl<T> fmt::Debug for Full<T> {
    // The delivery may hold anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} deliveries wait for their lanes, as many as the prefetch count allows: hand this one back to the broker",
            self.waiting
        )
    }
}

impl<T> std::error::Error for Full<T> {}

impl<T> Lanes<T> {
    /// Lanes with nothing to do.
    #[must_use]
    pub fn new(plan: LanePlan) -> Self {
        let lanes = plan.lanes().get();
        Self {
            plan,
            waiting: vec![List::default(); usize::from(lanes)].into(),
            waiting_for_any: List::default(),
            slots: Slots::new(plan.prefetch().get()),
            idle: IdleLanes::all(lanes),
            rotation: 0,
        }
    }

    /// Takes a delivery that has arrived, with the bytes of its key if it has one. `Some` is to run at once; `None`
    /// means that it waits, and that a later [`finish`](Self::finish) answers with it.
    ///
    /// # Errors
    ///
    /// [`Full`] when `prefetch` deliveries wait already.
    pub fn offer(&mut self, key: Option<&[u8]>, item: T) -> Result<Option<Started<T>>, Full<T>> {
        let own = key.map(|key| self.plan.lanes().lane_of(key));
        let free = match own {
            Some(lane) => Some(lane).filter(|lane| self.idle.contains(*lane)),
            None => self.next_in_rotation(),
        };
        if let Some(lane) = free {
            self.idle.remove(lane);
            return Ok(Some(Started { turn: Turn(lane), item }));
        }
        let list = match own {
            Some(lane) => &mut self.waiting[lane.index()],
            None => &mut self.waiting_for_any,
        };
        match self.slots.push(list, item) {
            Ok(()) => Ok(None),
            Err(item) => Err(Full { item, waiting: self.slots.used() }),
        }
    }

    /// Ends a turn, and says what its lane runs next. `None`: it is idle.
    ///
    /// A turn is over when the outcome of its delivery is recorded and, where there is one, its successor is queued
    /// for publishing. Waiting for the successor's confirm as well would let a slow broker stop the lane for nothing:
    /// a successor takes its place in the order anew in any case.
    ///
    /// A turn of other lanes, where this one is idle or does not exist, changes nothing.
    pub fn finish(&mut self, turn: Turn) -> Option<Started<T>> {
        let lane = turn.lane();
        let own = self.waiting.get_mut(lane.index()).filter(|_| !self.idle.contains(lane))?;
        let any = &mut self.waiting_for_any;
        let next = match (self.slots.oldest(*own), self.slots.oldest(*any)) {
            (Some(own_arrived), Some(any_arrived)) if own_arrived < any_arrived => self.slots.pop(own),
            (_, Some(_)) => self.slots.pop(any),
            (_, None) => self.slots.pop(own),
        };
        match next {
            Some(item) => Some(Started { turn, item }),
            None => {
                self.idle.insert(lane);
                None
            }
        }
    }

    /// Takes out what waits, in order of arrival: the link has ended, and these deliveries with it. What runs keeps
    /// its turn.
    #[must_use = "a delivery is handed back, or known to be stale"]
    pub fn take_waiting(&mut self) -> Vec<T> {
        self.take_waiting_if(|_| true)
    }

    /// Takes out what waits and is `wanted`, in order of arrival, such as the deliveries of a consumer that was
    /// cancelled. The rest keeps its order. Linear in what waits, apart from sorting.
    #[must_use = "a delivery is handed back, or known to be stale"]
    pub fn take_waiting_if(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        // All are asked before any moves: where `wanted` panics, everything waits as before.
        let lists = self.waiting.iter().chain([&self.waiting_for_any]);
        let items = lists.flat_map(|list| self.slots.iter(*list));
        let mut chosen: Vec<u64> =
            items.filter(|(_, item)| wanted(item)).map(|(arrival, _)| arrival).collect();
        chosen.sort_unstable();
        let mut taken = Vec::with_capacity(chosen.len());
        for list in self.waiting.iter_mut().chain([&mut self.waiting_for_any]) {
            self.slots.take(list, |arrival| chosen.binary_search(&arrival).is_ok(), &mut taken);
        }
        taken.sort_unstable_by_key(|(arrival, _)| *arrival);
        taken.into_iter().map(|(_, item)| item).collect()
    }

    /// The number of lanes, and the prefetch count.
    #[must_use]
    pub const fn plan(&self) -> LanePlan {
        self.plan
    }

    /// How many deliveries wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.slots.used()
    }

    /// How many turns are out: deliveries that run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.waiting.len() - self.idle.count()
    }

    /// Whether nothing runs and, therefore, nothing waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.running() == 0
    }

    fn next_in_rotation(&mut self) -> Option<Lane> {
        let lane = self.idle.first_from(self.rotation)?;
        self.rotation = (lane.0 + 1) % self.plan.lanes().get();
        Some(lane)
    }
}

/// A set of lanes, one bit each.
#[derive(Debug)]
struct IdleLanes(Box<[u64]>);

impl IdleLanes {
    fn all(lanes: u16) -> Self {
        let mut idle = Self(vec![0; usize::from(lanes.div_ceil(64))].into());
        (0..lanes).for_each(|lane| idle.insert(Lane(lane)));
        idle
    }

    fn contains(&self, lane: Lane) -> bool {
        self.0[lane.index() / 64] & Self::bit(lane) != 0
    }

    fn insert(&mut self, lane: Lane) {
        self.0[lane.index() / 64] |= Self::bit(lane);
    }

    fn remove(&mut self, lane: Lane) {
        self.0[lane.index() / 64] &= !Self::bit(lane);
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The first lane of the set at or after `start`, or else the first of all.
    fn first_from(&self, start: u16) -> Option<Lane> {
        let (word, bit) = (start / 64, start % 64);
        let rest = self.0[usize::from(word)] >> bit << bit;
        let at_or_after = lowest(word, rest).or_else(|| self.first_of_words(word + 1));
        at_or_after.or_else(|| self.first_of_words(0))
    }

    fn first_of_words(&self, start: u16) -> Option<Lane> {
        (start..).zip(&self.0[usize::from(start)..]).find_map(|(word, bits)| lowest(word, *bits))
    }

    const fn bit(lane: Lane) -> u64 {
        1 << (lane.0 % 64)
    }
}

/// The lane of the lowest bit that is set in a word of the set.
fn lowest(word: u16, bits: u64) -> Option<Lane> {
    let bit = u16::try_from(bits.trailing_zeros()).expect("at most 64");
    (bit < 64).then(|| Lane(word * 64 + bit))
}
