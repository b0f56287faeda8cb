//! Lanes under any sequence of arrivals, ends and cuts.

use std::num::NonZeroU16;

use crate::lane::model::{Operation, Run};
use crate::lane::{LaneCount, LanePlan};

/// The first byte says how many lanes there are (1 to 80; `!` and the bytes after it are 2, 3, ...), the second how
/// much larger the prefetch count is. After that, each byte is something that happens:
///
/// | byte | |
/// |---|---|
/// | `.` | a delivery without a key arrives |
/// | `0` to `9` | the delivery ends that has run longest, second longest, ... |
/// | `!` | the link is cut |
/// | `-` | a consumer is cancelled |
/// | any other, such as `a` | a delivery with this byte as its key arrives |
///
/// # Panics
///
/// Where the lanes do something else than their model, or break a rule: see `Run` in `lane/model.rs`.
pub fn body(bytes: &[u8]) {
    let [lanes, more, operations @ ..] = bytes else { return };
    let lanes = 1 + u16::from(lanes.wrapping_sub(b' ') % 80);
    let prefetch = NonZeroU16::new(lanes + u16::from(more.wrapping_sub(b' ') % 32));
    let plan = LaneCount::new(lanes).ok().zip(prefetch).and_then(|(lanes, prefetch)| {
        // The prefetch count is the larger of the two.
        LanePlan::new(lanes, prefetch).ok()
    });
    let mut run = Run::new(plan.unwrap_or_else(|| unreachable!("{lanes} lanes can be had")));
    for byte in operations {
        run.step(match byte {
            b'.' => Operation::Offer(None),
            b'0'..=b'9' => Operation::Finish(usize::from(byte - b'0')),
            b'!' => Operation::LinkLost,
            b'-' => Operation::Cancelled,
            key => Operation::Offer(Some(*key)),
        });
    }
    let _ = run.end();
}
