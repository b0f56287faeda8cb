//! Which delays have a hold queue of their own: the grid that a delay is rounded up to.
//!
//! Every distinct delay is a queue on the broker. Backoff with jitter asks for a different one each time, so that a
//! queue with a step of 1 s can come to have thousands of holds. A coarser grid bounds their number, and makes jobs
//! later by a share of their delay; no grid makes one earlier.
//!
//! | grid | distance of neighbours | holds between 1 s and 24 h |
//! |---|---|---|
//! | [`Grid::steps`] | one step | up to 86,400 with a step of 1 s |
//! | [`Grid::coarse`] | one step up to 20 steps, then at most 10 % | at most 150, with any step |
//! | [`Grid::wide`] | a factor of about 1.5 | 30, and the exact delays that are listed |

use std::time::Duration;

use super::exact::ExactDelays;
use super::granularity::{DelayTooLong, Granularity, HoldTtl};

#[cfg(test)]
mod tests;

/// One decade of the coarse grid, in steps. Below 10 steps and from there to 20 every one counts.
const COARSE: [u32; 30] = [
    10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 30, 33, 36, 39, 42, 46, 50, 55, 60, 66, 72,
    79, 86, 94, 100,
];

/// The wide grid in seconds: 1 s to 24 h, then 36 h to 24 days. [`HoldTtl::MAX`] is the last one.
const WIDE: [u32; 39] = [
    1, 2, 3, 5, 8, 12, 20, 30, 45, 60, 90, 120, 180, 240, 360, 600, 900, 1_200, 1_800, 2_700, 3_600, 5_400,
    7_200, 10_800, 14_400, 21_600, 32_400, 43_200, 64_800, 86_400, 129_600, 172_800, 259_200, 345_600,
    518_400, 777_600, 1_209_600, 1_728_000, 2_073_600,
];

/// The TTLs that hold queues have. A delay is rounded **up** to one of them: later is allowed, early is not.
///
/// ```
/// use std::time::Duration;
/// use leveret_core::delay::{ExactDelays, Granularity, Grid};
///
/// let delay = Duration::from_secs(101);
/// let kept = |grid: Grid| grid.round_up_deferral(delay).map(|ttl| ttl.as_millis());
/// let second = Granularity::default();
/// assert_eq!(kept(Grid::steps(second)), Ok(101_000));
/// assert_eq!(kept(Grid::coarse(second)), Ok(110_000));
/// assert_eq!(kept(Grid::wide(second, ExactDelays::default())), Ok(120_000));
/// assert_eq!(kept(Grid::wide(second, ExactDelays::new([delay])?)), Ok(101_000));
/// # Ok::<(), leveret_core::delay::ExactDelaysError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    step: Granularity,
    spacing: Spacing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Spacing {
    Steps,
    Coarse,
    Wide(ExactDelays),
}

impl Grid {
    /// Every whole step.
    #[must_use]
    pub const fn steps(step: Granularity) -> Self {
        Self { step, spacing: Spacing::Steps }
    }

    /// Whole steps that get further apart: 1 to 20 steps, 22, 24, 26 and so on, neighbours at most 10 % or one step
    /// apart, 29 of them a decade.
    #[must_use]
    pub const fn coarse(step: Granularity) -> Self {
        Self { step, spacing: Spacing::Coarse }
    }

    /// Few and round: 30 from 1 s to 24 h, 40 in all, and those listed. For replicated holds, which stay for ever.
    ///
    /// The delay itself is rounded and not what `step` makes of it, so that a listed one is met; `step` is only the
    /// least that a deferral waits.
    #[must_use]
    pub const fn wide(step: Granularity, exact: ExactDelays) -> Self {
        Self { step, spacing: Spacing::Wide(exact) }
    }

    /// The step of which delays are multiples; in the wide grid, the least that a deferral waits.
    #[must_use]
    pub const fn step(&self) -> Granularity {
        self.step
    }

    /// The same grid with another step.
    #[must_use]
    pub fn with_step(self, step: Granularity) -> Self {
        Self { step, ..self }
    }

    /// The TTL that keeps `delay`; `None` for no delay at all, which needs no hold.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`] above the longest TTL of the grid. It is never shortened.
    pub fn round_up(&self, delay: Duration) -> Result<Option<HoldTtl>, DelayTooLong> {
        if delay.is_zero() {
            return Ok(None);
        }
        self.at_least(delay).map(Some)
    }

    /// As [`round_up`](Self::round_up), and at least one step, also for no delay at all: a deferred job runs ahead
    /// of the backlog, so one that came back at once would keep everything else from running.
    ///
    /// # Errors
    ///
    /// [`DelayTooLong`], as there.
    pub fn round_up_deferral(&self, delay: Duration) -> Result<HoldTtl, DelayTooLong> {
        self.at_least(delay.max(self.step.step().as_duration()))
    }

    /// The longest TTL of the grid, and so the longest delay that can be asked for.
    #[must_use]
    pub const fn longest(&self) -> HoldTtl {
        match &self.spacing {
            Spacing::Steps | Spacing::Coarse => self.step.longest(),
            Spacing::Wide(_) => HoldTtl::MAX,
        }
    }

    /// The hold that lasts twice as long; the longest where there is none.
    #[must_use]
    pub fn larger(&self, ttl: HoldTtl) -> HoldTtl {
        self.at_least(ttl.as_duration() * 2).unwrap_or_else(|_| self.longest().max(ttl))
    }

    fn at_least(&self, delay: Duration) -> Result<HoldTtl, DelayTooLong> {
        let Spacing::Wide(exact) = &self.spacing else {
            let ttl = self.step.round_up_deferral(delay)?;
            return Ok(if self.spacing == Spacing::Coarse { self.coarser(ttl) } else { ttl });
        };
        if delay > HoldTtl::MAX.as_duration() {
            return Err(DelayTooLong { delay, longest: HoldTtl::MAX });
        }
        let wide = WIDE.partition_point(|secs| Duration::from_secs((*secs).into()) < delay);
        let wide = WIDE.get(wide).and_then(|secs| HoldTtl::from_secs(*secs)).unwrap_or(HoldTtl::MAX);
        Ok(exact.at_least(delay).map_or(wide, |exact| exact.min(wide)))
    }

    /// The TTL of the coarse grid for one of whole steps. The last one is the longest of whole steps, so that
    /// nothing is refused that could be kept.
    fn coarser(&self, ttl: HoldTtl) -> HoldTtl {
        let steps = coarse(ttl.as_millis() / self.step.step().as_millis());
        let millis = steps.checked_mul(self.step.step().as_millis());
        let longest = self.step.longest();
        millis.and_then(HoldTtl::from_millis).map_or(longest, |ttl| ttl.min(longest))
    }
}

/// The least number of the coarse series that is not below `steps`.
fn coarse(steps: u32) -> u32 {
    let mut scale = 1;
    while steps.div_ceil(scale) > 100 {
        scale *= 10;
    }
    let head = steps.div_ceil(scale);
    let at = COARSE.partition_point(|value| *value < head);
    // Below the first of the decade every step counts; above the last there is none.
    let value = if head < COARSE[0] { head } else { COARSE.get(at).copied().unwrap_or(head) };
    value * scale
}

impl From<Granularity> for Grid {
    /// Every whole step.
    fn from(step: Granularity) -> Self {
        Self::steps(step)
    }
}
