//! One table of named deadlines; one deadline out.

use std::time::Duration;

use crate::time::Instant;

/// A step back of less is none: callers that read the clock on several threads are not always in order, and if
/// each such step moved the deadlines, the steps would add up.
const TREMBLE: Duration = Duration::from_secs(1);

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// The handshake must have ended.
    HandshakeDeadline,
    /// The peer must have answered our close.
    CloseDeadline,
    /// The peer must have sent something.
    PeerSilence,
    /// We must send something.
    HeartbeatSend,
}

impl TimerKind {
    /// Those that end the connection come first: nothing has to be sent after them.
    const ALL: [Self; 4] =
        [Self::HandshakeDeadline, Self::CloseDeadline, Self::PeerSilence, Self::HeartbeatSend];
}

#[derive(Debug, Default)]
pub(super) struct Timers {
    deadlines: [Option<Instant>; TimerKind::ALL.len()],
    /// The latest time that was seen.
    now: Instant,
}

impl Timers {
    pub(super) fn set(&mut self, kind: TimerKind, at: Instant) {
        self.deadlines[kind as usize] = Some(at);
    }

    pub(super) fn clear(&mut self, kind: TimerKind) {
        self.deadlines[kind as usize] = None;
    }

    pub(super) fn clear_all(&mut self) {
        self.deadlines = [None; TimerKind::ALL.len()];
    }

    /// Takes note of the time. A clock that stepped back takes the deadlines with it, so that none of them is
    /// further away than it was meant to be.
    pub(super) fn observe(&mut self, now: Instant) {
        let back = self.now.saturating_duration_since(now);
        if back < TREMBLE {
            self.now = self.now.max(now);
            return;
        }
        for deadline in self.deadlines.iter_mut().flatten() {
            *deadline = deadline.saturating_sub(back);
        }
        self.now = now;
    }

    /// The next deadline and what it is for.
    pub(super) fn next(&self) -> Option<(Instant, TimerKind)> {
        let set = TimerKind::ALL.iter().filter_map(|&kind| Some((self.deadlines[kind as usize]?, kind)));
        // The first of equal ones, so the order of `ALL` decides.
        set.min_by_key(|&(at, _)| at)
    }

    /// Takes out a deadline that has passed, if there is one.
    pub(super) fn take_expired(&mut self) -> Option<TimerKind> {
        let expired = |kind: &TimerKind| self.deadlines[*kind as usize].is_some_and(|at| at <= self.now);
        let kind = TimerKind::ALL.into_iter().find(expired)?;
        self.clear(kind);
        Some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn the_next_deadline_is_the_earliest() {
        let mut timers = Timers::default();
        assert_eq!(timers.next(), None);
        timers.set(TimerKind::PeerSilence, at(20));
        timers.set(TimerKind::HeartbeatSend, at(5));
        assert_eq!(timers.next(), Some((at(5), TimerKind::HeartbeatSend)));
        timers.clear(TimerKind::HeartbeatSend);
        assert_eq!(timers.next(), Some((at(20), TimerKind::PeerSilence)));
    }

    #[test]
    fn after_a_jump_the_deadlines_that_end_things_come_first() {
        let mut timers = Timers::default();
        timers.set(TimerKind::HeartbeatSend, at(5));
        timers.set(TimerKind::PeerSilence, at(20));
        timers.observe(at(36_000));
        assert_eq!(timers.take_expired(), Some(TimerKind::PeerSilence));
        assert_eq!(timers.take_expired(), Some(TimerKind::HeartbeatSend));
        assert_eq!(timers.take_expired(), None);
    }

    #[test]
    fn a_clock_that_trembles_does_not_use_up_a_deadline() {
        let mut timers = Timers::default();
        timers.observe(at(10_000));
        timers.set(TimerKind::PeerSilence, at(10_020));
        for _ in 0..100_000 {
            timers.observe(at(10_000).saturating_sub(Duration::from_millis(1)));
            timers.observe(at(10_000));
        }
        assert_eq!(timers.next(), Some((at(10_020), TimerKind::PeerSilence)));
        assert_eq!(timers.take_expired(), None);
    }

    #[test]
    fn a_step_back_does_not_put_deadlines_off() {
        let mut timers = Timers::default();
        timers.observe(at(10_000));
        timers.set(TimerKind::HeartbeatSend, at(10_005));
        timers.observe(at(100));
        assert_eq!(timers.next(), Some((at(105), TimerKind::HeartbeatSend)));
    }
}
