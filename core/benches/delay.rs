//! What a delay costs: rounding, the name of its hold, its placement, the check of the lease.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use leveret_core::delay::{ExactDelays, Granularity, Grid, HoldKind, HoldLeases};
use leveret_core::time::Instant;
use leveret_core::topology::{HoldPlan, QueueName, Suffixes};

const DELAY: Duration = Duration::from_millis(64_321);

fn rounding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("delay/round_up");
    let second = Granularity::default();
    let exact = ExactDelays::new((1..=32).map(|n| Duration::from_secs(n * 7))).unwrap_or_default();
    let grids = [
        ("steps", Grid::steps(second)),
        ("coarse", Grid::coarse(second)),
        ("wide", Grid::wide(second, exact)),
    ];
    for (name, grid) in grids {
        group.bench_function(name, |bencher| bencher.iter(|| grid.round_up(black_box(DELAY))));
    }
}

fn names(criterion: &mut Criterion) {
    let Ok(queue) = QueueName::new("shop.emails") else { return };
    let ttl = Granularity::default().step();
    criterion.bench_function("delay/hold_name", |bencher| {
        bencher.iter(|| Suffixes::DEFAULT.hold(black_box(&queue), HoldKind::Expiring, black_box(ttl)));
    });
    let plan = HoldPlan::new(queue, Suffixes::DEFAULT, Granularity::default());
    criterion.bench_function("delay/place", |bencher| bencher.iter(|| plan.place(black_box(DELAY))));
}

fn leases(criterion: &mut Criterion) {
    let mut leases = HoldLeases::new(Granularity::default());
    let (now, ttl) = (Instant::ORIGIN, Granularity::default().step());
    leases.declare_sent(now, ttl);
    leases.declare_ok(now, ttl);
    criterion.bench_function("delay/lease_check", |bencher| {
        bencher.iter(|| {
            let ttl = leases.choose(black_box(ttl));
            let lease = leases.before_publish(black_box(now), ttl);
            let cover = leases.publish_sent(now, ttl);
            (lease, leases.after_confirm(now, cover))
        });
    });
}

criterion_group!(benches, rounding, names, leases);
criterion_main!(benches);
