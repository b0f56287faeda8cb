//! `fuzz/run.sh envelope_decode`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::envelope_decode::body(bytes));
