//! Durations in configuration: as people write them, or as a whole number of milliseconds.
//!
//! Made for `#[serde(with = "crate::duration")]`. Reads any self-describing format (TOML, JSON, YAML); writes the
//! humane form, which reads back exactly.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*duration))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_any(Reader)
}

/// A duration where a type is needed rather than a function.
pub(crate) struct Humane(pub(crate) Duration);

impl<'de> Deserialize<'de> for Humane {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a duration with its units, as \"250ms\", \"5m\" or \"1h 30m\", or a whole number of milliseconds",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        humantime::parse_duration(text).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: Error>(self, millis: u64) -> Result<Duration, E> {
        Ok(Duration::from_millis(millis))
    }

    fn visit_i64<E: Error>(self, millis: i64) -> Result<Duration, E> {
        match u64::try_from(millis) {
            Ok(millis) => self.visit_u64(millis),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(millis), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<Duration, String> {
        serde_json::from_str::<Humane>(json).map(|read| read.0).map_err(|error| error.to_string())
    }

    #[test]
    fn a_duration_is_written_with_units_or_in_milliseconds() {
        assert_eq!(read("\"250ms\""), Ok(Duration::from_millis(250)));
        assert_eq!(read("\"5m\""), Ok(Duration::from_secs(300)));
        assert_eq!(read("\"1h 30m\""), Ok(Duration::from_secs(5_400)));
        assert_eq!(read("1500"), Ok(Duration::from_millis(1_500)));
        assert_eq!(read("0"), Ok(Duration::ZERO));
        assert_eq!(read(&u64::MAX.to_string()), Ok(Duration::from_millis(u64::MAX)));
    }

    #[test]
    fn what_is_no_duration_is_answered_with_what_to_write() {
        let too_long = format!("\"{}years\"", u64::MAX);
        for wrong in
            ["\"\"", "\"5\"", "\"-5s\"", "\"5 parsecs\"", "-1", "1.5", "null", "[1]", "{}", "true", &too_long]
        {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("\"1h 30m\", or a whole number of milliseconds"), "{wrong}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_exactly(duration in any::<Duration>()) {
            let mut json = Vec::new();
            serialize(&duration, &mut serde_json::Serializer::new(&mut json)).unwrap();
            prop_assert_eq!(read(std::str::from_utf8(&json).unwrap()), Ok(duration));
        }
    }

    #[test]
    fn the_shortest_and_the_longest_duration_read_back_too() {
        for duration in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let mut json = Vec::new();
            serialize(&duration, &mut serde_json::Serializer::new(&mut json)).unwrap();
            assert_eq!(read(std::str::from_utf8(&json).unwrap()), Ok(duration));
        }
    }
}
