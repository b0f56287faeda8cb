//! What the headers of a dead letter say about its end.

use crate::message::{DeliveryMode, Properties};
use crate::table::Value;
use crate::text::{self, ShortString};

/// The header with the reason, cut at [`REASON_MAX`].
pub const DEATH_REASON_HEADER: ShortString = ShortString::from_static("x-death-reason");
/// The header with the name of the queue that the message was delivered from.
pub const ORIGINAL_QUEUE_HEADER: ShortString = ShortString::from_static("x-original-queue");
/// The header with the number of attempts, the last one included; 0 for a message that was never run.
pub const ATTEMPTS_HEADER: ShortString = ShortString::from_static("x-attempts");

/// The longest reason in the header of a dead letter, in bytes. It is cut at a character.
pub const REASON_MAX: usize = 1024;

/// Makes a persistent dead letter of what has these properties, in place of what an earlier death wrote.
pub(super) fn write_death(properties: &mut Properties, queue: &ShortString, attempts: u32, reason: &str) {
    properties.delivery_mode = Some(DeliveryMode::Persistent);
    let headers = &mut properties.headers;
    headers.insert(DEATH_REASON_HEADER, cut(reason).to_owned());
    headers.insert(ORIGINAL_QUEUE_HEADER, Value::from(queue));
    headers.insert(ATTEMPTS_HEADER, attempts);
}

/// As much of a reason as a header takes.
pub(super) fn cut(reason: &str) -> &str {
    text::cut(reason, REASON_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::copied_properties;

    #[test]
    fn a_copy_of_a_dead_letter_says_nothing_of_its_death() {
        let mut properties = Properties::default();
        write_death(&mut properties, &ShortString::from_static("q"), 3, "the handler failed");
        assert_eq!(properties.headers.len(), 3);
        assert!(copied_properties(&properties).headers.is_empty());
    }
}
