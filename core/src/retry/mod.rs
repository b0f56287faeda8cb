//! Whether a failed job runs again, and when.
//!
//! A pure decision: the random number is an argument, and every input has an answer, whatever came out of a
//! configuration file.
//!
//! # In configuration
//!
//! [`RetryPolicy`] reads and writes through `serde`, in any self-describing format. Everything may be left out, and
//! what is not known is refused. Durations are texts with units or whole numbers of milliseconds; they are written
//! as texts. In TOML:
//!
//! ```toml
//! [retry]
//! max_attempts = 5         # 0 counts as 1
//! backoff = { exponential = { base = "1s", factor = 2.0, max = "5m", jitter = true } }
//! # or { fixed = "5s" }, { fixed = 5000 }, "none", "exponential"
//! ```
//!
//! and in JSON:
//!
//! ```
//! use std::time::Duration;
//! # use leveret_core::retry::{Backoff, RetryPolicy};
//! let policy: RetryPolicy = serde_json::from_str(r#"{ "max_attempts": 3, "backoff": { "fixed": "5s" } }"#)?;
//! assert_eq!(policy, RetryPolicy::fixed(3, Duration::from_secs(5)));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod backoff;
mod config;

#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::time::Duration;

pub use backoff::{Backoff, Exponential};
use serde::{Deserialize, Serialize};

/// How often a job runs, and how long it waits after a failure.
///
/// ```
/// use std::time::Duration;
/// # use leveret_core::retry::{Decision, RetryPolicy};
///
/// let policy = RetryPolicy::exponential(3).base(Duration::from_secs(2)).jitter(false);
/// assert_eq!(policy.decide(1, 0), Decision::Retry { delay: Duration::from_secs(2) });
/// assert_eq!(policy.decide(2, 0), Decision::Retry { delay: Duration::from_secs(4) });
/// assert_eq!(policy.decide(3, 0), Decision::GiveUp);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "config::Written")]
pub struct RetryPolicy {
    max_attempts: NonZeroU32,
    backoff: Backoff,
}

/// What to do after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it again after `delay`.
    Retry {
        /// How long to wait, before rounding.
        delay: Duration,
    },
    /// The attempts are used up.
    GiveUp,
}

impl RetryPolicy {
    /// A handler runs at most `max_attempts` times (0 counts as 1), with `backoff` in between.
    #[must_use]
    pub fn new(max_attempts: u32, backoff: Backoff) -> Self {
        Self {
            max_attempts: NonZeroU32::new(max_attempts).unwrap_or(NonZeroU32::MIN),
            backoff: backoff.sane(),
        }
    }

    /// At most `max_attempts` runs (0 counts as 1), with growing waits: 1 s after the first failure, twice as
    /// long after each further one, at most 5 min, with full jitter.
    #[must_use]
    pub fn exponential(max_attempts: u32) -> Self {
        Self::new(max_attempts, Backoff::Exponential(Exponential::default()))
    }

    /// At most `max_attempts` runs (0 counts as 1), `delay` apart.
    #[must_use]
    pub fn fixed(max_attempts: u32, delay: Duration) -> Self {
        Self::new(max_attempts, Backoff::Fixed(delay))
    }

    /// One run: the first failure is the last.
    #[must_use]
    pub fn none() -> Self {
        Self::new(1, Backoff::None)
    }

    /// Exponential backoff: the wait after the first failure. Default 1 s. Other backoffs have none and stay
    /// as they are.
    #[must_use]
    pub fn base(self, base: Duration) -> Self {
        self.with_shape(|shape| shape.base = base)
    }

    /// Exponential backoff: the longest wait. Default 5 min. Other backoffs have none and stay as they are.
    #[must_use]
    pub fn max(self, max: Duration) -> Self {
        self.with_shape(|shape| shape.max = max)
    }

    /// Exponential backoff: how much longer each wait is than the one before. Default 2; what is not a number
    /// or below 1 counts as 1, and infinity as the largest number. Other backoffs have none and stay as they are.
    #[must_use]
    pub fn factor(self, factor: f64) -> Self {
        self.with_shape(|shape| shape.factor = factor)
    }

    /// Exponential backoff: whether each wait is drawn evenly between zero and its computed length, so that
    /// jobs that failed together do not come back together. Default on. Other backoffs have none and stay as
    /// they are.
    #[must_use]
    pub fn jitter(self, jitter: bool) -> Self {
        self.with_shape(|shape| shape.jitter = jitter)
    }

    /// How often the handler runs at most.
    #[must_use]
    pub const fn max_attempts(&self) -> NonZeroU32 {
        self.max_attempts
    }

    /// How long a job waits after a failure.
    #[must_use]
    pub const fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// What to do after attempt number `failed_attempt` (from 1; 0 counts as 1) failed. `random` spreads the
    /// jitter: 64 bits, all of them used.
    #[must_use]
    pub fn decide(&self, failed_attempt: u32, random: u64) -> Decision {
        let failed_attempt = failed_attempt.max(1);
        if failed_attempt >= self.max_attempts.get() {
            return Decision::GiveUp;
        }
        Decision::Retry { delay: self.backoff.delay(failed_attempt, random) }
    }

    /// The longest wait that [`decide`](Self::decide) can answer with; zero when it never answers `Retry`.
    #[must_use]
    pub fn longest_delay(&self) -> Duration {
        match self.max_attempts.get() {
            1 => Duration::ZERO,
            attempts => self.backoff.longest(attempts - 1),
        }
    }

    fn with_shape(mut self, change: impl FnOnce(&mut Exponential)) -> Self {
        if let Backoff::Exponential(shape) = &mut self.backoff {
            change(shape);
        }
        Self::new(self.max_attempts.get(), self.backoff)
    }
}

impl Default for RetryPolicy {
    /// [`RetryPolicy::exponential`] with 5 attempts.
    fn default() -> Self {
        Self::exponential(5)
    }
}
