//! The lease of hold queues: what keeps a hold alive for as long as a message waits in it.
//!
//! A hold queue has `x-expires`, twice its TTL, so that holds nobody needs any more go away. RabbitMQ counts
//! that time from the last declare; **a publish does not renew it**. A classic queue that expires *drops* its
//! messages, unseen by anyone, and a declare after that makes a new, empty queue and is answered as if
//! nothing had happened. So a confirm alone does not make a delayed message safe.
//!
//! [`HoldLeases`] is the book that one client keeps over the hold queues of one work queue. Every lease counts
//! from the moment its declare was *sent*: the broker handles it then or later, so the queue lives at least
//! until twice the TTL after it. A message waits for one TTL from when the broker took it, which is before its
//! confirm. Hence the rules, with [`margin`] for clocks that do not run equally fast:
//!
//! * **Declare** before a publish, unless the lease still has more than TTL + margin to run. Both may go back
//!   to back on one channel: the broker works in order, and does nothing after a declare it refused.
//! * **Safe** is a message whose confirm came before `declare sent + TTL - margin`: it leaves before the
//!   queue does.
//! * **Renewed**: a confirm that came later counts as safe after one more declare, if that is answered before
//!   `previous declare sent + 2 * TTL - margin`. Then it renewed the very queue that holds the message. An
//!   answer after that proves nothing.
//! * **Published again** is everything else, into a larger hold, before the original is acknowledged. The
//!   delay gets longer, never shorter, and the job may run twice, but not zero times. Every hold doubles the
//!   one before, so a publish finds one that outlasts the slowness of its confirm within 25 steps.
//! * **Looks ahead**: where confirms take long, [`HoldLeases::choose`] takes the larger hold at once. A confirm that
//!   took longer than [`SLOW_MAX`] counts as that: it tells of an outage that is over, and jobs of seconds must not
//!   wait for hours because an alarm lasted for hours.
//!
//! Instants may be early and must not be late: noting a declare when it is queued, rather than when its bytes
//! leave, makes the book more careful. Leases end with what they rest on. [`HoldLeases::clear`] is due when
//! the connection is a new one, and [`HoldLeases::void`] when the wall clock and the monotonic clock disagree about how
//! long the program slept. Where only the channel was closed, over a refused declare, [`HoldLeases::after_refusal`]
//! keeps what was answered before.
//!
//! The book allocates for a hold's first declare. From then on no call does, until the hold is forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::granularity::HoldTtl;
use super::grid::Grid;
use crate::time::Instant;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod model;
#[cfg(test)]
mod tests;

/// How many hold queues are kept track of; more only while declares of them are not answered. One that is forgotten is
/// declared again before its next publish.
pub const HOLDS_MAX: usize = 256;

/// The slowest confirm that [`HoldLeases::choose`] looks ahead to.
pub const SLOW_MAX: Duration = Duration::from_secs(10);

/// How much of a lease is not relied on: a quarter of the TTL and at least 50 ms (half, below 100 ms).
///
/// It covers a message that is released late (tens of milliseconds under load) and clocks that drift against
/// each other: RabbitMQ expires messages by its wall clock, which time services slew, and queues by a timer.
#[must_use]
pub fn margin(ttl: HoldTtl) -> Duration {
    let ttl = ttl.as_duration();
    (ttl / 4).max((ttl / 2).min(Duration::from_millis(50)))
}

/// The book of leases of one work queue's hold queues, on one channel of one connection.
///
/// **For expiring holds only.** A replicated hold is declared once on a connection and never expires, so that every
/// confirm is safe; this book would have its messages published again without need.
/// [`HoldBook`](super::HoldBook) is for either kind.
///
/// ```
/// use std::time::Duration;
/// use leveret_core::delay::{Confirmed, Granularity, HoldLeases, Lease};
/// use leveret_core::time::Instant;
///
/// let at = |ms| Instant::from_origin(Duration::from_millis(ms));
/// let mut leases = HoldLeases::new(Granularity::default());
/// let ttl = leases.choose(Granularity::default().step());
/// if leases.before_publish(at(0), ttl) == Lease::Declare {
///     leases.declare_sent(at(0), ttl);             // queue.declare
/// }
/// let cover = leases.publish_sent(at(0), ttl);     // basic.publish
/// leases.declare_ok(at(20), ttl);                  // queue.declare-ok
/// assert_eq!(leases.after_confirm(at(21), cover), Confirmed::Safe);
/// ```
///
/// A confirm that comes late is safe after one more declare, which proves that the queue is still the same:
///
/// ```
/// # use std::time::Duration;
/// # use leveret_core::delay::{Confirmed, Granularity, HoldLeases};
/// # use leveret_core::time::Instant;
/// # let at = |ms| Instant::from_origin(Duration::from_millis(ms));
/// # let mut leases = HoldLeases::new(Granularity::default());
/// let ttl = Granularity::default().step();
/// assert_eq!(ttl.as_millis(), 1_000);
/// leases.declare_sent(at(0), ttl);
/// let cover = leases.publish_sent(at(0), ttl);
/// leases.declare_ok(at(20), ttl);
///
/// let Confirmed::Renew(late) = leases.after_confirm(at(900), cover) else { panic!("later than 750 ms") };
/// leases.declare_sent(at(901), ttl);               // queue.declare, once more
/// leases.declare_ok(at(930), ttl);                 // queue.declare-ok, sooner than 1750 ms
/// assert_eq!(leases.after_declare_ok(at(930), late), Confirmed::Safe);
/// ```
#[derive(Clone, Debug)]
pub struct HoldLeases {
    grid: Grid,
    holds: BTreeMap<HoldTtl, Hold>,
    /// The number of the next declare, from 1. Numbers only grow, also past a `clear`.
    next: u64,
    /// Declares with a lower number rest on something that is gone.
    void_below: u64,
    /// How long confirms take: jumps up with a slow one, sinks slowly. At most [`SLOW_MAX`].
    confirm_time: Duration,
}

