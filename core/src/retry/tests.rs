use proptest::prelude::*;

use super::*;
use crate::rng::Rng;

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
    let policy = RetryPolicy::exponential(9);
    let mut rng = Rng::new(1);
    let draws = 10_000_u32;
    let total: Duration = (0..draws).map(|_| delay(&policy, 4, rng.next_u64())).sum();
    let mean = total / draws;
    // An even spread over 8 s has a standard deviation of 2.3 s, so this mean one of 23 ms.
    assert!(mean.abs_diff(Duration::from_secs(4)) < Duration::from_millis(100), "{mean:?}");
    assert_eq!(delay(&policy, 4, 0), Duration::from_nanos(1));
    assert_eq!(delay(&policy, 4, u64::MAX), Duration::from_secs(8));
}

#[test]
fn a_setter_of_growing_waits_leaves_other_backoffs_alone() {
    let fixed = RetryPolicy::fixed(3, Duration::from_secs(7));
    assert_eq!(fixed.base(Duration::ZERO).factor(9.0).max(Duration::ZERO).jitter(true), fixed);
}

proptest! {
    #[test]
    fn no_wait_is_longer_than_the_longest_one_nor_than_the_maximum(
        attempts in any::<u32>(), failed in any::<u32>(), random in any::<u64>(),
        base in any::<Duration>(), max in any::<Duration>(), factor in any::<f64>(), jitter in any::<bool>(),
    ) {
        let policy = RetryPolicy::exponential(attempts).base(base).max(max).factor(factor).jitter(jitter);
        match policy.decide(failed, random) {
            Decision::Retry { delay } => {
                prop_assert!(delay <= max && delay <= policy.longest_delay());
                prop_assert!(failed < attempts);
            }
            Decision::GiveUp => prop_assert!(failed.max(1) >= attempts),
        }
    }

    #[test]
    fn without_jitter_waits_never_shrink(
        failed in 1..u32::MAX - 2, base in any::<Duration>(), max in any::<Duration>(), factor in any::<f64>(),
    ) {
        let policy = RetryPolicy::exponential(u32::MAX).base(base).max(max).factor(factor).jitter(false);
        prop_assert!(delay(&policy, failed, 0) <= delay(&policy, failed + 1, 0));
    }
}
