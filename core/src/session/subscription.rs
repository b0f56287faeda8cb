//! One consumer: opening, consuming, ending.
//!
//! ```text
//!  Down ──link up──▶ Opening ──qos-ok──▶ Starting ──consume-ok──▶ Consuming
//!   ▲                   │ refused: ended                │ cancelled by the broker: declared and consumed again,
//!   │                   │                               │   after a rest where it does so again and again
//!   │ link or           ▼                               ▼ asked to stop
//!   │ channel lost    Ended                          Cancelling ──cancel-ok──▶ Draining ──▶ Closing ──▶ Ended
//!   └── Paused ◀── channel lost
//! ```
//!
//! Each subscription has a channel of its own, so an error on one leaves the others running. `basic.qos` is
//! answered before `basic.consume` is sent, because it does not apply to a consumer that exists already.

use std::time::Duration;

use super::ids::SubscriptionId;
use super::refusal::{Refusal, is_queue_declare};
use crate::connection::{ChannelId, CloseReason, CommandError, Connection, ConsumeOptions};
use crate::text::ShortString;
use crate::time::Instant;
use crate::topology::QueuePlan;

#[cfg(test)]
mod tests;

/// The pause before a subscription whose channel was closed is opened again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// No such pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How much longer than its grace a subscription that was asked to stop waits for the broker to close its channel.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) id: SubscriptionId,
    /// Index of the queue's plan.
    pub(super) queue: usize,
    consumer_tag: ShortString,
    channel: Option<ChannelId>,
    state: State,
    /// Declares without an answer.
    declares: usize,
    /// Whether the broker cancelled the last consumer as soon as it had started.
    short_lived: bool,
    /// Openings that failed one after another.
    failures: u32,
    stop_by: Option<Instant>,
    /// Tags to requeue once the broker has confirmed that the consumer is gone, so that they do not come back
    /// to it.
    to_requeue: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Down,
    Paused {
        until: Instant,
    },
    Opening,
    Starting,
    Consuming {
        since: Instant,
    },
    /// The broker cancelled one consumer after another. The channel is there, the consumer is not.
    Resting {
        until: Instant,
    },
    Cancelling,
    Draining,
    Closing,
}

/// What the end of the channel means.
#[derive(Debug)]
pub(super) enum Lost {
    /// It is opened again after a pause.
    ComesBack,
    /// The broker will refuse it again.
    Refused(Refusal),
    /// It was closing anyway.
    Ended,
}

impl Subscription {
    pub(super) fn new(id: SubscriptionId, queue: usize) -> Self {
        Self {
            id,
            queue,
            consumer_tag: ShortString::truncated(&format!("leveret-{id}")),
            channel: None,
            state: State::Down,
            declares: 0,
            short_lived: false,
            failures: 0,
            stop_by: None,
            to_requeue: Vec::new(),
        }
    }

    pub(super) const fn channel(&self) -> Option<ChannelId> {
        self.channel
    }

    pub(super) const fn is_stopping(&self) -> bool {
        self.stop_by.is_some()
    }

    /// The link is up, or the pause is over: sends everything up to `basic.qos`.
    pub(super) fn open(&mut self, connection: &mut Connection, plan: &QueuePlan) -> Result<(), CommandError> {
        let channel = connection.open_channel()?;
        self.channel = Some(channel);
        self.state = State::Opening;
        self.declare(connection, channel, plan)?;
        connection.set_prefetch(channel, plan.prefetch())
    }

    /// Whether it is to be opened now.
    pub(super) fn wants_to_open(&self, now: Instant) -> bool {
        match self.state {
            State::Down => true,
            State::Paused { until } => until <= now,
            _ => false,
        }
    }

    pub(super) const fn declare_ok(&mut self) {
        self.declares = self.declares.saturating_sub(1);
    }

    pub(super) fn prefetch_ok(
        &mut self,
        connection: &mut Connection,
        plan: &QueuePlan,
    ) -> Result<(), CommandError> {
        match (self.state, self.channel) {
            (State::Opening, Some(channel)) => {
                self.state = State::Starting;
                self.consume(connection, channel, plan)
            }
            _ => Ok(()),
        }
    }

