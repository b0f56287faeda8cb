//! Reading an envelope: one pass over the body, no tree, nothing trusted.

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
    let mut draft = Draft::new(body, limits);
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
        }
    }

    fn member(&mut self, name: Span<'a>, value: Span<'a>) -> Result<(), Fault> {
        let Self { body, limits, .. } = *self;
        let field = |name, expected| Field { name, value, expected };
        // A name may be written with escapes, and is the same name.
        let plain = unquoted(name).ok_or(DecodeError::NotJson {
            at: name.at,
            wanted: "a name whose escapes spell a text",
            found: Some(b'"'),
        })?;
        match plain.as_ref() {
            "job_id" => {
                let field = field("job_id", "a UUID");
                let id = field.text(usize::MAX)?.parse().map_err(|_| field.fault())?;
                field.once(&mut self.job_id, id)
            }
            "job_type" => {
                let field = field("job_type", "a text of 1 to 255 bytes without a zero byte");
                let name = field.text(limits.max_job_type_bytes.min(SHORT_STRING_MAX))?;
                let job_type = JobType::new(name).map_err(|_| field.fault())?;
                field.once(&mut self.job_type, job_type)
            }
            "queue" => {
                let field = field("queue", "a text");
                let queue = keep(body, field.text(limits.max_queue_bytes)?);
                field.once(&mut self.queue, queue)
            }
            "attempt" => {
                let field = field("attempt", "a whole number from 1 to 4294967295");
                let attempt =
                    field.number(|number| u32::try_from(number).ok().filter(|attempt| *attempt > 0))?;
                field.once(&mut self.attempt, attempt)
            }
            "enqueued_at_ms" => {
                let field = field("enqueued_at_ms", "a whole number of milliseconds");
                let millis = field.number(Some)?;
                field.once(&mut self.enqueued_at, UnixMillis(millis))
            }
            "deferrals" => {
                let field = field("deferrals", "a whole number from 0 to 4294967295");
                let deferrals = field.number(|number| u32::try_from(number).ok())?;
                field.once(&mut self.deferrals, deferrals)
            }
            "priority" => {
                let field = field("priority", "a whole number from 0 to 255");
                let priority = field.number(|number| u8::try_from(number).ok())?;
                field.once(&mut self.priority, priority)
            }
            "correlation_id" => {
                let field = field("correlation_id", "a text or null");
                let id = match value.json {
                    "null" => None,
                    _ => Some(keep(body, field.text(limits.max_correlation_id_bytes)?)),
                };
                field.once(&mut self.correlation_id, id)
            }
            "payload" => {
                let json = body.slice(value.range());
                field("payload", "any JSON").once(&mut self.payload, RawPayload::from_checked(json))
            }
            _ => self.unknown(name, value),
        }
    }

    /// Keeps a member as it is written, from the quote before its name to the end of its value.
    fn unknown(&mut self, name: Span<'a>, value: Span<'a>) -> Result<(), Fault> {
        let (at, limits) = (name.at, self.limits);
        let bytes = name.json.len() - 2;
        if bytes > limits.max_name_bytes {
            return Err(DecodeError::NameTooLong { at, bytes, limit: limits.max_name_bytes }.into());
        }
        if self.unknown.len() >= limits.max_unknown_fields {
            return Err(DecodeError::TooManyFields { at, limit: limits.max_unknown_fields }.into());
        }
        self.unknown.push(self.body.slice(at..value.range().end));
        Ok(())
    }

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

/// One known field: what is needed to say what is wrong with it.
struct Field<'a> {
    name: &'static str,
    value: Span<'a>,
    expected: &'static str,
}

impl<'a> Field<'a> {
    fn text(&self, limit: usize) -> Result<Cow<'a, str>, Fault> {
        let text = unquoted(self.value).ok_or_else(|| self.fault())?;
        if text.len() > limit {
            let (field, at, bytes) = (self.name, self.value.at, text.len());
            return Err(DecodeError::TextTooLong { field, at, bytes, limit }.into());
        }
        Ok(text)
    }

    fn number<T>(&self, convert: impl FnOnce(u64) -> Option<T>) -> Result<T, Fault> {
        self.value.json.parse().ok().and_then(convert).ok_or_else(|| self.fault())
    }

    fn once<T>(&self, slot: &mut Option<T>, value: T) -> Result<(), Fault> {
        match slot.replace(value) {
            None => Ok(()),
            Some(_) => Err(DecodeError::Duplicate { field: self.name, at: self.value.at }.into()),
        }
    }

    #[cold]
    fn fault(&self) -> Fault {
        DecodeError::Field {
            field: self.name,
            at: self.value.at,
            expected: self.expected,
            found: ShortString::truncated(&quote(self.value.json)),
        }
        .into()
    }
}

/// The text of a JSON string, borrowed where it is written without escapes; `None` for any other value, and for
/// escapes that spell no text.
fn unquoted(value: Span<'_>) -> Option<Cow<'_, str>> {
    if !value.json.starts_with('"') {
        return None;
    }
    if value.escaped {
        return serde_json::from_str(value.json).ok().map(Cow::Owned);
    }
    value.json.get(1..value.json.len() - 1).map(Cow::Borrowed)
}

fn keep(body: &Bytes, text: Cow<'_, str>) -> Text {
    match text {
        Cow::Borrowed(text) => Text::of(body, text),
        Cow::Owned(text) => text.into(),
    }
}

fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or_else(|| DecodeError::Missing { field }.into())
}
