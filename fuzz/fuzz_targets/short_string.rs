//! `fuzz/run.sh short_string`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_fuzz::short_string::body(bytes));
