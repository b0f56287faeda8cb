//! Rounding a delay up to the TTL of a hold queue.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The shortest granularity. Below it a confirm takes longer than the message may wait.
pub const GRANULARITY_MIN: Duration = Duration::from_millis(100);

const NANOS_PER_MILLI: u128 = 1_000_000;

/// The time to live of the messages in one hold queue: 1 to 2,147,483,647 whole milliseconds (24.8 days).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldTtl(u32);

impl HoldTtl {
    /// The longest TTL: half of what 32 bits of milliseconds express, because the queue lives twice as long.
    pub const MAX: Self = Self(i32::MAX.unsigned_abs());

    /// A TTL of whole milliseconds; `None` for zero and above [`HoldTtl::MAX`].
    #[must_use]
    pub const fn from_millis(millis: u32) -> Option<Self> {
        if millis == 0 || millis > Self::MAX.0 { None } else { Some(Self(millis)) }
    }

    /// A TTL of exactly this length; `None` for zero, above [`HoldTtl::MAX`], and with a part of a millisecond.
    #[must_use]
    pub fn exactly(delay: Duration) -> Option<Self> {
        let whole = delay.subsec_nanos().is_multiple_of(1_000_000);
        u32::try_from(delay.as_millis()).ok().filter(|_| whole).and_then(Self::from_millis)
    }

    /// A TTL of whole seconds, in range.
    pub(super) fn from_secs(seconds: u32) -> Option<Self> {
        seconds.checked_mul(1_000).and_then(Self::from_millis)
    }

    /// The TTL in milliseconds: `x-message-ttl`.
    #[must_use]
    pub const fn as_millis(self) -> u32 {
        self.0
    }

    /// The TTL as a duration.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }

    /// How long an unused hold queue exists, in milliseconds: `x-expires`, twice the TTL.
    #[must_use]
    pub const fn expires_ms(self) -> i64 {
        2 * self.0 as i64
    }
}

impl fmt::Display for HoldTtl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_duration(), f)
    }
}

/// The step in which delays are kept: 100 ms up to [`HoldTtl::MAX`], in whole milliseconds. Default 1 s.
///
/// Every distinct delay is a queue on the broker, so a coarser step means fewer queues and later jobs.
///
/// In configuration it is a duration: `"1s"`, `"250ms"`, or a whole number of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Granularity(HoldTtl);

impl Granularity {
    /// Checks a step.
    ///
    /// # Errors
    ///
    /// [`GranularityError`] below 100 ms, above [`HoldTtl::MAX`], or with a part of a millisecond.
    pub fn new(step: Duration) -> Result<Self, GranularityError> {
        let ttl = HoldTtl::exactly(step).filter(|_| step >= GRANULARITY_MIN);
        ttl.map(Self).ok_or(GranularityError { step })
    }

    /// The step.
    #[must_use]
    pub const fn step(self) -> HoldTtl {
        self.0
    }

    /// The longest TTL of whole steps.
    #[must_use]
    pub const fn longest(self) -> HoldTtl {
        HoldTtl(HoldTtl::MAX.0 / self.0.0 * self.0.0)
    }

    /// The TTL that keeps `delay`: rounded **up** to whole steps, so that nothing runs early. `None` for no
    /// delay at all, which needs no hold.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] above [`Granularity::longest`]. A delay is never shortened.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use leveret_core::delay::Granularity;
    ///
    /// let second = Granularity::default();
    /// let ttl = second.round_up(Duration::from_millis(1_001))?.map(|ttl| ttl.as_millis());
    /// assert_eq!(ttl, Some(2_000));
    /// assert_eq!(second.round_up(Duration::ZERO)?, None);
    /// # Ok::<(), leveret_core::delay::DelayTooLong>(())
    /// ```
    pub fn round_up(self, delay: Duration) -> Result<Option<HoldTtl>, DelayTooLong> {
        if delay.is_zero() {
            return Ok(None);
        }
        self.round_up_deferral(delay).map(Some)
    }

    /// As [`round_up`](Self::round_up), and one step for no delay at all: a deferred job runs ahead of the
    /// backlog, so one that came back at once would keep everything else from running.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`], as there.
    pub fn round_up_deferral(self, delay: Duration) -> Result<HoldTtl, DelayTooLong> {
        let step = u128::from(self.0.0);
        let steps = delay.as_nanos().div_ceil(step * NANOS_PER_MILLI).max(1);
        // At most 2^64 s in nanoseconds, below 2^94, times a step below 2^31: no overflow of 128 bits.
        let millis = u32::try_from(steps * step).ok();
        millis.and_then(HoldTtl::from_millis).ok_or(DelayTooLong { delay, longest: self.longest() })
    }
}

impl Serialize for Granularity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::duration::serialize(&self.0.as_duration(), serializer)
    }
}

impl<'de> Deserialize<'de> for Granularity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(crate::duration::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Default for Granularity {
    fn default() -> Self {
        Self(HoldTtl(1_000))
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A delay that no hold queue can keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayTooLong {
    /// The delay asked for.
    pub delay: Duration,
    /// The longest one that is kept there.
    pub longest: HoldTtl,
}

impl fmt::Display for DelayTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of a day, rounded down: what is said can be kept.
        let tenths = self.longest.as_millis() / 8_640_000;
        write!(
            f,
            "a delay of {:?} is above the longest one that can be kept, {} ({}.{} days): shorten it, or keep the \
             job elsewhere until then",
            self.delay,
            self.longest,
            tenths / 10,
            tenths % 10
        )
    }
}

impl std::error::Error for DelayTooLong {}

/// A duration that cannot be a [`Granularity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GranularityError {
    /// The step asked for.
    pub step: Duration,
}

