//! How often the decisions ask for memory, counted. The counts are those of a debug build as well as of a release.

mod delay;
mod envelope;
mod lanes;
mod names;
mod retry;
mod settle;

use allocation_counter::AllocationInfo;

/// Runs `work` and says what it allocated, with its result.
fn measured<T>(work: impl FnOnce() -> T) -> (T, AllocationInfo) {
    let mut result = None;
    let info = allocation_counter::measure(|| result = Some(work()));
    (result.expect("the work was done"), info)
}

/// How many allocations `work` asks for. Dropping its result is not part of it.
fn allocations<T>(work: impl FnOnce() -> T) -> u64 {
    measured(work).1.count_total
}
