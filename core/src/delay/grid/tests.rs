use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

fn step(millis: u64) -> Granularity {
    Granularity::new(Duration::from_millis(millis)).unwrap()
}

fn wide(exact: &[Duration]) -> Grid {
    Grid::wide(Granularity::default(), ExactDelays::new(exact.iter().copied()).unwrap())
}

/// What so many random delays between 1 s and 24 h land on.
fn landed(grid: &Grid, delays: u32, seed: u64) -> BTreeSet<HoldTtl> {
    let mut rng = Rng::new(seed);
    let span = DAY - SECOND;
    let mut random = || {
        let nanos = rng.next_u64() % u64::try_from(span.as_nanos()).unwrap();
        // Half of them spread evenly over the time, half over its logarithm, where the short ones are.
        let shift = if rng.next_u64().is_multiple_of(2) { 0 } else { rng.next_u64() % 17 };
        SECOND + Duration::from_nanos(nanos >> shift)
    };
    (0..delays).map(|_| grid.round_up_deferral(random()).unwrap()).collect()
}

#[test]
fn a_hundred_thousand_delays_land_in_at_most_150_coarse_holds() {
    for millis in [100, 101, 120, 150, 250, 999, 1_000, 1_001, 5_000, 60_000] {
        let holds = landed(&Grid::coarse(step(millis)), 100_000, millis);
        assert!(holds.len() <= 150, "{} holds with a step of {millis} ms", holds.len());
        assert!(millis > 1_000 || holds.len() > 100, "the test has seen {} holds", holds.len());
    }
}

#[test]
fn a_hundred_thousand_delays_land_in_at_most_30_wide_holds_and_those_listed() {
    assert_eq!(landed(&wide(&[]), 100_000, 1).len(), 29, "30, of which the shortest is for exactly 1 s");
    let listed = [7, 100, 1_000, 10_000].map(Duration::from_secs);
    assert_eq!(landed(&wide(&listed), 100_000, 2).len(), 33);
    assert_eq!(WIDE.iter().filter(|secs| **secs <= 86_400).count(), 30);
}

#[test]
fn wide_neighbours_are_about_one_and_a_half_apart_and_never_more_than_two() {
    for pair in WIDE.windows(2) {
        assert!(pair[0] < pair[1] && pair[1] <= 2 * pair[0], "{pair:?}");
    }
}

#[test]
fn the_coarse_grid_has_numbers_that_people_can_read() {
    let grid = Grid::coarse(Granularity::default());
    let kept = |secs| grid.round_up(Duration::from_secs(secs)).unwrap().unwrap().as_millis() / 1_000;
    let some =
        [(1, 1), (9, 9), (10, 10), (19, 19), (21, 22), (29, 30), (95, 100), (101, 110), (3_601, 3_900)];
    for (asked, expected) in some {
        assert_eq!(kept(asked), expected);
    }
}

#[test]
fn an_exact_delay_is_met_and_its_neighbours_are_not_shortened() {
    let grid = wide(&[Duration::from_millis(7_250)]);
    let kept = |millis| grid.round_up(Duration::from_millis(millis)).unwrap().unwrap().as_millis();
    assert_eq!([kept(7_250), kept(5_001), kept(7_251)], [7_250, 7_250, 8_000]);
}

#[test]
fn a_deferral_waits_at_least_one_step_on_every_grid() {
    let five = step(5_000);
    let exact = ExactDelays::new([SECOND]).unwrap();
    for grid in [Grid::steps(five), Grid::coarse(five), Grid::wide(five, exact)] {
        for delay in [Duration::ZERO, SECOND] {
            assert_eq!(grid.round_up_deferral(delay).unwrap().as_millis(), 5_000);
        }
        assert_eq!(grid.round_up(Duration::ZERO), Ok(None));
    }
}

