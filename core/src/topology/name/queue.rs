//! The name of a job queue, and the names derived from it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{NameError, NameKind, check, check_prefix, name_traits};
use crate::delay::{HoldKind, HoldTtl};
use crate::text::{SHORT_STRING_MAX, ShortString};
use crate::topology::Suffixes;

/// The longest name of a job queue in bytes: what leaves room for `.deferred.2147483647`, the longest name
/// derived from it.
pub const QUEUE_NAME_MAX: usize = SHORT_STRING_MAX - ".deferred.2147483647".len();

/// The name of a job queue: 1 to 235 bytes of UTF-8 without control characters, not one of the broker's own
/// names (`amq.`), and not one that another job queue would give to its hold queue.
///
/// Cloning costs a reference count. What belongs to the queue has a name derived from its own; each is one
/// allocation. The derivations here use [`Suffixes::DEFAULT`], which is the wire format that other systems
/// share; a queue described with other suffixes derives its names with those.
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
        let name = check_prefix(NameKind::Queue, check(NameKind::Queue, name.as_ref())?)?;
        if Suffixes::DEFAULT.looks_like_hold(&name) {
            Err(NameError::HoldName { name })
        } else {
            Ok(Self(name))
        }
    }

    /// The dead-letter queue: `q.dead`.
    #[must_use]
    pub fn dead(&self) -> ShortString {
        Suffixes::DEFAULT.dead(self)
    }

    /// The hold queue for one delay: `q.deferred.{ttl in milliseconds}`.
    #[must_use]
    pub fn hold(&self, ttl: HoldTtl) -> ShortString {
        Suffixes::DEFAULT.hold(self, HoldKind::Expiring, ttl)
    }

    /// The replicated hold queue for one delay: `q.held.{ttl in milliseconds}`.
    #[must_use]
    pub fn held(&self, ttl: HoldTtl) -> ShortString {
        Suffixes::DEFAULT.hold(self, HoldKind::Replicated, ttl)
    }

    /// The waiting queue, whose messages carry their own expiration: `q.retry`.
    #[must_use]
    pub fn waiting(&self) -> ShortString {
        Suffixes::DEFAULT.waiting(self)
    }

    /// The delayed-message exchange: `q.delay`.
    #[must_use]
    pub fn delayed_exchange(&self) -> ShortString {
        Suffixes::DEFAULT.delayed_exchange(self)
    }
}

name_traits!(QueueName);
