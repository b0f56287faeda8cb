//! What each event of a connection means for the session.

use std::sync::Arc;

use super::Session;
use super::config::Endpoint;
use super::error::{ConnectError, LinkError, SubscriptionError};
use super::event::{Left, QueueCounts, SessionEvent};
use super::ids::{LinkId, SubscriptionId};
use super::inspector::Inspector;
use super::link::Down;
use super::publisher::{ChannelLost, Context, Publisher};
use super::subscription::{Lost, Subscription};
use crate::connection::{ChannelClosed, ChannelId, CloseReason, CommandError, Connection, Event};
use crate::time::Instant;
use crate::topology::QueuePlan;

impl Session {
    /// Brings everything as far as it can go at this moment.
    pub(super) fn advance(&mut self, now: Instant) {
        loop {
            let mut moved = false;
            for link in LinkId::ALL {
                while let Some(event) = self.link_parts(link).0.poll_connection_event() {
                    moved = true;
                    self.on_event(now, link, event);
                }
            }
            if self.publish.is_opening() && self.publisher.is_restored() {
                self.publish.established(now);
                self.started();
            }
            self.open_subscriptions(now);
            if let Some((publisher, inspector, mut context)) = self.publishing(now) {
                let pumped = publisher.pump(&mut context);
                inspector.pump(context.connection, context.outbox);
                expect_room(LinkId::Publish, pumped);
            }
            for end in self.publisher.take_ended() {
                moved = true;
                self.successor_ended(now, end);
            }
            if !moved {
                break;
            }
        }
        self.advance_subscriptions(now);
        self.advance_lifecycle(now);
    }

    /// A link went down or could not come up.
    pub(super) fn link_down(&mut self, now: Instant, link: LinkId, down: Down) {
        match link {
            LinkId::Publish => {
                self.publisher.link_down(&mut self.deliveries.ledger);
                self.inspector.link_down(&mut self.outbox);
            }
            LinkId::Consume => {
                for id in self.subscriptions.keys().copied().collect::<Vec<_>>() {
                    self.make_stale(id);
                }
                for subscription in self.subscriptions.values_mut() {
                    subscription.link_down();
                }
            }
        }
        let Down::Stays(error) = down else { return };
        match link {
            LinkId::Publish if self.lifecycle.is_starting() => {
                self.fail_start(now, ConnectError::Link(error));
            }
            LinkId::Publish => self.break_off(now, error),
            LinkId::Consume => self.end_all_subscriptions(&error),
        }
    }

    /// A link is up and cannot do what it is for.
    pub(super) fn unusable(&mut self, now: Instant, link: LinkId, error: impl FnOnce(Endpoint) -> LinkError) {
        let (link_state, config, rng, outbox) = self.link_parts(link);
        let down = link_state.unusable(now, error, config, rng, outbox);
        self.link_down(now, link, down);
    }

    /// What publishing works with, while its link is up.
    fn publishing(&mut self, now: Instant) -> Option<(&mut Publisher, &mut Inspector, Context<'_>)> {
        let context = Context {
            now,
            connection: self.publish.up()?,
            plans: &self.plans,
            ledger: &mut self.deliveries.ledger,
            outbox: &mut self.outbox,
        };
        Some((&mut self.publisher, &mut self.inspector, context))
    }

    fn on_event(&mut self, now: Instant, link: LinkId, event: Event) {
        match event {
            Event::Opened { .. } => self.link_opened(now, link),
            Event::Closed(error) => {
                let (link_state, config, rng, outbox) = self.link_parts(link);
                let down =
                    link_state.connection_closed(now, Arc::unwrap_or_clone(error), config, rng, outbox);
                self.link_down(now, link, down);
            }
            Event::Blocked { reason } => self.outbox.push(SessionEvent::Blocked { link, reason }),
            Event::Unblocked => self.outbox.push(SessionEvent::Unblocked { link }),
            event => {
                let handled = match link {
                    LinkId::Publish => self.on_publish_event(now, event),
                    LinkId::Consume => self.on_consume_event(now, event),
                };
                expect_room(link, handled);
            }
        }
    }

