//! `fuzz/run.sh mismatch_text`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::mismatch_text::body(bytes));
