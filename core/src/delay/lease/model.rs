//! A broker with hold queues and a client that goes by the book, in virtual time: what the rules of
//! [`HoldLeases`] are checked against.
//!
//! As RabbitMQ does it: a declare renews the queue or makes a new, empty one; a publish renews nothing; expired
//! messages leave from the head, a little late; a queue that expires drops the rest without a word. When the
//! broker handles a request and the client reads a reply is for the caller to choose; their order is not.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{Confirmed, Cover, Granularity, HoldLeases, HoldTtl, Late, Lease};
use crate::time::Instant;

/// The client, the broker, and what is on its way between them.
#[derive(Debug)]
pub(crate) struct World {
    leases: HoldLeases,
    /// Whether the client takes a larger hold where confirms are slow. It must be right without, too.
    looks_ahead: bool,
    /// The delay of every job.
    jobs: Vec<HoldTtl>,
    copies: Vec<Published>,
    /// Copies that were confirmed late, until a declare is answered.
    late: Vec<(usize, Late)>,
    requests: VecDeque<Request>,
    replies: VecDeque<Reply>,
    holds: BTreeMap<HoldTtl, Hold>,
    /// How much further the broker's clock is than the client's, which stood still as the machine slept.
    slept: Duration,
}

/// One message that was published for a job.
#[derive(Clone, Debug)]
struct Published {
    job: usize,
    /// By the broker's clock, as the next.
    at: Instant,
    /// When it left its hold for the work queue; never if the hold expired first.
    released: Option<Instant>,
    safe: bool,
}

#[derive(Clone, Copy, Debug)]
enum Request {
    Declare(HoldTtl),
    Publish(usize, Cover),
}

#[derive(Clone, Copy, Debug)]
enum Reply {
    DeclareOk(HoldTtl),
    Confirm(usize, Cover),
    Return(usize, Cover),
}

#[derive(Debug)]
struct Hold {
    expires: Instant,
    messages: VecDeque<(usize, Instant)>,
}

impl World {
    pub(crate) const fn new(granularity: Granularity, looks_ahead: bool) -> Self {
        Self {
            leases: HoldLeases::new(granularity),
            looks_ahead,
            jobs: Vec::new(),
            copies: Vec::new(),
            late: Vec::new(),
            requests: VecDeque::new(),
            replies: VecDeque::new(),
            holds: BTreeMap::new(),
            slept: Duration::ZERO,
        }
    }

    /// How many requests the broker has not handled.
    pub(crate) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// How many replies the client has not read.
    pub(crate) fn replies(&self) -> usize {
        self.replies.len()
    }

    /// How many messages were published for all jobs.
    #[cfg(test)]
    pub(crate) const fn published(&self) -> usize {
        self.copies.len()
    }

    /// The client publishes one more job.
    pub(crate) fn job(&mut self, now: Instant, ttl: HoldTtl) {
        self.jobs.push(ttl);
        self.publish(now, self.jobs.len() - 1, ttl);
    }

    /// The broker handles the oldest request, if there is one. A message that it takes is released `overdue`
    /// after its time.
    pub(crate) fn broker_handles(&mut self, now: Instant, overdue: Duration) {
        match self.requests.pop_front() {
            Some(Request::Declare(ttl)) => {
                self.declare(now, ttl);
                self.replies.push_back(Reply::DeclareOk(ttl));
            }
            Some(Request::Publish(copy, cover)) => {
                let now = now + self.slept;
                self.advance(now, cover.ttl());
                let Some(hold) = self.holds.get_mut(&cover.ttl()) else {
                    self.replies.push_back(Reply::Return(copy, cover));
                    return;
                };
                // Released from the head: not before the one in front of it.
                let front = hold.messages.back().map_or(Instant::ORIGIN, |(_, leaves)| *leaves);
                let due = (now + cover.ttl().as_duration()).max(front.saturating_sub(overdue));
                hold.messages.push_back((copy, due + overdue));
                self.replies.push_back(Reply::Confirm(copy, cover));
            }
            None => {}
        }
    }

    /// The client reads the oldest reply, if there is one.
    pub(crate) fn client_reads(&mut self, now: Instant) {
        match self.replies.pop_front() {
            Some(Reply::DeclareOk(ttl)) => {
                self.leases.declare_ok(now, ttl);
                for (copy, late) in std::mem::take(&mut self.late) {
                    if late.ttl() == ttl {
                        let confirmed = self.leases.after_declare_ok(now, late);
                        self.confirmed(now, copy, confirmed);
                    } else {
                        self.late.push((copy, late));
                    }
                }
            }
            Some(Reply::Confirm(copy, cover)) => {
                let confirmed = self.leases.after_confirm(now, cover);
                self.confirmed(now, copy, confirmed);
            }
            Some(Reply::Return(copy, cover)) => {
                let ttl = self.leases.after_return(cover);
                self.publish(now, self.copies[copy].job, ttl);
            }
            None => {}
        }
    }

