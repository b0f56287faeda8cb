//! Deliveries of one channel that are not settled, and which acknowledgements leave as one.
//!
//! `basic.ack` with `multiple` settles everything up to its tag, and RabbitMQ answers 406 to a tag that is not
//! outstanding, also where lower ones are. So this is the server's set of outstanding tags, as it will be when
//! it reads what was handed out last:
//!
//! ```text
//! Outstanding --settle--> Settling --handed out--> Gone
//! ```
//!
//! A settlement of what is not outstanding is refused here. Acknowledgements are only noted; when their turn to
//! be sent comes, those from the front of the set on become one `multiple`, and those behind a delivery that is
//! still in hand leave one by one.
//!
//! Tags grow by one with each delivery of a channel, so a tag is found where its distance from the first says;
//! where tags are missing in between, by a binary search. Each delivery enters once and leaves once. Memory: 16
//! bytes for each outstanding delivery, twice that at most where they are far apart.

use std::collections::VecDeque;

use crate::wire::method::Settlement;

#[cfg(test)]
mod tests;

/// So many slots that are gone are kept before the others are moved together.
const MAX_GONE: usize = 64;

/// The tag of a settlement is not that of a delivery in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotOutstanding;

/// What a settlement means for what is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing: there was nothing to settle.
    Nothing,
    /// So many acknowledgements more, which [`Unacked::take_acks`] hands out.
    Acks(usize),
    /// This very frame.
    Frame { delivery_tag: u64, settlement: Settlement },
}

/// The deliveries of a channel that are not settled. See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Unacked {
    /// In the order of the tags.
    slots: VecDeque<Slot>,
    /// How many of them are gone.
    gone: usize,
    /// The tags of acknowledgements that were not handed out, in the order in which they were asked for.
    due: VecDeque<u64>,
    /// The highest tag that came.
    last: u64,
    /// The highest tag that the application was given.
    taken: u64,
    /// Nothing up to this tag can be settled any more.
    closed: u64,
    /// Recovers that were not answered. What comes before their answers comes again.
    recovering: usize,
    /// On a channel with transactions: what was settled since the last commit or rollback.
    transaction: Option<Vec<u64>>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    tag: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Outstanding,
    /// Its settlement is queued.
    Settling,
    /// Its acknowledgement is being handed out.
    Leaving,
    /// The server has been told, or will be before anything that is queued later.
    Gone,
}

impl Unacked {
    /// Takes note of a delivery that has come. False if its tag is not above those before, so that settlements
    /// of the two could not be told apart.
    pub(super) fn delivered(&mut self, tag: u64, must_settle: bool) -> bool {
        if tag <= self.last {
            return false;
        }
        self.last = tag;
        if must_settle && self.recovering == 0 {
            self.slots.push_back(Slot { tag, state: State::Outstanding });
        }
        true
    }

    /// The application was given a delivery, and with it the right to settle it.
    pub(super) fn taken(&mut self, tag: u64) {
        self.taken = self.taken.max(tag);
    }

    /// Settles a delivery, or with `multiple` all up to it that the application was given; all of those where
    /// the tag is 0 (AMQP 0-9-1, 1.8.3.13).
    pub(super) fn settle(&mut self, tag: u64, settlement: Settlement) -> Result<Due, NotOutstanding> {
        let multiple = settlement.is_multiple();
        if !(multiple && tag == 0 || self.is_open(tag)) {
            return Err(NotOutstanding);
        }
        if !multiple {
            self.leave_open(tag);
            return Ok(match settlement {
                Settlement::Ack { .. } if self.transaction.is_none() => {
                    self.due.push_back(tag);
                    Due::Acks(1)
                }
                _ => Due::Frame { delivery_tag: tag, settlement },
            });
        }
        let up_to = if tag == 0 { self.taken } else { tag };
        let (mut count, mut top) = (0, 0);
        let gathers = matches!(settlement, Settlement::Ack { .. }) && self.transaction.is_none();
        let from = self.slots.partition_point(|slot| slot.tag <= self.closed);
        for index in from..self.slots.len() {
            let Slot { tag, state } = self.slots[index];
            if tag > up_to {
                break;
            }
            if state == State::Outstanding {
                (count, top) = (count + 1, tag);
                self.leave_open_at(index);
                if gathers {
                    self.due.push_back(tag);
                }
            }
        }
        self.closed = self.closed.max(up_to);
        self.tidy();
        Ok(match count {
            0 => Due::Nothing,
            _ if gathers => Due::Acks(count),
            _ => Due::Frame { delivery_tag: top, settlement },
        })
    }

