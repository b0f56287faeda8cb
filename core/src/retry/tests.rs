mod config;

use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

/// Durations of every size, the longest included.
fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0..10_000_u64).prop_map(Duration::from_millis),
        any::<u64>().prop_map(Duration::from_nanos),
        any::<Duration>(),
    ]
}

/// Every factor, and many that hardly grow.
fn factors() -> impl Strategy<Value = f64> {
    let small =
        (0..17_i32, 0..10_u32).prop_map(|(zeros, digit)| 1.0 + f64::from(digit) * 10_f64.powi(-zeros));
    let odd = prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1.0, 1e9]);
    prop_oneof![odd, small, Just(1.0 + f64::EPSILON), 1.0..3.0, any::<f64>()]
}

fn backoffs() -> impl Strategy<Value = Backoff> {
    let grown = (durations(), factors(), durations(), any::<bool>());
    prop_oneof![
        Just(Backoff::None),
        durations().prop_map(Backoff::Fixed),
        grown.prop_map(|(base, factor, max, jitter)| {
            Backoff::Exponential(Exponential { base, factor, max, jitter })
        }),
    ]
}

/// Numbers of failures, small ones and all the others.
fn failures() -> impl Strategy<Value = u32> {
    prop_oneof![1..100_u32, any::<u32>(), Just(u32::MAX), Just(u32::MAX - 1)]
}

fn delay(policy: &RetryPolicy, failed: u32, random: u64) -> Duration {
    match policy.decide(failed, random) {
        Decision::Retry { delay } => delay,
        Decision::GiveUp => panic!("gave up after {failed}"),
    }
}

#[test]
fn max_attempts_counts_how_often_the_handler_runs() {
    let policy = RetryPolicy::fixed(3, Duration::from_secs(1));
    assert_eq!(policy.decide(2, 0), Decision::Retry { delay: Duration::from_secs(1) });
    assert_eq!(policy.decide(3, 0), Decision::GiveUp);
    assert_eq!(policy.decide(u32::MAX, 0), Decision::GiveUp);
    for once in [RetryPolicy::none(), RetryPolicy::exponential(0), RetryPolicy::exponential(1)] {
        assert_eq!(once.decide(1, u64::MAX), Decision::GiveUp);
        assert_eq!(once.longest_delay(), Duration::ZERO);
    }
}

#[test]
fn an_attempt_number_of_zero_counts_as_the_first() {
    assert_eq!(RetryPolicy::none().decide(0, 0), Decision::GiveUp);
    let policy = RetryPolicy::exponential(2).jitter(false);
    assert_eq!(policy.decide(0, 0), policy.decide(1, 0));
}

#[test]
fn waits_double_until_the_maximum() {
    let policy = RetryPolicy::exponential(u32::MAX).jitter(false);
    let seconds: Vec<u64> = (1..=10).map(|failed| delay(&policy, failed, 7).as_secs()).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    assert_eq!(delay(&policy, u32::MAX - 1, 0), Duration::from_secs(300));
}

#[test]
fn the_extremes_of_a_configuration_file_neither_panic_nor_pass_the_maximum() {
    let max = Duration::from_secs(86_400);
    for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1.0, 1e9, f64::MAX] {
        for base in [Duration::ZERO, Duration::from_millis(1), max, Duration::MAX] {
            let policy = RetryPolicy::exponential(u32::MAX).base(base).factor(factor).max(max);
            assert_eq!(policy, policy, "equal to itself, so that two descriptions can be compared");
            for failed in [1, 31, 32, 63, 64, u32::MAX - 1] {
                for random in [0, 1, u64::MAX] {
                    let delay = delay(&policy, failed, random);
                    assert!(delay <= max, "{delay:?}");
                    assert_eq!(delay.is_zero(), base.is_zero(), "{factor} {base:?} {failed} {random}");
                }
            }
        }
    }
    let endless = RetryPolicy::exponential(9).max(Duration::MAX).factor(f64::INFINITY).jitter(false);
    assert_eq!(delay(&endless, 5, 0), Duration::MAX);
}

#[test]
fn full_jitter_halves_the_wait_on_average_and_reaches_both_ends() {
    let longest = RetryPolicy::exponential(9).base(Duration::MAX).max(Duration::MAX);
    for (policy, failed) in
        [(RetryPolicy::exponential(9), 4), (RetryPolicy::exponential(99), 50), (longest, 1)]
    {
        let computed = delay(&policy.jitter(false), failed, 0);
        let mut rng = Rng::new(1);
        let draws = 100_000_u32;
        let mean: Duration = (0..draws).map(|_| delay(&policy, failed, rng.next_u64()) / draws).sum();
        // An even spread over `computed` has a standard deviation of 0.29 of it, and this mean one of 0.001.
        assert!(mean.abs_diff(computed / 2) < computed / 300, "{mean:?} of {computed:?}");
        assert_eq!(delay(&policy, failed, u64::MAX).as_secs(), computed.as_secs());
        assert_eq!(delay(&policy, failed, 0), Duration::from_nanos(1));
    }
    assert_eq!(delay(&RetryPolicy::exponential(9), 4, u64::MAX), Duration::from_secs(8));
}

#[test]
fn the_first_wait_is_the_base_to_the_nanosecond() {
    // In 64 bits of floating point this number of nanoseconds is rounded up.
    let base = Duration::new(300_000_000, 7);
    let policy = RetryPolicy::exponential(9).base(base).max(Duration::MAX).jitter(false);
    assert_eq!(delay(&policy, 1, 0), base);
    assert_eq!(delay(&policy.factor(1.0), 7, 0), base);
}

#[test]
fn a_setter_of_growing_waits_leaves_other_backoffs_alone() {
    let fixed = RetryPolicy::fixed(3, Duration::from_secs(7));
    assert_eq!(fixed.base(Duration::ZERO).factor(9.0).max(Duration::ZERO).jitter(true), fixed);
}

proptest! {
    #[test]
    fn no_wait_is_longer_than_the_longest_one_nor_than_the_maximum(
        attempts in failures(), failed in failures(), random in any::<u64>(), backoff in backoffs(),
    ) {
        let policy = RetryPolicy::new(attempts, backoff);
        match policy.decide(failed, random) {
            Decision::Retry { delay } => {
                prop_assert!(delay <= policy.longest_delay());
                if let Backoff::Exponential(Exponential { base, max, .. }) = backoff {
                    prop_assert!(delay <= max);
                    prop_assert_eq!(delay.is_zero(), base.is_zero() || max.is_zero());
                }
                prop_assert!(failed.max(1) < attempts);
            }
            Decision::GiveUp => prop_assert!(failed.max(1) >= attempts),
        }
    }

    #[test]
    fn without_jitter_waits_never_shrink(
        failed in 1..u32::MAX - 2, near in 1..100_000_u32, base in durations(), max in durations(), factor in factors(),
    ) {
        let policy = RetryPolicy::exponential(u32::MAX).base(base).max(max).factor(factor).jitter(false);
        for failed in [failed, near] {
            prop_assert!(delay(&policy, failed, 0) <= delay(&policy, failed + 1, 0), "after {}", failed);
        }
    }

    #[test]
    fn a_jittered_wait_is_never_longer_than_the_computed_one(
        failed in failures(), random in any::<u64>(), backoff in backoffs(),
    ) {
        let failed = failed.clamp(1, u32::MAX - 1);
        let jittered = RetryPolicy::new(u32::MAX, backoff);
        prop_assert!(delay(&jittered, failed, random) <= delay(&jittered.jitter(false), failed, random));
    }
}
