//! `fuzz/run.sh server_bytes`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::server_bytes::body(bytes));
