//! What an operator may want to know, as events of `tracing` with target `leveret`.

use std::collections::{BTreeMap, BTreeSet};

use leveret_core::session::{Endpoint, LinkError, LinkId, SessionEvent, Settled, Settlement};
use leveret_core::topology::QueuePlan;

use crate::shared::Outside;

/// Says what happens, and remembers of the links what makes it plain.
#[derive(Default)]
pub(super) struct Log {
    /// Where each link was told to connect last.
    endpoints: BTreeMap<LinkId, Endpoint>,
    up: BTreeSet<LinkId>,
}

impl Log {
    pub(super) fn event(&mut self, outside: &Outside) {
        let queue = outside.plan.as_ref().map(|plan| tracing::field::display(plan.name()));
        match &outside.event {
            SessionEvent::Connect { link, endpoint, .. } => {
                tracing::debug!(target: "leveret", %link, %endpoint, "connecting");
                self.endpoints.insert(*link, endpoint.clone());
            }
            SessionEvent::Connected { link } => {
                let endpoint = self.endpoints.get(link).map(tracing::field::display);
                tracing::info!(target: "leveret", %link, endpoint, "connected");
                self.up.insert(*link);
            }
            SessionEvent::Disconnected { link, cause } => disconnected(*link, self.up.remove(link), cause),
            SessionEvent::Blocked { link, reason } => {
                tracing::warn!(target: "leveret", %link, %reason, "the broker takes no publishes for now");
            }
            SessionEvent::Unblocked { link } => {
                tracing::info!(target: "leveret", %link, "the broker takes publishes again");
            }
            SessionEvent::QueueRefused(refusal) => {
                tracing::error!(target: "leveret", %refusal, "publishes to this queue fail");
            }
            SessionEvent::SubscriptionStarted { .. } => {
                tracing::debug!(target: "leveret", queue, "consuming");
            }
            SessionEvent::SubscriptionEnded { result: Ok(left), .. } => {
                tracing::debug!(target: "leveret", queue, unsettled = left.unsettled, "consuming ended");
            }
            SessionEvent::SubscriptionEnded { result: Err(error), .. } => {
                tracing::error!(target: "leveret", queue, %error, "consuming ended by itself");
            }
            SessionEvent::Settled(settled) => {
                if let Some(plan) = &outside.plan {
                    settlement(plan, settled);
                }
            }
            _ => {}
        }
    }
}

fn disconnected(link: LinkId, was_up: bool, cause: &LinkError) {
    match (was_up, cause.is_permanent()) {
        (_, true) => {
            tracing::error!(target: "leveret", %link, %cause, "cannot connect, and trying again cannot help");
        }
        (true, false) => tracing::warn!(target: "leveret", %link, %cause, "disconnected: connecting again"),
        (false, false) => tracing::warn!(target: "leveret", %link, %cause, "cannot connect: trying again"),
    }
}

/// Says how a delivery ended, and what happens next.
fn settlement(plan: &QueuePlan, settled: &Settled) {
    let job = settled.job.as_ref();
    macro_rules! event {
        ($level:ident, $($field:tt)*) => {
            tracing::$level!(
                target: "leveret",
                queue = %plan.name(),
                job_id = job.map(|job| tracing::field::display(job.id)),
                job_type = job.map(|job| tracing::field::display(&job.job_type)),
                attempt = job.map(|job| job.attempt),
                max_attempts = job.map(|_| plan.retry().max_attempts()),
                $($field)*
            )
        };
    }
    match &settled.settlement {
        Settlement::DeadLettered { reason, into } => event!(error, %into, %reason, "dead letter"),
        Settlement::Rejected { reason } => {
            event!(error, %reason, "rejected: the queue keeps no dead letters");
        }
        Settlement::Dropped { reason } => event!(info, %reason, "dropped on purpose"),
        Settlement::Requeued { cause: Some(cause) } => {
            event!(warn, %cause, "requeued, as what follows it was not published: the broker delivers it again");
        }
        Settlement::Stale => {
            event!(
                warn,
                "too late to settle, as its connection or the grace has ended: the broker delivers it again"
            );
        }
        _ => {}
    }
}
