//! A broker, two links and a client that does what the ledger says, driven by a script of bytes: whatever happens in
//! whatever order, no job is lost, no step is out of order, and once everything heals nothing is left.

use std::collections::VecDeque;

use super::{
    DeliveryId, Remains, SettleError, SettleLedger, Settlement, Settling, Step, SuccessorVerdict, Write,
};

/// How many jobs a script works on.
const JOBS: usize = 5;

/// Runs a script, two bytes for an operation, and then lets everything heal.
///
/// Panics when the ledger breaks a promise.
pub(crate) fn run(max_owed: usize, script: &[u8]) {
    let mut world = World::new(max_owed);
    for operation in script.chunks_exact(2) {
        world.operate(operation[0], operation[1]);
        world.check();
    }
    world.heal();
}

#[derive(Debug)]
struct World {
    ledger: SettleLedger,
    max_owed: usize,
    jobs: Vec<Job>,
    deliveries: Vec<Delivery>,
    /// Confirmed successors leave on the first, everything else on the second.
    links: [Link; 2],
}

const PUBLISH: usize = 0;
const CONSUME: usize = 1;

/// A message on the work queue, and what became of it.
#[derive(Debug)]
struct Job {
    original: Original,
    /// Successors that the broker has for good.
    safe: usize,
    /// Acknowledged or rejected as its handler decided.
    finished: bool,
    reported_lost: bool,
}

#[derive(Debug, PartialEq)]
enum Original {
    Ready,
    Unacknowledged { delivery: usize },
    Gone,
}

/// What the client knows of a delivery.
#[derive(Debug)]
struct Delivery {
    id: DeliveryId,
    job: usize,
    settling: Settling,
    wants: Wants,
    /// The link of its end has been cut since.
    stale: bool,
    /// The acknowledgement was written before the verdict.
    acknowledged: bool,
    /// Refusals since the last pause or dead letter.
    refusals: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wants {
    Outcome,
    Turn,
    Verdict,
    DeadLetter,
    EndOfPause,
    Nothing,
}

#[derive(Debug, Default)]
struct Link {
    blocked: bool,
    to_broker: VecDeque<Frame>,
    to_client: Vec<(usize, SuccessorVerdict)>,
}

#[derive(Clone, Copy, Debug)]
enum Frame {
    Publish { delivery: usize },
    Acknowledge { delivery: usize, finishes: bool },
    Reject { delivery: usize },
    Requeue { delivery: usize },
}

impl World {
    fn new(max_owed: usize) -> Self {
        let job = || Job { original: Original::Ready, safe: 0, finished: false, reported_lost: false };
        Self {
            ledger: SettleLedger::new().with_max_owed(max_owed),
            max_owed,
            jobs: std::iter::repeat_with(job).take(JOBS).collect(),
            deliveries: Vec::new(),
            links: [Link::default(), Link::default()],
        }
    }

    fn operate(&mut self, operation: u8, argument: u8) {
        let settling = if argument & 1 == 0 { Settling::Confirmed } else { Settling::Ordered };
        let link = usize::from(argument & 1);
        match operation % 16 {
            0 | 1 => self.deliver(settling),
            2 => self.settle_any(argument),
            3 => {
                if let Some(delivery) = self.pick(argument, Wants::Outcome) {
                    self.settle(delivery, Settlement::Publish);
                }
            }
            4 | 5 => {
                if let Some(delivery) = self.pick(argument, Wants::Turn) {
                    self.write(delivery);
                }
            }
            6..=8 => self.broker_takes(link, argument >> 1),
            9 | 10 => self.client_hears(link, argument >> 1),
            11 => {
                if let Some(delivery) = self.pick(argument, Wants::EndOfPause) {
                    let step = self.ledger.pause_over(self.deliveries[delivery].id);
                    self.follow(delivery, step);
                }
            }
            12 => {
                if let Some(delivery) = self.pick(argument >> 1, Wants::DeadLetter) {
                    self.decide_on_dead_letter(delivery, argument & 1 == 0);
                }
            }
            13 => self.fail_before_writing(argument),
            14 => self.stray(argument),
            _ if argument & 2 == 0 => self.links[link].blocked ^= true,
            _ => self.cut(link, argument >> 2),
        }
    }

    /// The nth delivery of which the client waits for this.
    fn pick(&self, nth: u8, wants: Wants) -> Option<usize> {
        let of = |(at, delivery): (usize, &Delivery)| (delivery.wants == wants).then_some(at);
        let waiting: Vec<_> = self.deliveries.iter().enumerate().filter_map(of).collect();
        waiting.get(usize::from(nth) % waiting.len().max(1)).copied()
    }

