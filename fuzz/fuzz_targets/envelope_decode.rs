//! `cargo fuzz run envelope_decode --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_fuzz::envelope_decode::body(bytes));
