//! A classic queue with `x-message-ttl` and `x-expires`, and a client that goes by the book, in virtual time.
//!
//! As RabbitMQ does it: a declare renews the queue or makes a new, empty one; a publish renews nothing; expired
//! messages leave from the head, a little late; a queue that expires drops the rest without a word.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::super::{Confirmed, Cover, HoldLeases, HoldTtl, Late, Lease};
use super::tenths;
use crate::rng::Rng;
use crate::time::Instant;

/// What the network does to a run.
pub(super) struct Network {
    /// The longest way in either direction. Most take a small part of it.
    pub(super) latency: Duration,
    /// The longest time between two jobs.
    pub(super) gap: Duration,
    /// After how long the broker stops working, and for how long. What expires then does so.
    pub(super) stall: (Duration, Duration),
    /// Whether the broker refuses a declare now and then, which closes the channel.
    pub(super) refusals: bool,
    /// Whether other clients declare the same holds now and then.
    pub(super) others: bool,
    /// Whether the client takes a larger hold where confirms are slow. It must be right without, too.
    pub(super) looks_ahead: bool,
}

/// One message that was published for a job.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) job: u32,
    pub(super) published: Instant,
    /// When it left its hold for the work queue; never if the hold expired first.
    pub(super) released: Option<Instant>,
    pub(super) safe: bool,
}

/// Runs `jobs` delayed messages to their end.
pub(super) fn run(seed: u64, ttl: HoldTtl, jobs: u32, network: &Network) -> Vec<Published> {
    let mut run = Run {
        rng: Rng::new(seed),
        network,
        events: BTreeMap::new(),
        order: 0,
        channel: 0,
        refused: 0,
        in_flight: BTreeMap::new(),
        broker_busy: Instant::ORIGIN,
        replies_until: Instant::ORIGIN,
        holds: BTreeMap::new(),
        leases: HoldLeases::new(tenths()),
        waiting: Vec::new(),
        copies: Vec::new(),
    };
    let mut now = Instant::from_origin(Duration::from_secs(1));
    for job in 0..jobs {
        now += run.up_to(network.gap);
        run.at(now, Event::Job(job, ttl));
        if network.others {
            let then = now + run.up_to(network.gap);
            run.at(then, Event::DeclareByOther(ttl));
        }
    }
    while let Some(((now, _), (channel, event))) = run.events.pop_first() {
        // The broker does nothing that follows a refused declare on its channel.
        let is_dead = channel < run.refused && matches!(event, Event::Declare(_) | Event::Publish(..));
        if !is_dead {
            run.handle(now, event);
        }
        assert!(run.copies.len() < 1_000, "the client publishes again and again");
    }
    assert!(run.waiting.is_empty(), "a message waits for a declare that nobody sends");
    let end = Instant::MAX;
    let holds: Vec<HoldTtl> = run.holds.keys().copied().collect();
    holds.into_iter().for_each(|ttl| run.advance(end, ttl));
    run.copies
}

#[derive(Clone, Copy)]
enum Event {
    Job(u32, HoldTtl),
    // At the broker.
    Declare(HoldTtl),
    DeclareByOther(HoldTtl),
    Publish(usize, Cover),
    // At the client.
    DeclareOk(HoldTtl),
    Confirm(usize, Cover),
    Return(usize, Cover),
    Closed(HoldTtl),
}

struct Hold {
    expires: Instant,
    messages: VecDeque<(usize, Instant)>,
}

struct Run<'a> {
    rng: Rng,
    network: &'a Network,
    /// With the channel that they belong to.
    events: BTreeMap<(Instant, u64), (u32, Event)>,
    order: u64,
    /// The channel that the client publishes on, and how many the broker has closed over a declare.
    channel: u32,
    refused: u32,
    /// Copies without a verdict.
    in_flight: BTreeMap<usize, HoldTtl>,
    /// Requests and replies arrive in the order in which they were sent.
    broker_busy: Instant,
    replies_until: Instant,
    holds: BTreeMap<HoldTtl, Hold>,
    leases: HoldLeases,
    waiting: Vec<(usize, Late)>,
    copies: Vec<Published>,
}

