//! From the first connect to the last event.

use super::Session;
use super::error::{ConnectError, LinkError, SubscriptionError};
use super::event::{Closed, Left, LinkEnd, SessionEvent};
use super::ids::SubscriptionId;
use crate::delay::HoldKind;
use crate::time::Instant;

#[derive(Debug)]
pub(super) enum Lifecycle {
    New,
    /// The publishing link comes up for the first time.
    Starting,
    Running,
    /// Nothing new is accepted; what was accepted is brought to its end until `by`.
    Stopping {
        by: Instant,
    },
    /// The links close.
    Closing {
        unconfirmed: usize,
        unsettled: usize,
        cause: Option<LinkError>,
    },
    /// The first connect failed; the link closes before that is said.
    Failing {
        cause: ConnectError,
    },
    Ended,
}

impl Lifecycle {
    pub(super) const fn accepts_work(&self) -> bool {
        matches!(self, Self::Running)
    }

    /// Whether a job may be enqueued: also by handlers that are still running, until the grace is over.
    pub(super) fn accepts_publishes(&self, now: Instant, in_hand: usize) -> bool {
        match self {
            Self::Running => true,
            Self::Stopping { by } => in_hand > 0 && now < *by,
            _ => false,
        }
    }

    pub(super) const fn is_starting(&self) -> bool {
        matches!(self, Self::Starting)
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Stopping { by } => Some(*by),
            _ => None,
        }
    }
}

impl Session {
    /// The queues are declared: the session has started.
    pub(super) fn started(&mut self) {
        if self.lifecycle.is_starting() {
            self.lifecycle = Lifecycle::Running;
            self.outbox.push(SessionEvent::Ready);
            if self.plans.iter().any(|plan| plan.holds().kind() == HoldKind::Expiring) {
                tracing::info!(
                    target: "leveret",
                    "delayed jobs wait in classic queues: a crash of the broker can lose those that were just released \
                     and not yet on disk. Queue::replicated_holds keeps them"
                );
            }
        }
    }

    /// The first connect has failed: closes what is open, then says so.
    pub(super) fn fail_start(&mut self, now: Instant, cause: ConnectError) {
        if self.lifecycle.is_starting() {
            self.lifecycle = Lifecycle::Failing { cause };
            self.publish.close(now, &mut self.outbox);
        }
    }

    pub(super) fn begin_shutdown(&mut self, now: Instant, by: Instant) {
        match &mut self.lifecycle {
            Lifecycle::New => {
                self.lifecycle = Lifecycle::Stopping { by: now };
            }
            Lifecycle::Starting => self.fail_start(now, ConnectError::Closed),
            Lifecycle::Running => {
                self.lifecycle = Lifecycle::Stopping { by };
                for subscription in self.subscriptions.keys().copied().collect::<Vec<_>>() {
                    self.stop_subscription(subscription, by);
                }
            }
            Lifecycle::Stopping { by: earlier } => {
                *earlier = by.min(*earlier);
                let by = *earlier;
                for subscription in self.subscriptions.keys().copied().collect::<Vec<_>>() {
                    self.stop_subscription(subscription, by);
                }
            }
            Lifecycle::Closing { .. } | Lifecycle::Failing { .. } | Lifecycle::Ended => {}
        }
    }

    pub(super) fn stop_subscription(&mut self, id: SubscriptionId, by: Instant) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        if let Err(error) = subscription.stop(self.consume.up(), by) {
            tracing::debug!(target: "leveret", subscription = %id, %error, "the consumer could not be cancelled");
        }
        for delivery in self.outbox.recall_jobs(id) {
            self.requeue_unstarted(delivery);
        }
    }

    /// The publishing link cannot come back: ends at once, and says why.
    pub(super) fn break_off(&mut self, now: Instant, cause: LinkError) {
        if matches!(self.lifecycle, Lifecycle::Running | Lifecycle::Stopping { .. }) {
            self.close_links(now, Some(cause));
        }
    }

    /// Ends everything where it stands.
    fn close_links(&mut self, now: Instant, cause: Option<LinkError>) {
        let mut unsettled = 0;
        for id in self.subscriptions.keys().copied().collect::<Vec<_>>() {
            let left = self.make_stale(id);
            unsettled += left;
            let result = match &cause {
                Some(cause) => Err(SubscriptionError::Link(cause.clone())),
                None => Ok(Left { unsettled: left }),
            };
            self.end_subscription(id, result);
        }
        let unconfirmed = self.publisher.abandon(&mut self.deliveries.ledger, &mut self.outbox);
        self.inspector.abandon(&mut self.outbox);
        self.publish.close(now, &mut self.outbox);
        self.consume.close(now, &mut self.outbox);
        self.lifecycle = Lifecycle::Closing { unconfirmed, unsettled, cause };
    }

    /// Goes on towards the end, where nothing stands in the way any more.
    pub(super) fn advance_lifecycle(&mut self, now: Instant) {
        if let Lifecycle::Stopping { by } = self.lifecycle {
            let at_rest = self.subscriptions.is_empty() && self.publisher.is_idle();
            if at_rest || by <= now {
                self.close_links(now, None);
            }
        }
        match &self.lifecycle {
            Lifecycle::Closing { unconfirmed, unsettled, cause } => {
                if let (Some(publish), Some(consume)) = (self.publish.ended(), self.consume.ended()) {
                    let (unconfirmed, unsettled, cause) = (*unconfirmed, *unsettled, cause.clone());
                    let closed = Closed { publish, consume, unconfirmed, unsettled, cause };
                    self.outbox.push(SessionEvent::Closed(closed));
                    self.lifecycle = Lifecycle::Ended;
                }
            }
            Lifecycle::Failing { cause } if self.publish.ended().is_some() => {
                self.outbox.push(SessionEvent::ConnectFailed(cause.clone()));
                self.lifecycle = Lifecycle::Ended;
            }
            _ => {}
        }
    }
}

impl LinkEnd {
    /// Whether the AMQP close handshake took place.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        matches!(self, Self::Handshake)
    }
}
