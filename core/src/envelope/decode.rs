//! Reading an envelope: one pass over the body, no tree, nothing trusted.
//!
//! Most of what is done for a field is less work than a call with a result that does not fit into registers: such
//! steps are marked for inlining, and what only a wrong body needs is kept out of their way (`#[cold]`).

use std::borrow::Cow;

use bytes::Bytes;

use super::error::{DecodeError, quote};
use super::limits::Limits;
use super::scan::{Fault, Scanner, Span};
use super::text::Text;
use super::{Envelope, JobId, JobType, RawPayload};
use crate::text::{SHORT_STRING_MAX, ShortString};
use crate::time::UnixMillis;

pub(super) fn decode(body: &Bytes, limits: &Limits) -> Result<Envelope, DecodeError> {
    read(body, limits).map_err(|fault| *fault)
}

fn read(body: &Bytes, limits: &Limits) -> Result<Envelope, Fault> {
    if body.len() > limits.max_bytes {
        return Err(DecodeError::TooLarge { bytes: body.len(), limit: limits.max_bytes }.into());
    }
    let mut json = Scanner::new(body, limits.max_nesting)?;
    if json.peek() != Some(b'{') {
        return Err(DecodeError::NotAnObject { found: kind_of_value(json.peek()) }.into());
    }
    let mut draft = Draft::new(body, json.text(), limits);
    let mut more = json.enter_object()?;
    while more {
        let name = json.name()?;
        let value = json.value()?;
        draft.member(name, value)?;
        more = json.next_member()?;
    }
    json.end()?;
    draft.finish()
}

const fn kind_of_value(first: Option<u8>) -> &'static str {
    match first {
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b'0'..=b'9' | b'-') => "a number",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(_) => "something that is not JSON",
        None => "an empty body",
    }
}

/// The fields read so far.
struct Draft<'a> {
    body: &'a Bytes,
    /// The same, as text.
    text: &'a str,
    limits: &'a Limits,
    job_id: Option<JobId>,
    job_type: Option<JobType>,
    queue: Option<Text>,
    attempt: Option<u32>,
    enqueued_at: Option<UnixMillis>,
    deferrals: Option<u32>,
    priority: Option<u8>,
    correlation_id: Option<Option<Text>>,
    payload: Option<RawPayload>,
    unknown: Vec<Bytes>,
}

impl<'a> Draft<'a> {
    const fn new(body: &'a Bytes, text: &'a str, limits: &'a Limits) -> Self {
        Self {
            body,
            text,
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
        }
    }

    #[inline]
    fn member(&mut self, name: Span, value: Span) -> Result<(), Fault> {
        let Self { body, text, limits, .. } = *self;
        let value = Value { text, span: value };
        // A name may be written with escapes, and is the same name.
        let unescaped;
        let plain = if name.escaped {
            unescaped = spelled(text, name).ok_or_else(|| unreadable(name))?;
            unescaped.as_str()
        } else {
            &text[name.inside()]
        };
        match plain {
            "job_id" => {
                let id = value.text(&JOB_ID, usize::MAX)?.parse().map_err(|_| value.fault(&JOB_ID))?;
                value.once(&JOB_ID, &mut self.job_id, id)
            }
            "job_type" => {
                let name = value.text(&JOB_TYPE, limits.max_job_type_bytes.min(SHORT_STRING_MAX))?;
                let job_type = JobType::new(name).map_err(|_| value.fault(&JOB_TYPE))?;
                value.once(&JOB_TYPE, &mut self.job_type, job_type)
            }
            "queue" => {
                let queue = keep(body, value.text(&QUEUE, limits.max_queue_bytes)?);
                value.once(&QUEUE, &mut self.queue, queue)
            }
            "attempt" => {
                let attempt = value.number(&ATTEMPT)?;
                if attempt == 0 {
                    return Err(value.fault(&ATTEMPT));
                }
                value.once(&ATTEMPT, &mut self.attempt, attempt)
            }
            "enqueued_at_ms" => {
                let millis = value.number(&ENQUEUED_AT)?;
                value.once(&ENQUEUED_AT, &mut self.enqueued_at, UnixMillis(millis))
            }
            "deferrals" => {
                let deferrals = value.number(&DEFERRALS)?;
                value.once(&DEFERRALS, &mut self.deferrals, deferrals)
            }
            "priority" => {
                let priority = value.number(&PRIORITY)?;
                value.once(&PRIORITY, &mut self.priority, priority)
            }
            "correlation_id" => {
                let id = match value.json() {
                    b"null" => None,
                    _ => Some(keep(body, value.text(&CORRELATION_ID, limits.max_correlation_id_bytes)?)),
                };
                value.once(&CORRELATION_ID, &mut self.correlation_id, id)
            }
            "payload" => {
                let json = body.slice(value.span.range());
                value.once(&PAYLOAD, &mut self.payload, RawPayload::from_checked(json))
            }
            _ => self.unknown(name, value.span),
        }
    }