impl Run<'_> {
    fn up_to(&mut self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap();
        Duration::from_nanos(self.rng.next_u64() % (nanos + 1))
    }

    fn way(&mut self) -> Duration {
        let part = if self.rng.next_u64().is_multiple_of(4) { 1 } else { 30 };
        self.up_to(self.network.latency / part)
    }

    fn at(&mut self, when: Instant, event: Event) {
        self.order += 1;
        self.events.insert((when, self.order), (self.channel, event));
    }

    fn request(&mut self, now: Instant, event: Event) {
        let way = self.way();
        let (from, length) = self.network.stall;
        let from = Instant::from_origin(from);
        self.broker_busy = self.broker_busy.max(now + way);
        if from <= self.broker_busy && self.broker_busy < from + length {
            self.broker_busy = from + length;
        }
        self.at(self.broker_busy, event);
    }

    fn reply(&mut self, now: Instant, event: Event) {
        let way = self.way();
        self.replies_until = self.replies_until.max(now + way);
        self.at(self.replies_until, event);
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Job(job, ttl) => self.publish(now, job, ttl),
            Event::Declare(ttl) if self.network.refusals && self.rng.next_u64().is_multiple_of(16) => {
                self.refused = self.channel + 1;
                self.reply(now, Event::Closed(ttl));
            }
            Event::Declare(ttl) => {
                self.declare(now, ttl);
                self.reply(now, Event::DeclareOk(ttl));
            }
            Event::DeclareByOther(ttl) => self.declare(now, ttl),
            Event::Publish(copy, cover) => {
                self.advance(now, cover.ttl());
                let late = self.up_to(Duration::from_millis(22));
                match self.holds.get_mut(&cover.ttl()) {
                    Some(hold) => {
                        // Released from the head: not before the one in front of it.
                        let front = hold.messages.back().map_or(Instant::ORIGIN, |(_, leaves)| *leaves);
                        let leaves = (now + cover.ttl().as_duration()).max(front.saturating_sub(late)) + late;
                        hold.messages.push_back((copy, leaves));
                        self.reply(now, Event::Confirm(copy, cover));
                    }
                    None => self.reply(now, Event::Return(copy, cover)),
                }
            }
            Event::DeclareOk(ttl) => {
                self.leases.declare_ok(now, ttl);
                let waiting = std::mem::take(&mut self.waiting);
                for (copy, late) in waiting {
                    if late.ttl() == ttl {
                        let confirmed = self.leases.after_declare_ok(now, late);
                        self.confirmed(now, copy, confirmed);
                    } else {
                        self.waiting.push((copy, late));
                    }
                }
            }
            Event::Confirm(copy, cover) => {
                self.in_flight.remove(&copy);
                let confirmed = self.leases.after_confirm(now, cover);
                self.confirmed(now, copy, confirmed);
            }
            Event::Return(copy, cover) => {
                self.in_flight.remove(&copy);
                let ttl = self.leases.after_return(cover);
                self.publish(now, self.copies[copy].job, ttl);
            }
            Event::Closed(ttl) => self.open_again(now, ttl),
        }
    }

    /// The channel was closed over the declare of a hold: what has no verdict is published again.
    fn open_again(&mut self, now: Instant, refused: HoldTtl) {
        self.channel += 1;
        // As if only the channel were gone, or the connection with it.
        if self.rng.next_u64().is_multiple_of(4) {
            self.leases.clear();
        } else {
            self.leases.after_refusal(refused);
        }
        let late = std::mem::take(&mut self.waiting).into_iter().map(|(copy, late)| (copy, late.ttl()));
        let again: Vec<_> = std::mem::take(&mut self.in_flight).into_iter().chain(late).collect();
        for (copy, ttl) in again {
            self.publish(now, self.copies[copy].job, ttl);
        }
    }

    fn publish(&mut self, now: Instant, job: u32, ttl: HoldTtl) {
        let ttl = if self.network.looks_ahead { self.leases.choose(ttl) } else { ttl };
        if self.leases.before_publish(now, ttl) == Lease::Declare {
            self.send_declare(now, ttl);
        }
        let cover = self.leases.publish_sent(now, ttl);
        self.copies.push(Published { job, published: now, released: None, safe: false });
        self.in_flight.insert(self.copies.len() - 1, ttl);
        self.request(now, Event::Publish(self.copies.len() - 1, cover));
    }

    fn send_declare(&mut self, now: Instant, ttl: HoldTtl) {
        self.leases.declare_sent(now, ttl);
        self.request(now, Event::Declare(ttl));
    }

    fn confirmed(&mut self, now: Instant, copy: usize, confirmed: Confirmed) {
        match confirmed {
            Confirmed::Safe => self.copies[copy].safe = true,
            Confirmed::Renew(late) => {
                self.send_declare(now, late.ttl());
                self.waiting.push((copy, late));
            }
            Confirmed::Wait(late) => self.waiting.push((copy, late)),
            Confirmed::PublishAgain(ttl) => self.publish(now, self.copies[copy].job, ttl),
        }
    }

    fn declare(&mut self, now: Instant, ttl: HoldTtl) {
        self.advance(now, ttl);
        let expires = now + ttl.as_duration() * 2;
        let hold = self.holds.entry(ttl).or_insert(Hold { expires, messages: VecDeque::new() });
        hold.expires = expires;
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
