//! Deliveries: taking them in hand, and settling them in the order *publish, confirm, acknowledge*.

use bytes::Bytes;

use super::Session;
use super::deliveries::InHand;
use super::error::{EnqueueError, LinkError};
use super::event::{JobDelivery, SessionEvent, Settled, Settlement};
use super::ids::{LinkId, SubscriptionId};
use super::publisher::SuccessorEnd;
use crate::connection::{CommandError, Delivery, Oversized};
use crate::envelope::Envelope;
use crate::message::Properties;
use crate::settle::{
    self, Decision, DeliveryId, Outcome, Remains, SettleError, Step, SuccessorKind, Target, aside, decide,
};
use crate::text::ShortString;
use crate::time::Instant;
use crate::topology::{QueuePlan, QueueType};

impl Session {
    /// A message has come: a job for the application, or something that is moved aside.
    pub(super) fn delivered(&mut self, now: Instant, delivery: Delivery) {
        let (channel, tag) = (delivery.channel(), delivery.delivery_tag());
        let Some(subscription) = self.subscriptions.values_mut().find(|s| s.channel() == Some(channel))
        else {
            return;
        };
        let limit = self.deliveries.limit();
        if self.deliveries.len() + subscription.to_requeue() >= limit {
            self.unusable(now, LinkId::Consume, |endpoint| LinkError::Flooded { endpoint, limit });
            return;
        }
        if subscription.is_stopping() {
            if let Some(connection) = self.consume.up() {
                note(subscription.requeue(connection, tag));
            }
            return;
        }
        let (id, queue) = (subscription.id, subscription.queue);
        let redelivered = delivery.redelivered();
        let content = delivery.into_content();
        let decoded = match content.body() {
            Ok(body) => Envelope::decode(body, &self.config.envelope_limits),
            Err(oversized) => {
                let in_hand = InHand {
                    subscription: id,
                    queue,
                    channel,
                    tag,
                    content,
                    envelope: None,
                    successor: None,
                };
                self.oversized(now, in_hand, oversized);
                return;
            }
        };
        let envelope = decoded.as_ref().ok().cloned();
        let in_hand = InHand { subscription: id, queue, channel, tag, content, envelope, successor: None };
        let delivery = self.deliveries.accept(in_hand);
        match decoded {
            Ok(envelope) => {
                let job = JobDelivery { delivery, subscription: id, envelope, redelivered };
                self.outbox.push(SessionEvent::Job(job));
            }
            Err(error) => self.move_aside(delivery, &error.to_string()),
        }
    }

    /// The application's outcome of a job.
    pub(super) fn settle_job(&mut self, delivery: DeliveryId, outcome: &Outcome) -> Result<(), SettleError> {
        let random = self.rng.next_u64();
        let decision = match self.deliveries.get(delivery) {
            Some(in_hand @ InHand { queue, content, envelope: Some(envelope), .. }) => {
                let plan = &self.plans[*queue];
                // Only a successor needs them, and most jobs have none.
                let properties = match outcome {
                    Outcome::Done | Outcome::Requeue | Outcome::Drop { .. } => None,
                    _ => content.properties().ok(),
                };
                let decision = decide(plan, envelope, properties.as_ref(), outcome, random);
                unless_outgrown(plan, in_hand.body(), properties.as_ref(), decision, self.max_body())
            }
            // It has ended, or was never given out as a job: the ledger says which.
            _ => Decision::Acknowledge,
        };
        self.carry_out(delivery, decision)
    }

    /// A successor is done with: settles its original accordingly.
    pub(super) fn successor_ended(&mut self, now: Instant, end: SuccessorEnd) {
        let SuccessorEnd { delivery, step, result } = end;
        match (step, result) {
            (Step::Acknowledge, Ok(queue)) => self.succeeded(delivery, queue),
            (Step::DeadLetter, Err(error)) => self.bury_instead(delivery, &error.to_string()),
            (Step::Pause, Err(error)) => {
                if let Some(in_hand) = self.deliveries.get(delivery) {
                    tracing::warn!(
                        target: "leveret", queue = %self.plans[in_hand.queue].name(), %delivery, %error,
                        "a successor could not be published: its original is requeued after a pause"
                    );
                }
                self.deliveries.rest(delivery, now + self.config.requeue_pause, error);
            }
            _ => {}
        }
    }

    /// Requeues what has rested.
    pub(super) fn requeue_rested(&mut self, now: Instant) {
        while let Some((delivery, cause)) = self.deliveries.rested(now) {
            let ledger = &mut self.deliveries.ledger;
            // What was not taken in never had a successor, so that its pause is not the ledger's.
            if ledger.pause_over(delivery) == Step::Requeue
                || ledger.settle(delivery, settle::Settlement::Requeue) == Ok(Step::Requeue)
            {
                self.requeue(delivery, Some(cause));
            }
        }
    }