#[test]
fn the_longest_delay_of_a_grid_is_kept_and_anything_above_it_refused() {
    let second = Granularity::default();
    let grids = [
        (Grid::steps(second), 2_147_483_000),
        (Grid::coarse(second), 2_147_483_000),
        (Grid::coarse(step(2_147_483_647)), 2_147_483_647),
        (wide(&[]), 2_147_483_647),
    ];
    for (grid, longest) in grids {
        assert_eq!(grid.longest().as_millis(), longest);
        let longest = grid.longest().as_duration();
        assert_eq!(grid.round_up(longest), Ok(Some(grid.longest())));
        for delay in [longest + Duration::from_nanos(1), Duration::MAX] {
            assert_eq!(grid.round_up(delay), Err(DelayTooLong { delay, longest: grid.longest() }));
        }
        assert_eq!(grid.larger(grid.longest()), grid.longest());
    }
}

fn grids() -> impl Strategy<Value = Grid> {
    let steps = prop_oneof![100..10_000_u64, 100..=2_147_483_647_u64].prop_map(step);
    let exact = prop::collection::vec(100..2_147_483_648_u64, 0..32)
        .prop_map(|delays| ExactDelays::new(delays.into_iter().map(Duration::from_millis)).unwrap());
    (steps, exact, 0..3).prop_map(|(step, exact, which)| match which {
        0 => Grid::steps(step),
        1 => Grid::coarse(step),
        _ => Grid::wide(step, exact),
    })
}

fn delays() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1..100_000_000_000_u64).prop_map(Duration::from_micros),
        (1..2_147_483_648_u64).prop_map(Duration::from_millis),
        (2_147_400_000..2_147_500_000_u64).prop_map(Duration::from_millis),
        (1..40_u32, any::<u32>())
            .prop_map(|(bits, low)| Duration::from_micros((1 << bits) + u64::from(low) % 1_000)),
        Just(Duration::MAX),
    ]
}

proptest! {
    #[test]
    fn every_grid_is_never_early_monotone_and_idempotent(
        grid in grids(), one in delays(), other in delays()
    ) {
        let (shorter, longer) = (one.min(other), one.max(other));
        match (grid.round_up(shorter), grid.round_up(longer)) {
            (Ok(Some(short)), Ok(Some(long))) => {
                prop_assert!(short.as_duration() >= shorter, "{short} is early for {shorter:?}");
                prop_assert!(short <= long);
                prop_assert_eq!(grid.round_up(short.as_duration()), Ok(Some(short)));
                let deferred = longer.max(grid.step().step().as_duration());
                prop_assert_eq!(grid.round_up_deferral(longer).map(Some), grid.round_up(deferred));
            }
            (_, Err(refused)) => prop_assert!(refused.delay == longer && longer > grid.longest().as_duration()),
            answers => prop_assert!(false, "{answers:?}"),
        }
    }

    /// Walked from one hold to the next: no delay can land anywhere else.
    #[test]
    fn there_are_at_most_150_coarse_holds_for_any_step(
        millis in prop_oneof![100..2_000_u64, 100..=2_147_483_647_u64]
    ) {
        let grid = Grid::coarse(step(millis));
        let mut hold = grid.round_up_deferral(SECOND).unwrap();
        let mut holds = 1;
        while hold.as_duration() < DAY {
            hold = grid.round_up_deferral(hold.as_duration() + Duration::from_nanos(1)).unwrap();
            holds += 1;
        }
        prop_assert!(holds <= 150, "{holds} holds");
    }

    #[test]
    fn the_coarse_grid_is_late_by_at_most_a_tenth_or_one_step(
        millis in prop_oneof![100..10_000_u64, 100..=2_147_483_647_u64], delay in delays()
    ) {
        let (grid, step) = (Grid::coarse(step(millis)), Duration::from_millis(millis));
        if let Ok(Some(ttl)) = grid.round_up(delay) {
            let late = ttl.as_duration() - delay;
            prop_assert!(late <= (delay / 10).max(step), "{ttl} is {late:?} late for {delay:?}");
            prop_assert!(ttl.as_duration().as_millis().is_multiple_of(step.as_millis()));
        }
    }

    #[test]
    fn a_larger_hold_lasts_at_least_twice_as_long_and_is_on_the_grid(grid in grids(), millis in 1..2_147_483_648_u64) {
        let ttl = HoldTtl::exactly(Duration::from_millis(millis)).unwrap();
        let larger = grid.larger(ttl);
        prop_assert!(larger >= ttl);
        prop_assert!(larger.as_duration() >= (ttl.as_duration() * 2).min(grid.longest().as_duration()));
    }
}
