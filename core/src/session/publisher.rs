//! Everything that is to be published, from the command to the broker's verdict.
//!
//! Jobs without a delay, dead letters and retries without a delay leave on one shared channel: the default
//! exchange returns what it cannot route and never closes the channel for it. Delayed ones leave on the channel
//! of their queue. Queues take turns, and one that the broker does not answer for keeps no other waiting. After a
//! cut everything without a verdict is sent again, the oldest first, once its queue is declared again.

use std::collections::BTreeMap;

use super::admission::Admission;
use super::config::SessionConfig;
use super::error::EnqueueError;
use super::event::SessionEvent;
use super::ids::PublishId;
use super::outbox::Outbox;
use super::outlet::{InFlight, Outlet};
use super::publish::{Origin, Publish};
use super::queue_outlet::{Lost, QueueOutlet};
use super::refusal::Refusal;
use super::waiting::Room;
use crate::connection::{ChannelId, CloseReason, CommandError, Connection, PublishError, Verdict};
use crate::delay::{Confirmed, HoldTtl};
use crate::message::Message;
use crate::settle::{DeliveryId, SettleLedger, Step, SuccessorVerdict, Write};
use crate::text::ShortString;
use crate::time::Instant;
use crate::topology::QueuePlan;

#[derive(Debug)]
pub(super) struct Publisher {
    next: u64,
    publishes: BTreeMap<PublishId, Publish>,
    /// The channel that all queues share.
    shared: Outlet,
    queues: Vec<QueueOutlet>,
    /// Whose turn it is on the shared channel.
    turn: usize,
    channels: BTreeMap<ChannelId, Owner>,
    max_in_flight: usize,
    admission: Admission,
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
    Shared,
    Queue(usize),
}

