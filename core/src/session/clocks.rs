//! Whether the machine has slept.

use std::time::Duration;

use crate::time::{Instant, UnixMillis};

/// Less than this is noise: reading two clocks takes time, and time services set a wall clock in small steps.
const TOLERANCE: Duration = Duration::from_millis(250);

/// What two clocks showed when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    last: Option<(Instant, UnixMillis)>,
}

impl Clocks {
    /// Whether the two clocks disagree about the time that has passed since the last call.
    pub(super) fn disagree(&mut self, now: Instant, wall: UnixMillis) -> bool {
        let Some((last_now, last_wall)) = self.last.replace((now, wall)) else { return false };
        let by_wall = Duration::from_millis(wall.0.saturating_sub(last_wall.0));
        // A wall clock that was set back tells nothing about a sleep, but the time it hides may hold one.
        let set_back = Duration::from_millis(last_wall.0.saturating_sub(wall.0));
        let passed = now.saturating_duration_since(last_now);
        by_wall.abs_diff(passed) >= TOLERANCE || set_back >= TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> (Instant, UnixMillis) {
        (Instant::from_origin(Duration::from_secs(seconds)), UnixMillis(1_700_000_000_000 + seconds * 1_000))
    }

    #[test]
    fn clocks_that_run_alike_agree() {
        let mut clocks = Clocks::default();
        for second in [0, 1, 5, 5, 3_600] {
            let (now, wall) = at(second);
            assert!(!clocks.disagree(now, wall));
        }
    }

    #[test]
    fn a_sleep_and_a_step_of_the_wall_clock_are_noticed_once() {
        let mut clocks = Clocks::default();
        clocks.disagree(at(10).0, at(10).1);
        assert!(clocks.disagree(at(11).0, at(21).1), "the monotonic clock stood still for ten seconds");
        assert!(!clocks.disagree(at(12).0, at(22).1));
        assert!(clocks.disagree(at(13).0, at(5).1), "the wall clock was set back");
        assert!(!clocks.disagree(at(14).0, at(6).1));
    }

    #[test]
    fn reading_the_clocks_one_after_the_other_is_no_sleep() {
        let mut clocks = Clocks::default();
        let (now, wall) = at(10);
        clocks.disagree(now, wall);
        assert!(!clocks.disagree(now + Duration::from_millis(100), UnixMillis(wall.0 + 300)));
    }
}
