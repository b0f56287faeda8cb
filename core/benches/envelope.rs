//! What the envelope of a job costs, beside a struct that holds the payload as a tree, in one run.
//!
//! `cargo bench -p leveret-core --bench envelope`

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leveret_core::envelope::{Envelope, Limits, RawPayload};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The same fields read the usual way: every text its own, the payload a tree.
#[derive(Serialize, Deserialize)]
struct Tree {
    job_id: String,
    job_type: String,
    queue: String,
    attempt: u32,
    enqueued_at_ms: u64,
    #[serde(default)]
    deferrals: u32,
    #[serde(default)]
    priority: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    payload: serde_json::Value,
}

/// The same fields borrowed, the payload as its text: the least that `serde_json` does for them. It neither limits
/// the nesting nor keeps unknown fields, and refuses texts with escapes.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
struct Borrowed<'a> {
    job_id: &'a str,
    job_type: &'a str,
    queue: &'a str,
    attempt: u32,
    enqueued_at_ms: u64,
    #[serde(default)]
    deferrals: u32,
    #[serde(default)]
    priority: u8,
    #[serde(default)]
    correlation_id: Option<&'a str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// 28 bytes, with which a whole envelope has 256.
const SMALL: &str = r#"{"user":91723,"urgent":true}"#;
/// 256 bytes, of every kind of JSON.
const PAYLOAD: &str = r#"{"to":"ada.lovelace@example.com","subject":"Your order has shipped","order":{"id":91723,"total":129.95,"currency":"EUR","items":["tea","lamp","notes"]},"urgent":false,"text":"Dear Ada,\nthe parcel left our house this morning. Track it with the link here."}"#;

fn body(payload: &str) -> Vec<u8> {
    let fields = r#"{"job_id":"67e55044-10b1-426f-9247-bb680e5fe0c8","job_type":"send-email","queue":"shop.emails","attempt":1,"enqueued_at_ms":1700000000000,"deferrals":0,"priority":0,"correlation_id":"0af7651916cd43dd8448eb211c80319c","payload":"#;
    format!("{fields}{payload}}}").into_bytes()
}

fn decoding(criterion: &mut Criterion) {
    let limits = Limits::default();
    let mut group = criterion.benchmark_group("envelope/decode");
    for body in [body(SMALL), body(PAYLOAD)] {
        let bytes = body.len();
        group.throughput(Throughput::Bytes(bytes as u64));
        let frozen = BytesMut::from(body.as_slice()).freeze();
        // Shared before the first decode, as a slice of what a socket read is.
        let _reader = frozen.clone();
        group.bench_function(BenchmarkId::new("from_a_read_buffer", bytes), |bencher| {
            bencher.iter(|| Envelope::decode(black_box(&frozen), &limits).map(drop));
        });
        group.bench_function(BenchmarkId::new("from_a_vector", bytes), |bencher| {
            let fresh = || Bytes::from(body.clone());
            bencher.iter_batched_ref(
                fresh,
                |body| Envelope::decode(body, &limits).map(drop),
                BatchSize::SmallInput,
            );
        });
        group.bench_function(BenchmarkId::new("serde_json_tree", bytes), |bencher| {
            bencher.iter(|| serde_json::from_slice::<Tree>(black_box(&body)).map(drop));
        });
        group.bench_function(BenchmarkId::new("serde_json_borrowed", bytes), |bencher| {
            bencher.iter(|| serde_json::from_slice::<Borrowed<'_>>(black_box(&body)).map(drop));
        });
    }
    group.finish();
}

fn writing(criterion: &mut Criterion) {
    let body = Bytes::from(body(PAYLOAD));
    let envelope = Envelope::decode(&body, &Limits::default()).expect("an envelope");
    let tree: Tree = serde_json::from_slice(&body).expect("the same");
    let mut group = criterion.benchmark_group("envelope/encode");
    group.bench_function("leveret", |bencher| bencher.iter(|| black_box(&envelope).encode()));
    group.bench_function("serde_json_tree", |bencher| {
        bencher.iter(|| serde_json::to_vec(black_box(&tree)).map(drop));
    });
    group.finish();

    let mut group = criterion.benchmark_group("envelope/copy");
    group.bench_function("next_attempt", |bencher| bencher.iter(|| black_box(&envelope).next_attempt()));
    group.bench_function("deferred", |bencher| bencher.iter(|| black_box(&envelope).deferred(Some(10))));
    group.bench_function("admit", |bencher| bencher.iter(|| Limits::default().admit(black_box(&body))));
    group.finish();
    assert_eq!(RawPayload::from_json(PAYLOAD.into()).as_ref(), Ok(envelope.payload()));
}

criterion_group!(benches, decoding, writing);
criterion_main!(benches);
