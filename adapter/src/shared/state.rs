//! What is behind the lock, and where each event of the session goes.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use leveret_core::session::{
    Closed, ConnectError, EnqueueError, PublishId, QueueCounts, RequestError, RequestId, Session,
    SessionEvent, SubscriptionId,
};
use leveret_core::settle::{DeliveryId, Outcome};
use leveret_core::time::Instant;
use leveret_core::topology::QueuePlan;

use super::Stopped;
use crate::waiters::{Waiters, Wakes};
use crate::worker::Dispatch;

/// The session, and everybody who waits for something of it.
pub(crate) struct State {
    pub(crate) session: Session,
    /// The driver, while it sleeps. Whoever gives the session something to do takes it and wakes it.
    pub(crate) driver: Option<Waker>,
    /// How the session ended. Nothing that waits is answered after that.
    pub(crate) end: Option<End>,
    pub(crate) connecting: Waiters<(), Result<(), ConnectError>>,
    pub(crate) publishes: Waiters<PublishId, Result<(), EnqueueError>>,
    /// Those who found the session full, in their order.
    pub(crate) room: Waiters<Ticket, ()>,
    pub(crate) inspections: Waiters<RequestId, Result<Option<QueueCounts>, RequestError>>,
    pub(crate) deletions: Waiters<RequestId, Result<u32, RequestError>>,
    /// Those who wait for the end of the session.
    pub(crate) closing: Waiters<Ticket, Closed>,
    pub(crate) workers: BTreeMap<SubscriptionId, Dispatch>,
    /// How the session has ended, while handlers still have time.
    closed: Option<Closed>,
    /// Whether the session was told to end.
    pub(crate) shutting_down: bool,
    /// Whether the session was given a command since its output was last taken.
    pub(crate) dirty: bool,
    tickets: u64,
}

/// Names somebody who waits for something that has no name of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// An event for the sockets or the log.
pub(crate) struct Outside {
    pub(crate) event: SessionEvent,
    /// The queue of the subscription that it is about.
    pub(crate) plan: Option<QueuePlan>,
}

/// How a session ended.
pub(crate) enum End {
    /// It was shut down.
    Closed(Closed),
    /// It never started; the one who connected was told why.
    NotConnected,
    /// It was torn away.
    Stopped(Stopped),
}

impl State {
    pub(super) const fn new(session: Session) -> Self {
        Self {
            session,
            driver: None,
            end: None,
            connecting: Waiters::new(),
            publishes: Waiters::new(),
            room: Waiters::new(),
            inspections: Waiters::new(),
            deletions: Waiters::new(),
            closing: Waiters::new(),
            workers: BTreeMap::new(),
            closed: None,
            shutting_down: false,
            dirty: false,
            tickets: 0,
        }
    }

    pub(crate) const fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// Hands an event to whom it concerns. What concerns sockets and logs is given back, since neither is touched
    /// under the lock.
    pub(crate) fn deliver(
        &mut self,
        now: Instant,
        event: SessionEvent,
        wakes: &mut Wakes,
    ) -> Option<Outside> {
        match event {
            SessionEvent::Ready => self.connecting.answer(&(), Ok(()), wakes),
            SessionEvent::ConnectFailed(error) => {
                self.connecting.answer(&(), Err(error), wakes);
                self.finish(End::NotConnected, wakes);
            }
            SessionEvent::Enqueued { publish, result } => self.publishes.answer(&publish, result, wakes),
            SessionEvent::Writable => self.room.answer_all(|| (), wakes),
            SessionEvent::Inspected { request, result } => self.inspections.answer(&request, result, wakes),
            SessionEvent::Deleted { request, result } => self.deletions.answer(&request, result, wakes),
            SessionEvent::Job(job) => {
                let delivery = job.delivery;
                let taken = match self.workers.get_mut(&job.subscription) {
                    Some(worker) => worker.offer(job, wakes),
                    None => false,
                };
                if !taken {
                    self.requeue(now, delivery);
                }
            }
            SessionEvent::Settled(settled) => {
                let worker = self.workers.get_mut(&settled.subscription)?;
                let note = worker.note(&settled).map(|settled| Outside {
                    event: SessionEvent::Settled(settled),
                    plan: Some(worker.plan().clone()),
                });
                let delivery = settled.delivery;
                if worker.settled(settled, wakes) {
                    self.requeue(now, delivery);
                }
                return note;
            }
            SessionEvent::SubscriptionStarted { subscription } => {
                let plan = self.workers.get(&subscription).map(|worker| worker.plan().clone());
                return Some(Outside { event, plan });
            }
            SessionEvent::SubscriptionEnded { subscription, ref result } => {
                let worker = self.workers.get_mut(&subscription)?;
                worker.end(result.clone(), wakes);
                let plan = Some(worker.plan().clone());
                return Some(Outside { event, plan });
            }
            SessionEvent::Closed(closed) => self.closed = Some(closed),
            event => return Some(Outside { event, plan: None }),
        }
        None
    }

