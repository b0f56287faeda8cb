//! What a message becomes that nobody can read.

use bytes::Bytes;

use super::copy::copied_properties;
use super::death::{cut, write_death};
use crate::message::{Message, Properties};
use crate::text::ShortString;
use crate::topology::QueueName;

/// A message that is no job, taken aside so that its consumer goes on: the body byte for byte, with the reason and
/// the queue it came from.
///
/// It has been attempted 0 times: no handler has seen it. Whoever looks at the dead-letter queue can mend what
/// produced it, and publish the body again.
///
/// ```
/// # use bytes::Bytes;
/// # use leveret_core::settle::TakenAside;
/// # use leveret_core::topology::QueueName;
/// let emails = QueueName::new("emails")?;
/// let aside = TakenAside::new(&emails, None, &Bytes::from_static(b"\xff"), "the body is no JSON");
/// let message = aside.into_message(emails.dead());
/// assert_eq!(message.routing_key, "emails.dead");
/// assert_eq!(message.body.as_ref(), b"\xff");
/// assert_eq!(message.properties.headers.get("x-death-reason").unwrap().as_str(), Some("the body is no JSON"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct TakenAside {
    original_queue: QueueName,
    kept: Properties,
    body: Bytes,
    reason: String,
}

impl TakenAside {
    /// Takes a message aside that was delivered from `original_queue`.
    ///
    /// `delivered` are its properties, or `None` where they cannot be read: what [`copied_properties`] keeps of them
    /// is kept, headers included. `body` is shared, not copied. Of `reason` the first
    /// [`REASON_MAX`](super::death::REASON_MAX) bytes stay, cut at a character.
    pub fn new(
        original_queue: &QueueName,
        delivered: Option<&Properties>,
        body: &Bytes,
        reason: &str,
    ) -> Self {
        Self {
            original_queue: original_queue.clone(),
            kept: delivered.map(copied_properties).unwrap_or_default(),
            body: body.clone(),
            reason: cut(reason).to_owned(),
        }
    }

    /// The queue that the message was delivered from.
    #[must_use]
    pub const fn original_queue(&self) -> &QueueName {
        &self.original_queue
    }

    /// Why nobody can read it, at most [`REASON_MAX`](super::death::REASON_MAX) bytes.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The body as it was delivered.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// The message to publish: mandatory and persistent, to the queue `dead_letter_queue` alone, with the headers
    /// [`x-death-reason`](super::death::DEATH_REASON_HEADER), [`x-original-queue`](super::death::ORIGINAL_QUEUE_HEADER)
    /// and [`x-attempts`](super::death::ATTEMPTS_HEADER), which is 0.
    #[must_use]
    pub fn into_message(self, dead_letter_queue: ShortString) -> Message {
        let mut properties = self.kept;
        write_death(&mut properties, self.original_queue.as_short(), 0, &self.reason);
        Message::to_queue(dead_letter_queue, properties, self.body)
    }
}