    fn deliver(&mut self, settling: Settling) {
        let Some(job) = self.jobs.iter().position(|job| job.original == Original::Ready) else { return };
        self.jobs[job].original = Original::Unacknowledged { delivery: self.deliveries.len() };
        let id = self.ledger.accept(settling);
        assert!(self.deliveries.iter().all(|earlier| earlier.id < id), "an id was used again");
        self.deliveries.push(Delivery {
            id,
            job,
            settling,
            wants: Wants::Outcome,
            stale: false,
            acknowledged: false,
            refusals: 0,
        });
    }

    /// Settles a delivery, ended ones included.
    fn settle_any(&mut self, argument: u8) {
        let settlement =
            [Settlement::Publish, Settlement::Acknowledge, Settlement::Reject, Settlement::Requeue]
                [usize::from(argument & 3)];
        let at = usize::from(argument >> 2) % self.deliveries.len().max(1);
        let Some(delivery) = self.deliveries.get(at) else { return };
        if delivery.wants == Wants::Outcome {
            self.settle(at, settlement);
        } else {
            let second = self.ledger.settle(delivery.id, settlement);
            assert_eq!(second, Err(SettleError::AlreadySettled), "{delivery:?}");
        }
    }

    fn settle(&mut self, at: usize, settlement: Settlement) {
        let delivery = &mut self.deliveries[at];
        let step = self.ledger.settle(delivery.id, settlement);
        if delivery.stale {
            assert_eq!(step, Err(SettleError::Stale), "{delivery:?}");
            delivery.wants = Wants::Nothing;
            return;
        }
        match step {
            Ok(Step::Acknowledge) if settlement == Settlement::Acknowledge => {
                self.end(at, Frame::Acknowledge { delivery: at, finishes: true });
            }
            Ok(Step::Publish { .. }) if settlement == Settlement::Publish => delivery.wants = Wants::Turn,
            Ok(Step::Reject) if settlement == Settlement::Reject => {
                self.end(at, Frame::Reject { delivery: at });
            }
            Ok(Step::Requeue) if settlement == Settlement::Requeue => {
                self.end(at, Frame::Requeue { delivery: at });
            }
            step => assert_eq!(step, Ok(Step::Nothing), "{settlement:?} of {delivery:?}"),
        }
    }

    /// Writes the end of a delivery to its link.
    fn end(&mut self, at: usize, frame: Frame) {
        let delivery = &mut self.deliveries[at];
        assert!(!delivery.stale && !delivery.acknowledged, "{frame:?} for {delivery:?}");
        delivery.wants = Wants::Nothing;
        self.links[CONSUME].to_broker.push_back(frame);
    }

    fn link_of_successor(&self, at: usize) -> usize {
        if self.deliveries[at].settling == Settling::Ordered { CONSUME } else { PUBLISH }
    }

    fn write(&mut self, at: usize) {
        let link = self.link_of_successor(at);
        if self.links[link].blocked {
            return;
        }
        let delivery = &mut self.deliveries[at];
        let may_publish = !delivery.stale || delivery.acknowledged;
        match self.ledger.write(delivery.id) {
            Write::Nothing => {
                assert!(!may_publish, "dropped the successor of {delivery:?}");
                delivery.wants = Wants::Nothing;
            }
            Write::Publish => {
                assert!(may_publish, "published for {delivery:?}");
                delivery.wants = Wants::Verdict;
                self.links[link].to_broker.push_back(Frame::Publish { delivery: at });
            }
            Write::PublishThenAcknowledge => {
                assert!(may_publish && !delivery.acknowledged, "acknowledged again: {delivery:?}");
                assert_eq!(delivery.settling, Settling::Ordered, "acknowledged early: {delivery:?}");
                delivery.wants = Wants::Verdict;
                delivery.acknowledged = true;
                let frames =
                    [Frame::Publish { delivery: at }, Frame::Acknowledge { delivery: at, finishes: false }];
                self.links[link].to_broker.extend(frames);
            }
        }
    }

    /// The broker handles the next frame of a link.
    fn broker_takes(&mut self, link: usize, how: u8) {
        let Some(frame) = self.links[link].to_broker.pop_front() else { return };
        match frame {
            Frame::Publish { delivery } => {
                let verdict = match how % 8 {
                    // A hold that may not outlive its message is one that did not.
                    0 => SuccessorVerdict::PublishAgain,
                    1 => SuccessorVerdict::Returned,
                    2 => SuccessorVerdict::Nacked,
                    _ => SuccessorVerdict::Safe,
                };
                self.jobs[self.deliveries[delivery].job].safe +=
                    usize::from(verdict == SuccessorVerdict::Safe);
                self.links[link].to_client.push((delivery, verdict));
            }
            Frame::Acknowledge { delivery, finishes } => {
                let job = self.take_original(delivery);
                self.jobs[job].original = Original::Gone;
                self.jobs[job].finished |= finishes;
            }
            Frame::Reject { delivery } => {
                let job = self.take_original(delivery);
                self.jobs[job].original = Original::Gone;
                self.jobs[job].finished = true;
            }
            Frame::Requeue { delivery } => {
                let job = self.take_original(delivery);
                self.jobs[job].original = Original::Ready;
            }
        }
    }

