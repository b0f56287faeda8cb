//! Time as a value: the core never asks a clock.
//!
//! [`Instant`] is monotonic and has no fixed origin: a driver counts from whatever moment it likes, a
//! simulation from zero. [`UnixMillis`] is wall-clock time and is only ever written into messages; no delay is
//! computed from it, because a wall clock can be set back.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// A moment on the caller's monotonic clock, in nanoseconds since an origin that the caller chose.
///
/// Arithmetic saturates: a deadline too far away is [`Instant::MAX`], and a clock that stepped back makes
/// [`Instant::saturating_duration_since`] zero. The range is 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the caller's clock.
    pub const ORIGIN: Self = Self(0);
    /// The last moment that can be expressed.
    pub const MAX: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment `duration` after the origin, saturating.
    #[must_use]
    pub fn from_origin(duration: Duration) -> Self {
        Self::ORIGIN + duration
    }

    /// How long after `earlier` this is; zero when it is not later.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment minus `duration`, not before the origin.
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Wall-clock time in milliseconds since 1970-01-01 UTC, as the envelope carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub u64);

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms since 1970", self.0)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_steps_back_gives_zero_and_not_a_panic() {
        let earlier = Instant::from_nanos(5);
        let later = earlier + Duration::from_secs(1);
        assert_eq!(later.saturating_duration_since(earlier), Duration::from_secs(1));
        assert_eq!(earlier.saturating_duration_since(later), Duration::ZERO);
        assert_eq!(earlier.saturating_sub(Duration::from_secs(1)), Instant::ORIGIN);
    }

    #[test]
    fn a_deadline_beyond_the_range_is_the_last_moment() {
        assert_eq!(Instant::from_nanos(1) + Duration::MAX, Instant::MAX);
    }
}
