//! `fuzz/run.sh wire_differential`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::wire_differential::body(bytes));
