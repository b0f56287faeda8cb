//! The job queue as one state machine: several links, producers, consumers, settlement, recovery, shutdown.
//!
//! A [`Session`] composes the decisions of this crate with [`Connection`](crate::connection::Connection)s. It does
//! no I/O: a driver moves bytes between it and sockets, and an application gives it commands. Both may be the same
//! loop.
//!
//! # The run loop
//!
//! After **every** input or command, in this order:
//!
//! 1. **Transmit.** For each link with a socket, [`poll_transmit`](Session::poll_transmit) appends what is to be
//!    written to the [`SendBuf`] of that socket; write it, and ask again once it has room.
//! 2. **Timeout.** [`poll_timeout`](Session::poll_timeout) is the moment of the next
//!    [`handle_timeout`](Session::handle_timeout). Being early or calling twice is harmless.
//! 3. **Events.** [`poll_event`](Session::poll_event) until it is `None`. [`SessionEvent::Connect`] and
//!    [`SessionEvent::Drop`] are for the driver, the rest is for the application.
//! 4. **Wait** for a socket to be readable or writable, for the moment of step 2, or for a command.
//! 5. **Input.** Read into the buffer of that socket and give it to [`handle_read`](Session::handle_read), which
//!    takes whole frames off its front. After [`ReadOutcome::More`] call it again, once steps 1 to 3 are done; do
//!    not read while [`wants_read`](Session::wants_read) is false, and call `handle_read` again when it turns true:
//!    whole frames may be in the buffer.
//!
//! The buffers of a socket belong to one [`Attempt`]: a new attempt starts with empty ones.
//!
//! # What is where
//!
//! One link publishes, the other consumes and acknowledges. Queues are declared by both. A delayed job is published
//! into a hold queue, on a channel that belongs to its work queue. A retry, deferral or dead letter is *publish the
//! successor, see its confirm, then acknowledge the original*.

mod admission;
mod clocks;
mod config;
mod deliveries;
mod dispatch;
mod error;
mod event;
mod ids;
mod inspector;
mod job;
mod lifecycle;
mod link;
mod outbox;
mod outlet;
mod publish;
mod publisher;
mod queue_outlet;
mod refusal;
mod settling;
mod subscription;
#[cfg(test)]
mod testing;
mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::BytesMut;

pub use self::config::{Endpoint, Reconnect, SessionConfig};
pub use self::error::{
    ConfigError, ConnectError, ConnectFailure, Disconnect, EnqueueError, LinkError, RequestError,
    SubscribeError, SubscriptionError,
};
pub use self::event::{
    Closed, JobDelivery, JobSummary, Left, LinkEnd, QueueCounts, SessionEvent, Settled, Settlement,
};
pub use self::ids::{Attempt, LinkId, PublishId, RequestId, SubscriptionId};
pub use self::job::{Accepted, NewJob};
pub use self::refusal::Refusal;
pub use crate::connection::{ReadOutcome, SendBuf, Uri};
pub use crate::settle::{DeliveryId, Outcome, SettleError};

use self::clocks::Clocks;
use self::deliveries::Deliveries;
use self::dispatch::expect_room;
use self::inspector::Inspector;
use self::lifecycle::Lifecycle;
use self::link::Link;
use self::outbox::Outbox;
use self::publisher::Publisher;
use self::subscription::Subscription;
use crate::envelope::{self, Envelope, JobId};
use crate::rng::Rng;
use crate::text::ShortString;
use crate::time::{Instant, UnixMillis};
use crate::topology::{QueueName, QueuePlan};

/// A client's whole conversation with the broker, without I/O. See the [module](self) for the run loop.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    plans: Vec<QueuePlan>,
    rng: Rng,
    /// Apart from `rng`, so that job ids have 128 bits of seed behind them.
    id_rng: Rng,
    publish: Link,
    consume: Link,
    publisher: Publisher,
    inspector: Inspector,
    subscriptions: BTreeMap<SubscriptionId, Subscription>,
    next_subscription: u64,
    deliveries: Deliveries,
    outbox: Outbox,
    lifecycle: Lifecycle,
    clocks: Clocks,
}

