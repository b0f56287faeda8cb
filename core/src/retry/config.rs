//! Retry policies in configuration files.

use std::fmt;

use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serializer};

use super::{Backoff, Exponential, RetryPolicy};
use crate::duration::Humane;

/// A policy as it is written.
#[derive(Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a retry policy: `max_attempts` and `backoff`, both optional"
)]
pub(super) struct Written {
    #[serde(deserialize_with = "attempts")]
    max_attempts: u32,
    backoff: Backoff,
}

impl Default for Written {
    fn default() -> Self {
        let RetryPolicy { max_attempts, backoff } = RetryPolicy::default();
        Self { max_attempts: max_attempts.get(), backoff }
    }
}

impl From<Written> for RetryPolicy {
    fn from(written: Written) -> Self {
        Self::new(written.max_attempts, written.backoff)
    }
}

/// A factor as it is used: JSON has neither infinity nor not-a-number, so that none may be written.
pub(super) mod factor {
    use super::{Deserialize, Deserializer, Exponential, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(factor: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(Exponential::sane_factor(*factor))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        f64::deserialize(deserializer).map(Exponential::sane_factor)
    }
}

fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    struct Attempts;

    impl Visitor<'_> for Attempts {
        type Value = u32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("how often a job runs at most, a whole number from 1 to 4294967295")
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<u32, E> {
            u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
            u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
        }
    }

    deserializer.deserialize_u32(Attempts)
}

impl<'de> Deserialize<'de> for Backoff {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Backoff;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a backoff: \"none\", { fixed = \"5s\" }, or { exponential = { base = \"1s\", factor = 2.0, \
             max = \"5m\", jitter = true } }",
        )
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Backoff, E> {
        match name {
            "none" => Ok(Backoff::None),
            "exponential" => Ok(Backoff::default()),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Backoff, A::Error> {
        let backoff = match map.next_key::<String>()?.as_deref() {
            Some("fixed") => Backoff::Fixed(map.next_value::<Humane>()?.0),
            Some("exponential") => Backoff::Exponential(map.next_value()?),
            Some(other) => return Err(Error::unknown_variant(other, &["fixed", "exponential"])),
            None => return Err(Error::invalid_length(0, &self)),
        };
        match map.next_key::<String>()? {
            None => Ok(backoff),
            Some(_) => {
                Err(Error::custom("a backoff is either `fixed` or `exponential`: keep one of the two"))
            }
        }
    }
}
