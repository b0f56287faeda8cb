//! Reading an envelope: one pass over the body, no tree, nothing trusted.

use std::fmt;

use bytes::Bytes;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Envelope, JobId, JobType, RawPayload};
use crate::text::{SHORT_STRING_MAX, ShortString};
use crate::time::UnixMillis;

/// What a body may cost. The decoded envelope takes no more memory than the body and 64 bytes for every
/// unknown field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest body, in bytes. Default 16 MiB, as RabbitMQ 4.
    pub max_bytes: usize,
    /// How deep arrays and objects may nest, the envelope counted. Default 128, what `serde_json` reads.
    pub max_nesting: usize,
    /// How many fields may be unknown. Default 64.
    pub max_unknown_fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 16 * 1024 * 1024, max_nesting: 128, max_unknown_fields: 64 }
    }
}

/// How much longer a body can become when its attempt, deferrals and priority are counted on, in bytes.
const COUNTERS_GROW: usize = 32;

impl Limits {
    /// Checks a body that is about to be sent: whether it can be read, now and when its counters have grown.
    ///
    /// # Errors
    ///
    /// [`DecodeError::TooLarge`], [`DecodeError::TooDeep`].
    pub fn admit(&self, body: &Bytes) -> Result<(), DecodeError> {
        let limit = self.max_bytes.saturating_sub(COUNTERS_GROW);
        if body.len() > limit {
            return Err(DecodeError::TooLarge { bytes: body.len(), limit });
        }
        check_nesting(body, self.max_nesting)
    }
}

/// Why a body is no envelope. It quotes no more than [`QUOTE_MAX`] bytes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The body is longer than [`Limits::max_bytes`].
    TooLarge {
        /// The length found.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Arrays and objects nest deeper than [`Limits::max_nesting`].
    TooDeep {
        /// Where, in bytes from the start.
        at: usize,
        /// The limit.
        limit: usize,
    },
    /// There are more unknown fields than [`Limits::max_unknown_fields`].
    TooManyFields {
        /// The limit.
        limit: usize,
    },
    /// The body starts with something else than a JSON object.
    NotAnObject {
        /// What it starts with.
        found: &'static str,
    },
    /// The body is not JSON.
    NotJson {
        /// What is wrong, with line and column.
        why: ShortString,
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
    },
    /// A field holds something else than it should.
    Field {
        /// The field.
        field: &'static str,
        /// Where its value starts, in bytes from the start.
        at: usize,
        /// What it should hold.
        expected: &'static str,
        /// The start of what it holds.
        found: ShortString,
    },
}

/// How much of a wrong value an error quotes, in bytes.
pub const QUOTE_MAX: usize = 24;

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body is no job envelope: ")?;
        match self {
            Self::TooLarge { bytes, limit } => write!(f, "it has {bytes} bytes, the limit is {limit}"),
            Self::TooDeep { at, limit } => write!(f, "at byte {at} it nests deeper than {limit} levels"),
            Self::TooManyFields { limit } => write!(f, "it has more than {limit} unknown fields"),
            Self::NotAnObject { found } => write!(f, "it is not a JSON object but {found}"),
            Self::NotJson { why } => write!(f, "it is not JSON: {why}"),
            Self::Missing { field } => write!(f, "the field `{field}` is missing"),
            Self::Duplicate { field } => write!(f, "the field `{field}` occurs twice"),
            Self::Field { field, at, expected, found } => {
                write!(f, "the field `{field}`, at byte {at}, must hold {expected}, found {found}")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

pub(super) fn decode(body: &Bytes, limits: &Limits) -> Result<Envelope, DecodeError> {
    if body.len() > limits.max_bytes {
        return Err(DecodeError::TooLarge { bytes: body.len(), limit: limits.max_bytes });
    }
    starts_as_object(body)?;
    check_nesting(body, limits.max_nesting)?;
    let mut draft = Draft::new(body, limits);
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = serde::Deserializer::deserialize_map(&mut json, &mut draft).and_then(|()| json.end());
    match (draft.fault.take(), read) {
        (Some(fault), _) => Err(fault),
        (None, Err(error)) => Err(DecodeError::NotJson { why: ShortString::truncated(&error.to_string()) }),
        (None, Ok(())) => draft.finish(),
    }
}

fn starts_as_object(body: &[u8]) -> Result<(), DecodeError> {
    let found = match body.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        Some(b'{') => return Ok(()),
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b'0'..=b'9' | b'-') => "a number",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(_) => "something that is not JSON",
        None => "empty",
    };
    Err(DecodeError::NotAnObject { found })
}

/// Counts how deep the text nests, without recursion. Text that is not JSON may be counted wrongly; it is
/// refused right after.
fn check_nesting(body: &[u8], limit: usize) -> Result<(), DecodeError> {
    let opening = |byte: &&u8| matches!(byte, b'[' | b'{');
    if body.iter().filter(opening).count() <= limit {
        return Ok(());
    }
    let mut depth = 0_usize;
    let mut bytes = body.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return Err(DecodeError::TooDeep { at, limit });
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                // To the closing quote; what follows a backslash is none.
                while let Some((_, byte)) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The fields read so far.
struct Draft<'a> {
    body: &'a Bytes,
    limits: &'a Limits,
    job_id: Option<JobId>,
    job_type: Option<JobType>,
    queue: Option<ShortString>,
    attempt: Option<u32>,
    enqueued_at: Option<UnixMillis>,
    deferrals: Option<u32>,
    priority: Option<u8>,
    correlation_id: Option<Option<ShortString>>,
    payload: Option<RawPayload>,
    unknown: Vec<(Bytes, Bytes)>,
    fault: Option<DecodeError>,
}

