//! `fuzz/run.sh name_roundtrip`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::name_roundtrip::body(bytes));
