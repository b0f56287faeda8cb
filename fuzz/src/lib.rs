//! Fuzz targets: each is a function over any bytes that panics where a rule is broken.
//!
//! The function of a target lives in a module of this crate and its seeds in `corpus/<target>/`, so that every test
//! run replays them on a stable compiler. The binary in `fuzz_targets/` is three lines: `fuzz/run.sh <target>` searches
//! with it on a stable compiler, `cargo +nightly fuzz run <target> --features libfuzzer` with cargo-fuzz. A new target is
//! added to [`TARGETS`] and to `Cargo.toml`; an input that once broke a rule is added to its corpus.
#![forbid(unsafe_code)]

pub mod envelope_decode;
pub mod server_bytes;
pub mod short_string;
pub mod uri;

/// The body of a target: panics where `bytes` break a rule.
pub type Body = fn(bytes: &[u8]);

/// Every target by name, which is also the name of its binary and of its folder of seeds.
pub const TARGETS: &[(&str, Body)] = &[
    ("envelope_decode", envelope_decode::body),
    ("server_bytes", server_bytes::body),
    ("short_string", short_string::body),
    ("uri", uri::body),
];
