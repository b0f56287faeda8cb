//! `fuzz/run.sh lanes_ops`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::lanes_ops::body(bytes));
