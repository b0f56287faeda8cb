//! Envelopes: read, written and copied.

use bytes::{Bytes, BytesMut};
use leveret_core::envelope::{DecodeError, Envelope, Limits};

use super::{allocations, measured};

const ID: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";

struct Texts {
    job_type: usize,
    queue: usize,
    correlation_id: usize,
}

fn body(texts: &Texts, more: &str) -> String {
    let (job_type, queue, correlation_id) =
        ("t".repeat(texts.job_type), "q".repeat(texts.queue), "c".repeat(texts.correlation_id));
    let payload = "p".repeat(254);
    format!(
        r#"{{"job_id":"{ID}","job_type":"{job_type}","queue":"{queue}","attempt":1,"enqueued_at_ms":1700000000000,"deferrals":0,"priority":0,"correlation_id":"{correlation_id}"{more},"payload":"{payload}"}}"#
    )
}

/// The same bytes as they come out of a vector, and out of a buffer that a socket was read into.
fn sources(body: &str) -> [Bytes; 3] {
    let mut buffer = BytesMut::with_capacity(64 * 1024);
    buffer.extend_from_slice(body.as_bytes());
    buffer.extend_from_slice(b"the next frame");
    [
        Bytes::from(body.to_owned().into_bytes()),
        BytesMut::from(body.as_bytes()).freeze(),
        buffer.split_to(body.len()).freeze(),
    ]
}

fn decode(body: &Bytes) -> Envelope {
    Envelope::decode(body, &Limits::default()).expect("an envelope")
}

fn usual() -> Envelope {
    decode(&body(&Texts { job_type: 10, queue: 40, correlation_id: 32 }, "").into())
}

#[test]
fn reading_an_envelope_takes_one_allocation_and_one_more_for_a_long_job_type() {
    for job_type in [1, 22, 23, 255] {
        for queue in [0, 22, 23, 255] {
            for correlation_id in [0, 22, 23, 255, 60_000] {
                let body = body(&Texts { job_type, queue, correlation_id }, "");
                for source in sources(&body) {
                    let count = allocations(|| decode(&source));
                    assert!(
                        count <= 1 + u64::from(job_type > 22),
                        "{count}: {job_type} {queue} {correlation_id}"
                    );
                }
            }
        }
    }
}

#[test]
fn reading_an_envelope_from_a_buffer_that_is_shared_already_takes_none() {
    let body = Bytes::from(body(&Texts { job_type: 10, queue: 255, correlation_id: 255 }, ""));
    let _shared = body.clone();
    assert_eq!(allocations(|| decode(&body)), 0);
}

#[test]
fn an_envelope_is_written_in_one_allocation_whatever_it_holds() {
    assert_eq!(allocations(|| usual().encode()) - allocations(usual), 1);
    let odd = decode(
        &body(&Texts { job_type: 255, queue: 255, correlation_id: 9_000 }, r#","later":[1],"x":2"#).into(),
    );
    let escaped =
        body(&Texts { job_type: 9, queue: 9, correlation_id: 9 }, "").replace("ccc", "\\n\\u0001\\\"");
    for envelope in [usual(), odd, decode(&escaped.into())] {
        assert_eq!(allocations(|| envelope.encode()), 1);
    }
}

#[test]
fn a_copy_takes_none_without_unknown_fields_and_one_with_them() {
    let envelope = usual();
    assert_eq!(allocations(|| envelope.next_attempt()), 0);
    assert_eq!(allocations(|| envelope.deferred(Some(10))), 0);
    let texts = Texts { job_type: 255, queue: 255, correlation_id: 255 };
    let later = decode(&body(&texts, r#","later":[1],"x":2"#).into());
    assert_eq!(allocations(|| later.next_attempt()), 1);
}

#[test]
fn a_decoded_envelope_takes_no_more_memory_than_the_limits_say() {
    let texts = Texts { job_type: 255, queue: 255, correlation_id: 60_000 };
    for unknown in [0, 1, 2, 4, 5, 9, 33, 64] {
        let more: String = (0..unknown).map(|index| format!(",\"field{index}\":{{\"a\":[]}}")).collect();
        let source = Bytes::from(body(&texts, &more));
        let (_kept, info) = measured(|| decode(&source));
        // 24 bytes that share the body, and the job type with the two counts of its `Arc`.
        let fields = if unknown == 0 { 0 } else { 128 + 64 * unknown };
        assert!(info.bytes_current <= 24 + 16 + 256 + fields, "{unknown}: {} bytes", info.bytes_current);
    }
    let escapes = "\\u00e9".repeat(5_000);
    let escaped = body(&Texts { job_type: 1, queue: 1, correlation_id: 3 }, "").replace("ccc", &escapes);
    let (_kept, info) = measured(|| decode(&escaped.clone().into()));
    assert!(info.bytes_max <= 3 * escaped.len() as u64, "{} bytes", info.bytes_max);
}

#[test]
fn a_hostile_body_of_a_million_bytes_costs_less_than_a_kilobyte() {
    let opened = |start: &str, part: &str| {
        let mut body = start.to_owned();
        while body.len() < 1_000_000 {
            body.push_str(part);
        }
        Bytes::from(body)
    };
    let bodies = [
        opened("", "["),
        opened("{\"a\":", "["),
        opened("", "{\"a\":"),
        opened("{\"a\":[", "[],"),
        opened("{\"a\":\"", "\\\""),
        opened("{\"a\":", "9"),
        opened("{\"", "\\n"),
        opened("{\"queue\":\"", "\\n"),
        opened("{\"queue\":\"", "q"),
        opened("{\"queue\":[", "1,"),
        opened("{", " "),
        opened("{", "\""),
    ];
    for body in bodies {
        let (result, info) = measured(|| Envelope::decode(&body, &Limits::default()));
        assert!(result.is_err());
        assert!(info.bytes_total < 1_024, "{} bytes for {:?}", info.bytes_total, &body[..20]);
    }
    // Fields beyond the limit are not collected first and counted later.
    let wide = opened("{", "\"a\":1,");
    let (result, info) = measured(|| Envelope::decode(&wide, &Limits::default()));
    assert!(matches!(result, Err(DecodeError::TooManyFields { limit: 64, .. })));
    assert!(info.bytes_max < 128 + 64 * 128, "{} bytes", info.bytes_max);
}