    /// After the events: ends what has no more time, or nothing to wait for. Answers when the next grace ends that
    /// the session does not wait for itself.
    pub(crate) fn handle_graces(&mut self, now: Instant, wakes: &mut Wakes) -> Option<Instant> {
        self.workers.retain(|_, worker| {
            worker.expire(now, wakes);
            !worker.is_over()
        });
        let next = self.workers.values().filter_map(Dispatch::lingers_until).min();
        if next.is_none()
            && let Some(closed) = self.closed.take()
        {
            self.closing.answer_all(|| closed.clone(), wakes);
            self.finish(End::Closed(closed), wakes);
        }
        next
    }

    /// Ends a subscription: no further job of it starts, what has not started goes back to the broker, and running
    /// handlers have until the end of the grace. Answers how many these are, where there is such a subscription.
    pub(crate) fn unsubscribe(
        &mut self,
        now: Instant,
        subscription: SubscriptionId,
        grace: Duration,
        wakes: &mut Wakes,
    ) -> Option<usize> {
        self.session.unsubscribe(now, subscription, grace);
        self.stop_worker(now, subscription, now + grace, wakes)
    }

    /// The same for all subscriptions, and then for the session.
    pub(crate) fn shut_down(&mut self, now: Instant, grace: Duration, wakes: &mut Wakes) -> usize {
        self.shutting_down = true;
        self.session.shutdown(now, grace);
        let all: Vec<SubscriptionId> = self.workers.keys().copied().collect();
        all.into_iter().filter_map(|worker| self.stop_worker(now, worker, now + grace, wakes)).sum()
    }

    fn stop_worker(
        &mut self,
        now: Instant,
        subscription: SubscriptionId,
        by: Instant,
        wakes: &mut Wakes,
    ) -> Option<usize> {
        let worker = self.workers.get_mut(&subscription)?;
        let running = worker.running();
        for job in worker.stop(by, wakes) {
            self.requeue(now, job.delivery);
        }
        Some(running)
    }

    /// Whom to wake because nothing that waits will be answered any more.
    pub(crate) fn wake_all(&mut self, wakes: &mut Wakes) {
        wakes.extend(self.driver.take());
        self.connecting.wake_all(wakes);
        self.publishes.wake_all(wakes);
        self.room.wake_all(wakes);
        self.inspections.wake_all(wakes);
        self.deletions.wake_all(wakes);
        self.closing.wake_all(wakes);
        for worker in self.workers.values_mut() {
            worker.wake_all(wakes);
        }
    }

    fn finish(&mut self, end: End, wakes: &mut Wakes) {
        self.end.get_or_insert(end);
        self.wake_all(wakes);
    }

    fn requeue(&mut self, now: Instant, delivery: DeliveryId) {
        self.dirty = true;
        // The only error is that it is stale, and then the broker has it already.
        let _ = self.session.settle(now, delivery, &Outcome::Requeue);
    }
}
