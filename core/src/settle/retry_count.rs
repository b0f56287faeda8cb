//! How often a plain message was retried: a header, since its body may be anything.
//!
//! | the header holds | it counts as |
//! |---|---|
//! | nothing: it is missing | 0 |
//! | an integer of any type | its value |
//! | a string of UTF-8 or bytes, with decimal digits, a sign, blanks around them | its value |
//! | a negative number | 0 |
//! | a number above 4,294,967,295 | 4,294,967,295 |
//! | anything else | 0 |
//!
//! What cannot be read counts as 0 and not as the limit: the next copy carries a count that can be, so a limit still
//! ends the message, and no message is given up over a header of somebody else's.

use bytes::Bytes;

use crate::table::{Table, Value};
use crate::topology::HeaderKey;

/// Reads the number of retries that a message has had.
///
/// ```
/// # use leveret_core::settle::retry_count::{read_retry_count, write_retry_count};
/// # use leveret_core::table::{Table, Value};
/// # use leveret_core::topology::HeaderKey;
/// let mut headers = Table::new();
/// assert_eq!(read_retry_count(&headers, &HeaderKey::RETRY_COUNT), 0);
/// write_retry_count(&mut headers, &HeaderKey::RETRY_COUNT, 3);
/// assert_eq!(headers.get("x-ruststream-retry-count"), Some(&Value::from("3")));
/// assert_eq!(read_retry_count(&headers, &HeaderKey::RETRY_COUNT), 3);
/// ```
#[must_use]
pub fn read_retry_count(headers: &Table, key: &HeaderKey) -> u32 {
    read_count(headers, key.as_str())
}

/// Sets the number of retries: a long string of decimal digits, as services that skip integers expect it.
pub fn write_retry_count(headers: &mut Table, key: &HeaderKey, count: u32) {
    headers.insert(key.as_short().clone(), Value::LongString(Bytes::from(count.to_string())));
}

/// Reads any header that counts, by the same rules.
pub(super) fn read_count(headers: &Table, name: &str) -> u32 {
    match headers.get(name) {
        Some(Value::LongString(digits) | Value::ByteArray(digits)) => parse(digits),
        Some(number) => number.as_i64().map_or(0, clamp),
        None => 0,
    }
}

fn parse(text: &[u8]) -> u32 {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    digits.iter().fold(0_u32, |count, digit| count.saturating_mul(10).saturating_add((digit - b'0').into()))
}

fn clamp(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::ShortString;

    const KEY: HeaderKey = HeaderKey::RETRY_COUNT;

    fn read(value: impl Into<Value>) -> u32 {
        read_retry_count(&Table::new().with(KEY.as_short().clone(), value), &KEY)
    }

    #[test]
    fn every_form_of_an_integer_is_read() {
        let integers = [
            Value::I8(7),
            Value::U8(7),
            Value::I16(7),
            Value::U16(7),
            Value::I32(7),
            Value::U32(7),
            Value::I64(7),
        ];
        let texts = ["7", "007", "+7", " 7\n"].map(Value::from);
        let bytes = [Value::ByteArray(Bytes::from_static(b"7"))];
        for value in integers.into_iter().chain(texts).chain(bytes) {
            assert_eq!(read(value.clone()), 7, "{value:?}");
        }
    }

    #[test]
    fn what_is_no_count_is_none_and_what_is_too_much_is_the_most() {
        for none in ["", "-1", "+", "++7", "1.5", "0x7", "seven", "7 7", "\u{667}"] {
            assert_eq!(read(none), 0, "{none}");
        }
        for none in
            [Value::Void, Value::Bool(true), Value::F64(7.0), Value::Table(Table::new()), Value::I64(-1)]
        {
            assert_eq!(read(none.clone()), 0, "{none:?}");
        }
        assert_eq!(read(Value::ByteArray(Bytes::from_static(b"\xff7"))), 0);
        for most in [Value::I64(i64::MAX), Value::from("4294967296"), Value::from("9".repeat(100_000))] {
            assert_eq!(read(most), u32::MAX);
        }
        assert_eq!(read_retry_count(&Table::new().with(ShortString::from_static("other"), 7_u32), &KEY), 0);
    }

    proptest! {
        #[test]
        fn a_count_that_was_written_is_read(count in any::<u32>(), before in any::<i64>()) {
            let mut headers = Table::new().with(KEY.as_short().clone(), before);
            write_retry_count(&mut headers, &KEY, count);
            prop_assert_eq!(read_retry_count(&headers, &KEY), count);
            prop_assert_eq!(headers.len(), 1);
        }

        #[test]
        fn any_text_is_read_as_its_number_or_as_none(text in "\\PC{0,12}", number in any::<i64>()) {
            let expected = text.trim_ascii().parse::<i64>().unwrap_or(0).clamp(0, u32::MAX.into());
            prop_assert_eq!(i64::from(read(text)), expected);
            prop_assert_eq!(read(number), read(number.to_string()));
        }
    }
}
