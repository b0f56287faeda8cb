//! A message as the broker keeps it.

use std::time::Duration;

use bytes::Bytes;
use leveret_core::text::ShortString;

use super::error::{AmqpError, Code};
use super::properties::{Properties, Property};

/// The longest TTL, in milliseconds: ten years, as in RabbitMQ.
pub(super) const MAX_TTL_MS: i64 = 315_360_000_000;

/// What was published. Queues share it.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) exchange: ShortString,
    pub(super) routing_key: ShortString,
    pub(super) properties: Properties,
    pub(super) body: Bytes,
}

impl Message {
    /// Its `message-id`, where that is text.
    pub(super) fn id(&self) -> Option<ShortString> {
        let bytes = self.properties.text(Property::MessageId)?;
        ShortString::new(std::str::from_utf8(bytes).ok()?).ok()
    }

    /// Its priority; no property means 0.
    pub(super) fn priority(&self) -> u8 {
        self.properties.octet(Property::Priority).unwrap_or(0)
    }

    /// Its own TTL, from the property `expiration`.
    ///
    /// RabbitMQ takes decimal digits from 0 to ten years in milliseconds and refuses anything else.
    pub(super) fn ttl(&self) -> Result<Option<Duration>, AmqpError> {
        let Some(digits) = self.properties.text(Property::Expiration) else { return Ok(None) };
        let ms = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<i64>().ok());
        match ms.and_then(|ms| u64::try_from(ms).ok().filter(|_| ms <= MAX_TTL_MS)) {
            Some(ms) => Ok(Some(Duration::from_millis(ms))),
            None => {
                let found = String::from_utf8_lossy(digits);
                let why = match ms {
                    None => not_a_number(&found),
                    Some(ms) if ms < 0 => format!("{{value_negative,{ms}}}"),
                    Some(ms) => format!("{{value_too_large,{ms}}}"),
                };
                let detail = format!("invalid expiration '{found}': {why}");
                Err(AmqpError::new(Code::PreconditionFailed, detail))
            }
        }
    }
}

/// What RabbitMQ says of an `expiration` that is no number: it reads digits and complains of the rest.
fn not_a_number(found: &str) -> String {
    let digits = found.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        "no_integer".to_owned()
    } else {
        format!("{{leftover_string,\"{}\"}}", &found[digits..])
    }
}