    /// A job that the application has not seen goes back.
    pub(super) fn requeue_unstarted(&mut self, delivery: DeliveryId) {
        let Some(in_hand) = self.end(delivery) else { return };
        self.return_to_queue(in_hand.subscription, in_hand.tag);
    }

    /// The channel of a subscription has ended: what was delivered on it cannot be settled. Returns how much that
    /// was.
    pub(super) fn make_stale(&mut self, subscription: SubscriptionId) -> usize {
        for unseen in self.outbox.recall_jobs(subscription) {
            self.end(unseen);
        }
        let mut stale = 0;
        for delivery in self.deliveries.of(subscription) {
            match self.deliveries.ledger.stale(delivery) {
                // It was acknowledged: its successor goes on, and is settled when that is safe.
                Remains::Successor => {}
                Remains::Handler | Remains::Nothing => {
                    self.report(delivery, Settlement::Stale);
                    stale += 1;
                }
            }
        }
        let deliveries = &self.deliveries;
        self.publisher.forget_successors(|delivery| !deliveries.contains(delivery));
        stale
    }

    /// A message without its body cannot be moved aside. It is rejected where the queue keeps no dead letters, like any
    /// other that cannot be read, and where it is a quorum queue, since the broker then moves it to the dead letters
    /// whole. A classic queue would drop it, so there it goes back after a pause, and is told each time.
    fn oversized(&mut self, now: Instant, in_hand: InHand, oversized: Oversized) {
        let plan = &self.plans[in_hand.queue];
        let keeps = plan.dead_letters() && plan.queue_type() == QueueType::Classic;
        tracing::warn!(target: "leveret", queue = %plan.name(), keeps, %oversized, "a message was not taken in");
        let delivery = self.deliveries.accept(in_hand);
        if keeps {
            let Oversized { bytes, limit } = oversized;
            let cause = EnqueueError::BodyTooLarge { bytes, limit };
            self.deliveries.rest(delivery, now + self.config.requeue_pause, cause);
        } else {
            let settled = self.carry_out(delivery, Decision::Reject { reason: oversized.to_string() });
            debug_assert!(settled.is_ok(), "a new delivery can be settled");
        }
    }

    fn move_aside(&mut self, delivery: DeliveryId, reason: &str) {
        let Some(in_hand) = self.deliveries.get(delivery) else { return };
        let properties = in_hand.content.properties().ok();
        let decision = aside(&self.plans[in_hand.queue], properties.as_ref(), in_hand.body(), reason);
        // It has just been accepted, so it can be settled.
        let settled = self.carry_out(delivery, decision);
        debug_assert!(settled.is_ok(), "a new delivery can be settled");
    }

    fn carry_out(&mut self, delivery: DeliveryId, decision: Decision) -> Result<(), SettleError> {
        let step = self.deliveries.ledger.settle(delivery, settle::Settlement::from(&decision))?;
        self.follow(delivery, step, decision);
        Ok(())
    }

    /// Does what the ledger says next for a delivery on which `decision` was taken.
    fn follow(&mut self, delivery: DeliveryId, step: Step, decision: Decision) {
        match (step, decision) {
            (Step::Acknowledge, Decision::Drop { reason }) => {
                self.acknowledge(delivery, Settlement::Dropped { reason });
            }
            (Step::Acknowledge, _) => self.acknowledge(delivery, Settlement::Done),
            (Step::Requeue, _) => self.requeue(delivery, None),
            (Step::Reject, Decision::Reject { reason }) => self.reject(delivery, reason),
            (Step::Publish { .. }, Decision::Publish(successor)) => {
                self.publish_successor(delivery, *successor);
            }
            _ => {}
        }
    }

    /// The successor can never be published: a dead letter without the application's headers takes its place.
    fn bury_instead(&mut self, delivery: DeliveryId, obstacle: &str) {
        let Some(in_hand) = self.deliveries.get(delivery) else { return };
        let reason = match &in_hand.successor {
            Some(SuccessorKind::DeadLetter { reason }) => &format!("{reason} ({obstacle})"),
            _ => obstacle,
        };
        let plan = &self.plans[in_hand.queue];
        let decision = match &in_hand.envelope {
            Some(envelope) => {
                let decision = settle::dead_letter(plan, envelope, None, reason);
                unless_outgrown(plan, in_hand.body(), None, decision, self.max_body())
            }
            None => aside(plan, None, in_hand.body(), reason),
        };
        let kept = matches!(decision, Decision::Publish(_));
        let step = self.deliveries.ledger.dead_letter(delivery, kept);
        self.follow(delivery, step, decision);
    }

