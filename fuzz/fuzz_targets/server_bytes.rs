//! `cargo fuzz run server_bytes --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_fuzz::server_bytes::body(bytes));