    /// Keeps a member as it is written, from the quote before its name to the end of its value.
    fn unknown(&mut self, name: Span, value: Span) -> Result<(), Fault> {
        let (at, limits) = (name.start, self.limits);
        let bytes = name.inside().len();
        if bytes > limits.max_name_bytes {
            return Err(DecodeError::NameTooLong { at, bytes, limit: limits.max_name_bytes }.into());
        }
        if self.unknown.len() >= limits.max_unknown_fields {
            return Err(DecodeError::TooManyFields { at, limit: limits.max_unknown_fields }.into());
        }
        self.unknown.push(self.body.slice(at..value.end));
        Ok(())
    }

    #[inline(always)]
    fn finish(self) -> Result<Envelope, Fault> {
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

/// A known field: its name, and what it should hold.
struct Field {
    name: &'static str,
    expected: &'static str,
}

const JOB_ID: Field = Field { name: "job_id", expected: "a UUID" };
const JOB_TYPE: Field = Field { name: "job_type", expected: "a text of 1 to 255 bytes without a zero byte" };
const QUEUE: Field = Field { name: "queue", expected: "a text" };
const ATTEMPT: Field = Field { name: "attempt", expected: "a whole number from 1 to 4294967295" };
const ENQUEUED_AT: Field = Field { name: "enqueued_at_ms", expected: "a whole number of milliseconds" };
const DEFERRALS: Field = Field { name: "deferrals", expected: "a whole number from 0 to 4294967295" };
const PRIORITY: Field = Field { name: "priority", expected: "a whole number from 0 to 255" };
const CORRELATION_ID: Field = Field { name: "correlation_id", expected: "a text or null" };
const PAYLOAD: Field = Field { name: "payload", expected: "any JSON" };

/// The value of a field.
#[derive(Clone, Copy)]
struct Value<'a> {
    /// The whole body, as text.
    text: &'a str,
    span: Span,
}

impl<'a> Value<'a> {
    #[inline]
    fn json(self) -> &'a [u8] {
        &self.text.as_bytes()[self.span.range()]
    }

    #[inline(always)]
    fn text(self, field: &Field, limit: usize) -> Result<Cow<'a, str>, Fault> {
        let text = if self.span.escaped || self.json().first() != Some(&b'"') {
            Cow::Owned(spelled(self.text, self.span).ok_or_else(|| self.fault(field))?)
        } else {
            Cow::Borrowed(&self.text[self.span.inside()])
        };
        if text.len() > limit {
            return Err(self.too_long(field, text.len(), limit));
        }
        Ok(text)
    }

    #[inline(always)]
    fn number<T: TryFrom<u64>>(self, field: &Field) -> Result<T, Fault> {
        let number = whole_number(self.json()).and_then(|number| number.try_into().ok());
        number.ok_or_else(|| self.fault(field))
    }

    #[inline(always)]
    fn once<T>(self, field: &Field, slot: &mut Option<T>, value: T) -> Result<(), Fault> {
        if slot.is_some() {
            return Err(self.duplicate(field));
        }
        *slot = Some(value);
        Ok(())
    }

    #[cold]
    fn fault(self, field: &Field) -> Fault {
        DecodeError::Field {
            field: field.name,
            at: self.span.start,
            expected: field.expected,
            found: ShortString::truncated(&quote(&self.text[self.span.range()])),
        }
        .into()
    }

    #[cold]
    fn too_long(self, field: &Field, bytes: usize, limit: usize) -> Fault {
        DecodeError::TextTooLong { field: field.name, at: self.span.start, bytes, limit }.into()
    }

    #[cold]
    fn duplicate(self, field: &Field) -> Fault {
        DecodeError::Duplicate { field: field.name, at: self.span.start }.into()
    }
}

/// The text of a JSON string that is written with escapes; `None` for escapes that spell no text, and for any other
/// value.
#[cold]
fn spelled(body: &str, value: Span) -> Option<String> {
    serde_json::from_str(&body[value.range()]).ok()
}

/// A JSON number without sign, fraction and exponent; `None` for any other value, and above 64 bits.
#[inline]
fn whole_number(json: &[u8]) -> Option<u64> {
    // Every number of 19 digits fits into 64 bits, and only some of 20.
    if json.len() > 19 {
        return long_number(json);
    }
    let mut number = 0;
    for byte in json {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

#[cold]
fn long_number(json: &[u8]) -> Option<u64> {
    std::str::from_utf8(json).ok()?.parse().ok()
}

#[cold]
fn unreadable(name: Span) -> Fault {
    DecodeError::NotJson { at: name.start, wanted: "a name whose escapes spell a text", found: Some(b'"') }
        .into()
}

#[inline]
fn keep(body: &Bytes, text: Cow<'_, str>) -> Text {
    match text {
        Cow::Borrowed(text) => Text::of(body, text),
        Cow::Owned(text) => text.into(),
    }
}

#[inline]
fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or_else(|| missing(field))
}

#[cold]
fn missing(field: &'static str) -> Fault {
    DecodeError::Missing { field }.into()
}
