//! `fuzz/run.sh short_string`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::short_string::body(bytes));
