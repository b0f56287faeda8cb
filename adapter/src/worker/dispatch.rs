//! The jobs of one worker that have not started, and the slots that run them.
//!
//! A slot is a task that runs one job after another, so that in steady state no task is made per job. Slots are
//! made when a job finds none idle, up to the queue's prefetch count: the broker never has more jobs with us.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::{Context, Poll, Waker};

use leveret_core::session::{DeliveryId, JobDelivery, Left, Settled, Settlement, SubscriptionError};
use leveret_core::time::Instant;
use leveret_core::topology::QueuePlan;

use super::report::WorkerReport;
use crate::waiters::Wakes;

/// How many settlements wait for an observer that does not keep up. More are counted and not shown.
pub(super) const OBSERVER_BACKLOG: usize = 4096;

/// What is behind the lock of one worker.
///
/// There are never more jobs in `ready` than the queue's prefetch count: the broker delivers no more than that before
/// some are settled, and those that became stale are taken out before it delivers them again.
pub(crate) struct Dispatch {
    plan: QueuePlan,
    ready: VecDeque<JobDelivery>,
    /// Slots that wait for a job.
    idle: BTreeMap<SlotId, Waker>,
    slots: usize,
    /// Handlers that run, also for a delivery that has become stale.
    running: usize,
    /// Jobs that their handler could not read, until they are settled.
    unreadable: BTreeSet<DeliveryId>,
    /// Whether the runtime dropped a slot that it had not begun to run.
    no_tasks: bool,
    next_slot: SlotId,
    /// Once no further job may start: the end of the grace.
    stop_by: Option<Instant>,
    /// Whether that has passed.
    overdue: bool,
    /// The future of `run`, which makes the slots and calls the observer.
    runner: Option<Waker>,
    /// Whether that future is gone.
    abandoned: bool,
    /// What the observer has not seen, where there is one.
    unseen: Option<VecDeque<Settled>>,
    report: WorkerReport,
    ended: Option<Result<Left, SubscriptionError>>,
}

/// Names a slot of one worker.
pub(super) type SlotId = u64;

/// What the runner has to do.
pub(super) enum Step {
    /// Make these slots.
    Spawn(std::ops::Range<SlotId>),
    /// Show these to the observer.
    Observe(VecDeque<Settled>),
    /// Give up: slots do not run.
    NoTasks,
    /// Answer with this.
    Ended(Result<WorkerReport, SubscriptionError>),
}

impl Dispatch {
    pub(super) fn new(plan: QueuePlan, observed: bool) -> Self {
        Self {
            plan,
            ready: VecDeque::new(),
            idle: BTreeMap::new(),
            slots: 0,
            running: 0,
            unreadable: BTreeSet::new(),
            no_tasks: false,
            next_slot: 0,
            stop_by: None,
            overdue: false,
            runner: None,
            abandoned: false,
            unseen: observed.then(VecDeque::new),
            report: WorkerReport::default(),
            ended: None,
        }
    }

    /// The queue that the jobs come from.
    pub(crate) const fn plan(&self) -> &QueuePlan {
        &self.plan
    }

    /// How many handlers run.
    pub(crate) const fn running(&self) -> usize {
        self.running
    }

    /// Takes a job in. `false` when no further job may start.
    pub(crate) fn offer(&mut self, job: JobDelivery, wakes: &mut Wakes) -> bool {
        if self.is_stopping() || self.ended.is_some() {
            return false;
        }
        self.ready.push_back(job);
        self.wake_for_ready(wakes);
        true
    }

    /// Starts no further job: answers with those that have not started, and lets idle slots end. Handlers have until
    /// `by`; asking again can only shorten that.
    pub(crate) fn stop(&mut self, by: Instant, wakes: &mut Wakes) -> VecDeque<JobDelivery> {
        self.stop_by = Some(self.stop_by.map_or(by, |earlier| earlier.min(by)));
        wakes.extend(std::mem::take(&mut self.idle).into_values());
        std::mem::take(&mut self.ready)
    }

    /// Counts what became of a delivery, and keeps it for the observer. `true` when it was a job that has become
    /// stale before it started: it will not run, so the session must be told that nobody settles it any more.
    pub(crate) fn settled(&mut self, settled: Settled, wakes: &mut Wakes) -> bool {
        let unstarted = settled.settlement == Settlement::Stale && self.withdraw(settled.delivery);
        self.report.count(&settled.settlement);
        if let Some(unseen) = &mut self.unseen {
            if unseen.len() < OBSERVER_BACKLOG {
                unseen.push_back(settled);
                wakes.extend(self.runner.take());
            } else {
                self.report.unobserved += 1;
            }
        }
        unstarted
    }

    /// What an operator may want to know of a settlement: what a handler decided is logged where it was decided.
    ///
    /// Why a body or payload cannot be read is left out, as that text may quote it.
    pub(crate) fn note(&mut self, settled: &Settled) -> Option<Settled> {
        let unreadable = match settled.job {
            None => Some("the body is no job"),
            Some(_) => {
                self.unreadable.remove(&settled.delivery).then_some("its handler cannot read the payload")
            }
        };
        match settled.settlement {
            Settlement::Done
            | Settlement::Retried { .. }
            | Settlement::Deferred { .. }
            | Settlement::Requeued { cause: None } => return None,
            _ => {}
        }
        let mut settled = settled.clone();
        if let Settlement::DeadLettered { reason, .. } | Settlement::Rejected { reason } =
            &mut settled.settlement
            && let Some(unreadable) = unreadable
        {
            unreadable.clone_into(reason);
        }
        Some(settled)
    }

