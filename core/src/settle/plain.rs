//! What becomes of a plain message, which need not be a job, after its handler has spoken.
//!
//! The message is all there is: its body may hold anything, so what is counted is counted in headers. A copy has the
//! body byte for byte, and what [`copied_properties`] keeps.

use std::time::Duration;

use bytes::Bytes;

use super::death::write_death;
use super::decide::{Decision, Successor, SuccessorKind, Target};
use super::outcome::Outcome;
use super::retry_count::{read_count, read_retry_count, write_retry_count};
use crate::envelope::properties::DEFERRALS_HEADER;
use crate::message::{DeliveryMode, Message, Properties, copied_properties};
use crate::text::ShortString;
use crate::topology::{HeaderKey, SubscriptionPlan, Wait};

#[cfg(test)]
mod tests;

/// A plain message as it was delivered.
#[derive(Clone, Copy, Debug)]
pub struct PlainDelivery<'a> {
    /// The queue it came from: what the broker said for one that it named itself.
    pub queue: &'a ShortString,
    /// The routing key that it came with.
    pub routing_key: &'a ShortString,
    /// Its properties; `None` where they cannot be read, and then its copies have none of its own.
    pub properties: Option<&'a Properties>,
    /// The body.
    pub body: &'a Bytes,
}

/// Decides what becomes of a plain message of a subscription.
///
/// * A retry is a copy whose count of retries is one more; without a delay it joins the back of the queue at once.
///   `max_attempts = n` of the subscription means that the handler runs n times: after that the message is given up.
/// * A deferral is a copy with the same count, which waits at least one step. It comes back in turn: a subscription
///   gives its messages no priorities. The header `x-deferrals` counts it, for people to read.
/// * A delay that cannot be kept, because the subscription has none or because it is too long, is a cause that cannot
///   heal: the message is given up, and the attempt counts.
/// * A message that is given up goes to the dead-letter target of the subscription, with the reason; it is rejected
///   where there is none.
///
/// The header counts failures that were told. Runs that end without a word (a crash, a cut connection) are counted by
/// the broker on a quorum queue, which moves the message to the same target past its `x-delivery-limit`; a classic
/// queue does not count them.
///
/// ```
/// use bytes::Bytes;
/// use leveret_core::settle::{Decision, Outcome, PlainDelivery, SuccessorKind, Target, decide_plain};
/// use leveret_core::text::ShortString;
/// use leveret_core::topology::{DeadLetter, PlainQueue, QueueName, Subscription};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dead = DeadLetter::to_queue(&QueueName::new("orders.dead")?);
/// let plan = Subscription::new(PlainQueue::new("orders")?).dead_letter(dead).plan()?;
/// let (queue, routing_key) = (ShortString::from_static("orders"), ShortString::from_static("order.new"));
/// let body = Bytes::from_static(b"not a job");
/// let delivery = PlainDelivery { queue: &queue, routing_key: &routing_key, properties: None, body: &body };
///
/// let failed = Outcome::Retry { delay: None, error: "the shop is closed".to_owned() };
/// let Decision::Publish(copy) = decide_plain(&plan, &delivery, &failed) else { panic!("it is tried again") };
/// assert!(matches!(copy.kind, SuccessorKind::Retry { attempt: 2, .. }));
/// assert_eq!((copy.target, &copy.message.routing_key, &copy.message.body), (Target::Work, &queue, &body));
///
/// let useless = Outcome::DeadLetter { reason: "no such shop".to_owned() };
/// let Decision::Publish(dead) = decide_plain(&plan, &delivery, &useless) else { panic!("it has a target") };
/// assert_eq!(dead.message.routing_key, "orders.dead");
/// # Ok(())
/// # }
/// ```
pub fn decide_plain(plan: &SubscriptionPlan, delivery: &PlainDelivery<'_>, outcome: &Outcome) -> Decision {
    match outcome {
        Outcome::Done => Decision::Acknowledge,
        Outcome::Requeue => Decision::Requeue,
        Outcome::Drop { reason } => Decision::Drop { reason: reason.clone() },
        Outcome::DeadLetter { reason } => give_up(plan, delivery, reason),
        Outcome::Retry { delay, error } => retry(plan, delivery, delay.unwrap_or_default(), error),
        Outcome::Defer { delay, reason } => defer(plan, delivery, *delay, reason),
    }
}