impl Session {
    /// A session that is not connected. Nothing happens before [`connect`](Self::connect).
    ///
    /// `seed` should be random: job ids and pauses come from it. The same seed and inputs give the same outputs.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the configuration cannot be used.
    pub fn new(config: SessionConfig, seed: u128) -> Result<Self, ConfigError> {
        let plans = config.plans()?;
        let publisher = Publisher::new(&config, &plans);
        let deliveries = Deliveries::new(&plans);
        let (high, low) = halves(seed);
        Ok(Self {
            config,
            plans,
            rng: Rng::new(low),
            id_rng: Rng::new(high),
            publish: Link::new(LinkId::Publish),
            consume: Link::new(LinkId::Consume),
            publisher,
            inspector: Inspector::default(),
            subscriptions: BTreeMap::new(),
            next_subscription: 0,
            deliveries,
            outbox: Outbox::default(),
            lifecycle: Lifecycle::New,
            clocks: Clocks::default(),
        })
    }

    /// Begins to connect the publishing link and to declare the queues. Answered by [`SessionEvent::Ready`] or
    /// [`SessionEvent::ConnectFailed`].
    ///
    /// Every endpoint is tried once. After that first success a lost link is connected again without end.
    pub fn connect(&mut self, now: Instant) {
        if matches!(self.lifecycle, Lifecycle::New) {
            self.lifecycle = Lifecycle::Starting;
            self.publish.start(now, &self.config, &mut self.outbox);
        }
    }

    // Input from the driver.

    /// The socket asked for by [`SessionEvent::Connect`] is connected.
    pub fn handle_connected(&mut self, now: Instant, link: LinkId, attempt: Attempt) {
        if self.link(link).is_current(attempt) {
            let config = &self.config;
            match link {
                LinkId::Publish => self.publish.socket_connected(now, config),
                LinkId::Consume => self.consume.socket_connected(now, config),
            }
        }
        self.advance(now);
    }

    /// The socket asked for by [`SessionEvent::Connect`] could not be had.
    pub fn handle_connect_failed(
        &mut self,
        now: Instant,
        link: LinkId,
        attempt: Attempt,
        cause: ConnectFailure,
    ) {
        if self.link(link).is_current(attempt) {
            let (link_state, config, rng, outbox) = self.link_parts(link);
            let down = link_state.socket_failed(now, cause, config, rng, outbox);
            self.link_down(now, link, down);
        }
        self.advance(now);
    }

    /// Takes whole frames off the front of `input`, a bounded number of them.
    ///
    /// Bytes of an earlier attempt are discarded.
    pub fn handle_read(
        &mut self,
        now: Instant,
        link: LinkId,
        attempt: Attempt,
        input: &mut BytesMut,
    ) -> ReadOutcome {
        if !self.link(link).is_current(attempt) {
            input.clear();
            return ReadOutcome::Idle;
        }
        let outcome = self.link_parts(link).0.read(now, input);
        self.advance(now);
        outcome
    }

    /// The socket has ended, from the other side or by an error.
    pub fn handle_closed(&mut self, now: Instant, link: LinkId, attempt: Attempt, cause: Disconnect) {
        if self.link(link).is_current(attempt) {
            let (link_state, config, rng, outbox) = self.link_parts(link);
            if let Some(down) = link_state.socket_closed(now, cause, config, rng, outbox) {
                self.link_down(now, link, down);
            }
        }
        self.advance(now);
    }