    /// Nothing more comes from the session.
    pub(crate) fn end(&mut self, result: Result<Left, SubscriptionError>, wakes: &mut Wakes) {
        self.ready.clear();
        self.ended = Some(result);
        self.wake_all(wakes);
    }

    /// Until when this goes on although the session has no more to do with it: a subscription ends at once when its
    /// connection is down, as nothing can be settled, and handlers that run have the grace all the same.
    pub(crate) fn lingers_until(&self) -> Option<Instant> {
        self.stop_by.filter(|_| self.ended.is_some() && self.running > 0 && !self.overdue)
    }

    /// Ends the grace if it is over.
    pub(crate) fn expire(&mut self, now: Instant, wakes: &mut Wakes) {
        if !self.overdue && self.stop_by.is_some_and(|by| by <= now) {
            self.overdue = true;
            wakes.extend(self.runner.take());
        }
    }

    /// Whether nobody waits for anything of this any more.
    pub(crate) fn is_over(&self) -> bool {
        self.abandoned && self.ended.is_some() && self.lingers_until().is_none()
    }

    pub(crate) fn wake_all(&mut self, wakes: &mut Wakes) {
        wakes.extend(std::mem::take(&mut self.idle).into_values());
        wakes.extend(self.runner.take());
    }

    /// What the runner has to do next.
    pub(super) fn step(&mut self, cx: &Context<'_>, wakes: &mut Wakes) -> Poll<Step> {
        if let Some(unseen) = &mut self.unseen
            && !unseen.is_empty()
        {
            return Poll::Ready(Step::Observe(std::mem::take(unseen)));
        }
        if self.no_tasks && !self.is_stopping() {
            return Poll::Ready(Step::NoTasks);
        }
        let wanted = self.ready.len().min(self.limit() - self.slots);
        if wanted > 0 {
            let first = self.next_slot;
            self.next_slot += wanted as SlotId;
            self.slots += wanted;
            return Poll::Ready(Step::Spawn(first..self.next_slot));
        }
        let lingers = self.lingers_until().is_some();
        match self.ended.take_if(|_| !lingers) {
            Some(Ok(left)) => Poll::Ready(Step::Ended(Ok(self.report.with_left(left)))),
            Some(Err(error)) => Poll::Ready(Step::Ended(Err(error))),
            None => {
                wakes.register(&mut self.runner, cx);
                Poll::Pending
            }
        }
    }

    /// The runner is gone.
    pub(super) fn abandon(&mut self, wakes: &mut Wakes) {
        self.abandoned = true;
        wakes.retire(self.runner.take());
        self.unseen = None;
    }

    /// The next job, if one is ready: its handler runs from now on.
    pub(super) fn take(&mut self) -> Option<JobDelivery> {
        let job = self.ready.pop_front();
        self.running += usize::from(job.is_some());
        job
    }

    /// A handler has ended.
    pub(super) fn finish(&mut self, wakes: &mut Wakes) {
        self.running -= 1;
        if self.running == 0 && self.ended.is_some() {
            wakes.extend(self.runner.take());
        }
    }

    /// The handler of this job could not read it; the session is about to dead-letter it.
    pub(super) fn unreadable(&mut self, delivery: DeliveryId) {
        self.unreadable.insert(delivery);
    }

    /// The next job for this slot; `None` when there will be no more.
    pub(super) fn next(
        &mut self,
        slot: SlotId,
        cx: &Context<'_>,
        wakes: &mut Wakes,
    ) -> Poll<Option<JobDelivery>> {
        let job = self.take();
        if job.is_some() || self.is_stopping() || self.ended.is_some() {
            wakes.retire(self.idle.remove(&slot));
            return Poll::Ready(job);
        }
        wakes.retire(self.idle.insert(slot, cx.waker().clone()));
        Poll::Pending
    }

    /// A slot is gone, perhaps after it was woken for a job that it will not take.
    ///
    /// One that never ran is not replaced, or it would be replaced for ever.
    pub(super) fn leave(&mut self, slot: SlotId, started: bool, wakes: &mut Wakes) {
        wakes.retire(self.idle.remove(&slot));
        self.slots -= 1;
        if !started {
            self.no_tasks = true;
            wakes.extend(self.runner.take());
        } else if !self.ready.is_empty() {
            self.wake_for_ready(wakes);
        }
    }

    /// Takes a job out that has not started, if it is there.
    fn withdraw(&mut self, delivery: DeliveryId) -> bool {
        // They are in the order in which they were delivered.
        let found = self.ready.binary_search_by_key(&delivery, |job| job.delivery);
        found.is_ok_and(|index| self.ready.remove(index).is_some())
    }

    const fn is_stopping(&self) -> bool {
        self.stop_by.is_some()
    }

    /// How many jobs may run at a time.
    fn limit(&self) -> usize {
        self.plan.prefetch().get().into()
    }

    /// The lowest idle slot is woken: under a light load the same few run everything.
    fn wake_for_ready(&mut self, wakes: &mut Wakes) {
        match self.idle.pop_first() {
            Some((_, slot)) => wakes.extend(Some(slot)),
            None if self.slots < self.limit() => wakes.extend(self.runner.take()),
            None => {} // Every slot is busy, and takes the next job when it has finished its own.
        }
    }
}
