//! What must hold for every body, as functions that panic where it does not: for property tests and for fuzzing.
#![expect(clippy::panic, reason = "a rule that does not hold is what this module is asked for")]

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::scan::{NESTING_MAX, Scanner};
use super::{DecodeError, Envelope, JobId, JobType, Limits, QUOTE_MAX};

/// The scanner takes for JSON what `serde_json` takes for JSON, up to the nesting that it is limited to.
///
/// # Panics
///
/// Where that does not hold.
pub fn scanner_agrees_with_serde_json(text: &[u8]) {
    let scanned = Scanner::new(text, NESTING_MAX).and_then(|mut json| {
        let value = json.value()?;
        json.end()?;
        Ok(&json.text()[value.range()])
    });
    let scanned = scanned.map_err(|fault| *fault);
    let expected = serde_json::from_slice::<&RawValue>(text);
    match (scanned, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected.get()),
        (Err(DecodeError::TooDeep { at, .. }), _) => {
            assert_eq!(nesting(&text[..=at]), NESTING_MAX + 1, "too deep at {at}");
        }
        (Err(DecodeError::NotJson { at, found, .. }), Err(_)) => assert_eq!(found, text.get(at).copied()),
        (found, expected) => panic!("{found:?} where serde_json says {expected:?}"),
    }
}

/// How deep the end of a text is nested.
fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth -= 1,
            _ => {}
        }
    }
    depth
}

/// The envelope as `serde` derives it.
#[derive(Debug, Deserialize)]
struct Derived<'a> {
    job_id: String,
    job_type: String,
    queue: String,
    attempt: u32,
    enqueued_at_ms: u64,
    #[serde(default)]
    deferrals: u32,
    #[serde(default)]
    priority: u8,
    #[serde(default)]
    correlation_id: Option<String>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl Derived<'_> {
    /// What the types of an envelope ask for and those of this struct do not.
    fn is_envelope(&self, body: &str) -> bool {
        body.trim_start().starts_with('{')
            && self.job_id.parse::<JobId>().is_ok()
            && JobType::new(&self.job_type).is_ok()
            && self.attempt > 0
    }
}

/// An envelope reads as the struct that `serde` derives for its fields, where no limit forbids it.
///
/// # Panics
///
/// Where that does not hold.
pub fn decode_agrees_with_serde_json(body: &[u8]) {
    let limits = Limits {
        max_bytes: usize::MAX,
        max_unknown_fields: usize::MAX,
        max_name_bytes: usize::MAX,
        max_queue_bytes: usize::MAX,
        max_correlation_id_bytes: usize::MAX,
        ..Limits::default()
    };
    let decoded = Envelope::decode(&Bytes::copy_from_slice(body), &limits);
    let Ok(text) = std::str::from_utf8(body) else {
        return assert!(matches!(decoded, Err(DecodeError::NotJson { .. })));
    };
    let derived = serde_json::from_str::<Derived<'_>>(text).ok().filter(|derived| derived.is_envelope(text));
    match (decoded, derived) {
        (Ok(envelope), Some(derived)) => {
            assert_eq!(Ok(envelope.job_id()), derived.job_id.parse());
            assert_eq!(envelope.job_type().as_str(), derived.job_type);
            assert_eq!(envelope.queue(), derived.queue);
            assert_eq!(envelope.attempt(), derived.attempt);
            assert_eq!(envelope.enqueued_at().0, derived.enqueued_at_ms);
            assert_eq!(envelope.deferrals(), derived.deferrals);
            assert_eq!(envelope.priority(), derived.priority);
            assert_eq!(envelope.correlation_id(), derived.correlation_id.as_deref());
            assert_eq!(envelope.payload().as_bytes(), derived.payload.get());
        }
        (Err(DecodeError::TooDeep { .. }), _) | (Err(_), None) => {}
        (decoded, derived) => panic!("{decoded:?} where serde says {derived:?}"),
    }
}

/// Any bytes are an envelope or an error of bounded length; and an envelope, its retry and its deferral read back
/// with payload and unknown fields byte for byte.
///
/// # Panics
///
/// Where that does not hold.
pub fn copies_read_back(body: &[u8]) {
    let envelope = match Envelope::decode(&Bytes::copy_from_slice(body), &Limits::default()) {
        Ok(envelope) => envelope,
        Err(error) => {
            let text = error.to_string();
            return assert!(text.len() < 200 + QUOTE_MAX, "an error of {} bytes", text.len());
        }
    };
    let retried = envelope.next_attempt();
    assert_eq!(retried.attempt(), envelope.attempt().saturating_add(1));
    assert_eq!((retried.deferrals(), retried.priority()), (envelope.deferrals(), 0));
    let deferred = envelope.deferred(Some(10));
    assert_eq!(deferred.deferrals(), envelope.deferrals().saturating_add(1));
    assert_eq!((deferred.attempt(), deferred.priority()), (envelope.attempt(), 10));
    for copy in [&envelope, &retried, &deferred] {
        assert_eq!(copy.payload(), envelope.payload());
        assert_eq!(copy.unknown, envelope.unknown);
        let written = copy.encode();
        // A copy may be longer than its original, by as much as its counters have grown.
        let limits = Limits { max_bytes: written.len(), ..Limits::default() };
        assert_eq!(Envelope::decode(&written, &limits).as_ref(), Ok(copy));
    }
}
