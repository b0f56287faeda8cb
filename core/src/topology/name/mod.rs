//! Names as types: checked once, cheap to clone, and written into a frame without another look.
//!
//! | type | bytes | what else is refused |
//! |---|---|---|
//! | [`QueueName`] | 1 to 235 | `amq.`, names of hold queues |
//! | [`ExchangeName`] | 0 to 255 | |
//! | [`RoutingKey`] | 0 to 255 | |
//! | [`HeaderKey`] | 1 to 255 | |
//! | [`ConsumerTag`] | 1 to 255 | `amq.` |
//!
//! All of them are UTF-8 without control characters. AMQP 0-9-1 allows fewer characters (4.2.5.3, 4.2.5.5);
//! RabbitMQ takes any, and names with spaces, slashes and umlauts are in use.

mod error;
mod key;
mod queue;

#[cfg(test)]
mod tests;

pub use error::{NameError, NameKind};
pub use key::{ConsumerTag, ExchangeName, HeaderKey, RoutingKey};
pub use queue::{QUEUE_NAME_MAX, QueueName};

use crate::text::ShortString;

/// What every name has in common: its length in bytes, and no control characters.
pub(super) fn check(of: NameKind, name: &str) -> Result<ShortString, NameError> {
    if name.is_empty() && !of.may_be_empty() {
        return Err(NameError::Empty { of });
    }
    if name.len() > of.max_bytes() {
        return Err(NameError::TooLong { of, bytes: name.len() });
    }
    if let Some((at, character)) = name.char_indices().find(|(_, c)| c.is_control()) {
        return Err(NameError::ControlCharacter { of, character, at });
    }
    // No kind of name is longer than a short string.
    Ok(ShortString::truncated(name))
}

/// Refuses what RabbitMQ keeps for itself (AMQP 0-9-1, 1.6.2.1 and 1.7.2.1).
fn check_prefix(of: NameKind, name: ShortString) -> Result<ShortString, NameError> {
    if name.starts_with("amq.") { Err(NameError::ReservedPrefix { of, name }) } else { Ok(name) }
}

/// What a checked name can do, whichever it is: read as text, print, parse, and travel through serde, which
/// checks it like everybody else.
macro_rules! name_traits {
    ($($name:ident),+) => {$(
        impl $name {
            /// The name as the wire takes it.
            #[must_use]
            pub const fn as_short(&self) -> &ShortString {
                &self.0
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl From<$name> for ShortString {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = String::deserialize(deserializer)?;
                Self::new(name).map_err(serde::de::Error::custom)
            }
        }
    )+};
}
use name_traits;
