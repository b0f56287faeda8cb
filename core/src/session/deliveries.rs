//! The deliveries in hand: what is needed to settle each of them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::error::EnqueueError;
use super::event::JobSummary;
use super::ids::SubscriptionId;
use crate::connection::{ChannelId, Content};
use crate::envelope::Envelope;
use crate::settle::{DeliveryId, SettleLedger, Settling, SuccessorKind};
use crate::time::Instant;
use crate::topology::QueuePlan;

/// Bounded, whatever the broker does.
#[derive(Debug)]
pub(super) struct Deliveries {
    pub(super) ledger: SettleLedger,
    in_hand: BTreeMap<DeliveryId, InHand>,
    limit: usize,
    /// Those that rest before they are requeued, in the order in which they are due: every rest is as long.
    resting: VecDeque<Resting>,
}

#[derive(Debug)]
struct Resting {
    until: Instant,
    delivery: DeliveryId,
    cause: EnqueueError,
}

#[derive(Debug)]
pub(super) struct InHand {
    pub(super) subscription: SubscriptionId,
    /// Index of the queue's plan.
    pub(super) queue: usize,
    pub(super) channel: ChannelId,
    pub(super) tag: u64,
    pub(super) content: Content,
    /// `None` for a body that is no envelope.
    pub(super) envelope: Option<Envelope>,
    /// What succeeds it, once that is decided.
    pub(super) successor: Option<SuccessorKind>,
}

impl InHand {
    /// The body. Nothing where it was too large to be taken in: such a delivery is settled without a copy of it.
    pub(super) fn body(&self) -> &Bytes {
        static NOTHING: Bytes = Bytes::new();
        self.content.body().unwrap_or(&NOTHING)
    }

    pub(super) fn summary(&self) -> Option<JobSummary> {
        self.envelope.as_ref().map(|envelope| JobSummary {
            id: envelope.job_id(),
            job_type: envelope.job_type().clone(),
            attempt: envelope.attempt(),
            deferrals: envelope.deferrals(),
        })
    }
}

impl Deliveries {
    /// Room for as many as the prefetch counts allow, twice: a consumer that takes the place of a cancelled one has
    /// its whole count, while deliveries to the first are still in hand.
    pub(super) fn new(plans: &[QueuePlan]) -> Self {
        let prefetches: usize = plans.iter().map(|plan| usize::from(plan.prefetch().get())).sum();
        Self {
            ledger: SettleLedger::new(),
            in_hand: BTreeMap::new(),
            limit: prefetches.saturating_mul(2),
            resting: VecDeque::new(),
        }
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn len(&self) -> usize {
        self.in_hand.len()
    }

    pub(super) fn accept(&mut self, delivery: InHand) -> DeliveryId {
        let id = self.ledger.accept(Settling::Confirmed);
        self.in_hand.insert(id, delivery);
        id
    }

    pub(super) fn get(&self, id: DeliveryId) -> Option<&InHand> {
        self.in_hand.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: DeliveryId) -> Option<&mut InHand> {
        self.in_hand.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: DeliveryId) -> Option<InHand> {
        self.in_hand.remove(&id)
    }

    pub(super) fn any_of(&self, subscription: SubscriptionId) -> bool {
        self.in_hand.values().any(|delivery| delivery.subscription == subscription)
    }

    pub(super) fn of(&self, subscription: SubscriptionId) -> Vec<DeliveryId> {
        let own = self.in_hand.iter().filter(|(_, delivery)| delivery.subscription == subscription);
        own.map(|(id, _)| *id).collect()
    }

    pub(super) fn contains(&self, id: DeliveryId) -> bool {
        self.in_hand.contains_key(&id)
    }

    pub(super) fn rest(&mut self, delivery: DeliveryId, until: Instant, cause: EnqueueError) {
        self.resting.push_back(Resting { until, delivery, cause });
    }

    /// The next one that has rested, if any, and why it had to.
    pub(super) fn rested(&mut self, now: Instant) -> Option<(DeliveryId, EnqueueError)> {
        if self.resting.front()?.until > now {
            return None;
        }
        let rested = self.resting.pop_front()?;
        Some((rested.delivery, rested.cause))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.resting.front().map(|resting| resting.until)
    }
}
