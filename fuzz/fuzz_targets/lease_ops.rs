//! `fuzz/run.sh lease_ops`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::lease_ops::body(bytes));
