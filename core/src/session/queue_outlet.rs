//! The channel on which one work queue is declared and its delayed jobs are published.
//!
//! Each queue has its own: a declare that the broker refuses closes its channel, and must not take the publishes
//! of other queues with it. Declare and publish go back to back, since RabbitMQ works through one channel in
//! order and executes nothing that follows a refused declare.

use std::collections::VecDeque;
use std::time::Duration;

use super::ids::PublishId;
use super::outlet::Outlet;
use super::refusal::Refusal;
use super::refusal::is_queue_declare;
use super::waiting::{Room, Waiting};
use crate::connection::{ChannelId, CloseReason, CommandError, Connection};
use crate::delay::{Confirmed, HoldBook, HoldTtl, Late, Lease};
use crate::text::ShortString;
use crate::time::Instant;
use crate::topology::QueuePlan;

#[cfg(test)]
mod tests;

/// How long an absent queue is left alone before it is declared again.
const ABSENT_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct QueueOutlet {
    pub(super) outlet: Outlet,
    /// What is to leave on this channel: delayed jobs, and what is published again behind a declare.
    pub(super) own: Waiting,
    /// What is to leave on the channel that all queues share.
    pub(super) shared: Waiting,
    /// Declares that were sent and not answered, in order.
    awaited: VecDeque<Awaited>,
    pub(super) holds: HoldBook,
    /// Confirmed so late that only a renewed lease makes them safe.
    late: Vec<(PublishId, Late)>,
    /// Somebody may have deleted what is ours.
    suspect: bool,
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The queue is not declared on this link yet.
    Declaring,
    /// Its node is down. What is published to it waits, and it is declared again then.
    Absent {
        until: Instant,
    },
    Ready,
    Refused(Refusal),
}

#[derive(Clone, Debug, PartialEq)]
enum Awaited {
    Base(ShortString),
    Hold(HoldTtl),
}

/// What the end of the channel means.
#[derive(Debug)]
pub(super) enum Lost {
    /// The work queue or its dead-letter queue was refused: nothing can be published to this queue.
    Queue(Refusal),
    /// The same, for as long as the queue's node is down.
    QueueAbsent(Refusal),
    /// One hold queue was refused; others may go on.
    Hold(HoldTtl, Refusal),
    /// One of the publishes in flight was refused; which one, nobody says.
    Publish,
}

impl QueueOutlet {
    pub(super) fn new(plan: &QueuePlan) -> Self {
        Self {
            outlet: Outlet::default(),
            own: Waiting::default(),
            shared: Waiting::default(),
            awaited: VecDeque::new(),
            holds: plan.holds().book(),
            late: Vec::new(),
            suspect: false,
            state: State::Declaring,
        }
    }

    /// Opens the channel and declares the work queue and its dead-letter queue.
    pub(super) fn open(
        &mut self,
        connection: &mut Connection,
        plan: &QueuePlan,
    ) -> Result<ChannelId, CommandError> {
        self.awaited.clear();
        let channel = self.outlet.open(connection)?;
        self.state = State::Declaring;
        self.declare_base(connection, channel, plan)?;
        Ok(channel)
    }

    /// The next that is to leave on this channel, if fewer than `max_in_flight` are on their way.
    pub(super) fn next_own(&mut self, room: Room, max_in_flight: usize) -> Option<PublishId> {
        let may = self.is_resolved() && self.outlet.has_room(max_in_flight);
        if may { self.own.pop(room) } else { None }
    }

    /// The next that is to leave on the shared channel.
    pub(super) fn next_shared(&mut self, room: Room) -> Option<PublishId> {
        if self.is_resolved() { self.shared.pop(room) } else { None }
    }

    /// A publish came back: what is ours is declared again before the next one that leaves on this channel.
    pub(super) const fn suspect(&mut self) {
        self.suspect = true;
    }

    /// Declares again what is ours, where somebody may have deleted it.
    pub(super) fn restore(
        &mut self,
        connection: &mut Connection,
        plan: &QueuePlan,
    ) -> Result<(), CommandError> {
        match self.outlet.channel() {
            Some(channel) if self.suspect => self.declare_base(connection, channel, plan),
            _ => Ok(()),
        }
    }

    /// Makes sure that a hold queue outlives what is published to it next.
    pub(super) fn cover(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        plan: &QueuePlan,
        ttl: HoldTtl,
    ) -> Result<(), CommandError> {
        match self.holds.before_publish(now, ttl) {
            Lease::Covered => Ok(()),
            Lease::Declare => self.declare_hold(now, connection, plan, ttl),
        }
    }

