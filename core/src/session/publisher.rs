//! Everything that is to be published, from the command to the broker's verdict.
//!
//! Jobs without a delay, dead letters and retries without a delay leave on one shared channel: the default
//! exchange returns what it cannot route and never closes the channel for it. Delayed ones leave on the channel
//! of their queue. After a cut everything without a verdict is sent again, in order, once the queues are declared
//! again.

use std::collections::BTreeMap;
use std::time::Duration;

use super::config::SessionConfig;
use super::error::EnqueueError;
use super::event::SessionEvent;
use super::ids::PublishId;
use super::outbox::Outbox;
use super::outlet::{InFlight, Outlet};
use super::publish::{Origin, Publish};
use super::queue_outlet::{Lost, QueueOutlet};
use super::refusal::Refusal;
use crate::connection::{ChannelId, CloseReason, CommandError, Connection, PublishError, Verdict};
use crate::delay::{Confirmed, HoldTtl};
use crate::message::Message;
use crate::settle::{DeliveryId, SettleLedger, Step, SuccessorVerdict};
use crate::text::ShortString;
use crate::time::Instant;
use crate::topology::QueuePlan;

#[derive(Debug)]
pub(super) struct Publisher {
    next: u64,
    publishes: BTreeMap<PublishId, Publish>,
    direct: Outlet,
    queues: Vec<QueueOutlet>,
    channels: BTreeMap<ChannelId, Owner>,
    limits: Limits,
    enqueued: Load,
    /// Somebody was answered `Full` and waits for `Writable`.
    refused_for_room: bool,
    ended: Vec<SuccessorEnd>,
}

/// What everything that publishes needs at hand.
pub(super) struct Context<'a> {
    pub(super) now: Instant,
    pub(super) connection: &'a mut Connection,
    pub(super) plans: &'a [QueuePlan],
    pub(super) ledger: &'a mut SettleLedger,
    pub(super) outbox: &'a mut Outbox,
}

/// A successor that the publisher is done with, and what its original needs next.
#[derive(Debug)]
pub(super) struct SuccessorEnd {
    pub(super) delivery: DeliveryId,
    pub(super) step: Step,
    /// Where it was confirmed: the queue asked for, or a larger hold queue.
    pub(super) result: Result<ShortString, EnqueueError>,
}

/// What the end of one of our channels means.
#[derive(Debug)]
pub(super) enum ChannelLost {
    /// It was opened again.
    Reopened,
    /// It was closed over a queue, to which nothing can be published.
    Refused(Refusal),
    /// It was closed over nothing that we sent, so that a new one would be closed as well, and the next.
    ForNothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Direct,
    Queue(usize),
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    in_flight: usize,
    waiting: usize,
    waiting_bytes: usize,
    max_wait: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    messages: usize,
    bytes: usize,
}

impl Publisher {
    pub(super) fn new(config: &SessionConfig, plans: &[QueuePlan]) -> Self {
        Self {
            next: 0,
            publishes: BTreeMap::new(),
            direct: Outlet::default(),
            queues: plans.iter().map(QueueOutlet::new).collect(),
            channels: BTreeMap::new(),
            limits: Limits {
                in_flight: config.max_in_flight.max(1),
                waiting: config.max_waiting.max(1),
                waiting_bytes: config.max_waiting_bytes,
                max_wait: config.max_wait,
            },
            enqueued: Load::default(),
            refused_for_room: false,
            ended: Vec::new(),
        }
    }

