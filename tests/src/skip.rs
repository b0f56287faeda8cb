//! What a test tells the person who runs it, past the test harness, which hides what passing tests print.

use std::fmt;
use std::io::{self, Write as _};
use std::thread;

/// Says on standard error that the calling test has nothing to run on, and why: `skipped: NAME: WHY`. The test
/// returns then. To the harness it has passed; `tests/run.sh` counts these lines and reports it as skipped.
///
/// The name is that of the thread, which the harness gives it.
pub fn skip(why: impl fmt::Display) {
    let thread = thread::current();
    say(format_args!("skipped: {}: {why}", thread.name().unwrap_or("a test")));
}

/// Writes one line to standard error.
pub(crate) fn say(text: impl fmt::Display) {
    // In one piece, since other threads write as well. With standard error closed there is nobody to tell.
    let _ = io::stderr().write_all(format!("leveret-testkit: {text}\n").as_bytes());
}
