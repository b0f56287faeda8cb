//! The partition key of a delivery: which header, and which of its values.

use std::fmt;

use crate::table::{Table, Value};
use crate::text::ShortString;

/// The header that holds the partition key. Services that use ruststream-lapin write and read the same one.
pub const PARTITION_KEY: ShortString = ShortString::from_static("amqp-partition-key");

/// An `i64` has at most 19 digits and a sign.
const DIGITS_MAX: usize = 20;

/// The key of a delivery, as the bytes that are hashed.
///
/// ```
/// # use leveret_core::lane::{PARTITION_KEY, PartitionKey};
/// use leveret_core::table::Table;
///
/// let headers = Table::new().with(PARTITION_KEY, -7_i64);
/// let key = PartitionKey::of(&headers).expect("an integer is a key");
/// assert_eq!(key.as_bytes(), b"-7");
/// assert_eq!(PartitionKey::of(&Table::new()), None);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PartitionKey<'a>(Key<'a>);

#[derive(Clone, PartialEq, Eq)]
enum Key<'a> {
    Bytes(&'a [u8]),
    /// Decimal digits at the end of the array.
    Digits {
        digits: [u8; DIGITS_MAX],
        start: usize,
    },
}

impl<'a> PartitionKey<'a> {
    /// The key that these headers hold in [`PARTITION_KEY`], if they do.
    ///
    /// | value | key |
    /// |---|---|
    /// | string, byte array | its bytes, of any number and kind; an empty one is a key like any other |
    /// | integer of any width | its decimal digits, with `-` before a negative one: `7` and `"7"` are one key |
    /// | any other: boolean, float, decimal, timestamp, array, table, void | none, as if there were no header |
    ///
    /// An empty string is a key because that errs on the safe side: a publisher that meant none gets an order it did
    /// not need, and not a disorder it does not see. What has no one text form that every client would write, such
    /// as a float, is none. Allocates nothing.
    #[must_use]
    pub fn of(headers: &'a Table) -> Option<Self> {
        match headers.get(&PARTITION_KEY)? {
            Value::LongString(bytes) | Value::ByteArray(bytes) => Some(Self(Key::Bytes(bytes))),
            value => value.as_i64().map(Self::from),
        }
    }

    /// The bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Key::Bytes(bytes) => bytes,
            Key::Digits { digits, start } => &digits[*start..],
        }
    }
}

impl From<i64> for PartitionKey<'_> {
    fn from(number: i64) -> Self {
        let mut digits = [b'0'; DIGITS_MAX];
        let mut start = DIGITS_MAX;
        let mut rest = number.unsigned_abs();
        while rest > 0 || start == DIGITS_MAX {
            start -= 1;
            digits[start] += (rest % 10).to_le_bytes()[0];
            rest /= 10;
        }
        if number < 0 {
            start -= 1;
            digits[start] = b'-';
        }
        Self(Key::Digits { digits, start })
    }
}

impl fmt::Debug for PartitionKey<'_> {
    // A key may name a person, and may be long: only its length is printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartitionKey({} bytes)", self.as_bytes().len())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn key(value: impl Into<Value>) -> Option<Vec<u8>> {
        let headers = Table::new().with(ShortString::from_static("other"), 1_i64).with(PARTITION_KEY, value);
        PartitionKey::of(&headers).map(|key| key.as_bytes().to_vec())
    }

    #[test]
    fn strings_and_byte_arrays_are_their_bytes() {
        assert_eq!(key("customer-1").unwrap(), b"customer-1");
        assert_eq!(key("").unwrap(), b"");
        let long = Bytes::from(vec![0xff; 65_536]);
        assert_eq!(key(Value::LongString(long.clone())).unwrap(), long);
        assert_eq!(key(Value::ByteArray(Bytes::from_static(b"\0\xff"))).unwrap(), b"\0\xff");
    }

    #[test]
    fn an_integer_of_any_width_is_its_digits() {
        let sevens = [Value::I8(7), Value::U8(7), Value::I16(7), Value::U16(7), Value::I32(7), Value::U32(7)];
        for seven in sevens {
            assert_eq!(key(seven), key("7"));
        }
        assert_eq!(key(Value::I8(-1)).unwrap(), b"-1");
        assert_eq!(key(Value::U32(u32::MAX)).unwrap(), b"4294967295");
    }

    #[test]
    fn whatever_has_no_one_text_form_is_no_key() {
        let none = [
            Value::Bool(true),
            Value::F32(1.0),
            Value::F64(1.0),
            Value::Decimal { scale: 1, value: 10 },
            Value::Timestamp(1),
            Value::Array(vec![Value::I64(1)]),
            Value::Table(Table::new()),
            Value::Void,
        ];
        for value in none {
            assert_eq!(key(value.clone()), None, "{value:?}");
        }
        assert_eq!(PartitionKey::of(&Table::new()), None);
        let other_name = Table::new().with(ShortString::from_static("AMQP-Partition-Key"), "a");
        assert_eq!(PartitionKey::of(&other_name), None, "names of headers are compared as they are");
    }

    #[test]
    fn a_key_is_not_printed() {
        let headers = Table::new().with(PARTITION_KEY, "ada@example.org");
        assert_eq!(format!("{:?}", PartitionKey::of(&headers).unwrap()), "PartitionKey(15 bytes)");
    }

    proptest! {
        #[test]
        fn digits_are_those_that_everybody_writes(
            number in prop_oneof![any::<i64>(), -11..11_i64, Just(i64::MIN), Just(i64::MAX)],
        ) {
            prop_assert_eq!(key(number).unwrap(), number.to_string().into_bytes());
        }
    }
}
