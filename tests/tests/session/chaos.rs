//! Random faults, then peace: whatever happened, every accepted job was done or is on the broker, none early.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leveret_core::retry::RetryPolicy;
use leveret_core::rng::Rng;
use leveret_core::session::{JobDelivery, LinkId, Outcome, PublishId, SessionEvent};
use leveret_core::time::Instant;
use leveret_core::topology::Queue;
use leveret_testkit::broker::ConfirmStyle;
use leveret_testkit::world::{ClientId, World, raw_job};
use proptest::prelude::*;

use super::{millis, seconds};

/// What the test knows about a job, independently of leveret.
#[derive(Debug)]
struct Expectation {
    /// By attempt and deferrals: the earliest moment for a run. After a cut a job may be on the broker twice, and
    /// each copy has successors of its own, so only the earliest of them is certain.
    not_before: BTreeMap<(u32, u32), Instant>,
    finished: bool,
}

impl Expectation {
    fn expect(&mut self, attempt: u32, deferrals: u32, at: Instant) {
        let earliest = self.not_before.entry((attempt, deferrals)).or_insert(at);
        *earliest = at.min(*earliest);
    }
}

struct Chaos {
    world: World,
    client: ClientId,
    queue: Queue,
    random: Rng,
    jobs: BTreeMap<String, Expectation>,
    publishes: BTreeMap<PublishId, String>,
    running: Vec<JobDelivery>,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let queue =
            Queue::new("emails").expect("a good name").prefetch(5).retry(RetryPolicy::fixed(4, seconds(2)));
        let queue = match seed % 4 {
            0 => queue.coarse_delays(true),
            1 => queue.replicated_holds([]),
            2 => queue.quorum(),
            _ => queue,
        };
        let mut world = World::new(seed);
        let client = world.connect([queue.clone()]);
        world.subscribe(client, &queue);
        Self {
            world,
            client,
            queue,
            random: Rng::new(seed),
            jobs: BTreeMap::new(),
            publishes: BTreeMap::new(),
            running: Vec::new(),
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn step(&mut self) {
        let now = self.world.now();
        match self.below(100) {
            0..30 => self.enqueue(),
            30..70 => self.settle_one(),
            70..74 => self.world.cut(self.client, LinkId::Publish),
            74..78 => self.world.cut(self.client, LinkId::Consume),
            78..80 => {
                let reachable = self.below(2) == 0;
                self.world.set_reachable(reachable);
            }
            80..83 => self.world.broker_mut().block(now),
            83..86 => self.world.broker_mut().unblock(now),
            86..90 => {
                let delay = millis(self.random.next_u64() % 3_000);
                let style = match self.below(4) {
                    0 => ConfirmStyle::Immediate,
                    1 => ConfirmStyle::Batched { delay },
                    2 => ConfirmStyle::OutOfOrder { delay },
                    _ => ConfirmStyle::Withheld,
                };
                self.world.broker_mut().set_confirms(style);
            }
            90..92 => self.world.broker_mut().release_confirms(now),
            92..94 => {
                self.world.broker_mut().cancel_consumer(now, "emails");
            }
            94..96 => {
                let connections = self.world.broker().connections();
                if let Some(connection) = connections.first() {
                    self.world.broker_mut().close_connection(now, connection.id, 320, "CONNECTION_FORCED");
                }
            }
            96 => {
                // Somebody deletes a hold queue between two uses.
                let empty = self.world.broker().queues().into_iter().filter(|queue| {
                    let name = &queue.name;
                    queue.ready == 0
                        && (name.starts_with("emails.deferred.") || name.starts_with("emails.held."))
                });
                let names: Vec<String> = empty.map(|queue| queue.name.to_string()).collect();
                if !names.is_empty() {
                    let chosen = usize::try_from(self.below(names.len() as u64)).expect("small");
                    self.world.broker_mut().delete_queue(now, &names[chosen]);
                }
            }
            97 => {
                let hours = self.below(5);
                self.world.run_for(seconds(hours * 3_600));
            }
            _ => {
                let pause = millis(self.below(4_000));
                self.world.run_for(pause);
            }
        }
        self.world.settle_down();
        self.take_deliveries();
    }

    fn enqueue(&mut self) {
        let delay = match self.below(3) {
            0 => Duration::ZERO,
            _ => millis(self.below(6_000)),
        };
        let not_before = self.world.now() + delay;
        if let Ok(accepted) =
            self.world.try_enqueue(self.client, &self.queue, raw_job("send-email").after(delay))
        {
            let not_before = BTreeMap::from([((1, 0), not_before)]);
            let expectation = Expectation { not_before, finished: false };
            self.jobs.insert(accepted.job.to_string(), expectation);
            self.publishes.insert(accepted.publish, accepted.job.to_string());
        }
    }

    fn take_deliveries(&mut self) {
        for job in self.world.take_jobs(self.client) {
            let expected =
                self.jobs.get(&job.envelope.job_id().to_string()).expect("only our jobs are delivered");
            let run = (job.envelope.attempt(), job.envelope.deferrals());
            let not_before = expected.not_before.get(&run).expect("a run that somebody decided on");
            assert!(self.world.now() >= *not_before, "a job came early");
            self.running.push(job);
        }
    }

    fn settle_one(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let chosen = usize::try_from(self.below(self.running.len() as u64)).expect("small");
        let job = self.running.swap_remove(chosen);
        let outcome = match self.below(8) {
            0 | 1 => Outcome::Retry { delay: None, error: "failed".to_owned() },
            2 => Outcome::Defer { delay: millis(self.below(3_000)), reason: "429".to_owned() },
            3 => Outcome::DeadLetter { reason: "fatal".to_owned() },
            4 => Outcome::Requeue,
            _ => Outcome::Done,
        };
        let now = self.world.now();
        if self.world.settle(self.client, job.delivery, &outcome).is_err() {
            return;
        }
        let expected =
            self.jobs.get_mut(&job.envelope.job_id().to_string()).expect("only our jobs are delivered");
        match outcome {
            Outcome::Done => expected.finished = true,
            Outcome::Retry { .. } => {
                expected.expect(job.envelope.attempt() + 1, job.envelope.deferrals(), now + seconds(2));
            }
            Outcome::Defer { delay, .. } => {
                expected.expect(job.envelope.attempt(), job.envelope.deferrals() + 1, now + delay);
            }
            _ => {}
        }
    }

    /// No more faults: everything must come to its end.
    fn heal_and_drain(&mut self) {
        let now = self.world.now();
        self.world.set_reachable(true);
        self.world.broker_mut().unblock(now);
        self.world.broker_mut().set_confirms(ConfirmStyle::Immediate);
        self.world.broker_mut().release_confirms(now);
        let mut done = BTreeSet::new();
        for _ in 0..400 {
            self.world.run_for(millis(500));
            self.take_deliveries();
            for job in std::mem::take(&mut self.running) {
                if self.world.settle(self.client, job.delivery, &Outcome::Done).is_ok() {
                    done.insert(job.envelope.job_id().to_string());
                }
            }
        }
        let queues = self.world.broker().queues();
        let waiting: usize = queues
            .iter()
            .filter(|queue| queue.name != "emails.dead")
            .map(|queue| queue.ready + queue.unacked)
            .sum();
        assert_eq!(waiting, 0, "everything drains after healing");
        let dead = self.world.broker().queue("emails.dead").expect("declared").messages;
        let dead: BTreeSet<String> =
            dead.iter().filter_map(|message| message.message_id.as_ref().map(ToString::to_string)).collect();
        let refused = self.refused();
        for (id, job) in &self.jobs {
            let safe = job.finished || done.contains(id) || dead.contains(id) || refused.contains(id);
            assert!(safe, "job {id} is lost: {job:?}");
        }
        assert_eq!(self.world.broker().connections().len(), 2, "each link is there once");
    }

    /// The jobs whose producers were told that they may not be there.
    fn refused(&mut self) -> BTreeSet<String> {
        let events = self.world.take_events(self.client);
        events
            .into_iter()
            .filter_map(|event| match event {
                SessionEvent::Enqueued { publish, result: Err(_) } => self.publishes.remove(&publish),
                _ => None,
            })
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_fault_loses_a_job_or_runs_one_early(seed: u64) {
        let mut chaos = Chaos::new(seed);
        for _ in 0..120 {
            chaos.step();
        }
        chaos.heal_and_drain();
    }
}
