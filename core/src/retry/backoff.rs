//! How long to wait after a failure.

use std::time::Duration;

/// The wait after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Backoff {
    /// No wait: the job joins the back of its queue at once.
    None,
    /// The same wait every time.
    Fixed(Duration),
    /// A wait that grows with every failure.
    Exponential(Exponential),
}

/// A wait that grows with every failure: `base * factor^(failures - 1)`, at most `max`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Exponential {
    /// The wait after the first failure. Default 1 s.
    pub base: Duration,
    /// How much longer each wait is than the one before. Default 2. Not a number or below 1 counts as 1:
    /// waits never shrink.
    pub factor: f64,
    /// The longest wait. Default 5 min.
    pub max: Duration,
    /// Whether each wait is drawn evenly between zero and its computed length. Default on.
    pub jitter: bool,
}

impl Default for Exponential {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), factor: 2.0, max: Duration::from_secs(300), jitter: true }
    }
}

impl Backoff {
    /// The same backoff with a factor that is a number of at least 1, so that it also equals itself.
    pub(super) fn sane(self) -> Self {
        match self {
            // `max` takes the other operand where one is not a number.
            Self::Exponential(shape) => {
                Self::Exponential(Exponential { factor: shape.factor.max(1.0), ..shape })
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
    fn delay(self, failures: u32) -> Duration {
        if self.base.is_zero() {
            return Duration::ZERO;
        }
        // Too large for a duration, infinite, or not a number: the maximum.
        Duration::try_from_secs_f64(self.base.as_secs_f64() * power(self.factor, failures - 1))
            .map_or(self.max, |delay| delay.min(self.max))
    }
}

/// `factor` to the power of `exponent`, by squaring: at most 64 multiplications, and the same result on every
/// platform, which `f64::powi` does not promise.
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
    // Waits above 64 bits of nanoseconds, 584 years, are drawn from 584 years.
    let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    if nanos == 0 {
        return Duration::ZERO;
    }
    let below = (u128::from(nanos) * u128::from(random)) >> u64::BITS;
    // A product of two 64-bit numbers, shifted by 64 bits, is below either of them.
    Duration::from_nanos(u64::try_from(below).unwrap_or(nanos - 1) + 1)
}
