//! Envelopes that are built: what is written is what is read.

use bytes::Bytes;
use serde_json::Value;

use super::input::Lines;
use crate::envelope::{DecodeError, Envelope, JobId, JobType, Limits, RawPayload};
use crate::text::ShortString;
use crate::time::UnixMillis;

/// Line by line: job id, job type, queue, enqueued at, priority, correlation id, payload, and then the name and
/// the value of each field that this version does not know.
///
/// Whatever [`Limits::admit`] admits, [`Envelope::decode`] reads, as the job that was written; a parser of JSON
/// that knows nothing of envelopes finds the same values. Payload and unknown fields survive byte for byte, also
/// in the copies for a next attempt and for a deferral, which count on and change nothing else.
///
/// # Panics
///
/// Where that does not hold.
pub fn body(bytes: &[u8]) {
    let mut lines = Lines::new(bytes);
    let job = build(&mut lines);
    let (written, unknown) = with_unknown_fields(&job.encode(), &mut lines);
    let limits = Limits::default();
    if let Err(error) = limits.admit(&written) {
        let text = String::from_utf8_lossy(&written);
        return assert!(is_due(&error, &unknown), "{error}: {text}");
    }
    let read = Envelope::decode(&written, &limits).unwrap_or_else(|error| {
        unreachable!("what is admitted is read: {error}: {}", String::from_utf8_lossy(&written));
    });
    assert_eq!(read.encode(), written, "byte for byte");
    check_values(&written, &job);
    check_values(&read.encode(), &job);
    assert!(unknown.fields > 0 || read == job, "{read:?} and {job:?}");

    let next = read.next_attempt();
    assert_eq!((next.attempt(), next.priority()), (read.attempt() + 1, 0));
    check_copy(&next, &read, &unknown.text);
    let deferred = read.deferred(Some(9));
    assert_eq!((deferred.attempt(), deferred.priority()), (read.attempt(), 9));
    assert_eq!(deferred.deferrals(), read.deferrals() + 1);
    check_copy(&deferred, &read, &unknown.text);
}

fn build(lines: &mut Lines<'_>) -> Envelope {
    let job_id = JobId::from_random(lines.number().into());
    let job_type = JobType::new(lines.text()).unwrap_or_else(|_| JobType::from_static("job"));
    let queue = ShortString::truncated(&lines.text());
    let enqueued_at = UnixMillis(lines.number());
    let [priority, ..] = lines.number().to_le_bytes();
    let correlation_id = lines.text();
    let payload = json(lines.next());
    let job = Envelope::new(job_id, job_type, queue, enqueued_at, payload).with_priority(priority);
    match correlation_id.as_ref() {
        "" => job,
        id => job.with_correlation_id(ShortString::truncated(id)),
    }
}

/// The line as it is where it is JSON, and as a string of JSON otherwise.
fn json(line: &[u8]) -> RawPayload {
    let as_it_is = RawPayload::from_json(Bytes::copy_from_slice(line));
    as_it_is.or_else(|_| RawPayload::from_serialize(&String::from_utf8_lossy(line))).unwrap_or_else(|error| {
        unreachable!("a text can be written as JSON: {error}");
    })
}

/// Whether an envelope that was built may be refused for this: only for what its payload and unknown fields hold.
fn is_due(error: &DecodeError, unknown: &Unknown) -> bool {
    match error {
        DecodeError::TooDeep { .. } | DecodeError::TooLarge { .. } => true,
        DecodeError::TooManyFields { limit, .. } => unknown.fields > *limit,
        // The second: half of a surrogate pair in a name.
        DecodeError::NameTooLong { .. } | DecodeError::NotJson { .. } => unknown.fields > 0,
        _ => false,
    }
}

struct Unknown {
    fields: usize,
    /// All of them as they were written, with the comma before each.
    text: Vec<u8>,
}

/// The envelope with the fields of the remaining lines at its end.
fn with_unknown_fields(envelope: &Bytes, lines: &mut Lines<'_>) -> (Bytes, Unknown) {
    let mut unknown = Unknown { fields: 0, text: Vec::new() };
    while !lines.is_empty() {
        // No name of ours begins like this.
        let name = json(format!("\"x-{}\"", lines.text()).as_bytes());
        let is_name = name.as_bytes().starts_with(b"\"x-");
        let value = json(lines.next());
        if is_name {
            unknown.fields += 1;
            for part in [b",", name.as_bytes().as_ref(), b":", value.as_bytes()] {
                unknown.text.extend_from_slice(part);
            }
        }
    }
    let open = envelope.strip_suffix(b"}").unwrap_or_else(|| unreachable!("an envelope is a JSON object"));
    ([open, &unknown.text, b"}"].concat().into(), unknown)
}

fn check_values(written: &[u8], job: &Envelope) {
    let parsed = serde_json::from_slice::<Value>(written);
    // It reads no numbers beyond a double, and no half of a surrogate pair.
    let Ok(tree) = parsed else { return };
    assert_eq!(tree["job_id"], job.job_id().to_string());
    assert_eq!(tree["job_type"], job.job_type().as_str());
    assert_eq!(tree["queue"], job.queue());
    assert_eq!(tree["attempt"], job.attempt());
    assert_eq!(tree["enqueued_at_ms"], job.enqueued_at().0);
    assert_eq!(tree["deferrals"], job.deferrals());
    assert_eq!(tree["priority"], job.priority());
    assert_eq!(tree.get("correlation_id").and_then(Value::as_str), job.correlation_id());
    assert_eq!(serde_json::from_slice::<Value>(job.payload().as_bytes()).ok().as_ref(), tree.get("payload"));
}

fn check_copy(copy: &Envelope, original: &Envelope, unknown: &[u8]) {
    let kept =
        |job: &Envelope| (job.job_id(), job.job_type().clone(), job.queue().to_owned(), job.enqueued_at());
    assert_eq!(kept(copy), kept(original));
    assert_eq!(copy.correlation_id(), original.correlation_id());
    assert_eq!(copy.payload().as_bytes(), original.payload().as_bytes());
    let written = copy.encode();
    let end = [original.payload().as_bytes(), unknown, b"}"].concat();
    assert!(written.ends_with(&end), "{} has lost a field", String::from_utf8_lossy(&written));
    assert_eq!(Envelope::decode(&written, &Limits::default()).as_ref(), Ok(copy));
}