/// The end of a plain message that cannot be handled or cannot be kept: published to the dead-letter target of its
/// subscription with the reason, or rejected where there is none.
///
/// With `None` for the properties of `delivery` it has no headers of the application: for a message whose headers do
/// not fit a frame.
pub fn give_up(plan: &SubscriptionPlan, delivery: &PlainDelivery<'_>, reason: &str) -> Decision {
    let Some(target) = plan.dead_letter() else {
        return Decision::Reject { reason: reason.to_owned() };
    };
    let mut properties = delivery.kept();
    write_death(&mut properties, delivery.queue, delivery.attempt(plan.retry_count_header()), reason);
    let message = Message {
        exchange: target.exchange().as_short().clone(),
        routing_key: target.key().map_or(delivery.routing_key, |key| key.as_short()).clone(),
        mandatory: true,
        properties,
        body: delivery.body.clone(),
    };
    publish(Target::Dead, SuccessorKind::DeadLetter { reason: reason.to_owned() }, message)
}

fn retry(plan: &SubscriptionPlan, delivery: &PlainDelivery<'_>, delay: Duration, error: &str) -> Decision {
    let key = plan.retry_count_header();
    let attempt = delivery.attempt(key);
    if let Some(max) = plan.max_attempts().filter(|max| attempt >= max.get()) {
        return give_up(plan, delivery, &format!("attempt {attempt} of {max} failed: {error}"));
    }
    let mut message = delivery.copy();
    write_retry_count(&mut message.properties.headers, key, delivery.retries(key).saturating_add(1));
    let kind = SuccessorKind::Retry { attempt: attempt.saturating_add(1), delay };
    if delay.is_zero() {
        return publish(Target::Work, kind, message);
    }
    let Some(delays) = plan.delay() else { return give_up(plan, delivery, &no_delays(delay, error)) };
    match delays.place(delay) {
        Ok(placement) => {
            placement.address(&mut message);
            publish(target(placement.wait()), kind, message)
        }
        Err(refused) => give_up(plan, delivery, &format!("{refused} ({error})")),
    }
}

fn defer(plan: &SubscriptionPlan, delivery: &PlainDelivery<'_>, delay: Duration, reason: &str) -> Decision {
    let Some(delays) = plan.delay() else { return give_up(plan, delivery, &no_delays(delay, reason)) };
    let placement = match delays.place_deferral(delay) {
        Ok(placement) => placement,
        Err(refused) => return give_up(plan, delivery, &format!("{refused} ({reason})")),
    };
    let mut message = delivery.copy();
    let deferrals = delivery.deferrals().saturating_add(1);
    message.properties.headers.insert(DEFERRALS_HEADER, deferrals);
    placement.address(&mut message);
    publish(target(placement.wait()), SuccessorKind::Deferral { deferrals, delay }, message)
}

impl PlainDelivery<'_> {
    fn kept(&self) -> Properties {
        self.properties.map(copied_properties).unwrap_or_default()
    }

    /// A persistent copy, addressed to the queue that the message came from.
    fn copy(&self) -> Message {
        let properties = Properties { delivery_mode: Some(DeliveryMode::Persistent), ..self.kept() };
        Message::to_queue(self.queue.clone(), properties, self.body.clone())
    }

    fn retries(&self, key: &HeaderKey) -> u32 {
        self.properties.map_or(0, |properties| read_retry_count(&properties.headers, key))
    }

    /// The header is the one that jobs have for people to read.
    fn deferrals(&self) -> u32 {
        self.properties.map_or(0, |properties| read_count(&properties.headers, &DEFERRALS_HEADER))
    }

    /// Which run this is, from 1.
    fn attempt(&self, key: &HeaderKey) -> u32 {
        self.retries(key).saturating_add(1)
    }
}

fn no_delays(delay: Duration, why: &str) -> String {
    format!(
        "a delay of {delay:?} was asked for, and the subscription has no delays: set one with `delay` ({why})"
    )
}

const fn target(wait: Wait) -> Target {
    match wait {
        Wait::None => Target::Work,
        Wait::Hold(ttl) => Target::Hold(ttl),
        Wait::Expiration(_) | Wait::DelayHeader(_) => Target::Waiting,
    }
}

fn publish(target: Target, kind: SuccessorKind, message: Message) -> Decision {
    Decision::Publish(Box::new(Successor { target, kind, message }))
}
