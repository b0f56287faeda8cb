//! Fuzz targets: each is a function over any bytes that panics where a rule is broken.
//!
//! The function of a target lives in `core/src/fuzzing/`, where it can use the models of the tests, and its seeds in
//! `corpus/<target>/`, so that every test run replays them on a stable compiler. The binary in `fuzz_targets/` is three
//! lines: `fuzz/run.sh <target>` searches with it on a stable compiler, `cargo +nightly fuzz run <target> --features
//! libfuzzer` with cargo-fuzz. A new target is added to [`TARGETS`] and to `Cargo.toml`; an input that once broke a rule
//! is added to its corpus.
#![forbid(unsafe_code)]

pub use leveret_core::fuzzing::{Body, TARGETS};
