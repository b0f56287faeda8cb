//! The few ways in which AMQP writes lengths and texts (AMQP 0-9-1, 4.2.5).

use bytes::{BufMut, BytesMut};

use crate::text::ShortString;

/// A `shortstr`.
pub(super) fn short_string(out: &mut BytesMut, text: &ShortString) {
    out.put_u8(u8::try_from(text.len()).expect("a ShortString has at most 255 bytes"));
    out.put_slice(text.as_bytes());
}

/// The 32-bit length before a table, an array, a long string or a frame's payload.
///
/// Callers measure what they write before they write it, and nothing larger than a frame is written.
pub(super) fn length(out: &mut BytesMut, bytes: usize) {
    out.put_u32(u32::try_from(bytes).expect("nothing written is larger than a frame"));
}

/// Eight flags of a method, the first in the lowest bit (AMQP 0-9-1, 4.2.5.2).
pub(super) fn flags(out: &mut BytesMut, flags: [bool; 2]) {
    out.put_u8(u8::from(flags[0]) | u8::from(flags[1]) << 1);
}
