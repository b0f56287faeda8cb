//! The properties of a message as the bytes they came in (AMQP 0-9-1, 4.2.6.1).
//!
//! RabbitMQ relays what a publisher sent, also a header that nests thousands deep or text that is not UTF-8.
//! So properties are split into fields and never decoded as a whole; the few that a broker acts on are read
//! from their field.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use super::table::{self, Malformed};

/// The fields of the class `basic`, in the order of their flags from bit 15 down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    Headers = 2,
    Priority = 4,
    Expiration = 7,
    MessageId = 8,
    UserId = 11,
}

/// How each field is stored, in the order of the flags.
const LAYOUT: [Kind; 14] = [
    Kind::Text,  // content-type
    Kind::Text,  // content-encoding
    Kind::Table, // headers
    Kind::Octet, // delivery-mode
    Kind::Octet, // priority
    Kind::Text,  // correlation-id
    Kind::Text,  // reply-to
    Kind::Text,  // expiration
    Kind::Text,  // message-id
    Kind::Long,  // timestamp
    Kind::Text,  // type
    Kind::Text,  // user-id
    Kind::Text,  // app-id
    Kind::Text,  // cluster-id
];

#[derive(Clone, Copy)]
enum Kind {
    Octet,
    Long,
    Text,
    Table,
}

/// Property flags and values of one message, known to be well-formed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Properties {
    raw: Bytes,
    fields: [Option<Range<usize>>; LAYOUT.len()],
}

impl Properties {
    /// Finds the fields. Text may be anything; a table must be one, however deep it nests.
    pub(super) fn parse(raw: Bytes) -> Result<Self, Malformed> {
        let flags = u16::from_be_bytes(*raw.first_chunk().ok_or(Malformed)?);
        // Bit 0 would announce more flags and bit 1 is reserved: the class has 14 fields.
        if flags & 0b11 != 0 {
            return Err(Malformed);
        }
        let mut fields = [const { None }; LAYOUT.len()];
        let mut at = size_of_val(&flags);
        for (index, kind) in LAYOUT.into_iter().enumerate() {
            if flags & flag(index) == 0 {
                continue;
            }
            let rest = raw.get(at..).ok_or(Malformed)?;
            let length = match kind {
                Kind::Octet => 1,
                Kind::Long => 8,
                Kind::Text => 1 + usize::from(*rest.first().ok_or(Malformed)?),
                Kind::Table => {
                    let length = u32::from_be_bytes(*rest.first_chunk().ok_or(Malformed)?) as usize;
                    table::depth(rest.get(4..).and_then(|rest| rest.get(..length)).ok_or(Malformed)?)?;
                    4 + length
                }
            };
            if length > rest.len() {
                return Err(Malformed);
            }
            fields[index] = Some(at..at + length);
            at += length;
        }
        if at != raw.len() {
            return Err(Malformed);
        }
        Ok(Self { raw, fields })
    }

    /// Flags and values, for the content header of a delivery.
    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The bytes of a text property without their length.
    pub(super) fn text(&self, property: Property) -> Option<&[u8]> {
        self.field(property).map(|field| &field[1..])
    }

    /// A property that is one octet.
    pub(super) fn octet(&self, property: Property) -> Option<u8> {
        self.field(property).map(|field| field[0])
    }

    /// The contents of the headers, empty where there are none.
    pub(super) fn headers(&self) -> &[u8] {
        self.field(Property::Headers).map_or(&[], |field| &field[4..])
    }

    fn field(&self, property: Property) -> Option<&[u8]> {
        self.fields[property as usize].clone().map(|range| &self.raw[range])
    }

    /// The same with other headers (the contents of a table).
    pub(super) fn with_headers(&self, headers: &[u8]) -> Result<Self, Malformed> {
        self.rewritten(headers, true)
    }

    /// The same with other headers (the contents of a table) and without `expiration`.
    pub(super) fn reborn(&self, headers: &[u8]) -> Result<Self, Malformed> {
        self.rewritten(headers, false)
    }

    fn rewritten(&self, headers: &[u8], keep_expiration: bool) -> Result<Self, Malformed> {
        let mut values = BytesMut::new();
        let mut flags = 0;
        for (index, field) in self.fields.iter().enumerate() {
            if index == Property::Headers as usize {
                values.put_u32(u32::try_from(headers.len()).map_err(|_| Malformed)?);
                values.extend_from_slice(headers);
            } else if index == Property::Expiration as usize && !keep_expiration {
                continue;
            } else if let Some(range) = field.clone() {
                values.extend_from_slice(&self.raw[range]);
            } else {
                continue;
            }
            flags |= flag(index);
        }
        let mut raw = BytesMut::with_capacity(size_of_val(&flags) + values.len());
        raw.put_u16(flags);
        raw.extend_from_slice(&values);
        Self::parse(raw.freeze())
    }
}

const fn flag(index: usize) -> u16 {
    1 << (15 - index)
}