    /// Fires every timer that is due. Early and repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        for link in LinkId::ALL {
            let (link_state, config, rng, outbox) = self.link_parts(link);
            if let Some(down) = link_state.timeout(now, config, rng, outbox) {
                self.link_down(now, link, down);
            }
        }
        self.publisher.handle_timeout(now, &mut self.deliveries.ledger, &mut self.outbox);
        let asked =
            self.inspector.handle_timeout(now, self.config.max_wait, self.publish.up(), &mut self.outbox);
        expect_room(LinkId::Publish, asked);
        self.requeue_rested(now);
        self.advance(now);
    }

    /// Tells what a wall clock shows at `now`. A driver calls it before its other input; once for several is enough.
    ///
    /// A monotonic clock may stand still while the machine sleeps, and the leases of hold queues do not. Where the
    /// two clocks disagree about the time since the last call, by a quarter of a second or more, the leases count as
    /// over: hold queues are declared anew, and delayed jobs without a confirm are published again. Nothing else is
    /// made of wall-clock time.
    pub fn handle_wall_clock(&mut self, now: Instant, wall: UnixMillis) {
        if self.clocks.disagree(now, wall) {
            tracing::info!(target: "leveret", "the clocks disagree, as after a sleep: hold queues are declared anew");
            self.publisher.void_leases();
        }
    }

    // Output for the driver.

    /// Appends to `out` what is to be written on the socket of `link`, until `out` is full. Returns the number of
    /// bytes appended.
    pub fn poll_transmit(&mut self, now: Instant, link: LinkId, out: &mut SendBuf) -> usize {
        self.link_parts(link).0.transmit(now, out)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let links = [self.publish.poll_timeout(), self.consume.poll_timeout()];
        let subscriptions = self.subscriptions.values().map(Subscription::poll_timeout);
        let others = [
            self.publisher.poll_timeout(),
            self.inspector.poll_timeout(),
            self.deliveries.poll_timeout(),
            self.lifecycle.poll_timeout(),
        ];
        links.into_iter().chain(subscriptions).chain(others).flatten().min()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        self.outbox.pop()
    }

    /// Whether `link` has room for more input. While it is false, read nothing from its socket.
    #[must_use]
    pub fn wants_read(&self, link: LinkId) -> bool {
        self.link(link).wants_read()
    }

    // Commands of the application.

    /// Accepts a job for `queue`. The verdict is [`SessionEvent::Enqueued`], after the broker's confirm.
    ///
    /// While the session shuts down, jobs are accepted for as long as deliveries are in hand and the grace lasts: the
    /// handlers that are running may have some to enqueue.
    ///
    /// `wall` is written into the job for people to read; nothing is computed from it.
    ///
    /// # Errors
    ///
    /// [`EnqueueError`], before anything is sent, if the job cannot be accepted.
    pub fn enqueue(
        &mut self,
        now: Instant,
        wall: UnixMillis,
        queue: &QueueName,
        job: NewJob,
    ) -> Result<Accepted, EnqueueError> {
        if !self.lifecycle.accepts_publishes(now, self.deliveries.len()) {
            return Err(EnqueueError::Closed);
        }
        let Some(index) = self.plan_of(queue) else {
            return Err(EnqueueError::UnknownQueue { queue: queue.clone() });
        };
        let plan = &self.plans[index];
        let placement = plan.holds().place(job.delay).map_err(EnqueueError::DelayTooLong)?;
        let id = JobId::from_random(self.id_rng.next_u128());
        let mut envelope = Envelope::new(id, job.job_type, queue.as_short().clone(), wall, job.payload);
        if let Some(correlation_id) = job.correlation_id {
            envelope = envelope.with_correlation_id(correlation_id);
        }
        let message =
            envelope::message(&envelope, placement.routing_key().clone(), plan.top_priority().map(|_| 0));
        self.config.envelope_limits.admit(&message.body).map_err(EnqueueError::Unreadable)?;
        let publish = self.publisher.enqueue(now, index, message, placement.hold())?;
        self.advance(now);
        Ok(Accepted { publish, job: id })
    }

    /// Begins to consume from `queue`, as many deliveries at once as its prefetch count says. Answered by
    /// [`SessionEvent::SubscriptionStarted`], or by [`SessionEvent::SubscriptionEnded`] with the cause.
    ///
    /// # Errors
    ///
    /// [`SubscribeError`], and nothing is changed.
    pub fn subscribe(&mut self, now: Instant, queue: &QueueName) -> Result<SubscriptionId, SubscribeError> {
        if !self.lifecycle.accepts_work() {
            return Err(SubscribeError::Closed);
        }
        let Some(index) = self.plan_of(queue) else {
            return Err(SubscribeError::UnknownQueue { queue: queue.clone() });
        };
        if self.subscriptions.values().any(|known| known.queue == index) {
            return Err(SubscribeError::AlreadySubscribed { queue: queue.clone() });
        }
        let id = SubscriptionId(self.next_subscription);
        self.next_subscription += 1;
        self.subscriptions.insert(id, Subscription::new(id, index));
        self.consume.start(now, &self.config, &mut self.outbox);
        self.advance(now);
        Ok(id)
    }

    /// Ends a subscription in order: the consumer is cancelled, jobs that [`poll_event`](Self::poll_event) has not
    /// given out are requeued, and those given out may be settled until `grace` has passed. Answered by
    /// [`SessionEvent::SubscriptionEnded`]. What is not settled by then is delivered again by the broker.
    ///
    /// Asking again can only shorten the grace. An unknown subscription is ignored.
    pub fn unsubscribe(&mut self, now: Instant, subscription: SubscriptionId, grace: Duration) {
        self.stop_subscription(subscription, now + grace);
        self.advance(now);
    }

    /// Tells the outcome of a delivery. What was made of it is [`SessionEvent::Settled`].
    ///
    /// # Errors
    ///
    /// [`SettleError`] if it was settled before, or has become stale; nothing is sent then.
    pub fn settle(
        &mut self,
        now: Instant,
        delivery: DeliveryId,
        outcome: &Outcome,
    ) -> Result<(), SettleError> {
        self.settle_job(delivery, outcome)?;
        self.advance(now);
        Ok(())
    }

    /// Asks how much is in a queue, by its name on the broker. Answered by [`SessionEvent::Inspected`], after
    /// [`SessionConfig::max_wait`] at the latest.
    ///
    /// # Errors
    ///
    /// [`RequestError`] if the question cannot be put.
    pub fn inspect(&mut self, now: Instant, queue: &ShortString) -> Result<RequestId, RequestError> {
        self.may_ask()?;
        let request = self.inspector.inspect(queue, now + self.config.max_wait)?;
        self.advance(now);
        Ok(request)
    }

    /// Deletes a queue with everything in it. Answered by [`SessionEvent::Deleted`], after
    /// [`SessionConfig::max_wait`] at the latest.
    ///
    /// # Errors
    ///
    /// [`RequestError`] if the question cannot be put.
    pub fn delete_queue(&mut self, now: Instant, queue: &ShortString) -> Result<RequestId, RequestError> {
        self.may_ask()?;
        let request = self.inspector.delete(queue, now + self.config.max_wait)?;
        self.advance(now);
        Ok(request)
    }

    /// Ends the session in order: no new work is accepted but what running handlers enqueue, every subscription ends
    /// as by [`unsubscribe`](Self::unsubscribe), what was accepted is confirmed, then the links are closed. Answered by
    /// [`SessionEvent::Closed`], at the latest when `grace` and after it the close timeout of the connections have
    /// passed.
    ///
    /// Asking again can only shorten the grace.
    pub fn shutdown(&mut self, now: Instant, grace: Duration) {
        self.begin_shutdown(now, now + grace);
        self.advance(now);
    }

    /// A question waits for the broker and for nothing else: while there is no link there is no end to that.
    fn may_ask(&mut self) -> Result<(), RequestError> {
        match self.publish.up() {
            _ if !self.lifecycle.accepts_work() => Err(RequestError::Closed),
            None => Err(RequestError::Disconnected),
            Some(_) => Ok(()),
        }
    }

    fn plan_of(&self, queue: &QueueName) -> Option<usize> {
        self.plans.iter().position(|plan| plan.name() == queue)
    }

    const fn link(&self, link: LinkId) -> &Link {
        match link {
            LinkId::Publish => &self.publish,
            LinkId::Consume => &self.consume,
        }
    }

    const fn link_parts(&mut self, link: LinkId) -> (&mut Link, &SessionConfig, &mut Rng, &mut Outbox) {
        let state = match link {
            LinkId::Publish => &mut self.publish,
            LinkId::Consume => &mut self.consume,
        };
        (state, &self.config, &mut self.rng, &mut self.outbox)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is meant")]
const fn halves(seed: u128) -> (u64, u64) {
    ((seed >> 64) as u64, seed as u64)
}