/// What a publish into a hold needs before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// A declare: the lease is too short, or there is none.
    Declare,
    /// Nothing: the lease outlasts the message.
    Covered,
}

/// The lease under which a message was published. Give it back with the confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    ttl: HoldTtl,
    declare: Declare,
    published: Instant,
}

impl Cover {
    /// The hold that the message went into.
    #[must_use]
    pub const fn ttl(&self) -> HoldTtl {
        self.ttl
    }
}

/// A message whose confirm came too late for its lease to be relied on, for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    cover: Cover,
    confirmed: Instant,
}

impl Late {
    /// The hold that the message went into.
    #[must_use]
    pub const fn ttl(&self) -> HoldTtl {
        self.cover.ttl
    }
}

/// What a confirm is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// The message leaves its hold before the hold can expire: the original may be acknowledged.
    Safe,
    /// Declare the hold once more, now, and ask [`HoldLeases::after_declare_ok`] when that is answered.
    Renew(Late),
    /// A declare is on its way: ask [`HoldLeases::after_declare_ok`] when the next one is answered.
    Wait(Late),
    /// The message may be lost: publish it again, into this larger hold.
    PublishAgain(HoldTtl),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Declare {
    number: u64,
    sent: Instant,
}

#[derive(Clone, Debug, Default)]
struct Hold {
    /// Declares that are known to have met one and the same queue, without it expiring in between: from the
    /// first one's number on, up to the last.
    life: Option<Life>,
    /// Declares that were sent and not answered, oldest first. Their number is bounded by the publishes that
    /// the caller has in flight: each goes before one, or renews the hold of one.
    unanswered: VecDeque<Declare>,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    first: u64,
    last: Declare,
}

impl HoldLeases {
    /// An empty book. Larger holds are those of the grid; of a granularity, its whole steps.
    #[must_use]
    pub fn new(grid: impl Into<Grid>) -> Self {
        let grid = grid.into();
        Self { grid, holds: BTreeMap::new(), next: 1, void_below: 1, confirm_time: Duration::ZERO }
    }

    /// The hold for a message that should wait for `ttl`: that one, or a larger one where confirms have lately
    /// taken so long that its lease would run out under them.
    #[must_use]
    pub fn choose(&self, mut ttl: HoldTtl) -> HoldTtl {
        while self.confirm_time.saturating_mul(2) > reliable(ttl) && ttl < self.grid.larger(ttl) {
            ttl = self.grid.larger(ttl);
        }
        ttl
    }

    /// What a publish at `now` into the hold `ttl` needs before it.
    #[must_use]
    pub fn before_publish(&self, now: Instant, ttl: HoldTtl) -> Lease {
        let confirmed_by = now + self.confirm_time;
        match self.newest(ttl) {
            Some(declare) if confirmed_by < declare.sent + reliable(ttl) => Lease::Covered,
            _ => Lease::Declare,
        }
    }

    /// Notes that a declare of the hold `ttl` is sent.
    pub fn declare_sent(&mut self, now: Instant, ttl: HoldTtl) {
        self.make_room(now, ttl);
        let declare = Declare { number: self.next, sent: now };
        self.next += 1;
        self.holds.entry(ttl).or_default().unanswered.push_back(declare);
    }

    /// Notes that the oldest unanswered declare of the hold `ttl` was answered with `declare-ok`.
    pub fn declare_ok(&mut self, now: Instant, ttl: HoldTtl) {
        let Some(hold) = self.holds.get_mut(&ttl) else { return };
        let Some(declare) = hold.unanswered.pop_front() else { return };
        if declare.number < self.void_below {
            return;
        }
        let first = match hold.life {
            Some(life) if now < life.last.sent + renewable(ttl) => life.first,
            _ => declare.number,
        };
        hold.life = Some(Life { first, last: declare });
    }

    /// Notes that a message is published into the hold `ttl`, after the declare that
    /// [`before_publish`](Self::before_publish) asked for. Without one, its confirm will be worth nothing.
    #[must_use]
    pub fn publish_sent(&self, now: Instant, ttl: HoldTtl) -> Cover {
        // Number 0 is below `void_below` for ever.
        let none = Declare { number: 0, sent: Instant::ORIGIN };
        let declare = self.newest(ttl).unwrap_or(none);
        Cover { ttl, declare, published: now }
    }

