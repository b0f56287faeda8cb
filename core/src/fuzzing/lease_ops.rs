//! Leases of hold queues under any timing of what a client sends, a broker handles and a client reads.

use std::time::Duration;

use crate::delay::lease::model::World;
use crate::delay::{Granularity, HoldTtl};
use crate::time::Instant;

/// More is no more interesting, and a cut publishes every job again.
const OPERATIONS_MAX: usize = 512;
/// The delays of jobs, in milliseconds.
const TTLS: [u32; 8] = [100, 200, 300, 1_000, 5_000, 60_000, 3_600_000, 2_147_483_647];

/// The first byte says whether the client looks ahead (odd: yes). After that, each byte is something that happens:
///
/// | byte | |
/// |---|---|
/// | `0` to `7` | a job is published, with a delay of 100, 200, 300 ms, 1, 5, 60 s, 1 h, 24.8 days |
/// | `a` to `h` | another client declares the hold of that delay |
/// | `>` | the broker handles one request |
/// | `<` | the client reads one reply |
/// | `!` | the link is cut |
/// | `y`, `z` | the client's machine sleeps for 300 ms, 5 s |
/// | any other | time passes: `byte % 16` times 1 ms, 40 ms, 1 s or 10 min |
///
/// # Panics
///
/// Where a message that the book calls safe is dropped or early, or a job never has such a message: see `World::end` in
/// `delay/lease/model.rs`.
pub fn body(bytes: &[u8]) {
    let Some((&choice, operations)) = bytes.split_first() else { return };
    let mut now = Instant::from_origin(Duration::from_secs(1));
    let mut world = World::new(tenths(), choice % 2 == 1);
    for (index, byte) in operations.iter().take(OPERATIONS_MAX).enumerate() {
        match byte {
            b'0'..=b'7' => world.job(now, ttl(byte - b'0')),
            b'a'..=b'h' => world.declare(now, ttl(byte - b'a')),
            // RabbitMQ releases messages tens of milliseconds late, which the margin of a lease covers.
            b'>' => world.broker_handles(now, Duration::from_millis((index % 23) as u64)),
            b'<' => world.client_reads(now),
            b'y' => world.sleep(Duration::from_millis(300)),
            b'z' => world.sleep(Duration::from_secs(5)),
            b'!' => world.link_lost(now),
            _ => now += time(*byte),
        }
    }
    world.end(now);
}

fn tenths() -> Granularity {
    Granularity::new(Duration::from_millis(100)).unwrap_or_default()
}

fn ttl(index: u8) -> HoldTtl {
    HoldTtl::from_millis(TTLS[usize::from(index)]).unwrap_or(HoldTtl::MAX)
}

fn time(byte: u8) -> Duration {
    let unit = match byte / 64 {
        0 => Duration::from_millis(1),
        1 => Duration::from_millis(40),
        2 => Duration::from_secs(1),
        _ => Duration::from_secs(600),
    };
    unit * u32::from(byte % 16)
}
