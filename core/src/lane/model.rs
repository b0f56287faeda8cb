//! The rules of lanes once more, as plainly as they can be written, and a run that holds the real ones to them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Full, LanePlan, Lanes, Started, Turn};

/// What may happen to the lanes of a subscription.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// A delivery arrives, with a key of one byte or none.
    Offer(Option<u8>),
    /// One of those that run is done; counted from the one that has run longest, around the end.
    Finish(usize),
    /// The link ends.
    LinkLost,
    /// The consumer that every other delivery came from is cancelled.
    Cancelled,
}

/// A delivery: a number that counts up, and its key.
type Delivery = (u32, Option<u8>);

/// Lanes under test, with what they must do beside them.
#[derive(Debug)]
pub(crate) struct Run {
    lanes: Lanes<Delivery>,
    /// What waits in order of arrival, with the lane that it must run in.
    waiting: Vec<(Delivery, Option<u16>)>,
    /// What runs in order of its start.
    running: Vec<(Delivery, Turn)>,
    rotation: u16,
    arrived: u32,
    /// The last delivery of each key that has started.
    latest: BTreeMap<u8, u32>,
    /// Every delivery that has started, was taken out or was refused.
    seen: BTreeSet<u32>,
    /// What has started in which lane, in order.
    trace: Vec<(u32, u16)>,
}

impl Run {
    pub(crate) fn new(plan: LanePlan) -> Self {
        Self {
            lanes: Lanes::new(plan),
            waiting: Vec::new(),
            running: Vec::new(),
            rotation: 0,
            arrived: 0,
            latest: BTreeMap::new(),
            seen: BTreeSet::new(),
            trace: Vec::new(),
        }
    }

    /// Does it to both, and compares.
    ///
    /// # Panics
    ///
    /// Where they differ, or a rule is broken.
    pub(crate) fn step(&mut self, operation: Operation) {
        match operation {
            Operation::Offer(key) => self.offer(key),
            Operation::Finish(which) => {
                if !self.running.is_empty() {
                    self.finish(which % self.running.len());
                }
            }
            Operation::LinkLost => {
                let taken = self.lanes.take_waiting();
                self.taken(&taken, |_| true);
            }
            Operation::Cancelled => {
                let odd = |delivery: &Delivery| delivery.0 % 2 == 1;
                let taken = self.lanes.take_waiting_if(odd);
                self.taken(&taken, odd);
            }
        }
        assert_eq!(self.lanes.waiting(), self.waiting.len());
        assert_eq!(self.lanes.running(), self.running.len());
        assert_eq!(self.lanes.is_idle(), self.running.is_empty());
        for (delivery, lane) in &self.waiting {
            let could_run = lane.map_or(self.running.len() < self.count(), |lane| self.is_free(lane));
            assert!(!could_run, "{delivery:?} waits and a lane for it has nothing to do");
        }
    }

    /// Finishes whatever runs until nothing does; what has started in which lane, in order.
    ///
    /// # Panics
    ///
    /// Where a delivery was lost.
    pub(crate) fn end(mut self) -> Vec<(u32, u16)> {
        while !self.running.is_empty() {
            self.step(Operation::Finish(0));
        }
        assert!(self.waiting.is_empty(), "they wait for ever: {:?}", self.waiting);
        assert!(self.seen.iter().copied().eq(0..self.arrived), "some were lost: {:?}", self.seen);
        self.trace
    }

    fn count(&self) -> usize {
        usize::from(self.lanes.plan().lanes().get())
    }

    fn is_free(&self, lane: u16) -> bool {
        self.running.iter().all(|(_, turn)| turn.lane().get() != lane)
    }

    fn offer(&mut self, key: Option<u8>) {
        let delivery = (self.arrived, key);
        self.arrived += 1;
        let plan = self.lanes.plan();
        let own = key.map(|key| plan.lanes().lane_of(&[key]).get());
        let free = match own {
            Some(lane) => Some(lane).filter(|lane| self.is_free(*lane)),
            None => {
                let count = plan.lanes().get();
                let mut in_rotation = (self.rotation..count).chain(0..self.rotation);
                let free = in_rotation.find(|lane| self.is_free(*lane));
                if let Some(lane) = free {
                    self.rotation = (lane + 1) % count;
                }
                free
            }
        };
        let is_full = self.waiting.len() == usize::from(plan.prefetch().get());

        let bytes = key.map(|key| [key]);
        match self.lanes.offer(bytes.as_ref().map(<[u8; 1]>::as_slice), delivery) {
            Ok(Some(started)) => {
                assert_eq!((started.item, Some(started.turn.lane().get())), (delivery, free));
                self.started(started);
            }
            Ok(None) => {
                assert!(free.is_none() && !is_full, "{delivery:?} waits: free {free:?}, full {is_full}");
                self.waiting.push((delivery, own));
            }
            Err(Full { item, waiting }) => {
                assert!(free.is_none() && is_full, "{delivery:?} is refused: free {free:?}, full {is_full}");
                assert_eq!((item, waiting), (delivery, self.waiting.len()));
                self.see(item);
            }
        }
    }

    fn finish(&mut self, which: usize) {
        let (_, turn) = self.running.remove(which);
        let lane = turn.lane().get();
        let next = self.waiting.iter().position(|(_, own)| own.is_none_or(|own| own == lane));
        let next = next.map(|next| self.waiting.remove(next).0);
        let answer = self.lanes.finish(turn);
        let answered = answer.as_ref().map(|started| (started.item, started.turn.lane().get()));
        assert_eq!(answered, next.map(|delivery| (delivery, lane)));
        if let Some(started) = answer {
            self.started(started);
        }
    }

    fn started(&mut self, started: Started<Delivery>) {
        let Started { turn, item } = started;
        self.see(item);
        let (number, key) = item;
        if let Some(key) = key {
            assert!(self.running.iter().all(|((_, other), _)| *other != Some(key)), "{key} runs already");
            let earlier = self.latest.insert(key, number);
            assert!(earlier < Some(number), "{item:?} overtook {earlier:?}");
        }
        self.trace.push((number, turn.lane().get()));
        self.running.push((item, turn));
    }

    fn see(&mut self, delivery: Delivery) {
        assert!(self.seen.insert(delivery.0), "{delivery:?} twice");
    }

    fn taken(&mut self, taken: &[Delivery], wanted: impl Fn(&Delivery) -> bool) {
        let (out, kept): (Vec<_>, Vec<_>) =
            self.waiting.drain(..).partition(|(delivery, _)| wanted(delivery));
        self.waiting = kept;
        assert!(out.iter().map(|(delivery, _)| delivery).eq(taken), "{taken:?} instead of {out:?}");
        for delivery in taken {
            self.see(*delivery);
        }
    }
}
