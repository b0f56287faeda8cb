//! `fuzz/run.sh table`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::table::body(bytes));
