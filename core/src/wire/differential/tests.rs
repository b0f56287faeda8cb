//! A little of what the fuzz targets do, on every test run.

use proptest::prelude::*;

use super::*;
use crate::wire::testing::{any_properties, any_short, any_table};

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..80)
}

/// A valid encoding with one byte changed, which reaches further than any bytes do.
fn nearly(mut bytes: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    if let Some(len) = bytes.len().checked_sub(1) {
        bytes[at % (len + 1)] = byte;
    }
    bytes
}

proptest! {
    #[test]
    fn tables_are_what_the_oracle_reads(table in any_table(), at: usize, byte: u8, noise in any_bytes()) {
        let whole = oracle_table(&table::to_amq(&table));
        check_table(&whole);
        check_table(&nearly(whole, at, byte));
        check_table(&noise);
    }

    #[test]
    fn property_lists_are_what_the_oracle_reads(properties in any_properties(), at: usize, byte: u8, noise in any_bytes()) {
        let whole = oracle_properties(&amq_properties(&properties));
        check_properties(&whole);
        check_properties(&nearly(whole.clone(), at, byte));
        check_properties(&noise);
        check_publish(1, [&ShortString::EMPTY, &ShortString::from_static("q")], byte, 7, &whole);
    }

    #[test]
    fn methods_are_what_the_oracle_reads(
        class in prop::sample::select(vec![10_u8, 20, 40, 50, 60, 85, 90]),
        method in 0..125_u8,
        arguments in any_bytes(),
        text in any_short(),
        flags: u8,
        table in any_table(),
    ) {
        check_incoming(&[&[0, class, 0, method][..], &arguments].concat());
        check_outgoing(u16::from(flags), &text, flags, &oracle_table(&table::to_amq(&table)));
    }

    #[test]
    fn frames_and_settlements_are_what_the_oracle_reads(
        kind in prop::sample::select(vec![1_u8, 2, 3, 8, 9, b'A']),
        channel: u8,
        payload in any_bytes(),
        at: usize,
        byte: u8,
        tag: u64,
    ) {
        let whole = crate::wire::script::raw(kind, channel.into(), &payload);
        check_frame(&whole);
        check_frame(&nearly(whole, at, byte));
        check_settlement(channel.into(), tag, byte);
    }
}
