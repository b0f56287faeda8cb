//! Names that nothing is derived from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::queue::QueueName;
use super::{NameError, NameKind, check, check_prefix, name_traits};
use crate::text::ShortString;

/// The name of an exchange: up to 255 bytes. The empty one is the default exchange, which routes to the queue
/// that the routing key names. The broker's own, such as `amq.topic`, can be bound and published to,
/// and not be declared.
///
/// Cloning costs a reference count.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeName(ShortString);

impl ExchangeName {
    /// The default exchange: every queue is bound to it by its name, and nothing else can be.
    pub const DEFAULT: Self = Self(ShortString::EMPTY);

    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule the name breaks.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        check(NameKind::Exchange, name.as_ref()).map(Self)
    }

    /// Whether it is the default exchange.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is one of those that the broker declares itself: the default exchange and `amq.*`.
    #[must_use]
    pub fn is_predeclared(&self) -> bool {
        self.is_default() || self.0.starts_with("amq.")
    }
}

/// A routing key, or the pattern of a binding: up to 255 bytes. What it means is the exchange's business; the
/// empty one is in use with exchanges that route by something else.
///
/// Cloning costs a reference count.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoutingKey(ShortString);

impl RoutingKey {
    /// The empty routing key.
    pub const EMPTY: Self = Self(ShortString::EMPTY);

    /// Checks a routing key.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule it breaks.
    pub fn new(key: impl AsRef<str>) -> Result<Self, NameError> {
        check(NameKind::RoutingKey, key.as_ref()).map(Self)
    }
}

impl From<&QueueName> for RoutingKey {
    /// The key by which the default exchange routes to the queue.
    fn from(queue: &QueueName) -> Self {
        Self(queue.as_short().clone())
    }
}

/// The name of a header of a message: 1 to 255 bytes. AMQP advises at most 128 characters (0-9-1, 4.2.5.5).
///
/// Cloning costs a reference count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderKey(ShortString);

impl HeaderKey {
    /// `x-ruststream-retry-count`, by which services that share a queue of plain messages count their retries.
    pub const RETRY_COUNT: Self = Self(ShortString::from_static("x-ruststream-retry-count"));

    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule the name breaks.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        check(NameKind::HeaderKey, name.as_ref()).map(Self)
    }
}

/// The tag of a consumer: 1 to 255 bytes, unique on its channel (AMQP 0-9-1, 1.8.3.3). An empty one would let
/// the server choose, and `amq.` starts those that it chooses.
///
/// Cloning costs a reference count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerTag(ShortString);

impl ConsumerTag {
    /// Checks a tag.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule the tag breaks.
    pub fn new(tag: impl AsRef<str>) -> Result<Self, NameError> {
        let tag = check(NameKind::ConsumerTag, tag.as_ref())?;
        check_prefix(NameKind::ConsumerTag, tag).map(Self)
    }
}

name_traits!(ExchangeName, RoutingKey, HeaderKey, ConsumerTag);
