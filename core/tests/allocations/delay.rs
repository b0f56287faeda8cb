//! Delays: rounding, names, placement, leases.

use std::time::Duration;

use allocation_counter::measure;
use leveret_core::delay::{Confirmed, ExactDelays, Granularity, Grid, HoldKind, HoldLeases, HoldTtl, Lease};
use leveret_core::time::Instant;
use leveret_core::topology::{DelayPlan, HoldPlan, QueueName, Suffixes, WaitingQueuePlan};

const DELAY: Duration = Duration::from_millis(64_321);

fn queue() -> QueueName {
    QueueName::new("a-shop-in-town.emails.outgoing").expect("a good name")
}

#[test]
fn rounding_allocates_nothing_on_any_grid() {
    let second = Granularity::default();
    let exact = ExactDelays::new([7, 90].map(Duration::from_secs)).expect("in range");
    for grid in [Grid::steps(second), Grid::coarse(second), Grid::wide(second, exact)] {
        let counted = measure(|| {
            for delay in [Duration::ZERO, DELAY, Duration::MAX] {
                let _ = std::hint::black_box((grid.round_up(delay), grid.round_up_deferral(delay)));
            }
        });
        assert_eq!(counted.count_total, 0, "{grid:?}");
    }
}

#[test]
fn a_derived_name_is_one_allocation() {
    let (queue, ttl) = (queue(), Granularity::default().step());
    for kind in [HoldKind::Expiring, HoldKind::Replicated] {
        let counted = measure(|| drop(std::hint::black_box(Suffixes::DEFAULT.hold(&queue, kind, ttl))));
        assert_eq!(counted.count_total, 1);
    }
    for derive in [QueueName::dead, QueueName::waiting, QueueName::delayed_exchange] {
        assert_eq!(measure(|| drop(std::hint::black_box(derive(&queue)))).count_total, 1);
    }
}

#[test]
fn a_placement_is_at_most_the_name_that_it_holds() {
    let second = Granularity::default();
    let holds = HoldPlan::new(queue(), Suffixes::DEFAULT, second);
    let replicated = holds.clone().replicated(ExactDelays::default());
    let waiting = WaitingQueuePlan::new(queue(), queue().waiting(), second);
    for (plan, most) in [(DelayPlan::from(holds), 1), (replicated.into(), 1), (waiting.into(), 0)] {
        let place = |delay| measure(|| drop(std::hint::black_box(plan.place(delay)))).count_total;
        assert_eq!(place(DELAY), most, "{plan:?}");
        assert_eq!(place(Duration::ZERO), 0, "{plan:?}");
    }
}

/// Publishes once into a hold and has it confirmed, by the book.
fn publish(leases: &mut HoldLeases, now: Instant, ttl: HoldTtl) {
    let ttl = leases.choose(ttl);
    if leases.before_publish(now, ttl) == Lease::Declare {
        leases.declare_sent(now, ttl);
        leases.declare_ok(now, ttl);
    }
    let cover = leases.publish_sent(now, ttl);
    assert_eq!(leases.after_confirm(now, cover), Confirmed::Safe);
}

#[test]
fn a_book_of_leases_allocates_for_a_hold_that_it_sees_first_and_never_again() {
    let mut leases = HoldLeases::new(Granularity::default());
    let holds = [1_000, 2_000, 5_000, 60_000].map(|ms| HoldTtl::from_millis(ms).expect("in range"));
    let mut now = Instant::ORIGIN;
    let mut round = |leases: &mut HoldLeases| {
        // Longer than a lease of the shorter ones, so that they are declared again and again.
        now += Duration::from_millis(700);
        holds.iter().for_each(|ttl| publish(leases, now, *ttl));
    };
    assert!(measure(|| round(&mut leases)).count_total > 0);
    let steady = measure(|| (0..1_000).for_each(|_| round(&mut leases)));
    assert_eq!(steady.count_total, 0);
}