    /// What the confirm of a message is worth. Report the answers to earlier declares first.
    #[must_use]
    pub fn after_confirm(&mut self, now: Instant, cover: Cover) -> Confirmed {
        let took = now.saturating_duration_since(cover.published).min(SLOW_MAX);
        self.confirm_time = match self.confirm_time.checked_sub(took) {
            Some(excess) => self.confirm_time - excess / 16,
            None => took,
        };
        self.judge(now, Late { cover, confirmed: now })
    }

    /// What the confirm is worth now that a declare of its hold was answered.
    #[must_use]
    pub fn after_declare_ok(&self, now: Instant, late: Late) -> Confirmed {
        self.judge(now, late)
    }

    /// Notes that a message came back unroutable: its hold is gone, whatever the lease says.
    ///
    /// The answer is the hold to publish it into again.
    pub fn after_return(&mut self, cover: Cover) -> HoldTtl {
        if let Some(hold) = self.holds.get_mut(&cover.ttl) {
            hold.life = hold.life.filter(|life| life.last.number > cover.declare.number);
        }
        self.choose(cover.ttl)
    }

    /// Notes that a declare of the hold `ttl` was refused, which closed the channel.
    ///
    /// That hold has no lease. The others keep the leases that were answered: a lease belongs to the queue and not
    /// to the channel. A declare without an answer was perhaps not executed, so it counts for nothing, and neither
    /// does a message that has not been called safe: publish it again.
    pub fn after_refusal(&mut self, ttl: HoldTtl) {
        self.holds.remove(&ttl);
        self.void_below = self.next;
        let renumbered = self.next;
        self.holds.retain(|_, hold| {
            hold.unanswered.clear();
            let Some(life) = &mut hold.life else { return false };
            life.first = renumbered;
            life.last.number = renumbered;
            true
        });
        self.next += 1;
    }

    /// Forgets all leases, and makes every confirm that is still to come worth nothing: the channel has ended,
    /// and no declare of it will be answered. How long confirms take is remembered.
    pub fn clear(&mut self) {
        self.holds.clear();
        self.void_below = self.next;
    }

    /// As [`clear`](Self::clear) on a channel that goes on: what was declared on it will still be answered, and
    /// such an answer must not be taken for that of a later declare.
    pub fn void(&mut self) {
        self.holds.retain(|_, hold| {
            hold.life = None;
            !hold.unanswered.is_empty()
        });
        self.void_below = self.next;
    }

    fn judge(&self, now: Instant, late: Late) -> Confirmed {
        let Late { cover: Cover { ttl, declare, .. }, confirmed } = late;
        let again = Confirmed::PublishAgain(self.choose(self.grid.larger(ttl)));
        if declare.number < self.void_below {
            return again;
        }
        let safe_under = |declare: Declare| confirmed < declare.sent + reliable(ttl);
        if safe_under(declare) {
            return Confirmed::Safe;
        }
        let Some(hold) = self.holds.get(&ttl) else { return again };
        let Some(life) = hold.life.filter(|life| life.first <= declare.number) else { return again };
        if safe_under(life.last) {
            return Confirmed::Safe;
        }
        // Nothing but a declare that meets this life of the queue can help.
        if now >= life.last.sent + renewable(ttl) {
            again
        } else if hold.unanswered.iter().any(|declare| safe_under(*declare)) {
            Confirmed::Wait(late)
        } else {
            Confirmed::Renew(late)
        }
    }

    /// The last declare of a hold that counts.
    fn newest(&self, ttl: HoldTtl) -> Option<Declare> {
        let hold = self.holds.get(&ttl)?;
        let newest = hold.unanswered.back().copied().or(hold.life.map(|life| life.last));
        newest.filter(|declare| declare.number >= self.void_below)
    }

    /// Keeps the book bounded: forgets first what has expired, then what expires next. Holds with a declare on
    /// its way stay, or its answer would be taken for another's.
    fn make_room(&mut self, now: Instant, ttl: HoldTtl) {
        if self.holds.len() < HOLDS_MAX || self.holds.contains_key(&ttl) {
            return;
        }
        let end = |ttl: &HoldTtl, life: Life| life.last.sent + ttl.as_duration() * 2;
        self.holds.retain(|ttl, hold| {
            !hold.unanswered.is_empty() || hold.life.is_some_and(|life| now < end(ttl, life))
        });
        let idle = self.holds.iter().filter(|(_, hold)| hold.unanswered.is_empty());
        let first = idle.filter_map(|(ttl, hold)| Some((end(ttl, hold.life?), *ttl))).min();
        if let (Some((_, first)), true) = (first, self.holds.len() >= HOLDS_MAX) {
            self.holds.remove(&first);
        }
    }
}

/// How long after its declare was sent a hold takes messages that leave it in time.
fn reliable(ttl: HoldTtl) -> Duration {
    ttl.as_duration() - margin(ttl)
}

/// How long after a declare was sent the answer to the next one proves that the queue lived through both.
fn renewable(ttl: HoldTtl) -> Duration {
    ttl.as_duration() * 2 - margin(ttl)
}
