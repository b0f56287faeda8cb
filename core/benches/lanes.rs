//! What a delivery costs on its way through the lanes, beyond its handler.
#![expect(clippy::unwrap_used, reason = "the plan of a benchmark is known to be valid")]

use std::hint::black_box;
use std::num::NonZeroU16;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leveret_core::lane::{LaneCount, LanePlan, Lanes, PARTITION_KEY, PartitionKey, lane_hash};
use leveret_core::table::Table;

fn hash(c: &mut Criterion) {
    let mut group = c.benchmark_group("lane/hash");
    for length in [8_usize, 36, 255, 65_536] {
        let key = vec![b'k'; length];
        group.throughput(Throughput::Bytes(length.try_into().unwrap()));
        group.bench_with_input(BenchmarkId::from_parameter(length), &key, |b, key| {
            b.iter(|| lane_hash(black_box(key)));
        });
    }
    group.finish();
}

fn key(c: &mut Criterion) {
    let text = Table::new().with(PARTITION_KEY, "6f1c1b9e-7a44-4c2f-9b0c-0f3c7e2b8d11");
    let number = Table::new().with(PARTITION_KEY, i64::MIN);
    let mut group = c.benchmark_group("lane/key");
    for (name, headers) in [("text", text), ("number", number)] {
        group.bench_function(name, |b| b.iter(|| PartitionKey::of(black_box(&headers)).is_some()));
    }
    group.finish();
}

/// One delivery in, and the one that has run longest out, with a full prefetch.
fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("lane/offer_and_finish");
    let keys: Vec<String> = (0..1_000).map(|n| format!("customer-{n}")).collect();
    for count in [1_u16, 8, 64, 1_024] {
        let plan =
            LanePlan::new(LaneCount::new(count).unwrap(), NonZeroU16::new(count * 4).unwrap()).unwrap();
        for keyed in [true, false] {
            let name = if keyed { "keys" } else { "no_keys" };
            group.bench_function(BenchmarkId::new(name, count), |b| {
                let mut lanes = Lanes::new(plan);
                let mut turns = std::collections::VecDeque::with_capacity(count.into());
                let mut keys = keys.iter().cycle();
                b.iter(|| {
                    let key = keys.next().filter(|_| keyed).map(String::as_bytes);
                    if let Ok(Some(started)) = lanes.offer(black_box(key), ()) {
                        turns.push_back(started.turn);
                    }
                    if lanes.running() + lanes.waiting() == usize::from(count) * 4 {
                        let turn = turns.pop_front().unwrap();
                        turns.extend(lanes.finish(turn).map(|started| started.turn));
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, hash, key, step);
criterion_main!(benches);
