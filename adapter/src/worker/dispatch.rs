//! The jobs of one worker that have not started, and the slots that run them.
//!
//! A slot is a task that runs one job after another, so that in steady state no task is made per job. Slots are
//! made when a job finds none idle, up to the queue's prefetch count: the broker never has more jobs with us.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};

use leveret_core::session::{JobDelivery, Left, Settled, SubscriptionError};
use leveret_core::settle::DeliveryId;

use super::report::WorkerReport;
use crate::waiters::Wakes;

/// How many settlements wait for an observer that does not keep up. More are counted and not shown.
pub(super) const OBSERVER_BACKLOG: usize = 4096;

/// What is behind the lock of one worker.
///
/// There are never more jobs in `ready` than the session has in hand, since those whose connection has ended are
/// taken out.
pub(crate) struct Dispatch {
    ready: VecDeque<JobDelivery>,
    /// Slots that wait for a job.
    idle: BTreeMap<SlotId, Waker>,
    slots: usize,
    /// Whether the runtime dropped a slot that it had not begun to run.
    no_tasks: bool,
    limit: usize,
    next_slot: SlotId,
    stopping: bool,
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
    /// At most `limit` jobs run at a time.
    pub(super) fn new(limit: usize, observed: bool) -> Self {
        Self {
            ready: VecDeque::new(),
            idle: BTreeMap::new(),
            slots: 0,
            no_tasks: false,
            limit,
            next_slot: 0,
            stopping: false,
            runner: None,
            abandoned: false,
            unseen: observed.then(VecDeque::new),
            report: WorkerReport::default(),
            ended: None,
        }
    }

    /// Takes a job in. `false` when no further job may start.
    pub(crate) fn offer(&mut self, job: JobDelivery, wakes: &mut Wakes) -> bool {
        if self.stopping || self.ended.is_some() {
            return false;
        }
        self.ready.push_back(job);
        self.wake_for_ready(wakes);
        true
    }

    /// Starts no further job: answers with those that have not started, and lets idle slots end.
    pub(crate) fn stop(&mut self, wakes: &mut Wakes) -> VecDeque<JobDelivery> {
        self.stopping = true;
        wakes.extend(std::mem::take(&mut self.idle).into_values());
        std::mem::take(&mut self.ready)
    }

    /// Takes out a job that has not started and cannot be settled any more: it will be delivered again. `false` when it
    /// has started.
    pub(crate) fn withdraw(&mut self, delivery: DeliveryId) -> bool {
        // They are in the order in which they were delivered, and so are their ids.
        let found = self.ready.binary_search_by_key(&delivery, |job| job.delivery);
        found.is_ok_and(|index| self.ready.remove(index).is_some())
    }

    /// Counts what became of a delivery, and keeps it for the observer.
    pub(crate) fn settled(&mut self, settled: Settled, wakes: &mut Wakes) {
        self.report.count(&settled.settlement);
        if let Some(unseen) = &mut self.unseen {
            if unseen.len() < OBSERVER_BACKLOG {
                unseen.push_back(settled);
                wakes.extend(self.runner.take());
            } else {
                self.report.unobserved += 1;
            }
        }
    }

    /// Nothing more comes. `true` when nobody wants to know and this can go.
    pub(crate) fn end(&mut self, result: Result<Left, SubscriptionError>, wakes: &mut Wakes) -> bool {
        self.ready.clear();
        self.ended = Some(result);
        self.wake_all(wakes);
        self.abandoned
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
        if self.no_tasks && !self.stopping {
            return Poll::Ready(Step::NoTasks);
        }
        let wanted = self.ready.len().min(self.limit - self.slots);
        if wanted > 0 {
            let first = self.next_slot;
            self.next_slot += wanted as SlotId;
            self.slots += wanted;
            return Poll::Ready(Step::Spawn(first..self.next_slot));
        }
        match self.ended.take() {
            Some(Ok(left)) => Poll::Ready(Step::Ended(Ok(self.report.with_left(left)))),
            Some(Err(error)) => Poll::Ready(Step::Ended(Err(error))),
            None => {
                wakes.register(&mut self.runner, cx);
                Poll::Pending
            }
        }
    }

    /// The runner is gone. `true` when this can go too.
    pub(super) fn abandon(&mut self, wakes: &mut Wakes) -> bool {
        self.abandoned = true;
        wakes.retire(self.runner.take());
        self.unseen = None;
        self.ended.is_some()
    }

    /// The next job, if one is ready.
    pub(super) fn take(&mut self) -> Option<JobDelivery> {
        self.ready.pop_front()
    }

    /// The next job for this slot; `None` when there will be no more.
    pub(super) fn next(
        &mut self,
        slot: SlotId,
        cx: &Context<'_>,
        wakes: &mut Wakes,
    ) -> Poll<Option<JobDelivery>> {
        let job = self.take();
        if job.is_some() || self.stopping || self.ended.is_some() {
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

    /// The lowest idle slot is woken: under a light load the same few run everything.
    fn wake_for_ready(&mut self, wakes: &mut Wakes) {
        match self.idle.pop_first() {
            Some((_, slot)) => wakes.extend(Some(slot)),
            None if self.slots < self.limit => wakes.extend(self.runner.take()),
            None => {} // Every slot is busy, and takes the next job when it has finished its own.
        }
    }
}
