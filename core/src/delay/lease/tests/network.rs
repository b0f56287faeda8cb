//! A network between client and broker whose delays are drawn at random.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::HoldTtl;
use super::super::model::World;
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
    /// Whether the link is cut now and then.
    pub(super) cuts: bool,
    /// How long the client's machine sleeps now and then; zero for never.
    pub(super) sleep: Duration,
    /// Whether the client takes a larger hold where confirms are slow.
    pub(super) looks_ahead: bool,
}

/// Runs `jobs` delayed messages to their end, with the checks of [`World::end`]. They wait for `ttl` and for up to four
/// times as long, so that what ends the lease of one hold meets those of others.
pub(super) fn run(seed: u64, ttl: HoldTtl, jobs: u32, network: &Network) {
    let mut run = Run {
        rng: Rng::new(seed),
        network,
        events: BTreeMap::new(),
        order: 0,
        requests: Way::default(),
        replies: Way::default(),
        world: World::new(tenths().into(), network.looks_ahead),
    };
    let mut now = Instant::from_origin(Duration::from_secs(1));
    for _ in 0..jobs {
        now += run.up_to(network.gap);
        run.at(now, Event::Job);
        if network.others {
            let then = now + run.up_to(network.gap);
            run.at(then, Event::DeclareByOther);
        }
        if network.cuts && run.rng.next_u64().is_multiple_of(8) {
            let then = now + run.up_to(network.gap);
            run.at(then, Event::Cut);
        }
        if !network.sleep.is_zero() && run.rng.next_u64().is_multiple_of(4) {
            let then = now + run.up_to(network.gap);
            run.at(then, Event::Sleep);
        }
    }
    while let Some(((then, _), event)) = run.events.pop_first() {
        now = then;
        run.handle(now, event, ttl);
        assert!(run.world.published() < 1_000, "the client publishes again and again");
    }
    run.world.end(now);
}

#[derive(Clone, Copy)]
enum Event {
    Job,
    DeclareByOther,
    Cut,
    Sleep,
    /// The oldest request reaches the broker.
    Request,
    /// The oldest reply reaches the client.
    Reply,
}

/// One direction. What is sent arrives in the order in which it was sent.
#[derive(Default)]
struct Way {
    under_way: usize,
    last_arrives: Instant,
}

struct Run<'a> {
    rng: Rng,
    network: &'a Network,
    events: BTreeMap<(Instant, u64), Event>,
    order: u64,
    requests: Way,
    replies: Way,
    world: World,
}

impl Run<'_> {
    fn up_to(&mut self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap();
        Duration::from_nanos(self.rng.next_u64() % (nanos + 1))
    }

    /// The shortest hold half of the time, and the larger ones, into which messages of the shortest move too.
    fn some_hold(&mut self, shortest: HoldTtl) -> HoldTtl {
        let times = [1, 1, 2, 4][usize::try_from(self.rng.next_u64() % 4).unwrap()];
        HoldTtl::from_millis(shortest.as_millis() * times).unwrap()
    }

    fn way(&mut self) -> Duration {
        let part = if self.rng.next_u64().is_multiple_of(4) { 1 } else { 30 };
        self.up_to(self.network.latency / part)
    }

    fn after_the_stall(&self, moment: Instant) -> Instant {
        let (from, length) = self.network.stall;
        let from = Instant::from_origin(from);
        if from <= moment { moment.max(from + length) } else { moment }
    }

    fn at(&mut self, when: Instant, event: Event) {
        self.order += 1;
        self.events.insert((when, self.order), event);
    }

    fn handle(&mut self, now: Instant, event: Event, ttl: HoldTtl) {
        match event {
            Event::Job => {
                let ttl = self.some_hold(ttl);
                self.world.job(now, ttl);
            }
            Event::DeclareByOther => {
                let ttl = self.some_hold(ttl);
                self.world.declare(now, ttl);
            }
            // What was under way is gone; what is sent after the cut arrives in its place.
            Event::Cut => self.world.link_lost(now),
            Event::Sleep => {
                let time = self.up_to(self.network.sleep);
                self.world.sleep(time);
            }
            Event::Request => {
                self.requests.under_way -= 1;
                if self.network.refusals && self.rng.next_u64().is_multiple_of(16) {
                    let forgets = self.rng.next_u64().is_multiple_of(4);
                    self.world.broker_refuses(forgets);
                } else {
                    let overdue = self.up_to(Duration::from_millis(22));
                    self.world.broker_handles(now, overdue);
                }
            }
            Event::Reply => {
                self.replies.under_way -= 1;
                self.world.client_reads(now);
            }
        }
        while self.requests.under_way < self.world.requests() {
            self.requests.under_way += 1;
            let arrives = (now + self.way()).max(self.requests.last_arrives);
            self.requests.last_arrives = self.after_the_stall(arrives);
            self.at(self.requests.last_arrives, Event::Request);
        }
        while self.replies.under_way < self.world.replies() {
            self.replies.under_way += 1;
            self.replies.last_arrives = (now + self.way()).max(self.replies.last_arrives);
            self.at(self.replies.last_arrives, Event::Reply);
        }
    }
}
