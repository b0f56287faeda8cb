//! `fuzz/run.sh envelope_roundtrip`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::envelope_roundtrip::body(bytes));
