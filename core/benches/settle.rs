//! What a settlement costs before anything is sent.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leveret_core::envelope::{Envelope, JobId, JobType, RawPayload};
use leveret_core::message::Properties;
use leveret_core::settle::{
    Outcome, PlainDelivery, SettleLedger, Settlement, Settling, SuccessorVerdict, aside, copied_properties,
    decide, decide_plain,
};
use leveret_core::table::Table;
use leveret_core::text::ShortString;
use leveret_core::time::UnixMillis;
use leveret_core::topology::{DeadLetter, Delay, PlainQueue, Queue, QueueName, Subscription};

fn job() -> Envelope {
    let payload = RawPayload::from_serialize(&"x".repeat(200)).expect("a string is JSON");
    let queue = ShortString::from_static("shop.emails");
    Envelope::new(JobId::from_random(7), JobType::from_static("send-email"), queue, UnixMillis(1), payload)
}

/// Properties with a few headers of an application and some of the broker.
fn delivered(headers: u32) -> Properties {
    let own = (0..headers).map(|n| format!("x-tenant-{n}"));
    let stamped = ["x-death", "x-first-death-reason", "x-delivery-count"].map(str::to_owned);
    let names = own.chain(stamped).map(|name| ShortString::new(&name).expect("a short name"));
    Properties {
        headers: names.map(|name| (name, "value".into())).collect::<Table>(),
        message_id: Some(ShortString::from_static("id")),
        ..Properties::default()
    }
}

fn outcomes() -> [(&'static str, Outcome); 4] {
    [
        ("done", Outcome::Done),
        ("retry", Outcome::Retry { delay: None, error: "smtp is down".to_owned() }),
        ("defer", Outcome::Defer { delay: Duration::from_secs(30), reason: "429".to_owned() }),
        ("dead_letter", Outcome::DeadLetter { reason: "no such user".to_owned() }),
    ]
}

fn decisions(criterion: &mut Criterion) {
    let plan = Queue::new("shop.emails").expect("a name").plan().expect("a plan");
    let (job, delivered) = (job(), delivered(4));
    let mut group = criterion.benchmark_group("settle/decide");
    for (name, outcome) in &outcomes() {
        group.bench_function(*name, |bencher| {
            bencher.iter(|| decide(&plan, black_box(&job), Some(&delivered), outcome, 7));
        });
    }
}

fn plain_decisions(criterion: &mut Criterion) {
    let plan = PlainQueue::new("shop.events")
        .map(|queue| {
            let dead = DeadLetter::to_queue(&QueueName::new("shop.events.dead").expect("a name"));
            Subscription::new(queue.dead_letter(dead)).delay(Delay::holds()).max_attempts(5)
        })
        .expect("a name")
        .plan()
        .expect("a plan");
    let (queue, properties, body) =
        (ShortString::from_static("shop.events"), delivered(4), Bytes::from_static(&[b'x'; 256]));
    let delivery =
        PlainDelivery { queue: &queue, routing_key: &queue, properties: Some(&properties), body: &body };
    let mut group = criterion.benchmark_group("settle/decide_plain");
    for (name, outcome) in &outcomes() {
        group.bench_function(*name, |bencher| {
            bencher.iter(|| decide_plain(&plan, black_box(&delivery), outcome));
        });
    }
    group.finish();

    let plan = Queue::new("shop.emails").expect("a name").plan().expect("a plan");
    criterion.bench_function("settle/aside", |bencher| {
        bencher.iter(|| aside(&plan, Some(&properties), black_box(&body), "the body is no job"));
    });
}

fn copies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("settle/copied_properties");
    for headers in [4, 256, 25_000] {
        let original = delivered(headers);
        group.throughput(Throughput::Elements(headers.into()));
        group.bench_with_input(BenchmarkId::from_parameter(headers), &original, |bencher, original| {
            bencher.iter(|| copied_properties(black_box(original)));
        });
    }
}

fn cycles(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("settle/ledger");
    group.throughput(Throughput::Elements(100));
    for (name, settling) in [("confirmed", Settling::Confirmed), ("ordered", Settling::Ordered)] {
        let mut full = SettleLedger::new();
        for _ in 0..200 {
            full.accept(Settling::Confirmed);
        }
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                || full.clone(),
                |ledger| {
                    for _ in 0..100 {
                        let id = ledger.accept(settling);
                        let _ = black_box(ledger.settle(id, Settlement::Publish));
                        let _ = black_box(ledger.write(id));
                        let _ = black_box(ledger.verdict(id, SuccessorVerdict::Safe));
                    }
                },
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group!(benches, decisions, plain_decisions, copies, cycles);
criterion_main!(benches);
