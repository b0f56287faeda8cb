//! What becomes of a job after its handler has spoken.

use std::fmt::Display;
use std::time::Duration;

use bytes::Bytes;

use super::aside::TakenAside;
use super::death::write_death;
use super::outcome::Outcome;
use crate::delay::{DelayTooLong, HoldTtl};
use crate::envelope::{Envelope, properties::write_properties};
use crate::message::{Message, Properties, copied_properties};
use crate::retry;
use crate::topology::{HoldPlan, Placement, QueuePlan};

#[cfg(test)]
mod tests;

/// How a delivery ends.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Decision {
    /// Acknowledge it: the job is done.
    Acknowledge,
    /// Requeue it at the broker, which delivers it again.
    Requeue,
    /// Reject it for good: a dead letter of a queue that keeps none.
    Reject {
        /// Why, for whoever watches: nothing else tells.
        reason: String,
    },
    /// Acknowledge it although nothing was done and nothing takes its place. An acknowledgement and not a
    /// rejection, which a dead-letter exchange of the queue would catch.
    Drop {
        /// Why, for whoever watches: nothing else tells.
        reason: String,
    },
    /// Publish this, and acknowledge the delivery once it is safe.
    Publish(Box<Successor>),
}

/// The message that takes the place of a delivery.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Successor {
    /// Where it goes.
    pub target: Target,
    /// What it is.
    pub kind: SuccessorKind,
    /// The message. Its routing key is the name of the target queue.
    pub message: Message,
}

/// Where a successor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// The work queue.
    Work,
    /// A hold queue, and from there the work queue.
    Hold(HoldTtl),
    /// What else makes it wait: a waiting queue, or a delayed-message exchange.
    Waiting,
    /// The dead-letter queue, or the dead-letter target of a subscription.
    Dead,
}

/// What a successor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuccessorKind {
    /// The next attempt.
    Retry {
        /// Its number.
        attempt: u32,
        /// The wait that was decided, before rounding.
        delay: Duration,
    },
    /// The same attempt, later.
    Deferral {
        /// How often the job has been deferred now.
        deferrals: u32,
        /// The wait that was asked for, before rounding.
        delay: Duration,
    },
    /// A dead letter.
    DeadLetter {
        /// Why.
        reason: String,
    },
}

impl Successor {
    /// Sends it into another hold. Choose a larger one: a smaller one would bring it back early.
    ///
    /// The holds of a job queue are [`QueuePlan::holds`], those of a subscription the
    /// [`DelayPlan::Holds`](crate::topology::DelayPlan::Holds) of its
    /// [`SubscriptionPlan::delay`](crate::topology::SubscriptionPlan::delay).
    pub fn aim_at_hold(&mut self, holds: &HoldPlan, ttl: HoldTtl) {
        self.target = Target::Hold(ttl);
        self.message.routing_key = holds.name(ttl);
    }
}

/// Decides what becomes of a job that was delivered from the queue of `plan`. That queue decides, whatever the
/// envelope says.
///
/// `delivered` are the properties of the delivery, or `None` where they cannot be read. `random` spreads the
/// backoff of a retry.
///
/// * A retry counts the attempt, has priority 0 and joins the back; without attempts left it is a dead letter.
/// * A deferral keeps the attempt, has the top priority and waits at least one step; beyond the queue's maximum
///   it is a dead letter.
/// * A wait that no hold can keep is a dead letter that says so.
///
/// ```
/// use std::time::Duration;
/// use leveret_core::envelope::{Envelope, JobId, JobType, RawPayload};
/// use leveret_core::retry::RetryPolicy;
/// use leveret_core::settle::{Decision, Outcome, SuccessorKind, Target, decide};
/// use leveret_core::time::UnixMillis;
/// use leveret_core::topology::Queue;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plan = Queue::new("shop.emails")?.retry(RetryPolicy::exponential(2)).plan()?;
/// let payload = RawPayload::from_serialize("ada@example.org")?;
/// let name = plan.name().as_short().clone();
/// let job = Envelope::new(JobId::from_random(1), JobType::new("email")?, name, UnixMillis(0), payload);
/// assert_eq!(decide(&plan, &job, None, &Outcome::Done, 0), Decision::Acknowledge);
///
/// let failed = Outcome::Retry { delay: Some(Duration::from_secs(30)), error: "smtp is down".to_owned() };
/// let Decision::Publish(retry) = decide(&plan, &job, None, &failed, 0) else { panic!("one attempt is left") };
/// assert!(matches!(retry.kind, SuccessorKind::Retry { attempt: 2, .. }));
/// assert_eq!(retry.message.routing_key, "shop.emails.deferred.30000");
///
/// let last = job.next_attempt();
/// let Decision::Publish(dead) = decide(&plan, &last, None, &failed, 0) else { panic!("dead letters are kept") };
/// assert_eq!((dead.target, dead.message.routing_key.as_str()), (Target::Dead, "shop.emails.dead"));
/// let reason = "attempt 2 of 2 failed: smtp is down".to_owned();
/// assert_eq!(dead.kind, SuccessorKind::DeadLetter { reason });
/// # Ok(())
/// # }
/// ```
pub fn decide(
    plan: &QueuePlan,
    job: &Envelope,
    delivered: Option<&Properties>,
    outcome: &Outcome,
    random: u64,
) -> Decision {
    match outcome {
        Outcome::Done => Decision::Acknowledge,
        Outcome::Requeue => Decision::Requeue,
        Outcome::Drop { reason } => Decision::Drop { reason: reason.clone() },
        Outcome::DeadLetter { reason } => dead_letter(plan, job, delivered, reason),
        Outcome::Retry { delay, error } => match plan.retry().decide(job.attempt(), random) {
            retry::Decision::Retry { delay: backoff } => {
                retry_after(plan, job, delivered, delay.unwrap_or(backoff), error)
            }
            retry::Decision::GiveUp => {
                let (attempt, max) = (job.attempt(), plan.retry().max_attempts());
                dead_letter(plan, job, delivered, &format!("attempt {attempt} of {max} failed: {error}"))
            }
        },
        Outcome::Defer { delay, reason } => match plan.max_deferrals() {
            Some(max) if job.deferrals() >= max => {
                let deferrals = job.deferrals();
                let reason = format!("deferred {deferrals} times, the queue allows {max}: {reason}");
                dead_letter(plan, job, delivered, &reason)
            }
            _ => defer(plan, job, delivered, *delay, reason),
        },
    }
}