    /// Takes a job from the application.
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        queue: usize,
        message: Message,
        hold: Option<HoldTtl>,
    ) -> Result<PublishId, EnqueueError> {
        if let Some(refusal) = self.queues[queue].refusal() {
            return Err(EnqueueError::Refused(refusal.clone()));
        }
        let bytes = self.enqueued.bytes.saturating_add(message.body.len());
        let first = self.enqueued.messages == 0;
        if self.enqueued.messages >= self.limits.waiting || (bytes > self.limits.waiting_bytes && !first) {
            self.refused_for_room = true;
            return Err(EnqueueError::Full);
        }
        self.enqueued.messages += 1;
        self.enqueued.bytes = bytes;
        Ok(self.add(now, queue, Origin::Enqueue, message, hold))
    }

    /// Takes the successor of a delivery. There is always room: deliveries are bounded by the prefetch counts.
    pub(super) fn succeed(
        &mut self,
        now: Instant,
        queue: usize,
        delivery: DeliveryId,
        message: Message,
        hold: Option<HoldTtl>,
    ) -> PublishId {
        self.add(now, queue, Origin::Successor(delivery), message, hold)
    }

    /// Drops successors whose originals the broker delivers again: the new deliveries bring their own.
    ///
    /// One that is in flight cannot be called back; its verdict will be ignored.
    pub(super) fn forget_successors(&mut self, stale: impl Fn(DeliveryId) -> bool) {
        self.publishes.retain(|_, publish| match publish.origin {
            Origin::Successor(delivery) => !stale(delivery),
            Origin::Enqueue => true,
        });
        for outlet in self.queues.iter_mut().map(|queue| &mut queue.outlet).chain([&mut self.direct]) {
            outlet.extract(|id| !self.publishes.contains_key(&id));
        }
    }

    /// The link is up: opens the channels and declares the queues.
    pub(super) fn link_up(
        &mut self,
        connection: &mut Connection,
        plans: &[QueuePlan],
    ) -> Result<(), CommandError> {
        let channel = self.direct.open(connection)?;
        self.channels.insert(channel, Owner::Direct);
        for (index, queue) in self.queues.iter_mut().enumerate() {
            let channel = queue.open(connection, &plans[index])?;
            self.channels.insert(channel, Owner::Queue(index));
        }
        Ok(())
    }

    /// The link is down: what was in flight waits again, ahead of what was not sent.
    pub(super) fn link_down(&mut self, ledger: &mut SettleLedger) {
        self.channels.clear();
        let shared: Vec<_> = self.direct.closed().collect();
        for unanswered in self.queues.iter_mut().map(QueueOutlet::closed).chain([shared]).collect::<Vec<_>>()
        {
            self.wait_again(unanswered, SuccessorVerdict::LinkLost, ledger);
        }
    }

    /// Whether the broker has said yes or no to every queue, so that publishes may go.
    pub(super) fn is_restored(&self) -> bool {
        self.queues.iter().all(QueueOutlet::is_resolved)
    }

    pub(super) fn queue_declared(&mut self, channel: ChannelId, context: &mut Context<'_>) {
        let Some(&Owner::Queue(queue)) = self.channels.get(&channel) else { return };
        for (id, confirmed) in self.queues[queue].declare_ok(context.now) {
            self.confirmed(id, confirmed, context);
        }
    }

    /// Hands publishes to the connection, as many as may be in flight.
    pub(super) fn pump(&mut self, context: &mut Context<'_>) {
        if !self.is_restored() || context.connection.is_blocked() {
            return;
        }
        let limit = self.limits.in_flight;
        for index in 0..=self.queues.len() {
            while let Some((id, room)) = self.outlet(index).next(limit) {
                if !self.send(index, id, context) {
                    self.outlet(index).wait(id, room);
                    break;
                }
            }
        }
    }

    /// The broker's verdict on one publish.
    pub(super) fn verdict(
        &mut self,
        channel: ChannelId,
        sequence: u64,
        verdict: &Verdict,
        context: &mut Context<'_>,
    ) {
        let Some(&owner) = self.channels.get(&channel) else { return };
        // Without a verdict it stays in flight: the end of the channel or link, which follows, decides.
        if matches!(verdict, Verdict::Unknown(_)) {
            return;
        }
        let index = self.index_of(owner);
        let Some(InFlight { publish: id, cover }) = self.outlet(index).answered(sequence) else {
            return;
        };
        let Some(publish) = self.publishes.get_mut(&id) else { return };
        let target = publish.message.routing_key.clone();
        match (verdict, cover) {
            (Verdict::Ok, None) => self.finish(id, Ok(()), context.ledger, context.outbox),
            (Verdict::Ok, Some(cover)) => {
                let confirmed = self.queues[publish.queue].leases.after_confirm(context.now, cover);
                self.confirmed(id, confirmed, context);
            }
            (Verdict::Nacked, _) => self.refused(id, EnqueueError::Nacked { queue: target }, context),
            (_, cover) => {
                if let Some(cover) = cover {
                    publish.hold = Some(self.queues[publish.queue].leases.after_return(cover));
                }
                self.refused(id, EnqueueError::Unroutable { queue: target }, context);
            }
        }
    }

    /// The broker closed one of our channels. Opens it again, where that makes sense.
    ///
    /// What was in flight is seen to first: the connection may have ended with the channel, and then nothing can be
    /// opened.
    pub(super) fn channel_lost(
        &mut self,
        channel: ChannelId,
        reason: &CloseReason,
        context: &mut Context<'_>,
    ) -> Result<ChannelLost, CommandError> {
        let Some(owner) = self.channels.remove(&channel) else { return Ok(ChannelLost::Reopened) };
        let unknown = EnqueueError::Unknown(reason.clone());
        let Owner::Queue(queue) = owner else {
            let unanswered: Vec<_> = self.direct.closed().collect();
            if unanswered.is_empty() {
                return Ok(ChannelLost::ForNothing);
            }
            self.fail_sent(unanswered, &unknown, context);
            let channel = self.direct.open(context.connection)?;
            self.channels.insert(channel, owner);
            return Ok(ChannelLost::Reopened);
        };
        let plan = &context.plans[queue];
        let lost = self.queues[queue].lost(reason.clone(), plan);
        let unanswered = self.queues[queue].closed();
        if let Lost::Queue(refusal) = lost {
            let error = EnqueueError::Refused(refusal.clone());
            for id in unanswered.into_iter().chain(self.take_waiting(queue)) {
                self.give_up(id, error.clone(), context);
            }
            return Ok(ChannelLost::Refused(refusal));
        }
        if matches!(lost, Lost::Publish) && unanswered.is_empty() {
            return Ok(ChannelLost::ForNothing);
        }
        match lost {
            Lost::Hold(ttl, refusal) => {
                // Those to other holds were executed, or never will be on that channel: they go again.
                let (refused, others): (Vec<_>, Vec<_>) = unanswered
                    .into_iter()
                    .partition(|id| self.publishes.get(id).is_some_and(|publish| publish.hold == Some(ttl)));
                self.wait_again(others, SuccessorVerdict::PublishAgain, context.ledger);
                let error = EnqueueError::Refused(refusal);
                for id in refused {
                    self.give_up(id, error.clone(), context);
                }
            }
            _ => self.fail_sent(unanswered, &unknown, context),
        }
        let channel = self.queues[queue].open(context.connection, plan)?;
        self.channels.insert(channel, owner);
        Ok(ChannelLost::Reopened)
    }

    /// Gives up what has waited too long to be written.
    pub(super) fn handle_timeout(&mut self, now: Instant, ledger: &mut SettleLedger, outbox: &mut Outbox) {
        for index in 0..=self.queues.len() {
            while let Some(id) = self.outlet(index).oldest_enqueue() {
                let Some(publish) = self.publishes.get(&id) else {
                    self.outlet(index).drop_oldest_enqueue();
                    continue;
                };
                if publish.deadline > now {
                    break;
                }
                let error = if publish.was_sent {
                    EnqueueError::Unconfirmed
                } else {
                    EnqueueError::TimedOut { after: self.limits.max_wait }
                };
                self.outlet(index).drop_oldest_enqueue();
                self.finish(id, Err(error), ledger, outbox);
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        std::iter::once(&self.direct)
            .chain(self.queues.iter().map(|queue| &queue.outlet))
            .filter_map(Outlet::oldest_enqueue)
            .filter_map(|id| self.publishes.get(&id))
            .map(|publish| publish.deadline)
            .min()
    }

    /// Whether nothing waits for a verdict.
    pub(super) fn is_idle(&self) -> bool {
        self.publishes.is_empty()
    }

    /// Answers everything that has no verdict. Returns how many enqueued jobs that were.
    pub(super) fn abandon(&mut self, ledger: &mut SettleLedger, outbox: &mut Outbox) -> usize {
        let mut enqueued = 0;
        while let Some((&id, publish)) = self.publishes.first_key_value() {
            if publish.origin == Origin::Enqueue {
                enqueued += 1;
            }
            let error = if publish.was_sent { EnqueueError::Unconfirmed } else { EnqueueError::Closed };
            self.finish(id, Err(error), ledger, outbox);
        }
        enqueued
    }

    pub(super) fn take_ended(&mut self) -> Vec<SuccessorEnd> {
        std::mem::take(&mut self.ended)
    }

    fn add(
        &mut self,
        now: Instant,
        queue: usize,
        origin: Origin,
        message: Message,
        hold: Option<HoldTtl>,
    ) -> PublishId {
        let id = PublishId(self.next);
        self.next += 1;
        let deadline = now + self.limits.max_wait;
        let publish = Publish { queue, origin, message, hold, was_sent: false, second_try: false, deadline };
        let (room, index) = (publish.room(), self.index_for(&publish));
        self.publishes.insert(id, publish);
        self.outlet(index).wait(id, room);
        id
    }

    /// Gives one publish to the connection. `false` when there is no room now.
    fn send(&mut self, index: usize, id: PublishId, context: &mut Context<'_>) -> bool {
        let Some(publish) = self.publishes.get_mut(&id) else { return true };
        let queue = publish.queue;
        if let Some(refusal) = self.queues[queue].refusal() {
            let error = EnqueueError::Refused(refusal.clone());
            self.give_up(id, error, context);
            return true;
        }
        let plan = &context.plans[queue];
        if publish.leaves_on_queue_channel() && self.queues[queue].restore(context.connection, plan).is_err()
        {
            return false;
        }
        let mut held_in = None;
        if let Some(wanted) = publish.hold {
            let ttl = self.queues[queue].leases.choose(wanted);
            publish.hold = Some(ttl);
            publish.message.routing_key = plan.name().hold(ttl);
            if self.queues[queue].cover(context.now, context.connection, plan, ttl).is_err() {
                return false;
            }
            held_in = Some(ttl);
        }
        let Some(channel) = self.outlet(index).channel() else { return false };
        let Some(publish) = self.publishes.get_mut(&id) else { return true };
        let error = match context.connection.publish(channel, &publish.message) {
            Ok(sequence) => {
                publish.was_sent = true;
                if let Origin::Successor(delivery) = publish.origin {
                    let wanted = context.ledger.write(delivery);
                    debug_assert!(wanted, "successors of deliveries that have ended are forgotten at once");
                }
                let cover = held_in.map(|ttl| self.queues[queue].leases.publish_sent(context.now, ttl));
                self.outlet(index).sent(sequence, id, cover);
                return true;
            }
            Err(PublishError::HeadersTooLarge { bytes, limit }) => {
                EnqueueError::HeadersTooLarge { bytes, limit }
            }
            Err(PublishError::HeadersTooDeep { limit }) => EnqueueError::HeadersTooDeep { limit },
            Err(PublishError::BodyTooLarge { bytes, limit }) => EnqueueError::BodyTooLarge { bytes, limit },
            Err(
                PublishError::NotOpen
                | PublishError::NoSuchChannel { .. }
                | PublishError::Full { .. }
                | PublishError::TooManyUnconfirmed { .. },
            ) => return false,
        };
        self.finish(id, Err(error), context.ledger, context.outbox);
        true
    }

    /// What a confirm of a publish into a hold queue is worth.
    fn confirmed(&mut self, id: PublishId, confirmed: Confirmed, context: &mut Context<'_>) {
        let Some(publish) = self.publishes.get_mut(&id) else { return };
        let outlet = &mut self.queues[publish.queue];
        match confirmed {
            Confirmed::Safe => self.finish(id, Ok(()), context.ledger, context.outbox),
            Confirmed::Wait(late) => outlet.confirmed_late(id, late),
            Confirmed::Renew(late) => {
                let plan = &context.plans[publish.queue];
                match outlet.declare_hold(context.now, context.connection, plan, late.ttl()) {
                    Ok(()) => outlet.confirmed_late(id, late),
                    Err(_) => self.wait_again(vec![id], SuccessorVerdict::PublishAgain, context.ledger),
                }
            }
            Confirmed::PublishAgain(ttl) => {
                publish.hold = Some(ttl);
                self.wait_again(vec![id], SuccessorVerdict::PublishAgain, context.ledger);
            }
        }
    }

    /// The target did not take it. The first time what is ours is declared again, and it goes once more.
    fn refused(&mut self, id: PublishId, error: EnqueueError, context: &mut Context<'_>) {
        let Some(publish) = self.publishes.get_mut(&id) else { return };
        let step = match publish.origin {
            Origin::Successor(delivery) => context.ledger.verdict(delivery, SuccessorVerdict::Refused),
            Origin::Enqueue if publish.second_try => Step::Nothing,
            Origin::Enqueue => Step::Publish { redeclare: true },
        };
        if step == (Step::Publish { redeclare: true }) {
            publish.second_try = true;
            self.queues[publish.queue].suspect();
            self.put_back(vec![id]);
        } else {
            self.end(id, step, Err(error), context.outbox);
        }
    }

    /// The channel of these was closed over one of them; which one, nobody says.
    ///
    /// Enqueued jobs are answered. Successors get the second try that a refusal gives.
    fn fail_sent(&mut self, ids: Vec<PublishId>, error: &EnqueueError, context: &mut Context<'_>) {
        for id in ids {
            match self.publishes.get(&id).map(|publish| publish.origin) {
                Some(Origin::Successor(_)) => self.refused(id, error.clone(), context),
                Some(Origin::Enqueue) => self.finish(id, Err(error.clone()), context.ledger, context.outbox),
                None => {}
            }
        }
    }

    /// The target cannot take it, now or later.
    fn give_up(&mut self, id: PublishId, error: EnqueueError, context: &mut Context<'_>) {
        let Some(publish) = self.publishes.get(&id) else { return };
        let mut step = Step::Nothing;
        if let Origin::Successor(delivery) = publish.origin {
            step = context.ledger.verdict(delivery, SuccessorVerdict::Refused);
            if matches!(step, Step::Publish { .. }) {
                step = context.ledger.verdict(delivery, SuccessorVerdict::Refused);
            }
        }
        self.end(id, step, Err(error), context.outbox);
    }

    /// Puts publishes back: they wait among the others, the oldest first.
    fn wait_again(&mut self, ids: Vec<PublishId>, verdict: SuccessorVerdict, ledger: &mut SettleLedger) {
        for id in &ids {
            if let Some(Publish { origin: Origin::Successor(delivery), .. }) = self.publishes.get(id) {
                let step = ledger.verdict(*delivery, verdict);
                debug_assert!(matches!(step, Step::Publish { .. }), "what was in flight was written");
            }
        }
        self.put_back(ids);
    }

    fn put_back(&mut self, ids: Vec<PublishId>) {
        for id in ids {
            if let Some(publish) = self.publishes.get(&id) {
                let (room, index) = (publish.room(), self.index_for(publish));
                self.outlet(index).wait(id, room);
            }
        }
    }

    /// Takes out what waits for a queue, on its own channel or on the shared one.
    fn take_waiting(&mut self, queue: usize) -> Vec<PublishId> {
        let publishes = &self.publishes;
        let shared =
            self.direct.extract(|id| publishes.get(&id).is_some_and(|publish| publish.queue == queue));
        self.queues[queue].outlet.drain_waiting().chain(shared).collect()
    }

    /// A verdict that nothing can follow.
    fn finish(
        &mut self,
        id: PublishId,
        result: Result<(), EnqueueError>,
        ledger: &mut SettleLedger,
        outbox: &mut Outbox,
    ) {
        let Some(publish) = self.publishes.get(&id) else { return };
        let step = match (publish.origin, &result) {
            (Origin::Successor(delivery), Ok(())) => ledger.verdict(delivery, SuccessorVerdict::Safe),
            (Origin::Successor(delivery), Err(_)) => ledger.verdict(delivery, SuccessorVerdict::Unhealable),
            (Origin::Enqueue, _) => Step::Nothing,
        };
        self.end(id, step, result, outbox);
    }

    fn end(&mut self, id: PublishId, step: Step, result: Result<(), EnqueueError>, outbox: &mut Outbox) {
        let Some(publish) = self.publishes.remove(&id) else { return };
        match publish.origin {
            Origin::Enqueue => {
                self.enqueued.messages -= 1;
                self.enqueued.bytes -= publish.message.body.len();
                outbox.push(SessionEvent::Enqueued { publish: id, result });
                self.say_writable(outbox);
            }
            Origin::Successor(delivery) => {
                let result = result.map(|()| publish.message.routing_key);
                self.ended.push(SuccessorEnd { delivery, step, result });
            }
        }
    }

    fn say_writable(&mut self, outbox: &mut Outbox) {
        let room = self.enqueued.messages <= self.limits.waiting / 2
            && self.enqueued.bytes <= self.limits.waiting_bytes / 2;
        if self.refused_for_room && room {
            self.refused_for_room = false;
            outbox.push(SessionEvent::Writable);
        }
    }

    const fn index_of(&self, owner: Owner) -> usize {
        match owner {
            Owner::Queue(queue) => queue,
            Owner::Direct => self.queues.len(),
        }
    }

    const fn index_for(&self, publish: &Publish) -> usize {
        if publish.leaves_on_queue_channel() { publish.queue } else { self.queues.len() }
    }

    /// The outlets of the queues, and after them the shared one.
    fn outlet(&mut self, index: usize) -> &mut Outlet {
        match self.queues.get_mut(index) {
            Some(queue) => &mut queue.outlet,
            None => &mut self.direct,
        }
    }
}
