//! `fuzz/run.sh uri`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::uri::body(bytes));
