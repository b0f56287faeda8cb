//! Why a payload could not be written or read, without what it holds.

use std::fmt;

use serde_json::error::Category;

use super::error::quote;
use crate::text::ShortString;

#[cfg(test)]
mod tests;

/// A payload that could not be written or read.
///
/// A payload may hold secrets, and this goes into logs. So it says where, what the type wants and what *kind* of value
/// was found instead, names fields and variants of the type, and leaves the value out. What a type says in words of its
/// own (`serde::de::Error::custom`), which may be anything, is cut at [`QUOTE_MAX`](super::QUOTE_MAX) bytes. Whoever may
/// see everything reads [`RawPayload::as_bytes`](super::RawPayload::as_bytes) with `serde_json`.
///
/// ```
/// # use bytes::Bytes;
/// # use leveret_core::envelope::RawPayload;
/// let payload = RawPayload::from_json(Bytes::from_static(b"[\"hunter2\"]"))?;
/// let error = payload.deserialize::<Vec<u32>>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the payload is not the JSON of its type: at line 1, column 10: invalid type: string, expected u32"
/// );
/// # Ok::<(), leveret_core::envelope::PayloadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadError {
    wrong: &'static str,
    /// From 1 on; 0 where there is no place.
    line: usize,
    column: usize,
    what: ShortString,
}

impl PayloadError {
    /// A value cannot be written. Nothing of it has left the program yet, so its own words are kept, up to 255 bytes.
    pub(super) fn of_writing(error: &serde_json::Error) -> Self {
        Self::new("cannot be written as JSON", error, &error.to_string())
    }

    /// A text is no JSON. The words are `serde_json`'s own, which quote nothing.
    pub(super) fn of_json(error: &serde_json::Error) -> Self {
        Self::new("is no JSON", error, without_place(error, &error.to_string()))
    }

    /// A payload is not of its type.
    pub(super) fn of_type(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let text = without_place(error, &text);
        match error.classify() {
            Category::Data => Self::new("is not the JSON of its type", error, &without_value(text)),
            Category::Io | Category::Syntax | Category::Eof => {
                Self::new("is not the JSON of its type", error, text)
            }
        }
    }

    fn new(wrong: &'static str, error: &serde_json::Error, what: &str) -> Self {
        Self { wrong, line: error.line(), column: error.column(), what: ShortString::truncated(what) }
    }
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wrong, line, column, what } = self;
        write!(f, "the payload {wrong}: ")?;
        if *line > 0 {
            write!(f, "at line {line}, column {column}: ")?;
        }
        f.write_str(what)
    }
}

impl std::error::Error for PayloadError {}

fn without_place<'a>(error: &serde_json::Error, text: &'a str) -> &'a str {
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(text)
}

/// What `serde` calls the kinds of values that it finds; the value follows behind a blank.
const KINDS: [&str; 18] = [
    "boolean",
    "integer",
    "floating point",
    "number",
    "character",
    "string",
    "byte array",
    "null",
    "unit value",
    "Option value",
    "newtype struct",
    "sequence",
    "map",
    "enum",
    "unit variant",
    "newtype variant",
    "tuple variant",
    "struct variant",
];

/// A sentence of `serde`'s own with the value left out; the start of any other.
fn without_value(text: &str) -> String {
    known_sentence(text).unwrap_or_else(|| quote(text))
}

/// The value comes before what was expected, and may say "expected" too: so the last one counts.
fn known_sentence(text: &str) -> Option<String> {
    for wrong in ["invalid type: ", "invalid value: "] {
        if let Some((found, expected)) = split_expected(text, wrong) {
            let is_kind = |kind: &&&str| {
                found.strip_prefix(**kind).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            };
            let kind = KINDS.iter().find(is_kind)?;
            return Some(format!("{wrong}{kind}, expected {expected}"));
        }
    }
    for (unknown, nothing) in
        [("unknown field ", ", there are no fields"), ("unknown variant ", ", there are no variants")]
    {
        if text.starts_with(unknown) && text.ends_with(nothing) {
            return Some(format!("{}{nothing}", unknown.trim_end()));
        }
        if let Some((_, expected)) = split_expected(text, unknown) {
            return Some(format!("{}, expected {expected}", unknown.trim_end()));
        }
    }
    let names_a_field = ["missing field `", "duplicate field `"].iter().any(|start| {
        let name = text.strip_prefix(start).and_then(|rest| rest.strip_suffix('`'));
        name.is_some_and(|name| !name.contains('`'))
    });
    let counts = text
        .strip_prefix("invalid length ")
        .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    let names_a_type = text.starts_with("data did not match any variant of untagged enum ");
    (names_a_field || counts || names_a_type).then(|| text.to_owned())
}

/// What is between `start` and the last "expected", and what is behind that.
fn split_expected<'a>(text: &'a str, start: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(start)?.rsplit_once(", expected ")
}
