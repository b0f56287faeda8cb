//! The bodies of the fuzz targets: each is a function over any bytes that panics where a rule is broken.
//!
//! They are here rather than in `leveret-fuzz` so that they can use the models that the tests use. The feature
//! `fuzzing` is for that crate alone: it holds the binaries, the seeds, and the test that replays the seeds.

pub mod ledger_ops;
