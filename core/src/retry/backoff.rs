//! How long to wait after a failure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config;

/// The wait after a failed attempt. By default it grows: [`Exponential::default`].
///
/// In configuration it is `"none"`, `{ fixed = "5s" }` or `{ exponential = { .. } }`; `"exponential"` alone is one
/// with every default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Backoff {
    /// No wait: the job joins the back of its queue at once.
    None,
    /// The same wait every time.
    #[serde(serialize_with = "crate::duration::serialize")]
    Fixed(Duration),
    /// A wait that grows with every failure.
    Exponential(Exponential),
}

/// A wait that grows with every failure: `base * factor^(failures - 1)`, at most `max`.
///
/// In configuration every field may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Exponential {
    /// The wait after the first failure. Default 1 s.
    #[serde(with = "crate::duration")]
    pub base: Duration,
    /// How much longer each wait is than the one before. Default 2. Not a number or below 1 counts as 1:
    /// waits never shrink. Infinity counts as the largest number: the second wait is `max`.
    #[serde(with = "config::factor")]
    pub factor: f64,
    /// The longest wait. Default 5 min.
    #[serde(with = "crate::duration")]
    pub max: Duration,
    /// Whether each wait is drawn evenly between zero and its computed length. Default on.
    pub jitter: bool,
}

impl Default for Exponential {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), factor: 2.0, max: Duration::from_secs(300), jitter: true }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::Exponential(Exponential::default())
    }
}

impl Backoff {
    /// The same backoff with a factor that is a number of at least 1, so that it also equals itself.
    pub(super) fn sane(self) -> Self {
        match self {
            Self::Exponential(shape) => {
                Self::Exponential(Exponential { factor: Exponential::sane_factor(shape.factor), ..shape })
            }
            other => other,
        }
    }

    /// The wait after `failures` (from 1) failures.
    pub(super) fn delay(self, failures: u32, random: u64) -> Duration {
        match self {
            Self::Exponential(shape) if shape.jitter => spread(shape.delay(failures), random),
            other => other.longest(failures),
        }
    }

    /// The longest wait after up to `failures` (from 1) failures.
    pub(super) fn longest(self, failures: u32) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed(delay) => delay,
            Self::Exponential(shape) => shape.delay(failures),
        }
    }
}

impl Exponential {
    pub(super) fn sane_factor(factor: f64) -> f64 {
        if factor.is_nan() { 1.0 } else { factor.clamp(1.0, f64::MAX) }
    }

    fn delay(self, failures: u32) -> Duration {
        let growth = power(self.factor, failures - 1);
        // To the nanosecond, which floating point may not be.
        if self.base.is_zero() || growth <= 1.0 {
            return self.base.min(self.max);
        }
        // Too large for a duration, or infinite: the maximum.
        Duration::try_from_secs_f64(self.base.as_secs_f64() * growth)
            .map_or(self.max, |delay| delay.min(self.max))
    }
}

/// `factor` to the power of `exponent`, by squaring: at most 64 multiplications, and the same result on every
/// platform, which `f64::powi` does not promise.
///
/// With a factor of at least 1 it never shrinks as the exponent grows, rounding included, since rounding keeps the
/// order of products. The product of the squares of the bits below a bit is at most the square of that bit; so where
/// a carry replaces the lower bits, what the higher squares are multiplied with, in the same order, is no smaller.
fn power(mut factor: f64, mut exponent: u32) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= factor;
        }
        factor *= factor;
        exponent >>= 1;
    }
    product
}

/// Full jitter: a wait drawn evenly from (0, `delay`]. Never zero where `delay` is not, because a job that
/// fails must not come back at once.
fn spread(delay: Duration, random: u64) -> Duration {
    // `nanos * random / 2^64` in two halves, as the product may need 158 bits: nanoseconds have 94.
    let nanos = delay.as_nanos();
    let (high, low) = (nanos >> u64::BITS, nanos & u128::from(u64::MAX));
    let below = high * u128::from(random) + ((low * u128::from(random)) >> u64::BITS);
    from_nanos((below + 1).min(nanos))
}

/// A duration from nanoseconds; the longest one where they are more.
fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    match (u64::try_from(nanos / SECOND), u32::try_from(nanos % SECOND)) {
        (Ok(seconds), Ok(rest)) => Duration::new(seconds, rest),
        _ => Duration::MAX,
    }
}