    fn take_original(&self, delivery: usize) -> usize {
        let job = self.deliveries[delivery].job;
        let held = Original::Unacknowledged { delivery };
        assert_eq!(self.jobs[job].original, held, "the broker does not know the delivery tag");
        job
    }

    /// The client reads one of the answers on a link. They need not come in order.
    fn client_hears(&mut self, link: usize, nth: u8) {
        let answers = &mut self.links[link].to_client;
        if answers.is_empty() {
            return;
        }
        let (at, verdict) = answers.swap_remove(usize::from(nth) % answers.len());
        self.tell(at, verdict);
    }

    fn tell(&mut self, at: usize, verdict: SuccessorVerdict) {
        let step = self.ledger.verdict(self.deliveries[at].id, verdict);
        let delivery = &mut self.deliveries[at];
        let refusal = !matches!(
            verdict,
            SuccessorVerdict::Safe
                | SuccessorVerdict::PublishAgain
                | SuccessorVerdict::LinkLost
                | SuccessorVerdict::Unhealable
        );
        delivery.refusals += u32::from(refusal);
        assert!(delivery.refusals <= 2 || step == Step::Nothing, "spins: {delivery:?}");
        if matches!(step, Step::Acknowledge | Step::Release) {
            assert_eq!(verdict, SuccessorVerdict::Safe, "{step:?} of {delivery:?}");
            assert_eq!(delivery.wants, Wants::Verdict, "{step:?} of {delivery:?}");
        }
        self.follow(at, step);
    }

    fn follow(&mut self, at: usize, step: Step) {
        let delivery = &mut self.deliveries[at];
        let gone = delivery.stale && !delivery.acknowledged;
        assert!(!gone || step == Step::Nothing, "{step:?} for {delivery:?}");
        match step {
            Step::Nothing => {
                let unheard = gone || delivery.wants != Wants::Verdict;
                assert!(unheard, "nothing follows a verdict for {delivery:?}");
            }
            Step::Publish { .. } => delivery.wants = Wants::Turn,
            Step::DeadLetter => {
                delivery.refusals = 0;
                delivery.wants = Wants::DeadLetter;
            }
            Step::Pause => {
                // Of those that follow, the first is the last before the next pause.
                delivery.refusals = 1;
                delivery.wants = Wants::EndOfPause;
            }
            Step::Acknowledge => self.end(at, Frame::Acknowledge { delivery: at, finishes: false }),
            Step::Reject => self.end(at, Frame::Reject { delivery: at }),
            Step::Requeue => self.end(at, Frame::Requeue { delivery: at }),
            Step::Release => {
                assert!(delivery.acknowledged, "forgot {delivery:?}");
                delivery.wants = Wants::Nothing;
            }
            Step::ReportLost => {
                assert!(delivery.acknowledged, "gave up {delivery:?}");
                delivery.wants = Wants::Nothing;
                self.jobs[self.deliveries[at].job].reported_lost = true;
            }
        }
    }

    fn decide_on_dead_letter(&mut self, at: usize, kept: bool) {
        let step = self.ledger.dead_letter(self.deliveries[at].id, kept);
        self.follow(at, step);
    }

    /// A successor fails before it is written.
    fn fail_before_writing(&mut self, argument: u8) {
        let Some(at) = self.pick(argument >> 1, Wants::Turn) else { return };
        let verdict =
            if argument & 1 == 0 { SuccessorVerdict::Refused } else { SuccessorVerdict::Unhealable };
        self.tell(at, verdict);
    }

    /// The ledger is told what is not, or no longer, true.
    fn stray(&mut self, argument: u8) {
        if argument & 8 == 0 {
            // An earlier copy of one that is to be written again.
            let Some(at) = self.pick(argument >> 4, Wants::Turn) else { return };
            let late = [SuccessorVerdict::Safe, SuccessorVerdict::LinkLost, SuccessorVerdict::Returned];
            let step = self.ledger.verdict(self.deliveries[at].id, late[usize::from(argument) % late.len()]);
            assert_eq!(step, Step::Nothing, "{:?}", self.deliveries[at]);
            return;
        }
        let Some(at) = self.pick(argument >> 4, Wants::Nothing) else { return };
        let id = self.deliveries[at].id;
        let step = match argument & 7 {
            0 => self.ledger.verdict(id, SuccessorVerdict::Safe),
            1 => self.ledger.verdict(id, SuccessorVerdict::Refused),
            2 => self.ledger.verdict(id, SuccessorVerdict::Unhealable),
            3 => self.ledger.verdict(id, SuccessorVerdict::LinkLost),
            4 => self.ledger.dead_letter(id, true),
            5 => self.ledger.pause_over(id),
            6 => {
                assert_eq!(self.ledger.write(id), Write::Nothing);
                Step::Nothing
            }
            _ => {
                assert_eq!(self.ledger.stale(id), Remains::Nothing);
                Step::Nothing
            }
        };
        assert_eq!(step, Step::Nothing, "{id} has ended");
    }

