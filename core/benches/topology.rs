//! What the topology costs: names, plans, the check of a whole.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leveret_core::delay::{HoldKind, HoldTtl};
use leveret_core::topology::{
    DeadLetter, Delay, Exchange, ExchangeKind, ExchangeName, FamilyMember, Mismatch, NameError, PlainQueue,
    Queue, QueueName, Route, RoutingKey, Subscription, Suffixes, Topology,
};

fn names(criterion: &mut Criterion) {
    let Ok(queue) = QueueName::new("shop.emails") else { return };
    let (suffixes, ttl) = (Suffixes::DEFAULT, HoldTtl::MAX);
    let mut group = criterion.benchmark_group("topology/name");
    group.bench_function("check", |bencher| bencher.iter(|| QueueName::new(black_box("shop.emails"))));
    group.bench_function("derive", |bencher| {
        bencher.iter(|| suffixes.hold(black_box(&queue), HoldKind::Expiring, ttl));
    });
    let hold = suffixes.hold(&queue, HoldKind::Expiring, ttl);
    group.bench_function("read", |bencher| bencher.iter(|| FamilyMember::read(black_box(&hold), &suffixes)));
}

/// A subscription as services write them: routed by topic, retried, given up into a queue of its own.
fn subscription(number: usize) -> Result<Subscription, NameError> {
    let events = Exchange::new(ExchangeName::new("shop.events")?, ExchangeKind::Topic);
    let name = format!("shop.subscription.{number}");
    let dead = DeadLetter::to_queue(&QueueName::new(format!("{name}.dead"))?);
    Ok(Subscription::new(PlainQueue::new(&name)?.message_ttl(Duration::from_secs(3_600)).dead_letter(dead))
        .bind(Route::from(events).routing_key(RoutingKey::new(format!("order.*.{number}"))?))
        .delay(Delay::waiting_queue()))
}

fn plans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("topology/plan");
    if let Ok(queue) = Queue::new("shop.emails") {
        group.bench_function("job_queue", |bencher| bencher.iter(|| black_box(&queue).plan()));
    }
    if let Ok(subscription) = subscription(1) {
        group.bench_function("subscription", |bencher| bencher.iter(|| black_box(&subscription).plan()));
    }
}

fn topologies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("topology/check");
    for queues in [1, 100, 10_000] {
        group.throughput(Throughput::Elements(queues));
        let mut topology = Topology::new();
        for number in 0..usize::try_from(queues).unwrap_or(usize::MAX) {
            let (Ok(job_queue), Ok(subscription)) =
                (Queue::new(format!("jobs.{number}")), subscription(number))
            else {
                return;
            };
            if let Ok(plan) = job_queue.plan() {
                topology = topology.job_queue(&plan).subscription(&subscription);
            }
        }
        group
            .bench_function(BenchmarkId::from_parameter(queues), |bencher| bencher.iter(|| topology.check()));
    }
}

fn mismatches(criterion: &mut Criterion) {
    let text = "PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue 'shop.emails' in vhost '/': \
                received the value '10' of type 'long' but current is none";
    criterion.bench_function("topology/mismatch", |bencher| {
        bencher.iter(|| Mismatch::from_reply_text(black_box(text)));
    });
}

criterion_group!(benches, names, plans, topologies, mismatches);
criterion_main!(benches);
