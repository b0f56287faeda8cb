//! What a retry policy costs: its decision, and its way through a configuration file.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use leveret_core::retry::{Backoff, RetryPolicy};

fn decisions(criterion: &mut Criterion) {
    let policies = [
        ("none", RetryPolicy::new(u32::MAX, Backoff::None)),
        ("fixed", RetryPolicy::fixed(u32::MAX, Duration::from_secs(5))),
        ("exponential", RetryPolicy::exponential(u32::MAX).jitter(false)),
        ("jitter", RetryPolicy::exponential(u32::MAX)),
    ];
    let mut group = criterion.benchmark_group("retry/decide");
    for (name, policy) in policies {
        // The work grows with the bits of the attempt.
        for attempt in [1_u32, 1_000, u32::MAX - 1] {
            group.bench_function(BenchmarkId::new(name, attempt), |bencher| {
                bencher.iter(|| policy.decide(black_box(attempt), black_box(0x9e37_79b9_7f4a_7c15)));
            });
        }
    }
    let last = RetryPolicy::exponential(5);
    group.bench_function("give_up", |bencher| bencher.iter(|| last.decide(black_box(5), black_box(7))));
    group.finish();
}

fn configuration(criterion: &mut Criterion) {
    let policy = RetryPolicy::exponential(5).base(Duration::from_millis(250));
    let Ok(json) = serde_json::to_string(&policy) else { return };
    let mut group = criterion.benchmark_group("retry/serde");
    group.bench_function("read", |bencher| {
        bencher.iter(|| serde_json::from_str::<RetryPolicy>(black_box(&json)).map(drop));
    });
    group.bench_function("write", |bencher| {
        bencher.iter(|| serde_json::to_string(black_box(&policy)).map(drop));
    });
    group.finish();
}

criterion_group!(benches, decisions, configuration);
criterion_main!(benches);
