//! What is behind the lock, and where each event of the session goes.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use leveret_core::session::{
    Closed, ConnectError, EnqueueError, PublishId, QueueCounts, RequestError, RequestId, Session,
    SessionEvent, Settled, Settlement, SubscriptionId,
};
use leveret_core::settle::{DeliveryId, Outcome};
use leveret_core::time::Instant;

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
    /// Whether the session was told to end.
    pub(crate) shutting_down: bool,
    /// Whether the session was given a command since its output was last taken.
    pub(crate) dirty: bool,
    tickets: u64,
}

/// Names somebody who waits for something that has no name of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

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
    ) -> Option<SessionEvent> {
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
                    self.hand_back(now, delivery);
                }
            }
            SessionEvent::Settled(settled) => {
                let note = is_remarkable(&settled).then(|| SessionEvent::Settled(settled.clone()));
                if let Some(worker) = self.workers.get_mut(&settled.subscription) {
                    let delivery = settled.delivery;
                    let withdrawn = settled.settlement == Settlement::Stale && worker.withdraw(delivery);
                    worker.settled(settled, wakes);
                    if withdrawn {
                        self.hand_back(now, delivery);
                    }
                }
                return note;
            }
            SessionEvent::SubscriptionEnded { subscription, result } => {
                let note = SessionEvent::SubscriptionEnded { subscription, result: result.clone() };
                if let Some(worker) = self.workers.get_mut(&subscription)
                    && worker.end(result, wakes)
                {
                    self.workers.remove(&subscription);
                }
                return Some(note);
            }
            SessionEvent::Closed(closed) => {
                self.closing.answer_all(|| closed.clone(), wakes);
                self.finish(End::Closed(closed), wakes);
            }
            outside => return Some(outside),
        }
        None
    }

    /// Ends a subscription: no further job of it starts, what has not started goes back to the broker, and running
    /// handlers have until the end of the grace.
    pub(crate) fn unsubscribe(
        &mut self,
        now: Instant,
        subscription: SubscriptionId,
        grace: Duration,
        wakes: &mut Wakes,
    ) {
        self.session.unsubscribe(now, subscription, grace);
        self.stop_worker(now, subscription, wakes);
    }

    /// The same for all subscriptions, and then for the session.
    pub(crate) fn shut_down(&mut self, now: Instant, grace: Duration, wakes: &mut Wakes) {
        self.shutting_down = true;
        self.session.shutdown(now, grace);
        let all: Vec<SubscriptionId> = self.workers.keys().copied().collect();
        for subscription in all {
            self.stop_worker(now, subscription, wakes);
        }
    }

    fn stop_worker(&mut self, now: Instant, subscription: SubscriptionId, wakes: &mut Wakes) {
        let unstarted = self.workers.get_mut(&subscription).map(|worker| worker.stop(wakes));
        for job in unstarted.into_iter().flatten() {
            self.hand_back(now, job.delivery);
        }
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

    fn hand_back(&mut self, now: Instant, delivery: DeliveryId) {
        self.dirty = true;
        // The only error is that it is stale, and then the broker has it already.
        let _ = self.session.settle(now, delivery, &Outcome::HandBack);
    }
}

/// Whether an operator may want to know: what a handler decided is logged where it was decided.
const fn is_remarkable(settled: &Settled) -> bool {
    settled.job.is_none()
        || matches!(settled.settlement, Settlement::HandedBack { cause: Some(_) } | Settlement::Stale)
}