    fn publish_successor(&mut self, delivery: DeliveryId, successor: settle::Successor) {
        let Some(in_hand) = self.deliveries.get_mut(delivery) else { return };
        let hold = match successor.target {
            Target::Hold(ttl) => Some(ttl),
            _ => None,
        };
        in_hand.successor = Some(successor.kind);
        self.publisher.succeed(in_hand.queue, delivery, successor.message, hold);
    }

    /// The successor is confirmed in `queue`: now the original may be acknowledged.
    fn succeeded(&mut self, delivery: DeliveryId, queue: ShortString) {
        let Some(in_hand) = self.deliveries.get_mut(delivery) else { return };
        let settlement = match in_hand.successor.take() {
            Some(SuccessorKind::Retry { attempt, delay }) => {
                Settlement::Retried { attempt, delay, waits_in: queue }
            }
            Some(SuccessorKind::Deferral { deferrals, delay }) => {
                Settlement::Deferred { deferrals, delay, waits_in: queue }
            }
            Some(SuccessorKind::DeadLetter { reason }) => Settlement::DeadLettered { reason, into: queue },
            None => return,
        };
        self.acknowledge(delivery, settlement);
    }

    fn acknowledge(&mut self, delivery: DeliveryId, settlement: Settlement) {
        if let (Some(in_hand), Some(connection)) = (self.deliveries.get(delivery), self.consume.up()) {
            note(connection.ack(in_hand.channel, in_hand.tag, false));
        }
        self.report(delivery, settlement);
    }

    fn reject(&mut self, delivery: DeliveryId, reason: String) {
        if let (Some(in_hand), Some(connection)) = (self.deliveries.get(delivery), self.consume.up()) {
            note(connection.reject(in_hand.channel, in_hand.tag, false));
        }
        self.report(delivery, Settlement::Rejected { reason });
    }

    fn requeue(&mut self, delivery: DeliveryId, cause: Option<EnqueueError>) {
        if let Some(&InHand { subscription, tag, .. }) = self.deliveries.get(delivery) {
            self.return_to_queue(subscription, tag);
        }
        self.report(delivery, Settlement::Requeued { cause });
    }

    fn return_to_queue(&mut self, subscription: SubscriptionId, tag: u64) {
        let subscription = self.subscriptions.get_mut(&subscription);
        if let (Some(subscription), Some(connection)) = (subscription, self.consume.up()) {
            note(subscription.requeue(connection, tag));
        }
    }

    /// The delivery is no longer in hand: says what became of it.
    fn report(&mut self, delivery: DeliveryId, settlement: Settlement) {
        let Some(in_hand) = self.deliveries.remove(delivery) else { return };
        let settled =
            Settled { delivery, subscription: in_hand.subscription, job: in_hand.summary(), settlement };
        self.outbox.push(SessionEvent::Settled(settled));
    }

    /// The longest body that a worker with these limits reads.
    const fn max_body(&self) -> usize {
        self.config.envelope_limits.max_bytes
    }

    /// Ends a delivery that nobody has seen, without sending anything.
    fn end(&mut self, delivery: DeliveryId) -> Option<InHand> {
        let step = self.deliveries.ledger.settle(delivery, settle::Settlement::Requeue);
        debug_assert_eq!(step, Ok(Step::Requeue), "an unseen delivery was not settled");
        self.deliveries.remove(delivery)
    }
}

/// A copy that is longer than its original and than what a worker reads, because its counters have grown, helps
/// nobody, and the broker may close the channel over it: the bytes of the original are moved aside instead.
fn unless_outgrown(
    plan: &QueuePlan,
    original: &Bytes,
    properties: Option<&Properties>,
    decision: Decision,
    limit: usize,
) -> Decision {
    let Decision::Publish(successor) = &decision else { return decision };
    let bytes = successor.message.body.len();
    if bytes <= limit.max(original.len()) {
        return decision;
    }
    match &successor.kind {
        SuccessorKind::DeadLetter { reason } => aside(plan, properties, original, reason),
        _ => {
            let reason =
                format!("its next run would need a message of {bytes} bytes, a worker reads {limit}");
            aside(plan, properties, original, &reason)
        }
    }
}

/// A settlement that cannot be sent, because its channel has just ended, is void: the broker delivers again, and
/// the end of the channel is an event of its own.
fn note(result: Result<(), CommandError>) {
    if let Err(error) = result {
        tracing::debug!(target: "leveret", %error, "a settlement could not be sent");
    }
}
