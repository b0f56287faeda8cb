//! Why a body is no envelope.

use std::fmt;

use crate::text::ShortString;

/// How much of a wrong value an error quotes, in bytes.
pub const QUOTE_MAX: usize = 24;

/// Why a body is no envelope, and where: places are in bytes from the start of the body. It quotes no more than
/// [`QUOTE_MAX`] bytes of the body, which may hold secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The body is longer than [`Limits::max_bytes`](super::Limits::max_bytes).
    TooLarge {
        /// The length found.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Arrays and objects nest deeper than [`Limits::max_nesting`](super::Limits::max_nesting).
    TooDeep {
        /// Where the first bracket too many is.
        at: usize,
        /// The limit.
        limit: usize,
    },
    /// There are more unknown fields than [`Limits::max_unknown_fields`](super::Limits::max_unknown_fields).
    TooManyFields {
        /// Where the first one too many starts.
        at: usize,
        /// The limit.
        limit: usize,
    },
    /// The name of an unknown field is longer than [`Limits::max_name_bytes`](super::Limits::max_name_bytes).
    NameTooLong {
        /// Where it starts.
        at: usize,
        /// The length found.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The text in a field is longer than the limit of that field in [`Limits`](super::Limits).
    TextTooLong {
        /// The field.
        field: &'static str,
        /// Where its value starts.
        at: usize,
        /// The length found.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The body starts with something else than a JSON object.
    NotAnObject {
        /// What it starts with.
        found: &'static str,
    },
    /// The body is not JSON (RFC 8259).
    NotJson {
        /// Where.
        at: usize,
        /// What JSON allows there.
        wanted: &'static str,
        /// The byte that is there; `None` at the end.
        found: Option<u8>,
    },
    /// A field is missing.
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field occurs twice.
    Duplicate {
        /// The field.
        field: &'static str,
        /// Where the value of the second one starts.
        at: usize,
    },
    /// A field holds something else than it should.
    Field {
        /// The field.
        field: &'static str,
        /// Where its value starts.
        at: usize,
        /// What it should hold.
        expected: &'static str,
        /// The start of what it holds.
        found: ShortString,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body is no job envelope: ")?;
        match self {
            Self::TooLarge { bytes, limit } => write!(f, "it has {bytes} bytes, the limit is {limit}"),
            Self::TooDeep { at, limit } => write!(f, "at byte {at} it nests deeper than {limit} levels"),
            Self::TooManyFields { at, limit } => {
                write!(f, "at byte {at} it has more than {limit} unknown fields")
            }
            Self::NameTooLong { at, bytes, limit } => {
                write!(f, "the name of the field at byte {at} has {bytes} bytes, the limit is {limit}")
            }
            Self::TextTooLong { field, at, bytes, limit } => {
                write!(f, "the field `{field}`, at byte {at}, has {bytes} bytes, the limit is {limit}")
            }
            Self::NotAnObject { found } => write!(f, "it must be a JSON object, found {found}"),
            Self::NotJson { at, wanted, found: Some(byte) } if byte.is_ascii_graphic() => {
                write!(f, "it is not JSON: at byte {at} it must hold {wanted}, found `{}`", char::from(*byte))
            }
            Self::NotJson { at, wanted, found: Some(byte) } => {
                write!(f, "it is not JSON: at byte {at} it must hold {wanted}, found the byte 0x{byte:02x}")
            }
            Self::NotJson { at, wanted, found: None } => {
                write!(f, "it is not JSON: it ends at byte {at}, where it must hold {wanted}")
            }
            Self::Missing { field } => write!(f, "the field `{field}` is missing"),
            Self::Duplicate { field, at } => {
                write!(f, "the field `{field}` occurs twice, again at byte {at}")
            }
            Self::Field { field, at, expected, found } => {
                write!(f, "the field `{field}`, at byte {at}, must hold {expected}, found {found}")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// The start of a text that may be secret or long, at most [`QUOTE_MAX`] bytes and cut at a character.
pub(super) fn quote(text: &str) -> String {
    let quoted = crate::text::cut(text, QUOTE_MAX);
    // A line of its own would look like a second message in a log.
    let mut start = quoted.replace(char::is_control, " ");
    if quoted.len() < text.len() {
        start.push_str("...");
    }
    start
}