    /// `basic.consume-ok` has come. `true` if the consumer is there to stay.
    pub(super) fn consume_ok(
        &mut self,
        now: Instant,
        connection: &mut Connection,
    ) -> Result<bool, CommandError> {
        match (self.state, self.channel) {
            (State::Starting, Some(channel)) if self.is_stopping() => {
                self.cancel(channel, connection)?;
                Ok(false)
            }
            (State::Starting, _) => {
                self.state = State::Consuming { since: now };
                self.failures = 0;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The broker cancelled the consumer: its queue was deleted or has moved. What was delivered stays valid.
    pub(super) fn cancelled_by_server(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        plan: &QueuePlan,
    ) -> Result<(), CommandError> {
        match self.state {
            State::Consuming { since } => {
                let was_short = std::mem::replace(&mut self.short_lived, now < since + FIRST_PAUSE);
                if was_short && self.short_lived {
                    // Again and again, as fast as the broker answers, would help neither side.
                    self.state = State::Resting { until: now + FIRST_PAUSE };
                    return Ok(());
                }
                self.consume_again(connection, plan)
            }
            State::Cancelling => self.cancel_ok(connection),
            _ => Ok(()),
        }
    }

    /// Whether it is to consume again now, on the channel that it has.
    pub(super) fn has_rested(&self, now: Instant) -> bool {
        matches!(self.state, State::Resting { until } if until <= now)
    }

    /// Declares and consumes again after the broker cancelled the consumer.
    pub(super) fn consume_again(
        &mut self,
        connection: &mut Connection,
        plan: &QueuePlan,
    ) -> Result<(), CommandError> {
        let Some(channel) = self.channel else { return Ok(()) };
        self.state = State::Starting;
        self.declare(connection, channel, plan)?;
        self.consume(connection, channel, plan)
    }

    /// Asks the broker to send nothing more.
    pub(super) fn stop(
        &mut self,
        connection: Option<&mut Connection>,
        by: Instant,
    ) -> Result<(), CommandError> {
        self.stop_by = Some(self.stop_by.map_or(by, |earlier| earlier.min(by)));
        match (self.state, self.channel, connection) {
            (State::Consuming { .. }, Some(channel), Some(connection)) => self.cancel(channel, connection),
            // RabbitMQ 3.10 closes the whole connection over a cancel that comes before it has answered the consume.
            (State::Starting, ..) => Ok(()),
            (State::Resting { .. }, ..) => {
                self.state = State::Draining;
                Ok(())
            }
            (State::Opening, Some(channel), Some(connection)) => {
                self.state = State::Closing;
                connection.close_channel(channel)
            }
            _ => Ok(()),
        }
    }

    /// How many deliveries wait for the end of the consumer to be requeued.
    pub(super) fn to_requeue(&self) -> usize {
        self.to_requeue.len()
    }

    /// Gives a delivery back to its queue; where the consumer is being cancelled, once it is gone.
    pub(super) fn requeue(&mut self, connection: &mut Connection, tag: u64) -> Result<(), CommandError> {
        match (self.state, self.channel) {
            (State::Starting | State::Cancelling, _) if self.is_stopping() => self.to_requeue.push(tag),
            (_, Some(channel)) => connection.nack(channel, tag, false, true)?,
            (_, None) => {}
        }
        Ok(())
    }

    fn consume(
        &self,
        connection: &mut Connection,
        channel: ChannelId,
        plan: &QueuePlan,
    ) -> Result<(), CommandError> {
        let queue = plan.name().as_short();
        connection.consume(channel, queue, &self.consumer_tag, &ConsumeOptions::default()).map(drop)
    }

    pub(super) fn cancel_ok(&mut self, connection: &mut Connection) -> Result<(), CommandError> {
        if self.state != State::Cancelling {
            return Ok(());
        }
        self.state = State::Draining;
        if let Some(channel) = self.channel {
            for tag in std::mem::take(&mut self.to_requeue) {
                connection.nack(channel, tag, false, true)?;
            }
        }
        Ok(())
    }

    /// Goes on towards the end where it is stopping. `true` once nothing more is to come.
    ///
    /// `busy` says whether deliveries of this subscription are in hand.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        busy: bool,
        connection: Option<&mut Connection>,
    ) -> Result<bool, CommandError> {
        let Some(by) = self.stop_by else { return Ok(false) };
        let overdue = by <= now;
        match (self.state, self.channel, connection) {
            (State::Down | State::Paused { .. }, _, _) | (_, None, _) | (_, _, None) => Ok(true),
            (State::Closing, ..) => Ok(by + CLOSE_WITHIN <= now),
            (State::Draining, Some(channel), Some(connection)) if !busy || overdue => {
                self.state = State::Closing;
                connection.close_channel(channel)?;
                Ok(false)
            }
            (State::Starting | State::Cancelling, Some(channel), Some(connection)) if overdue => {
                self.state = State::Closing;
                connection.close_channel(channel)?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// When [`Subscription::open`] or [`Subscription::advance`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Paused { until } | State::Resting { until } => Some(until),
            State::Starting | State::Cancelling | State::Draining => self.stop_by,
            State::Closing => self.stop_by.map(|by| by + CLOSE_WITHIN),
            _ => None,
        }
    }

    /// The link is down: the broker delivers again what was in hand.
    pub(super) fn link_down(&mut self) {
        self.channel = None;
        self.state = State::Down;
        self.declares = 0;
        self.to_requeue.clear();
    }

    /// The channel was closed, by the broker or at our request.
    pub(super) fn channel_closed(
        &mut self,
        now: Instant,
        reason: Option<&CloseReason>,
        plan: &QueuePlan,
    ) -> Lost {
        let state = self.state;
        let declares = self.declares;
        self.link_down();
        let Some(reason) = reason else { return Lost::Ended };
        if state == State::Closing {
            return Lost::Ended;
        }
        // What was refused at a declare will be refused again, unless the queue's node is down (404). An error on an
        // established consumer, such as the broker's limit on the time to acknowledge, comes back.
        let refused = match reason.code {
            404 => false,
            403 => is_queue_declare(reason) || state == State::Starting,
            _ => is_queue_declare(reason),
        };
        if refused {
            let queue = match plan.dead() {
                Some(dead) if declares == 1 => dead.name,
                _ => plan.name().as_short().clone(),
            };
            return Lost::Refused(Refusal { queue, reason: reason.clone() });
        }
        let pause =
            FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Paused { until: now + pause };
        Lost::ComesBack
    }

    fn cancel(&mut self, channel: ChannelId, connection: &mut Connection) -> Result<(), CommandError> {
        self.state = State::Cancelling;
        connection.cancel(channel, &self.consumer_tag)
    }

    fn declare(
        &mut self,
        connection: &mut Connection,
        channel: ChannelId,
        plan: &QueuePlan,
    ) -> Result<(), CommandError> {
        for declaration in plan.declarations() {
            connection.declare_queue(channel, &declaration)?;
            self.declares += 1;
        }
        Ok(())
    }
}