    /// A link, or its channel, ends. What the broker has not taken is gone, and what it has answered too.
    fn cut(&mut self, link: usize, how: u8) {
        self.links[link] = Link::default();
        let [channel_closed, stale_first] = [how & 1 == 0, how & 2 == 0];
        if link == CONSUME && stale_first {
            self.make_stale();
        }
        for at in 0..self.deliveries.len() {
            if self.deliveries[at].wants == Wants::Verdict && self.link_of_successor(at) == link {
                let verdict =
                    if channel_closed { SuccessorVerdict::ChannelClosed } else { SuccessorVerdict::LinkLost };
                self.tell(at, verdict);
            }
        }
        if link == CONSUME && !stale_first {
            self.make_stale();
        }
    }

    fn make_stale(&mut self) {
        for job in &mut self.jobs {
            if matches!(job.original, Original::Unacknowledged { .. }) {
                job.original = Original::Ready;
            }
        }
        // Acknowledgements that follow a verdict in this cut would be for an ended channel.
        self.links[CONSUME].to_broker.clear();
        for delivery in &mut self.deliveries {
            delivery.stale = true;
            let remains = match delivery.wants {
                Wants::Outcome => Remains::Handler,
                Wants::Nothing => Remains::Nothing,
                _ if delivery.acknowledged => Remains::Successor,
                _ => Remains::Nothing,
            };
            assert_eq!(self.ledger.stale(delivery.id), remains, "{delivery:?}");
            if !delivery.acknowledged && delivery.wants != Wants::Outcome {
                delivery.wants = match delivery.wants {
                    // Still in a queue of the client, which is to find out.
                    Wants::Turn => Wants::Turn,
                    _ => Wants::Nothing,
                };
            }
        }
    }

    fn check(&self) {
        for (at, job) in self.jobs.iter().enumerate() {
            let mut deliveries = self.deliveries.iter().filter(|delivery| delivery.job == at);
            let owed = deliveries.any(|delivery| self.ledger.is_owed(delivery.id));
            let kept = job.original != Original::Gone || job.safe > 0 || job.finished;
            assert!(kept || owed || job.reported_lost, "job {at} is lost: {self:?}");
        }
        let in_hand = |delivery: &&Delivery| {
            delivery.wants == Wants::Outcome
                || (delivery.wants != Wants::Nothing && (delivery.acknowledged || !delivery.stale))
        };
        let in_hand: Vec<_> = self.deliveries.iter().filter(in_hand).collect();
        assert_eq!(self.ledger.len(), in_hand.len(), "{self:?}");
        let owed = in_hand.iter().filter(|delivery| delivery.acknowledged).count();
        assert_eq!(self.ledger.owed(), owed, "{self:?}");
        assert!(owed <= self.max_owed, "{owed} are owed, {} may be", self.max_owed);
    }

    /// Handlers finish, links carry, targets accept: everything comes to its end, in bounded time.
    fn heal(&mut self) {
        for _ in 0..16 {
            self.links.iter_mut().for_each(|link| link.blocked = false);
            for _ in 0..JOBS {
                self.deliver(Settling::Confirmed);
            }
            for at in 0..self.deliveries.len() {
                match self.deliveries[at].wants {
                    Wants::Outcome => self.settle(at, Settlement::Publish),
                    Wants::Turn => self.write(at),
                    Wants::DeadLetter => self.decide_on_dead_letter(at, true),
                    Wants::EndOfPause => {
                        let step = self.ledger.pause_over(self.deliveries[at].id);
                        self.follow(at, step);
                    }
                    Wants::Verdict | Wants::Nothing => {}
                }
            }
            for link in [PUBLISH, CONSUME] {
                while !self.links[link].to_broker.is_empty() {
                    self.broker_takes(link, 7);
                }
                while !self.links[link].to_client.is_empty() {
                    self.client_hears(link, 0);
                }
            }
            self.check();
        }
        assert!(self.ledger.is_empty() && self.ledger.owed() == 0, "stuck: {self:?}");
        for job in &self.jobs {
            assert!(job.original == Original::Gone, "stuck: {self:?}");
            assert!(job.safe > 0 || job.finished || job.reported_lost, "lost: {self:?}");
        }
    }
}
