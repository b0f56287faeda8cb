//! The bodies of the fuzz targets: each is a function over any bytes that panics where a rule is broken.
//!
//! They are here rather than in `leveret-fuzz` so that they can use the models that the tests use. The feature
//! `fuzzing` is for that crate, which holds the binaries, the seeds, and the test that replays the seeds, and for the
//! benchmarks of the codec.

pub mod envelope_decode;
pub mod envelope_roundtrip;
mod input;
pub mod lanes_ops;
pub mod lease_ops;
pub mod ledger_ops;
pub mod mismatch_text;
pub mod name_roundtrip;
pub mod server_bytes;
pub mod server_frames;
pub mod short_string;
pub mod table;
pub mod uri;
pub mod wire_differential;

pub use crate::wire::side_by_side;

/// The body of a target: panics where `bytes` break a rule.
pub type Body = fn(bytes: &[u8]);

/// Every target by name, which is also the name of its binary and of its folder of seeds.
pub const TARGETS: &[(&str, Body)] = &[
    ("envelope_decode", envelope_decode::body),
    ("envelope_roundtrip", envelope_roundtrip::body),
    ("lanes_ops", lanes_ops::body),
    ("lease_ops", lease_ops::body),
    ("ledger_ops", ledger_ops::body),
    ("mismatch_text", mismatch_text::body),
    ("name_roundtrip", name_roundtrip::body),
    ("server_bytes", server_bytes::body),
    ("server_frames", server_frames::body),
    ("short_string", short_string::body),
    ("table", table::body),
    ("uri", uri::body),
    ("wire_differential", wire_differential::body),
];
