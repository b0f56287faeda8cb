//! Where a message is published so that it arrives in its work queue after its delay.

use crate::delay::HoldTtl;
use crate::message::Message;
use crate::text::ShortString;

/// Where a message goes, and what it carries so that it waits there: made by a
/// [`DelayPlan`](super::DelayPlan) or a [`HoldPlan`](super::HoldPlan).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    exchange: ShortString,
    routing_key: ShortString,
    mandatory: bool,
    wait: Wait,
}

/// What makes a message wait. The TTL is the delay after rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// Nothing: it goes to the work queue itself.
    None,
    /// The hold queue of this TTL. Its lease is the business of [`HoldBook`](crate::delay::HoldBook).
    Hold(HoldTtl),
    /// The property `expiration`, as decimal milliseconds, in the waiting queue.
    Expiration(HoldTtl),
    /// The header `x-delay`, in milliseconds, at the delayed exchange.
    DelayHeader(HoldTtl),
}

impl Placement {
    /// Through the default exchange into one queue, and returned where that is missing.
    pub(super) const fn queue(name: ShortString, wait: Wait) -> Self {
        Self { exchange: ShortString::EMPTY, routing_key: name, mandatory: true, wait }
    }

    /// Through an exchange that returns every mandatory message.
    pub(super) const fn unreturned(exchange: ShortString, routing_key: ShortString, wait: Wait) -> Self {
        Self { exchange, routing_key, mandatory: false, wait }
    }

    /// The exchange; empty for the default exchange.
    #[must_use]
    pub const fn exchange(&self) -> &ShortString {
        &self.exchange
    }

    /// The routing key: with the default exchange, the queue.
    #[must_use]
    pub const fn routing_key(&self) -> &ShortString {
        &self.routing_key
    }

    /// Whether the broker is to return the message where no queue takes it.
    #[must_use]
    pub const fn is_mandatory(&self) -> bool {
        self.mandatory
    }

    /// What makes the message wait.
    #[must_use]
    pub const fn wait(&self) -> Wait {
        self.wait
    }

    /// The TTL of the hold queue, if the message goes into one.
    #[must_use]
    pub const fn hold(&self) -> Option<HoldTtl> {
        match self.wait {
            Wait::Hold(ttl) => Some(ttl),
            _ => None,
        }
    }

    /// Addresses a message. An `expiration` or `x-delay` from elsewhere is taken off: it would make the message wait
    /// twice, or expire in its work queue.
    pub fn address(&self, message: &mut Message) {
        message.exchange = self.exchange.clone();
        message.routing_key = self.routing_key.clone();
        message.mandatory = self.mandatory;
        message.properties.expiration = match self.wait {
            Wait::Expiration(ttl) => Some(decimal(ttl)),
            _ => None,
        };
        let headers = &mut message.properties.headers;
        match self.wait {
            Wait::DelayHeader(ttl) => headers.insert(DELAY, i64::from(ttl.as_millis())),
            _ => drop(headers.remove(DELAY.as_str())),
        }
    }
}

const DELAY: ShortString = ShortString::from_static("x-delay");

/// RabbitMQ takes an expiration as digits and nothing else: it closes the channel over `1.5` or a blank.
fn decimal(ttl: HoldTtl) -> ShortString {
    ShortString::truncated(&ttl.as_millis().to_string())
}
