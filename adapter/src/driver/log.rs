//! What an operator may want to know, as events of `tracing` with target `leveret`.

use leveret_core::session::SessionEvent;

pub(super) fn log(event: &SessionEvent) {
    match event {
        SessionEvent::Connected { link } => tracing::info!(target: "leveret", %link, "connected"),
        SessionEvent::Disconnected { link, cause } => {
            tracing::warn!(target: "leveret", %link, %cause, "disconnected");
        }
        SessionEvent::Blocked { link, reason } => {
            tracing::warn!(target: "leveret", %link, %reason, "the broker takes no publishes for now");
        }
        SessionEvent::Unblocked { link } => {
            tracing::info!(target: "leveret", %link, "the broker takes publishes again");
        }
        SessionEvent::QueueRefused(refusal) => {
            tracing::error!(target: "leveret", %refusal, "publishes to this queue fail");
        }
        SessionEvent::SubscriptionStarted { subscription } => {
            tracing::debug!(target: "leveret", %subscription, "consuming");
        }
        SessionEvent::SubscriptionEnded { subscription, result: Ok(left) } => {
            tracing::debug!(target: "leveret", %subscription, unsettled = left.unsettled, "consuming ended");
        }
        SessionEvent::SubscriptionEnded { subscription, result: Err(error) } => {
            tracing::error!(target: "leveret", %subscription, %error, "consuming ended by itself");
        }
        SessionEvent::Settled(settled) => {
            let job = settled.job.as_ref();
            tracing::warn!(
                target: "leveret",
                subscription = %settled.subscription,
                job_id = job.map(|job| tracing::field::display(job.id)),
                job_type = job.map(|job| tracing::field::display(&job.job_type)),
                attempt = job.map(|job| job.attempt),
                settlement = ?settled.settlement,
                "delivery settled otherwise than by a handler"
            );
        }
        _ => {}
    }
}
