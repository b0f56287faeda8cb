//! Lanes: deliveries with one key run one after another, other keys run at the same time.
//!
//! A consumer that handles several deliveries at once loses the order of its queue: two changes of one customer may
//! run in the wrong order, or at the same time. With `n` lanes it keeps the order where it matters. The publisher
//! puts a *partition key* into the header [`PARTITION_KEY`], such as the customer's number, and
//!
//! * each key belongs to one lane, `hash(key) % n` ([`lane_hash`]), so that no table of keys is kept, however many
//!   there are;
//! * a lane runs one delivery at a time, in the order in which they arrived;
//! * a delivery without a key has no order to keep: it runs in the next idle lane, or in the first that becomes free.
//!
//! Order is that of the deliveries in hand. One that comes back, retried, deferred or redelivered, takes its place
//! anew. Two keys of one lane also wait for each other, which costs time and no order; more lanes make it rarer.
//! Whoever chooses the keys can choose them all for one lane: that is as slow as one lane, and no worse.
//!
//! [`LanePlan`] is the checked number of lanes, [`PartitionKey`] reads the key of a delivery, and [`Lanes`] says what
//! may run:
//!
//! ```
//! use std::num::NonZeroU16;
//! use leveret_core::lane::{LaneCount, LanePlan, Lanes};
//!
//! let plan = LanePlan::new(LaneCount::new(4)?, NonZeroU16::new(32).expect("not zero"))?;
//! let mut lanes = Lanes::new(plan);
//! let first = lanes.offer(Some(b"ada"), "ada moves in")?.expect("nothing else runs in this lane");
//! assert_eq!(first.item, "ada moves in");
//! assert!(lanes.offer(Some(b"ada"), "ada moves out")?.is_none(), "it waits for its turn");
//! let second = lanes.finish(first.turn).expect("its turn has come");
//! assert_eq!(second.item, "ada moves out");
//! assert!(lanes.finish(second.turn).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod count;
mod hash;
mod key;
mod lanes;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod model;
mod slots;

pub use count::{LANES_MAX, Lane, LaneCount, LaneCountError, LanePlan, PrefetchTooSmall};
pub use hash::lane_hash;
pub use key::{PARTITION_KEY, PartitionKey};
pub use lanes::{Full, Lanes, Started, Turn};
