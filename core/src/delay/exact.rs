//! Delays that are listed by hand: each has a replicated hold of its own, beside those of the wide grid.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::granularity::{GRANULARITY_MIN, HoldTtl};

/// The most delays that can be listed. Each is a quorum queue, which stays for ever.
pub const EXACT_DELAYS_MAX: usize = 32;

/// Delays that are kept exactly although their holds are replicated: at most [`EXACT_DELAYS_MAX`] different ones,
/// each 100 ms up to [`HoldTtl::MAX`] in whole milliseconds. Default none.
///
/// ```
/// use std::time::Duration;
/// # use leveret_core::delay::ExactDelays;
/// let delays = ExactDelays::new([90, 7, 90].map(Duration::from_secs))?;
/// assert_eq!(delays.iter().map(|ttl| ttl.as_millis()).collect::<Vec<_>>(), [7_000, 90_000]);
/// # Ok::<(), leveret_core::delay::ExactDelaysError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactDelays(Arc<[HoldTtl]>);

impl ExactDelays {
    /// Checks a list, in any order; a delay that is listed twice counts once.
    ///
    /// # Errors
    ///
    /// [`ExactDelaysError`] says which delay cannot be kept, or that there are too many.
    pub fn new(delays: impl IntoIterator<Item = Duration>) -> Result<Self, ExactDelaysError> {
        let mut ttls: Vec<HoldTtl> = Vec::new();
        for delay in delays {
            let ttl = HoldTtl::exactly(delay).filter(|_| delay >= GRANULARITY_MIN);
            let ttl = ttl.ok_or(ExactDelaysError::OutOfRange { delay })?;
            if let Err(at) = ttls.binary_search(&ttl) {
                if ttls.len() == EXACT_DELAYS_MAX {
                    return Err(ExactDelaysError::TooMany);
                }
                ttls.insert(at, ttl);
            }
        }
        Ok(Self(ttls.into()))
    }

    /// The delays, the shortest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = HoldTtl> {
        self.0.iter().copied()
    }

    /// The shortest one that is not shorter than `delay`.
    pub(super) fn at_least(&self, delay: Duration) -> Option<HoldTtl> {
        self.0.get(self.0.partition_point(|ttl| ttl.as_duration() < delay)).copied()
    }
}

/// Why a list of exact delays cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExactDelaysError {
    /// A delay has a part of a millisecond, is below 100 ms or above [`HoldTtl::MAX`].
    OutOfRange {
        /// The delay.
        delay: Duration,
    },
    /// More than [`EXACT_DELAYS_MAX`] different ones.
    TooMany,
}

impl fmt::Display for ExactDelaysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { delay } => write!(
                f,
                "an exact delay of {delay:?} cannot be kept: use whole milliseconds, from {GRANULARITY_MIN:?} to {}",
                HoldTtl::MAX
            ),
            Self::TooMany => write!(
                f,
                "more than {EXACT_DELAYS_MAX} exact delays are listed, and each is a quorum queue that stays for ever: \
                 list fewer, or use expiring holds"
            ),
        }
    }
}

impl std::error::Error for ExactDelaysError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_that_no_hold_can_keep_exactly_is_refused() {
        for delay in [
            Duration::ZERO,
            Duration::from_millis(99),
            Duration::from_micros(1_000_500),
            Duration::from_millis(2_147_483_648),
            Duration::MAX,
        ] {
            assert_eq!(ExactDelays::new([delay]), Err(ExactDelaysError::OutOfRange { delay }));
        }
        assert!(ExactDelays::new([GRANULARITY_MIN, HoldTtl::MAX.as_duration()]).is_ok());
    }

    #[test]
    fn the_list_is_bounded_by_what_is_different_in_it() {
        let seconds = |count: u64| ExactDelays::new((0..1_000).map(|n| Duration::from_secs(1 + n % count)));
        assert_eq!(seconds(32).map(|delays| delays.iter().len()), Ok(EXACT_DELAYS_MAX));
        assert_eq!(seconds(33), Err(ExactDelaysError::TooMany));
    }
}
