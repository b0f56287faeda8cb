//! Retries: a decision is arithmetic.

use leveret_core::retry::RetryPolicy;

use super::allocations;

#[test]
fn a_decision_takes_no_memory() {
    let policy = RetryPolicy::default();
    assert_eq!(allocations(|| (policy.decide(3, u64::MAX), policy.longest_delay())), 0);
}
