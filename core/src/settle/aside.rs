//! What a message becomes that nobody can read.

use bytes::Bytes;

use super::death::{cut, write_death};
use crate::message::{Message, Properties, copied_properties};
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::DeliveryMode;
    use crate::settle::death::REASON_MAX;
    use crate::table::{Table, Value};

    fn emails() -> QueueName {
        QueueName::new("emails").unwrap()
    }

    #[test]
    fn a_message_without_readable_properties_says_why_and_where_it_came_from_and_nothing_else() {
        let aside = TakenAside::new(&emails(), None, &Bytes::from_static(b"{"), "the body ends early");
        assert_eq!((aside.original_queue(), aside.reason()), (&emails(), "the body ends early"));
        let headers = Table::new()
            .with(ShortString::from_static("x-death-reason"), "the body ends early")
            .with(ShortString::from_static("x-original-queue"), "emails")
            .with(ShortString::from_static("x-attempts"), 0_u32);
        let delivery_mode = Some(DeliveryMode::Persistent);
        let properties = Properties { headers, delivery_mode, ..Properties::default() };
        let expected = Message::to_queue(emails().dead(), properties, Bytes::from_static(b"{"));
        assert_eq!(aside.into_message(emails().dead()), expected);
    }

    #[test]
    fn what_an_earlier_death_wrote_is_replaced_and_what_the_application_wrote_is_kept() {
        let headers = Table::new()
            .with(ShortString::from_static("x-attempts"), 5_u32)
            .with(ShortString::from_static("x-death-reason"), "earlier")
            .with(ShortString::from_static("x-tenant"), "ada")
            .with(ShortString::from_static("x-death"), Value::Array(Vec::new()));
        let delivered = Properties { headers, ..Properties::default() };
        let aside = TakenAside::new(&emails(), Some(&delivered), &Bytes::new(), "later");
        let headers = aside.into_message(emails().dead()).properties.headers;
        assert_eq!(headers.get("x-attempts"), Some(&Value::I64(0)));
        assert_eq!(headers.get("x-death-reason"), Some(&Value::from("later")));
        assert_eq!(headers.get("x-tenant"), Some(&Value::from("ada")));
        assert_eq!((headers.get("x-death"), headers.len()), (None, 4));
    }

    proptest! {
        #[test]
        fn the_body_is_kept_byte_for_byte_and_the_reason_as_far_as_it_fits(
            body in proptest::collection::vec(any::<u8>(), 0..64), reason in "[a€𝄞]{0,1200}"
        ) {
            let aside = TakenAside::new(&emails(), None, &Bytes::from(body.clone()), &reason);
            prop_assert!(reason.starts_with(aside.reason()));
            prop_assert!(aside.reason().len() <= REASON_MAX);
            prop_assert!(aside.reason() == reason || aside.reason().len() > REASON_MAX - 4);
            prop_assert_eq!(&aside.into_message(emails().dead()).body[..], &body[..]);
        }
    }
}
