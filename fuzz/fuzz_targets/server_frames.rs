//! `fuzz/run.sh server_frames`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::server_frames::body(bytes));