impl<'a> Draft<'a> {
    const fn new(body: &'a Bytes, limits: &'a Limits) -> Self {
        Self {
            body,
            limits,
            job_id: None,
            job_type: None,
            queue: None,
            attempt: None,
            enqueued_at: None,
            deferrals: None,
            priority: None,
            correlation_id: None,
            payload: None,
            unknown: Vec::new(),
            fault: None,
        }
    }

    fn field(&mut self, name: &'a str, value: &'a str) -> Result<(), DecodeError> {
        let body = self.body;
        let field = |field, expected| Field { body, value, field, expected };
        // A name may be written with escapes, and is the same name.
        let plain = text(name).unwrap_or_default();
        match plain.as_ref() {
            "job_id" => {
                let field = field("job_id", "a UUID");
                once(&mut self.job_id, field.name(), field.text(|id| id.parse().ok())?)
            }
            "job_type" => {
                let field = field("job_type", "a text of 1 to 255 bytes without a zero byte");
                once(&mut self.job_type, field.name(), field.text(|name| JobType::new(name).ok())?)
            }
            "queue" => {
                let field = field("queue", SHORT_TEXT);
                once(&mut self.queue, field.name(), field.text(short)?)
            }
            "attempt" => {
                let field = field("attempt", "a whole number from 1 to 4294967295");
                let number = field.number(|number| u32::try_from(number).ok().filter(|attempt| *attempt > 0));
                once(&mut self.attempt, field.name(), number?)
            }
            "enqueued_at_ms" => {
                let field = field("enqueued_at_ms", "a whole number of milliseconds");
                once(&mut self.enqueued_at, field.name(), field.number(|number| Some(UnixMillis(number)))?)
            }
            "deferrals" => {
                let field = field("deferrals", "a whole number from 0 to 4294967295");
                once(&mut self.deferrals, field.name(), field.number(|number| u32::try_from(number).ok())?)
            }
            "priority" => {
                let field = field("priority", "a whole number from 0 to 255");
                once(&mut self.priority, field.name(), field.number(|number| u8::try_from(number).ok())?)
            }
            "correlation_id" => {
                let field = field("correlation_id", SHORT_TEXT);
                let id = if value == "null" { None } else { Some(field.text(short)?) };
                once(&mut self.correlation_id, field.name(), id)
            }
            "payload" => {
                let json = body.slice_ref(value.as_bytes());
                once(&mut self.payload, "payload", RawPayload::from_checked(json))
            }
            _ if self.unknown.len() == self.limits.max_unknown_fields => {
                Err(DecodeError::TooManyFields { limit: self.limits.max_unknown_fields })
            }
            _ => {
                self.unknown.push((body.slice_ref(name.as_bytes()), body.slice_ref(value.as_bytes())));
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<Envelope, DecodeError> {
        Ok(Envelope {
            job_id: required("job_id", self.job_id)?,
            job_type: required("job_type", self.job_type)?,
            queue: required("queue", self.queue)?,
            attempt: required("attempt", self.attempt)?,
            enqueued_at: required("enqueued_at_ms", self.enqueued_at)?,
            deferrals: self.deferrals.unwrap_or(0),
            priority: self.priority.unwrap_or(0),
            correlation_id: self.correlation_id.flatten(),
            payload: required("payload", self.payload)?,
            unknown: self.unknown,
        })
    }
}

impl<'a> Visitor<'a> for &mut Draft<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a job envelope")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            if let Err(fault) = self.field(name.get(), value.get()) {
                self.fault = Some(fault);
                return Err(A::Error::custom("the fault says what is wrong"));
            }
        }
        Ok(())
    }
}

const SHORT_TEXT: &str = "a text of at most 255 bytes";

/// One known field: what is needed to say what is wrong with it.
struct Field<'a> {
    body: &'a Bytes,
    value: &'a str,
    field: &'static str,
    expected: &'static str,
}

impl Field<'_> {
    const fn name(&self) -> &'static str {
        self.field
    }

    fn text<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, DecodeError> {
        text(self.value).and_then(|text| parse(&text)).ok_or_else(|| self.fault())
    }

    fn number<T>(&self, parse: impl FnOnce(u64) -> Option<T>) -> Result<T, DecodeError> {
        self.value.parse().ok().and_then(parse).ok_or_else(|| self.fault())
    }

    fn fault(&self) -> DecodeError {
        let mut end = self.value.len().min(QUOTE_MAX);
        while !self.value.is_char_boundary(end) {
            end -= 1;
        }
        let cut = if end < self.value.len() { "..." } else { "" };
        DecodeError::Field {
            field: self.field,
            // The value is a slice of the body.
            at: self.value.as_ptr().addr() - self.body.as_ptr().addr(),
            expected: self.expected,
            found: ShortString::truncated(&format!("{}{cut}", &self.value[..end])),
        }
    }
}

/// The text of a JSON string, borrowed where it is written without escapes; `None` for any other value.
fn text(json: &str) -> Option<std::borrow::Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(json).ok().map(Into::into)
    } else {
        Some(inner.into())
    }
}

fn short(text: &str) -> Option<ShortString> {
    debug_assert!(SHORT_TEXT.contains(&SHORT_STRING_MAX.to_string()));
    ShortString::new(text).ok()
}

fn once<T>(slot: &mut Option<T>, field: &'static str, value: T) -> Result<(), DecodeError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(DecodeError::Duplicate { field }),
    }
}

fn required<T>(field: &'static str, value: Option<T>) -> Result<T, DecodeError> {
    value.ok_or(DecodeError::Missing { field })
}