    /// Another client declares a hold, or makes it anew; the broker handles that at once.
    pub(crate) fn declare(&mut self, now: Instant, ttl: HoldTtl) {
        let now = now + self.slept;
        self.advance(now, ttl);
        let expires = now + ttl.as_duration() * 2;
        let hold = self.holds.entry(ttl).or_insert(Hold { expires, messages: VecDeque::new() });
        hold.expires = expires;
    }

    /// The link is cut with all that is on its way, and there is a new one at once. The originals of the jobs
    /// without a safe copy come back, and each is published again.
    pub(crate) fn link_lost(&mut self, now: Instant) {
        self.requests.clear();
        self.replies.clear();
        self.late.clear();
        self.leases.clear();
        for job in 0..self.jobs.len() {
            if !self.copies.iter().any(|copy| copy.job == job && copy.safe) {
                self.publish(now, job, self.jobs[job]);
            }
        }
    }

    /// The client's machine sleeps, with its monotonic clock standing still, and notices when it wakes up. The
    /// link outlives it.
    pub(crate) fn sleep(&mut self, time: Duration) {
        self.slept += time;
        self.leases.void();
    }

    /// Lets all that is left happen, and looks at what came of it.
    ///
    /// # Panics
    ///
    /// Where a job has no copy that the book called safe, where such a copy was dropped, or where it left before
    /// the delay of its job had passed.
    pub(crate) fn end(mut self, now: Instant) {
        while self.requests() + self.replies() > 0 {
            self.broker_handles(now, Duration::ZERO);
            self.client_reads(now);
        }
        assert!(self.late.is_empty(), "a message waits for a declare that nobody sends: {:?}", self.late);
        let holds: Vec<HoldTtl> = self.holds.keys().copied().collect();
        holds.into_iter().for_each(|ttl| self.advance(Instant::MAX, ttl));

        let mut is_safe = vec![false; self.jobs.len()];
        for copy in self.copies.iter().filter(|copy| copy.safe) {
            let due = copy.at + self.jobs[copy.job].as_duration();
            assert!(copy.released.is_some(), "a copy called safe was dropped: {copy:?}");
            assert!(copy.released >= Some(due), "a copy called safe came early: {copy:?}");
            is_safe[copy.job] = true;
        }
        assert!(is_safe.iter().all(|safe| *safe), "a job has no safe copy: {is_safe:?}, {:?}", self.copies);
    }

    fn publish(&mut self, now: Instant, job: usize, ttl: HoldTtl) {
        let ttl = if self.looks_ahead { self.leases.choose(ttl) } else { ttl };
        if self.leases.before_publish(now, ttl) == Lease::Declare {
            self.send_declare(now, ttl);
        }
        let cover = self.leases.publish_sent(now, ttl);
        self.requests.push_back(Request::Publish(self.copies.len(), cover));
        self.copies.push(Published { job, at: now + self.slept, released: None, safe: false });
    }

    fn send_declare(&mut self, now: Instant, ttl: HoldTtl) {
        self.leases.declare_sent(now, ttl);
        self.requests.push_back(Request::Declare(ttl));
    }

    fn confirmed(&mut self, now: Instant, copy: usize, confirmed: Confirmed) {
        match confirmed {
            Confirmed::Safe => self.copies[copy].safe = true,
            Confirmed::Renew(late) => {
                self.send_declare(now, late.ttl());
                self.late.push((copy, late));
            }
            Confirmed::Wait(late) => self.late.push((copy, late)),
            Confirmed::PublishAgain(ttl) => self.publish(now, self.copies[copy].job, ttl),
        }
    }

    /// Lets a hold release and expire up to `now`.
    fn advance(&mut self, now: Instant, ttl: HoldTtl) {
        let Some(hold) = self.holds.get_mut(&ttl) else { return };
        let until = now.min(hold.expires);
        while let Some((copy, leaves)) = hold.messages.front().copied().filter(|(_, at)| *at < until) {
            self.copies[copy].released = Some(leaves);
            hold.messages.pop_front();
        }
        if now >= hold.expires {
            self.holds.remove(&ttl);
        }
    }
}