    /// A publish into a hold was confirmed, too late to be sure of it: remembers it until the lease is renewed.
    pub(super) fn confirmed_late(&mut self, publish: PublishId, late: Late) {
        self.late.push((publish, late));
    }

    pub(super) fn declare_hold(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        plan: &QueuePlan,
        ttl: HoldTtl,
    ) -> Result<(), CommandError> {
        let Some(channel) = self.outlet.channel() else { return Ok(()) };
        connection.declare_queue(channel, &plan.hold(ttl))?;
        self.holds.declare_sent(now, ttl);
        self.awaited.push_back(Awaited::Hold(ttl));
        Ok(())
    }

    /// A declare was answered. Returns those whose confirm can be judged now.
    pub(super) fn declare_ok(&mut self, now: Instant) -> Vec<(PublishId, Confirmed)> {
        let answered = self.awaited.pop_front();
        if self.state == State::Declaring && !self.awaited.iter().any(|a| matches!(a, Awaited::Base(_))) {
            self.state = State::Ready;
        }
        let Some(Awaited::Hold(ttl)) = answered else { return Vec::new() };
        self.holds.declare_ok(now, ttl);
        let holds = &self.holds;
        let (judged, others) =
            std::mem::take(&mut self.late).into_iter().partition(|(_, late)| late.ttl() == ttl);
        self.late = others;
        let judged: Vec<(PublishId, Late)> = judged;
        judged.into_iter().map(|(publish, late)| (publish, holds.after_declare_ok(now, late))).collect()
    }

    /// The channel is gone: those that were confirmed too late to be sure of, and those in flight.
    pub(super) fn closed(&mut self) -> Vec<PublishId> {
        let late = std::mem::take(&mut self.late).into_iter().map(|(publish, _)| publish);
        late.chain(self.outlet.closed()).collect()
    }

    /// The link is down: as [`QueueOutlet::closed`], and the queue is declared when the link is up again.
    pub(super) fn link_down(&mut self) -> Vec<PublishId> {
        self.state = State::Declaring;
        self.holds.clear();
        self.closed()
    }

    /// The channel was closed by the broker.
    pub(super) fn lost(&mut self, now: Instant, reason: CloseReason, plan: &QueuePlan) -> Lost {
        self.state = State::Declaring;
        // The broker works in order, so the refused declare is the oldest that was not answered.
        let refused = std::mem::take(&mut self.awaited).pop_front().filter(|_| is_queue_declare(&reason));
        if let Some(Awaited::Hold(ttl)) = refused {
            self.holds.after_refusal(ttl);
            return Lost::Hold(ttl, Refusal { queue: plan.hold_name(ttl), reason });
        }
        self.holds.clear();
        match refused {
            // RabbitMQ: a declare is answered with 404 only while the node that holds the queue is down.
            Some(Awaited::Base(queue)) if reason.code == 404 => {
                self.state = State::Absent { until: now + ABSENT_PAUSE };
                Lost::QueueAbsent(Refusal { queue, reason })
            }
            Some(Awaited::Base(queue)) => {
                let refusal = Refusal { queue, reason };
                self.state = State::Refused(refusal.clone());
                Lost::Queue(refusal)
            }
            _ => Lost::Publish,
        }
    }

    /// Whether the broker has said yes or no to the queue.
    pub(super) const fn is_resolved(&self) -> bool {
        matches!(self.state, State::Ready | State::Refused(_))
    }

    /// Opens the channel of an absent queue again, if its time has come.
    pub(super) fn open_if_due(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        plan: &QueuePlan,
    ) -> Result<Option<ChannelId>, CommandError> {
        match self.state {
            State::Absent { until } if until <= now => {
                // Where there is no channel left, it is tried again later.
                self.state = State::Absent { until: now + ABSENT_PAUSE };
                self.open(connection, plan).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// When an absent queue is to be declared again.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Absent { until } => Some(until),
            _ => None,
        }
    }

    pub(super) const fn refusal(&self) -> Option<&Refusal> {
        match &self.state {
            State::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    fn declare_base(
        &mut self,
        connection: &mut Connection,
        channel: ChannelId,
        plan: &QueuePlan,
    ) -> Result<(), CommandError> {
        for declaration in plan.declarations() {
            connection.declare_queue(channel, &declaration)?;
            self.awaited.push_back(Awaited::Base(declaration.name));
        }
        self.suspect = false;
        Ok(())
    }
}
