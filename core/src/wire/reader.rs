//! A cursor over bytes that may end anywhere.

use crate::text::ShortString;

/// Reads the fields of a method. `None` means that the bytes end before the field does.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// One flag that has its octet to itself.
    pub(super) fn flag(&mut self) -> Option<bool> {
        self.u8().map(|octet| octet & 1 != 0)
    }

    /// The bytes of a `shortstr`, whatever they are.
    pub(super) fn short_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.bytes(length.into())
    }

    /// A `shortstr` as text. Bytes that are not UTF-8 read as U+FFFD: RabbitMQ cuts long reply texts at a byte
    /// and relays routing keys as they came, and neither may end a connection.
    pub(super) fn short_string(&mut self) -> Option<ShortString> {
        self.short_bytes().map(lossy)
    }

    /// The bytes of a `longstr`.
    pub(super) fn long_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}

/// Bytes as text, with U+FFFD for what is not UTF-8.
pub(crate) fn lossy(bytes: &[u8]) -> ShortString {
    // The replacement is longer than what it replaces, so the result may have to be cut.
    ShortString::truncated(&String::from_utf8_lossy(bytes))
}
