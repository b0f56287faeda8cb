//! `fuzz/run.sh ledger_ops`
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leveret_core::fuzzing::ledger_ops::body(bytes));