    fn link_opened(&mut self, now: Instant, link: LinkId) {
        self.outbox.push(SessionEvent::Connected { link });
        match link {
            LinkId::Publish => {
                self.publish.opened();
                let Some(connection) = self.publish.up() else { return };
                match self.publisher.link_up(connection, &self.plans) {
                    // It has ended since, and says why in its next event.
                    Ok(()) | Err(CommandError::NotOpen) => {}
                    Err(error) => {
                        self.unusable(now, link, |endpoint| LinkError::Unusable { endpoint, error });
                    }
                }
            }
            LinkId::Consume => {
                self.consume.opened();
                self.consume.established(now);
            }
        }
    }

    fn on_publish_event(&mut self, now: Instant, event: Event) -> Result<(), CommandError> {
        let Some((publisher, inspector, mut context)) = self.publishing(now) else { return Ok(()) };
        match event {
            Event::QueueDeclared { channel, messages, consumers, .. } if inspector.owns(channel) => {
                let counts = QueueCounts { ready: messages, consumers };
                inspector.declared(counts, context.connection, context.outbox)
            }
            Event::QueueDeleted { channel, messages } if inspector.owns(channel) => {
                inspector.deleted(messages, context.connection, context.outbox)
            }
            Event::ChannelClosed { channel, cause } if inspector.owns(channel) => {
                inspector.channel_closed(reason(&cause), context.outbox);
                Ok(())
            }
            Event::QueueDeclared { channel, .. } => {
                publisher.queue_declared(channel, &mut context);
                Ok(())
            }
            Event::Verdict { channel, sequence, verdict } => {
                publisher.verdict(channel, sequence, &verdict, &mut context);
                Ok(())
            }
            Event::ChannelClosed { channel, cause: ChannelClosed::Peer(reason) } => {
                match publisher.channel_lost(channel, &reason, &mut context)? {
                    ChannelLost::Reopened => {}
                    ChannelLost::Refused(refusal) if self.lifecycle.is_starting() => {
                        self.fail_start(now, ConnectError::Refused(refusal));
                    }
                    ChannelLost::Refused(refusal) => self.outbox.push(SessionEvent::QueueRefused(refusal)),
                    ChannelLost::ForNothing => {
                        let link = LinkId::Publish;
                        self.unusable(now, link, |endpoint| LinkError::ChannelClosed { endpoint, reason });
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The subscription on a channel of the consuming link, and what it works with.
    fn consuming(&mut self, channel: ChannelId) -> Option<(&mut Subscription, &mut Connection, &QueuePlan)> {
        let connection = self.consume.up()?;
        let subscription =
            self.subscriptions.values_mut().find(|subscription| subscription.channel() == Some(channel))?;
        let plan = &self.plans[subscription.queue];
        Some((subscription, connection, plan))
    }

    fn on_consume_event(&mut self, now: Instant, event: Event) -> Result<(), CommandError> {
        match event {
            // The end of the link is told by its own event.
            Event::ChannelClosed { cause: ChannelClosed::ConnectionEnded(_), .. } => {}
            Event::ChannelClosed { channel, cause } => {
                self.subscription_channel_closed(now, channel, reason(&cause));
            }
            Event::QueueDeclared { channel, .. } => {
                if let Some((subscription, ..)) = self.consuming(channel) {
                    subscription.declare_ok();
                }
            }
            Event::PrefetchSet { channel } => {
                if let Some((subscription, connection, plan)) = self.consuming(channel) {
                    subscription.prefetch_ok(connection, plan)?;
                }
            }
            Event::ConsumeStarted { channel, .. } => {
                if let Some((subscription, connection, _)) = self.consuming(channel)
                    && subscription.consume_ok(now, connection)?
                {
                    let subscription = subscription.id;
                    self.outbox.push(SessionEvent::SubscriptionStarted { subscription });
                }
            }
            Event::ConsumerCancelled { channel, by_server, .. } => {
                match self.consuming(channel) {
                    Some((subscription, connection, plan)) if by_server => {
                        subscription.cancelled_by_server(now, connection, plan)?;
                    }
                    Some((subscription, connection, _)) => subscription.cancel_ok(connection)?,
                    None => {}
                };
            }
            Event::Delivery(delivery) => self.delivered(now, delivery),
            _ => {}
        }
        Ok(())
    }

    /// Opens what is to be opened, once the link is up.
    fn open_subscriptions(&mut self, now: Instant) {
        let Some(connection) = self.consume.up() else { return };
        let mut refused = Vec::new();
        for subscription in self.subscriptions.values_mut() {
            if subscription.has_rested(now) {
                expect_room(
                    LinkId::Consume,
                    subscription.consume_again(connection, &self.plans[subscription.queue]),
                );
            }
            if subscription.wants_to_open(now)
                && !subscription.is_stopping()
                && let Err(error) = subscription.open(connection, &self.plans[subscription.queue])
            {
                refused.push((subscription.id, error));
            }
        }
        for (id, error) in refused {
            self.end_subscription(id, Err(SubscriptionError::NoChannel(error)));
        }
    }

    fn subscription_channel_closed(
        &mut self,
        now: Instant,
        channel: ChannelId,
        reason: Option<&CloseReason>,
    ) {
        let Some(subscription) = self.subscriptions.values_mut().find(|s| s.channel() == Some(channel))
        else {
            return;
        };
        let id = subscription.id;
        let lost = subscription.channel_closed(now, reason, &self.plans[subscription.queue]);
        let unsettled = self.make_stale(id);
        match lost {
            Lost::ComesBack => {}
            Lost::Refused(refusal) => {
                self.end_subscription(id, Err(SubscriptionError::Refused(refusal)));
            }
            Lost::Ended => self.end_subscription(id, Ok(Left { unsettled })),
        }
    }

    /// Brings the subscriptions that were asked to stop nearer to their end.
    fn advance_subscriptions(&mut self, now: Instant) {
        let mut ended = Vec::new();
        for subscription in self.subscriptions.values_mut() {
            if !subscription.is_stopping() {
                continue;
            }
            let busy = self.deliveries.any_of(subscription.id);
            match subscription.advance(now, busy, self.consume.up()) {
                Ok(true) => ended.push(subscription.id),
                Ok(false) => {}
                Err(error) => expect_room(LinkId::Consume, Err(error)),
            }
        }
        for id in ended {
            let unsettled = self.make_stale(id);
            self.end_subscription(id, Ok(Left { unsettled }));
        }
    }

    fn end_all_subscriptions(&mut self, error: &LinkError) {
        for id in self.subscriptions.keys().copied().collect::<Vec<_>>() {
            self.end_subscription(id, Err(SubscriptionError::Link(error.clone())));
        }
    }

    pub(super) fn end_subscription(
        &mut self,
        subscription: SubscriptionId,
        result: Result<Left, SubscriptionError>,
    ) {
        if self.subscriptions.remove(&subscription).is_some() {
            self.outbox.push(SessionEvent::SubscriptionEnded { subscription, result });
        }
    }
}

const fn reason(cause: &ChannelClosed) -> Option<&CloseReason> {
    match cause {
        ChannelClosed::Peer(reason) => Some(reason),
        _ => None,
    }
}

/// A command to a connection fails only when that has just ended, which its own event tells, or when it has no
/// channel left.
pub(super) fn expect_room(link: LinkId, result: Result<(), CommandError>) {
    if let Err(error) = result {
        tracing::warn!(target: "leveret", %link, %error, "a command could not be given to the connection");
    }
}
