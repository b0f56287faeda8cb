//! How many lanes, and how many deliveries they need.

use std::fmt;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::hash::lane_hash;

/// The most lanes that one subscription can have.
///
/// More handlers at once than this is work without any order; and a delivery without a key looks for an idle lane,
/// which this bounds to 16 machine words.
pub const LANES_MAX: u16 = 1_024;

/// The number of lanes of a subscription: 1 to [`LANES_MAX`]. It is a number in a configuration file.
///
/// A key's lane depends on it. To change it is safe at a restart, when nothing of the old number is in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u16")]
pub struct LaneCount(NonZeroU16);

impl LaneCount {
    /// One lane: all that arrives runs in order, one at a time.
    pub const ONE: Self = Self(NonZeroU16::MIN);

    /// Checks a number of lanes.
    ///
    /// # Errors
    ///
    /// [`LaneCountError`] for 0 and above [`LANES_MAX`].
    pub fn new(lanes: u16) -> Result<Self, LaneCountError> {
        match NonZeroU16::new(lanes) {
            Some(count) if lanes <= LANES_MAX => Ok(Self(count)),
            _ => Err(LaneCountError { lanes: lanes.into() }),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }

    /// The lane of a key: [`lane_hash`]`(key) % n`.
    #[must_use]
    pub fn lane_of(self, key: &[u8]) -> Lane {
        let lane = lane_hash(key) % u64::from(self.get());
        // Less than a number of 16 bits, so the rest is zero.
        let [low, high, ..] = lane.to_le_bytes();
        Lane(u16::from_le_bytes([low, high]))
    }
}

impl TryFrom<u64> for LaneCount {
    type Error = LaneCountError;

    fn try_from(lanes: u64) -> Result<Self, LaneCountError> {
        u16::try_from(lanes).map_err(|_| LaneCountError { lanes }).and_then(Self::new)
    }
}

impl From<LaneCount> for u16 {
    fn from(count: LaneCount) -> Self {
        count.get()
    }
}

impl fmt::Display for LaneCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One lane of a subscription, from 0. For logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub(super) u16);

impl Lane {
    /// Its number, less than the number of lanes.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number of lanes that cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneCountError {
    /// The number.
    pub lanes: u64,
}

impl fmt::Display for LaneCountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there are 1 to {LANES_MAX} lanes, not {}", self.lanes)?;
        if self.lanes == 0 {
            f.write_str(
                ": take 1 to run one delivery after another, or many to run them at once, also where nothing needs an \
                 order: a delivery without a partition key runs on any idle lane",
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for LaneCountError {}

/// A number of lanes with a prefetch count that can keep them busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanePlan {
    lanes: LaneCount,
    prefetch: NonZeroU16,
}

impl LanePlan {
    /// Checks that the broker hands out as many deliveries at a time as there are lanes: with fewer, some lane would
    /// never have work.
    ///
    /// A few times as many is better. Keys repeat, and what waits behind a busy lane counts as well.
    ///
    /// # Errors
    ///
    /// [`PrefetchTooSmall`] otherwise.
    pub fn new(lanes: LaneCount, prefetch: NonZeroU16) -> Result<Self, PrefetchTooSmall> {
        if prefetch < lanes.0 {
            return Err(PrefetchTooSmall { lanes, prefetch: prefetch.get() });
        }
        Ok(Self { lanes, prefetch })
    }

    /// The number of lanes.
    #[must_use]
    pub const fn lanes(self) -> LaneCount {
        self.lanes
    }

    /// How many deliveries of one consumer may be in hand.
    #[must_use]
    pub const fn prefetch(self) -> NonZeroU16 {
        self.prefetch
    }
}

/// A prefetch count below the number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchTooSmall {
    /// The number of lanes.
    pub lanes: LaneCount,
    /// The prefetch count.
    pub prefetch: u16,
}

impl fmt::Display for PrefetchTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lanes, prefetch } = self;
        write!(
            f,
            "{lanes} lanes need a prefetch count of at least {lanes} (better {}), found {prefetch}: raise it, or take \
             fewer lanes",
            lanes.get().saturating_mul(4)
        )
    }
}

impl std::error::Error for PrefetchTooSmall {}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefetch(count: u16) -> NonZeroU16 {
        NonZeroU16::new(count).unwrap()
    }

    #[test]
    fn there_is_at_least_one_lane_and_no_more_than_the_limit() {
        assert_eq!(LaneCount::new(1), Ok(LaneCount::ONE));
        assert_eq!(LaneCount::new(LANES_MAX).unwrap().get(), LANES_MAX);
        assert_eq!(
            LaneCount::new(LANES_MAX + 1).unwrap_err().to_string(),
            "there are 1 to 1024 lanes, not 1025"
        );
        assert_eq!(
            LaneCount::new(0).unwrap_err().to_string(),
            "there are 1 to 1024 lanes, not 0: take 1 to run one delivery after another, or many to run them at once, \
             also where nothing needs an order: a delivery without a partition key runs on any idle lane"
        );
    }

    #[test]
    fn a_configuration_file_holds_a_number_and_is_held_to_the_range() {
        assert_eq!(serde_json::from_str::<LaneCount>("8").unwrap(), LaneCount::new(8).unwrap());
        assert_eq!(serde_json::to_string(&LaneCount::new(8).unwrap()).unwrap(), "8");
        for (wrong, says) in
            [("0", "not 0"), ("70000", "not 70000"), ("-1", "-1"), ("1.5", "1.5"), ("\"8\"", "\"8\"")]
        {
            let error = serde_json::from_str::<LaneCount>(wrong).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn fewer_deliveries_than_lanes_are_refused() {
        let eight = LaneCount::new(8).unwrap();
        assert_eq!(LanePlan::new(eight, prefetch(8)).unwrap().prefetch(), prefetch(8));
        let error = LanePlan::new(eight, prefetch(7)).unwrap_err();
        assert_eq!(error, PrefetchTooSmall { lanes: eight, prefetch: 7 });
        assert_eq!(
            error.to_string(),
            "8 lanes need a prefetch count of at least 8 (better 32), found 7: raise it, or take fewer lanes"
        );
    }

    #[test]
    fn the_lane_of_a_key_is_the_remainder_of_its_hash() {
        let lane = |lanes| LaneCount::new(lanes).unwrap().lane_of(b"customer-2").get();
        assert_eq!([lane(1), lane(4), lane(10), lane(64)], [0, 2, 8, 6]);
    }
}