    /// Hands out the `count` acknowledgements that were asked for first, in as few frames as the set allows:
    /// tag and `multiple` of each.
    pub(super) fn take_acks(&mut self, count: usize, mut put: impl FnMut(u64, bool)) {
        debug_assert!(count <= self.due.len(), "more acknowledgements leave than were asked for");
        if self.transaction.is_some() {
            self.due.drain(..count).for_each(|tag| put(tag, false));
            return;
        }
        for index in 0..count {
            if let Some(at) = self.find(self.due[index]) {
                self.slots[at].state = State::Leaving;
            }
        }
        let (mut covered, mut top) = (0, 0);
        while let Some(&Slot { tag, state }) = self.slots.front() {
            match state {
                State::Leaving => (covered, top) = (covered + 1, tag),
                State::Gone => self.gone -= 1,
                State::Outstanding | State::Settling => break,
            }
            self.slots.pop_front();
        }
        if covered > 0 {
            put(top, covered > 1);
        }
        for _ in 0..count {
            let Some(tag) = self.due.pop_front() else { break };
            if let Some(at) = self.find(tag) {
                self.go_at(at);
                put(tag, false);
            }
        }
        self.tidy();
    }

    /// A frame that [`Unacked::settle`] asked for has been handed out.
    pub(super) fn sent(&mut self, tag: u64, settlement: Settlement) {
        if self.transaction.is_some() {
            return;
        }
        if !settlement.is_multiple() {
            if let Some(at) = self.find(tag) {
                self.go_at(at);
            }
        } else {
            // Whatever was not settled by it had been handed out before: they leave in order.
            while let Some(&slot) = self.slots.front().filter(|slot| slot.tag <= tag) {
                debug_assert!(slot.state != State::Outstanding, "a multiple covers what is not settled");
                self.gone -= usize::from(slot.state == State::Gone);
                self.slots.pop_front();
            }
        }
        self.tidy();
    }

    /// Everything in hand is going to come again, under other tags.
    pub(super) fn recover(&mut self) {
        self.recovering += 1;
        self.closed = self.last;
        if self.transaction.is_some() {
            self.clear();
        }
    }

    /// A recover has been handed out: the server has nothing outstanding after it.
    pub(super) fn recover_sent(&mut self) {
        if self.transaction.is_none() {
            self.clear();
        }
    }

    /// A recover was answered: what comes from now on is to be settled.
    pub(super) fn recovered(&mut self) {
        self.recovering = self.recovering.saturating_sub(1);
    }

    /// From now on settlements wait for a commit, and a rollback takes them back. They are not merged.
    pub(super) fn begin_transactions(&mut self) {
        if self.transaction.is_none() {
            let closed = self.closed;
            self.slots.retain(|slot| slot.state == State::Outstanding && slot.tag > closed);
            self.gone = 0;
            self.transaction = Some(Vec::new());
        }
    }

    /// What was settled stays so.
    pub(super) fn commit(&mut self) {
        if let Some(settled) = &mut self.transaction {
            settled.clear();
        }
    }

    /// What was settled since the last commit is outstanding again, under the same tags.
    pub(super) fn roll_back(&mut self) {
        let Some(settled) = &mut self.transaction else { return };
        let again = settled.drain(..).map(|tag| Slot { tag, state: State::Outstanding });
        self.slots.retain(|slot| slot.state == State::Outstanding);
        self.slots.extend(again);
        self.slots.make_contiguous().sort_unstable_by_key(|slot| slot.tag);
        self.gone = 0;
        self.closed = 0;
    }

    fn is_open(&self, tag: u64) -> bool {
        let outstanding = |at: usize| self.slots[at].state == State::Outstanding;
        tag > self.closed && tag <= self.taken && self.find(tag).is_some_and(outstanding)
    }

    fn leave_open(&mut self, tag: u64) {
        if let Some(at) = self.find(tag) {
            self.leave_open_at(at);
        }
        self.tidy();
    }

    fn leave_open_at(&mut self, at: usize) {
        if let Some(settled) = &mut self.transaction {
            settled.push(self.slots[at].tag);
            self.go_at(at);
        } else {
            self.slots[at].state = State::Settling;
        }
    }

    fn go_at(&mut self, at: usize) {
        self.slots[at].state = State::Gone;
        self.gone += 1;
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.gone = 0;
    }

    /// Drops what is gone: at the front at once, elsewhere when it is more than half.
    fn tidy(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.state == State::Gone) {
            self.slots.pop_front();
            self.gone -= 1;
        }
        if self.gone > MAX_GONE && self.gone > self.slots.len() / 2 {
            self.slots.retain(|slot| slot.state != State::Gone);
            self.gone = 0;
        }
    }

    fn find(&self, tag: u64) -> Option<usize> {
        let first = self.slots.front()?.tag;
        let distance = usize::try_from(tag.checked_sub(first)?).ok()?;
        if self.slots.get(distance).is_some_and(|slot| slot.tag == tag) {
            return Some(distance);
        }
        self.slots.binary_search_by_key(&tag, |slot| slot.tag).ok()
    }
}
