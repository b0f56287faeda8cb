//! What the session has to tell: the queue behind `poll_event`.

use std::collections::VecDeque;

use super::event::SessionEvent;
use super::ids::SubscriptionId;
use crate::settle::DeliveryId;

/// Events in the order in which they happened. Jobs are bounded by the prefetch counts, answers by what was asked,
/// the rest by how often links change.
#[derive(Debug, Default)]
pub(super) struct Outbox(VecDeque<SessionEvent>);

impl Outbox {
    pub(super) fn push(&mut self, event: SessionEvent) {
        self.0.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<SessionEvent> {
        self.0.pop_front()
    }

    /// Takes back the jobs of a subscription that the application has not seen.
    pub(super) fn recall_jobs(&mut self, subscription: SubscriptionId) -> Vec<DeliveryId> {
        let mut recalled = Vec::new();
        self.0.retain(|event| match event {
            SessionEvent::Job(job) if job.subscription == subscription => {
                recalled.push(job.delivery);
                false
            }
            _ => true,
        });
        recalled
    }
}
