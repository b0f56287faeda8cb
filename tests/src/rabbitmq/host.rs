//! What the suites ask of the machine that they run on. Nothing else here reads a setting or a clock.
#![expect(
    clippy::disallowed_methods,
    reason = "starting servers is all about the machine; this is its one place"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// How often a server that is starting or stopping is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A name that no other test has used on any broker: `prefix`, then what tells this process and call apart.
///
/// At most 45 bytes longer than `prefix`; of the characters that need no escape in a URI.
#[must_use]
pub fn unique_name(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Brokers that outlive the process see its number again one day, so the time is part of the name.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("{prefix}-{now:x}-{}-{count}", std::process::id())
}

/// An environment variable; one that is empty counts as not set.
pub(super) fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Calls `look` until it gives something, at most for `limit`.
pub(super) fn wait_for<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