/// The end of a job that cannot be run or cannot be kept: its dead letter, or its rejection where the queue
/// keeps none.
///
/// With `None` for `delivered` the dead letter has no headers of the application: for a job whose headers do
/// not fit a frame.
pub fn dead_letter(
    plan: &QueuePlan,
    job: &Envelope,
    delivered: Option<&Properties>,
    reason: &str,
) -> Decision {
    if !plan.dead_letters() {
        return Decision::Reject { reason: reason.to_owned() };
    }
    let mut properties = delivered.map(copied_properties).unwrap_or_default();
    write_properties(job, None, &mut properties);
    write_death(&mut properties, plan.name().as_short(), job.attempt(), reason);
    buried(Message::to_queue(plan.dead_name(), properties, job.encode()), reason)
}

/// Moves a message that is no job aside, byte for byte, as a dead letter that was attempted 0 times.
pub fn aside(plan: &QueuePlan, delivered: Option<&Properties>, body: &Bytes, reason: &str) -> Decision {
    if !plan.dead_letters() {
        return Decision::Reject { reason: reason.to_owned() };
    }
    let message = TakenAside::new(plan.name(), delivered, body, reason).into_message(plan.dead_name());
    buried(message, reason)
}

fn retry_after(
    plan: &QueuePlan,
    job: &Envelope,
    delivered: Option<&Properties>,
    delay: Duration,
    error: &str,
) -> Decision {
    let placement = match plan.holds().place(delay) {
        Ok(placement) => placement,
        Err(refused) => return too_long(plan, job, delivered, refused, error),
    };
    let next = job.next_attempt();
    let kind = SuccessorKind::Retry { attempt: next.attempt(), delay };
    schedule(plan, &next, delivered, &placement, kind)
}

fn defer(
    plan: &QueuePlan,
    job: &Envelope,
    delivered: Option<&Properties>,
    delay: Duration,
    reason: &str,
) -> Decision {
    let placement = match plan.holds().place_deferral(delay) {
        Ok(placement) => placement,
        Err(refused) => return too_long(plan, job, delivered, refused, reason),
    };
    let next = job.deferred(plan.top_priority());
    let kind = SuccessorKind::Deferral { deferrals: next.deferrals(), delay };
    schedule(plan, &next, delivered, &placement, kind)
}

fn too_long(
    plan: &QueuePlan,
    job: &Envelope,
    delivered: Option<&Properties>,
    refused: DelayTooLong,
    why: impl Display,
) -> Decision {
    dead_letter(plan, job, delivered, &format!("{refused} ({why})"))
}

fn schedule(
    plan: &QueuePlan,
    next: &Envelope,
    delivered: Option<&Properties>,
    placement: &Placement,
    kind: SuccessorKind,
) -> Decision {
    let mut properties = delivered.map(copied_properties).unwrap_or_default();
    // Said also when it is 0: a queue may take a message without a priority as something else.
    let priority = plan.top_priority().map(|_| next.priority());
    write_properties(next, priority, &mut properties);
    let target = placement.hold().map_or(Target::Work, Target::Hold);
    let queue = placement.routing_key().clone();
    publish(target, kind, Message::to_queue(queue, properties, next.encode()))
}

fn buried(message: Message, reason: &str) -> Decision {
    publish(Target::Dead, SuccessorKind::DeadLetter { reason: reason.to_owned() }, message)
}

fn publish(target: Target, kind: SuccessorKind, message: Message) -> Decision {
    Decision::Publish(Box::new(Successor { target, kind, message }))
}