impl Publisher {
    pub(super) fn new(config: &SessionConfig, plans: &[QueuePlan]) -> Self {
        Self {
            next: 0,
            publishes: BTreeMap::new(),
            shared: Outlet::default(),
            queues: plans.iter().map(QueueOutlet::new).collect(),
            turn: 0,
            channels: BTreeMap::new(),
            max_in_flight: config.max_in_flight.max(1),
            admission: Admission::new(config),
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
        let bytes = message.body.len();
        self.admission.check(bytes)?;
        let id = self.add(queue, Origin::Enqueue, message, hold);
        self.admission.accept(now, id, bytes);
        Ok(id)
    }

    /// Takes the successor of a delivery. There is always room: deliveries are bounded by the prefetch counts.
    pub(super) fn succeed(
        &mut self,
        queue: usize,
        delivery: DeliveryId,
        message: Message,
        hold: Option<HoldTtl>,
    ) -> PublishId {
        self.add(queue, Origin::Successor(delivery), message, hold)
    }

    /// Drops successors whose originals the broker delivers again: the new deliveries bring their own.
    ///
    /// One that is in flight cannot be called back; its verdict will be ignored.
    pub(super) fn forget_successors(&mut self, stale: impl Fn(DeliveryId) -> bool) {
        self.publishes.retain(|_, publish| match publish.origin {
            Origin::Successor(delivery) => !stale(delivery),
            Origin::Enqueue => true,
        });
        for queue in &mut self.queues {
            queue.own.retain(|id| self.publishes.contains_key(&id));
            queue.shared.retain(|id| self.publishes.contains_key(&id));
        }
    }

    /// The link is up: opens the channels and declares the queues.
    pub(super) fn link_up(
        &mut self,
        connection: &mut Connection,
        plans: &[QueuePlan],
    ) -> Result<(), CommandError> {
        let channel = self.shared.open(connection)?;
        self.channels.insert(channel, Owner::Shared);
        for (index, queue) in self.queues.iter_mut().enumerate() {
            let channel = queue.open(connection, &plans[index])?;
            self.channels.insert(channel, Owner::Queue(index));
        }
        Ok(())
    }

    /// The link is down: what was in flight waits again, ahead of what was not sent.
    pub(super) fn link_down(&mut self, ledger: &mut SettleLedger) {
        self.channels.clear();
        let shared: Vec<_> = self.shared.closed().collect();
        for unanswered in
            self.queues.iter_mut().map(QueueOutlet::link_down).chain([shared]).collect::<Vec<_>>()
        {
            self.wait_again(unanswered, SuccessorVerdict::LinkLost, ledger);
        }
    }

    /// The hold queues may have expired without our noticing.
    pub(super) fn void_leases(&mut self) {
        for queue in &mut self.queues {
            queue.holds.void();
        }
    }

    /// Whether the broker has said yes or no to every queue.
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
    pub(super) fn pump(&mut self, context: &mut Context<'_>) -> Result<(), CommandError> {
        for queue in 0..self.queues.len() {
            let plan = &context.plans[queue];
            let opened = self.queues[queue].open_if_due(context.now, context.connection, plan)?;
            self.channels.extend(opened.map(|channel| (channel, Owner::Queue(queue))));
        }
        if self.publishes.is_empty() || context.connection.is_blocked() {
            return Ok(());
        }
        for queue in 0..self.queues.len() {
            self.pump_own(queue, context);
        }
        for room in Room::ALL {
            self.pump_shared(room, context);
        }
        Ok(())
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
        let Some(InFlight { publish: id, cover }) = self.outlet(owner).answered(sequence) else { return };
        let Some(publish) = self.publishes.get_mut(&id) else { return };
        let target = publish.message.routing_key.clone();
        match (verdict, cover) {
            (Verdict::Ok, None) => self.finish(id, Ok(()), context.ledger, context.outbox),
            (Verdict::Ok, Some(cover)) => {
                let confirmed = self.queues[publish.queue].holds.after_confirm(context.now, Some(cover));
                self.confirmed(id, confirmed, context);
            }
            (Verdict::Nacked, _) => {
                let error = EnqueueError::Nacked { queue: target };
                self.refused(id, SuccessorVerdict::Nacked, error, context);
            }
            (_, cover) => {
                if let Some(ttl) = publish.hold {
                    publish.hold = Some(self.queues[publish.queue].holds.after_return(ttl, cover));
                }
                let error = EnqueueError::Unroutable { queue: target };
                self.refused(id, SuccessorVerdict::Returned, error, context);
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
            let unanswered: Vec<_> = self.shared.closed().collect();
            if unanswered.is_empty() {
                return Ok(ChannelLost::ForNothing);
            }
            self.fail_sent(unanswered, &unknown, context);
            let channel = self.shared.open(context.connection)?;
            self.channels.insert(channel, owner);
            return Ok(ChannelLost::Reopened);
        };
        let plan = &context.plans[queue];
        let lost = self.queues[queue].lost(context.now, reason.clone(), plan);
        let unanswered = self.queues[queue].closed();
        match lost {
            Lost::Queue(refusal) => {
                let error = EnqueueError::Refused(refusal.clone());
                self.give_up_all(unanswered, &error, context);
                return Ok(ChannelLost::Refused(refusal));
            }
            Lost::QueueAbsent(refusal) => {
                self.wait_again(unanswered, SuccessorVerdict::LinkLost, context.ledger);
                return Ok(ChannelLost::Refused(refusal));
            }
            Lost::Publish if unanswered.is_empty() => return Ok(ChannelLost::ForNothing),
            Lost::Publish => self.fail_sent(unanswered, &unknown, context),
            Lost::Hold(ttl, refusal) => {
                // Those to other holds were executed, or never will be on that channel: they go again.
                let (refused, others): (Vec<_>, Vec<_>) = unanswered
                    .into_iter()
                    .partition(|id| self.publishes.get(id).is_some_and(|publish| publish.hold == Some(ttl)));
                self.wait_again(others, SuccessorVerdict::PublishAgain, context.ledger);
                self.give_up_all(refused, &EnqueueError::Refused(refusal), context);
            }
        }
        let channel = self.queues[queue].open(context.connection, plan)?;
        self.channels.insert(channel, owner);
        Ok(ChannelLost::Reopened)
    }

    /// Answers the enqueued jobs that have waited too long.
    ///
    /// One that is in flight cannot be called back; its verdict will be ignored.
    pub(super) fn handle_timeout(&mut self, now: Instant, ledger: &mut SettleLedger, outbox: &mut Outbox) {
        while let Some(id) = self.admission.overdue(now)
            && let Some(publish) = self.publishes.get(&id)
        {
            let error = if publish.was_sent {
                EnqueueError::Unconfirmed
            } else {
                EnqueueError::TimedOut { after: self.admission.max_wait() }
            };
            let (room, queue) = (publish.room(), &mut self.queues[publish.queue]);
            queue.own.remove(id, room);
            queue.shared.remove(id, room);
            self.finish(id, Err(error), ledger, outbox);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let absent = self.queues.iter().filter_map(QueueOutlet::poll_timeout);
        absent.chain(self.admission.poll_timeout()).min()
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

    fn add(&mut self, queue: usize, origin: Origin, message: Message, hold: Option<HoldTtl>) -> PublishId {
        let id = PublishId(self.next);
        self.next += 1;
        let publish = Publish { queue, origin, message, hold, was_sent: false, second_try: false };
        self.publishes.insert(id, publish);
        self.put_back([id]);
        id
    }

    /// Publishes what is to leave on the channel of one queue.
    fn pump_own(&mut self, queue: usize, context: &mut Context<'_>) {
        let outlet = &mut self.queues[queue];
        if let Some(refusal) = outlet.refusal().cloned() {
            let waiting: Vec<_> = outlet.own.drain().chain(outlet.shared.drain()).collect();
            self.give_up_all(waiting, &EnqueueError::Refused(refusal), context);
            return;
        }
        for room in Room::ALL {
            while let Some(id) = self.queues[queue].next_own(room, self.max_in_flight) {
                if !self.send(Owner::Queue(queue), id, context) {
                    self.queues[queue].own.insert(id, room);
                    return;
                }
            }
        }
    }

    /// Publishes what is to leave on the channel that all queues share, one of each queue in turn.
    fn pump_shared(&mut self, room: Room, context: &mut Context<'_>) {
        let mut without = 0;
        while without < self.queues.len() && self.shared.has_room(self.max_in_flight) {
            let queue = self.turn;
            self.turn = (self.turn + 1) % self.queues.len();
            let Some(id) = self.queues[queue].next_shared(room) else {
                without += 1;
                continue;
            };
            without = 0;
            if !self.send(Owner::Shared, id, context) {
                self.queues[queue].shared.insert(id, room);
                return;
            }
        }
    }

    /// Gives one publish to the connection. `false` when there is no room now.
    fn send(&mut self, owner: Owner, id: PublishId, context: &mut Context<'_>) -> bool {
        let Some(publish) = self.publishes.get_mut(&id) else { return true };
        let queue = publish.queue;
        let plan = &context.plans[queue];
        if publish.leaves_on_queue_channel() && self.queues[queue].restore(context.connection, plan).is_err()
        {
            return false;
        }
        let mut held_in = None;
        if let Some(wanted) = publish.hold {
            let ttl = self.queues[queue].holds.choose(wanted);
            publish.hold = Some(ttl);
            publish.message.routing_key = plan.hold_name(ttl);
            if self.queues[queue].cover(context.now, context.connection, plan, ttl).is_err() {
                return false;
            }
            held_in = Some(ttl);
        }
        let Some(channel) = self.outlet(owner).channel() else { return false };
        let Some(publish) = self.publishes.get_mut(&id) else { return true };
        let error = match context.connection.publish(channel, &publish.message) {
            Ok(sequence) => {
                publish.was_sent = true;
                if let Origin::Successor(delivery) = publish.origin {
                    let write = context.ledger.write(delivery);
                    debug_assert_eq!(
                        write,
                        Write::Publish,
                        "successors of deliveries that have ended are forgotten at once"
                    );
                }
                let cover = held_in.and_then(|ttl| self.queues[queue].holds.publish_sent(context.now, ttl));
                self.outlet(owner).sent(sequence, id, cover);
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
    fn refused(
        &mut self,
        id: PublishId,
        verdict: SuccessorVerdict,
        error: EnqueueError,
        context: &mut Context<'_>,
    ) {
        let Some(publish) = self.publishes.get_mut(&id) else { return };
        let step = match publish.origin {
            Origin::Successor(delivery) => context.ledger.verdict(delivery, verdict),
            Origin::Enqueue if publish.second_try => Step::Nothing,
            Origin::Enqueue => Step::Publish { redeclare: true },
        };
        if step == (Step::Publish { redeclare: true }) {
            publish.second_try = true;
            self.queues[publish.queue].suspect();
            self.put_back([id]);
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
                Some(Origin::Successor(_)) => {
                    self.refused(id, SuccessorVerdict::ChannelClosed, error.clone(), context);
                }
                Some(Origin::Enqueue) => self.finish(id, Err(error.clone()), context.ledger, context.outbox),
                None => {}
            }
        }
    }

    fn give_up_all(&mut self, ids: Vec<PublishId>, error: &EnqueueError, context: &mut Context<'_>) {
        for id in ids {
            self.give_up(id, error.clone(), context);
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

    fn put_back(&mut self, ids: impl IntoIterator<Item = PublishId>) {
        for id in ids {
            let Some(publish) = self.publishes.get(&id) else { continue };
            let queue = &mut self.queues[publish.queue];
            let waiting = if publish.leaves_on_queue_channel() { &mut queue.own } else { &mut queue.shared };
            waiting.insert(id, publish.room());
        }
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
                outbox.push(SessionEvent::Enqueued { publish: id, result });
                if self.admission.answered(id, publish.message.body.len()) {
                    outbox.push(SessionEvent::Writable);
                }
            }
            Origin::Successor(delivery) => {
                let result = result.map(|()| publish.message.routing_key);
                self.ended.push(SuccessorEnd { delivery, step, result });
            }
        }
    }

    fn outlet(&mut self, owner: Owner) -> &mut Outlet {
        match owner {
            Owner::Queue(queue) => &mut self.queues[queue].outlet,
            Owner::Shared => &mut self.shared,
        }
    }
}
