//! Names of job queues, and the names derived from them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::delay::HoldTtl;
use crate::text::{SHORT_STRING_MAX, ShortString};

/// The longest name of a job queue in bytes: what leaves room for `.deferred.2147483647`, the longest name
/// derived from it.
pub const QUEUE_NAME_MAX: usize = SHORT_STRING_MAX - ".deferred.2147483647".len();

/// What stands between the name of a job queue and the TTL of one of its hold queues.
const HOLD_INFIXES: [&str; 2] = [".deferred.", ".held."];

/// The name of a job queue: 1 to 235 bytes of UTF-8 without control characters, not one of the broker's own
/// names (`amq.`), and not one that another job queue would give to its hold queue.
///
/// Cloning costs a reference count.
///
/// ```
/// # use leveret_core::topology::QueueName;
/// let name = QueueName::new("shop.emails")?;
/// assert_eq!(name.dead(), "shop.emails.dead");
/// assert!(QueueName::new("shop.emails.deferred.1000").is_err());
/// # Ok::<(), leveret_core::topology::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(ShortString);

impl QueueName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule the name breaks.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > QUEUE_NAME_MAX {
            return Err(NameError::TooLong { bytes: name.len() });
        }
        if let Some((at, character)) = name.char_indices().find(|(_, c)| c.is_control()) {
            return Err(NameError::ControlCharacter { character, at });
        }
        let checked = ShortString::truncated(name);
        if name.starts_with("amq.") {
            return Err(NameError::ReservedPrefix { name: checked });
        }
        if is_hold_name(name) {
            return Err(NameError::HoldName { name: checked });
        }
        Ok(Self(checked))
    }

    /// The name as the wire takes it, which is also the routing key of the default exchange.
    #[must_use]
    pub const fn as_short(&self) -> &ShortString {
        &self.0
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The dead-letter queue: `q.dead`.
    #[must_use]
    pub fn dead(&self) -> ShortString {
        self.derived(format_args!(".dead"))
    }

    /// The hold queue for one delay: `q.deferred.{ttl in milliseconds}`.
    #[must_use]
    pub fn hold(&self, ttl: HoldTtl) -> ShortString {
        self.derived(format_args!(".deferred.{}", ttl.as_millis()))
    }

    fn derived(&self, suffix: fmt::Arguments<'_>) -> ShortString {
        let name = format!("{}{suffix}", self.0);
        debug_assert!(name.len() <= SHORT_STRING_MAX, "QUEUE_NAME_MAX leaves room for every suffix");
        ShortString::truncated(&name)
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl AsRef<str> for QueueName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for QueueName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl Serialize for QueueName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for QueueName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(name).map_err(serde::de::Error::custom)
    }
}

/// Why a text is no name for a job queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The text is empty, which AMQP reads as "let the server choose".
    Empty,
    /// The text is longer than [`QUEUE_NAME_MAX`].
    TooLong {
        /// The length found, in bytes.
        bytes: usize,
    },
    /// The text holds a control character.
    ControlCharacter {
        /// The character found.
        character: char,
        /// Where, in bytes from the start.
        at: usize,
    },
    /// The text starts with `amq.`, which RabbitMQ keeps for itself (AMQP 0-9-1, 1.7.2.1).
    ReservedPrefix {
        /// The text.
        name: ShortString,
    },
    /// The text is the name of a hold queue of another job queue.
    HoldName {
        /// The text.
        name: ShortString,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the name of a queue is empty: give it at least one character"),
            Self::TooLong { bytes } => write!(
                f,
                "the name of a queue has {bytes} bytes, at most {QUEUE_NAME_MAX} leave room for the names of \
                 its hold queues: shorten it"
            ),
            Self::ControlCharacter { character, at } => write!(
                f,
                "the name of a queue has the control character {character:?} at byte {at}: leave it out"
            ),
            Self::ReservedPrefix { name } => {
                write!(
                    f,
                    "the queue name {name:?} starts with `amq.`, which the broker keeps for itself: choose another"
                )
            }
            Self::HoldName { name } => write!(
                f,
                "the queue name {name:?} ends like a hold queue (`.deferred.` or `.held.` and digits), which \
                 another queue could need: choose another"
            ),
        }
    }
}

impl std::error::Error for NameError {}

fn is_hold_name(name: &str) -> bool {
    HOLD_INFIXES.iter().any(|infix| {
        name.rsplit_once(infix)
            .is_some_and(|(_, ttl)| !ttl.is_empty() && ttl.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_leaves_room_for_its_longest_hold_is_the_longest_one() {
        let longest = QueueName::new("q".repeat(235)).unwrap();
        assert_eq!(longest.hold(HoldTtl::MAX).len(), 255);
        assert_eq!(QueueName::new("q".repeat(236)), Err(NameError::TooLong { bytes: 236 }));
        assert_eq!(QueueName::new("é".repeat(118)), Err(NameError::TooLong { bytes: 236 }));
    }

    #[test]
    fn a_name_that_belongs_to_the_broker_or_to_another_queue_is_refused() {
        assert_eq!(QueueName::new(""), Err(NameError::Empty));
        assert!(matches!(QueueName::new("amq.gen-1"), Err(NameError::ReservedPrefix { .. })));
        assert!(matches!(QueueName::new("mail.deferred.1000"), Err(NameError::HoldName { .. })));
        assert!(matches!(QueueName::new("mail.held.1"), Err(NameError::HoldName { .. })));
        assert_eq!(QueueName::new("mail\n1"), Err(NameError::ControlCharacter { character: '\n', at: 4 }));
    }

    #[test]
    fn a_name_that_only_resembles_a_hold_is_allowed() {
        for name in
            ["mail.deferred.", "mail.deferred", "mail.deferred.soon", "mail.deferred.1.x", "amqp.mail"]
        {
            assert!(QueueName::new(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_configuration_file_cannot_smuggle_in_a_bad_name() {
        assert_eq!(
            serde_json::from_str::<QueueName>("\"shop.emails\"").unwrap(),
            QueueName::new("shop.emails").unwrap()
        );
        let error = serde_json::from_str::<QueueName>("\"amq.x\"").unwrap_err();
        assert!(error.to_string().contains("`amq.`"), "{error}");
    }

    proptest! {
        #[test]
        fn every_accepted_name_derives_names_that_fit_and_are_not_job_queues(
            name in "\\PC{0,250}", ttl in 1..=HoldTtl::MAX.as_millis()
        ) {
            let Ok(name) = QueueName::new(&name) else { return Ok(()) };
            let ttl = HoldTtl::from_millis(ttl).unwrap();
            let hold = name.hold(ttl);
            let expected = format!("{name}.deferred.{}", ttl.as_millis());
            prop_assert_eq!(hold.as_str(), expected.as_str());
            prop_assert!(QueueName::new(hold.as_str()).is_err());
            let dead = name.dead();
            prop_assert!(dead.ends_with(".dead"));
        }
    }
}