impl fmt::Display for GranularityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a granularity of {:?} cannot be kept: use whole milliseconds, from {GRANULARITY_MIN:?} to {}",
            self.step,
            HoldTtl::MAX
        )
    }
}

impl std::error::Error for GranularityError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(granularity: Granularity, delay: Duration) -> Option<u32> {
        granularity.round_up(delay).unwrap().map(HoldTtl::as_millis)
    }

    #[test]
    fn a_delay_is_never_shortened() {
        let second = Granularity::default();
        assert_eq!(millis(second, Duration::from_nanos(1)), Some(1_000));
        assert_eq!(millis(second, Duration::from_millis(1_000)), Some(1_000));
        assert_eq!(millis(second, Duration::new(1, 1)), Some(2_000));
        assert_eq!(millis(second, Duration::ZERO), None);
    }

    #[test]
    fn a_deferral_without_a_delay_still_waits_one_step() {
        assert_eq!(Granularity::default().round_up_deferral(Duration::ZERO).unwrap().as_millis(), 1_000);
    }

    #[test]
    fn a_delay_above_the_maximum_is_refused_also_when_only_rounding_makes_it_so() {
        let second = Granularity::default();
        assert_eq!(millis(second, Duration::from_millis(2_147_483_000)), Some(2_147_483_000));
        assert!(second.round_up(Duration::from_millis(2_147_483_001)).is_err());
        assert!(second.round_up(Duration::MAX).is_err());
        let milli = Granularity::new(GRANULARITY_MIN).unwrap();
        assert!(milli.round_up(Duration::from_millis(2_147_483_601)).is_err());
    }

    #[test]
    fn durations_in_errors_are_all_written_with_the_same_units() {
        let days = Duration::from_secs(60 * 86_400);
        assert_eq!(
            Granularity::default().round_up(days).unwrap_err().to_string(),
            "a delay of 5184000s is above the longest one that can be kept, 2147483s (24.8 days): shorten it, or keep the \
             job elsewhere until then"
        );
        assert_eq!(
            Granularity::new(Duration::from_millis(1)).unwrap_err().to_string(),
            format!(
                "a granularity of 1ms cannot be kept: use whole milliseconds, from 100ms to {:?}",
                HoldTtl::MAX.as_duration()
            )
        );
    }

    #[test]
    fn a_step_that_cannot_be_kept_is_refused() {
        for step in [
            Duration::ZERO,
            Duration::from_millis(99),
            Duration::from_micros(100_500),
            Duration::from_millis(2_147_483_648),
            Duration::MAX,
        ] {
            assert_eq!(Granularity::new(step), Err(GranularityError { step }));
        }
        assert!(Granularity::new(HoldTtl::MAX.as_duration()).is_ok());
    }

    #[test]
    fn a_step_in_configuration_is_a_duration_within_the_limits() {
        let step: Granularity = serde_json::from_str("\"250ms\"").unwrap();
        assert_eq!(step.step().as_millis(), 250);
        assert_eq!(serde_json::from_str::<Granularity>("1000").unwrap(), Granularity::default());
        assert_eq!(serde_json::to_string(&step).unwrap(), "\"250ms\"");
        let error = serde_json::from_str::<Granularity>("\"1ms\"").unwrap_err().to_string();
        assert!(error.contains("use whole milliseconds, from 100ms"), "{error}");
    }

    fn delays() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (0..5_u64, 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
            (2_147_400_000..2_147_500_000_u64).prop_map(Duration::from_millis),
            any::<u64>().prop_map(Duration::from_nanos),
            (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
        ]
    }

    fn granularities() -> impl Strategy<Value = Granularity> {
        prop_oneof![100..10_000_u64, 100..=2_147_483_647_u64]
            .prop_map(|step| Granularity::new(Duration::from_millis(step)).unwrap())
    }

    proptest! {
        #[test]
        fn rounding_is_never_early_in_whole_steps_and_refuses_what_it_cannot_keep(
            delay in delays(), granularity in granularities()
        ) {
            let step = granularity.step().as_duration();
            match granularity.round_up(delay) {
                Ok(None) => prop_assert!(delay.is_zero()),
                Ok(Some(ttl)) => {
                    let kept = ttl.as_duration();
                    prop_assert!(kept >= delay, "{kept:?} is early for {delay:?}");
                    prop_assert!(kept - delay < step, "{kept:?} is more than a step late for {delay:?}");
                    prop_assert!(ttl.as_millis().is_multiple_of(granularity.step().as_millis()));
                    prop_assert!(ttl >= granularity.step() && ttl <= HoldTtl::MAX);
                }
                Err(_) => {
                    // Refused only where the next lower multiple of the step is already the last one kept.
                    let last = HoldTtl::MAX.as_millis() / granularity.step().as_millis()
                        * granularity.step().as_millis();
                    prop_assert!(delay > Duration::from_millis(last.into()));
                }
            }
        }

        #[test]
        fn a_deferral_waits_like_a_delay_but_never_less_than_one_step(
            delay in delays(), granularity in granularities()
        ) {
            let expected = granularity.round_up(delay).map(|ttl| ttl.unwrap_or(granularity.step()));
            prop_assert_eq!(granularity.round_up_deferral(delay), expected);
        }
    }
}
