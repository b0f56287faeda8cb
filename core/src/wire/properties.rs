//! The property list of a content header (AMQP 0-9-1, 4.2.6.1).

use std::fmt;

use amq_protocol::protocol::basic::{AMQPProperties, parse_properties};
use bytes::{BufMut, BytesMut};

use super::depth::{self, TableFault};
use super::method::BASIC;
use super::reader::Reader;
use super::table::{self, TooDeep};
use super::{MAX_TABLE_DEPTH, put};
use crate::message::{DeliveryMode, Properties};
use crate::table::{Table, Value};
use crate::text::ShortString;

/// The header that carries a publish's sequence number to the broker and, in a return, back.
///
/// It belongs to one publish on one channel: a copy of a message must not keep it.
pub const MARK_HEADER: &str = "x-leveret-mark";

const MARK: ShortString = ShortString::from_static(MARK_HEADER);

/// The flags of the properties, the first in the highest bit. The lowest would announce a second flag word.
mod flag {
    pub(super) const CONTENT_TYPE: u16 = 1 << 15;
    pub(super) const CONTENT_ENCODING: u16 = 1 << 14;
    pub(super) const HEADERS: u16 = 1 << 13;
    pub(super) const DELIVERY_MODE: u16 = 1 << 12;
    pub(super) const PRIORITY: u16 = 1 << 11;
    pub(super) const CORRELATION_ID: u16 = 1 << 10;
    pub(super) const REPLY_TO: u16 = 1 << 9;
    pub(super) const EXPIRATION: u16 = 1 << 8;
    pub(super) const MESSAGE_ID: u16 = 1 << 7;
    pub(super) const TIMESTAMP: u16 = 1 << 6;
    pub(super) const KIND: u16 = 1 << 5;
    pub(super) const USER_ID: u16 = 1 << 4;
    pub(super) const APP_ID: u16 = 1 << 3;
    pub(super) const CLUSTER_ID: u16 = 1 << 2;
    /// The two lowest bits: "more flags follow", and one that no property has.
    pub(super) const UNKNOWN: u16 = 0b11;
}

/// Why the properties of a delivery cannot be read. Its body can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PropertiesError {
    /// Tables are nested deeper than a reader should follow.
    TooDeep {
        /// The deepest that is read.
        limit: usize,
    },
    /// Lengths that do not fit, an unknown type letter, or a text that is not UTF-8.
    Malformed,
}

impl fmt::Display for PropertiesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep { limit } => write!(
                f,
                "the message's headers are nested more than {limit} levels deep: its publisher must flatten them"
            ),
            Self::Malformed => f.write_str(
                "the message's properties are not valid AMQP (lengths, types or UTF-8): its publisher must mend them",
            ),
        }
    }
}

impl std::error::Error for PropertiesError {}

/// What of a message goes into its property list: the properties, and the mark of the publish.
#[derive(Clone, Copy)]
pub(super) struct PropertyList<'a> {
    properties: &'a Properties,
    mark: Option<&'a Value>,
    /// Bytes of the header table, without the length before it.
    headers_len: usize,
    /// Which properties are present.
    flags: u16,
    /// Bytes of the whole list.
    len: usize,
}

impl<'a> PropertyList<'a> {
    /// Measures what is to be written. `mark` takes the place of a header of its name.
    pub(super) fn new(properties: &'a Properties, mark: Option<&'a Value>) -> Result<Self, TooDeep> {
        let mut list = Self { properties, mark, headers_len: 0, flags: 0, len: size_of::<u16>() };
        list.add_texts(list.texts_before());
        list.add_texts(list.texts_between());
        list.add_texts(list.texts_after());
        list.add(flag::DELIVERY_MODE, properties.delivery_mode.map(|_| 1));
        list.add(flag::PRIORITY, properties.priority.map(|_| 1));
        list.add(flag::TIMESTAMP, properties.timestamp.map(|_| 8));
        if mark.is_some() || !properties.headers.is_empty() {
            list.headers_len = table::fields_len(list.headers())?;
            list.add(flag::HEADERS, Some(list.headers_len.saturating_add(4)));
        }
        Ok(list)
    }

    fn add_texts<const N: usize>(&mut self, texts: [(u16, &Option<ShortString>); N]) {
        for (flag, text) in texts {
            if let Some(text) = text {
                self.add(flag, Some(1 + text.len()));
            }
        }
    }

    fn add(&mut self, flag: u16, bytes: Option<usize>) {
        if let Some(bytes) = bytes {
            self.flags |= flag;
            self.len = self.len.saturating_add(bytes);
        }
    }

    /// Bytes of the list, its flags included.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Writes the list.
    pub(super) fn put(&self, out: &mut BytesMut) {
        let p = self.properties;
        out.put_u16(self.flags);
        put_texts(out, self.texts_before());
        if self.flags & flag::HEADERS != 0 {
            put::length(out, self.headers_len);
            table::put_fields(out, self.headers());
        }
        if let Some(mode) = p.delivery_mode {
            out.put_u8(match mode {
                DeliveryMode::Transient => 1,
                DeliveryMode::Persistent => 2,
            });
        }
        if let Some(priority) = p.priority {
            out.put_u8(priority);
        }
        put_texts(out, self.texts_between());
        if let Some(timestamp) = p.timestamp {
            out.put_u64(timestamp);
        }
        put_texts(out, self.texts_after());
    }

    fn headers(&self) -> impl Iterator<Item = (&'a ShortString, &'a Value)> + use<'a> {
        let mark = self.mark.map(|mark| (&MARK_NAME, mark));
        let marked = mark.is_some();
        let own = self.properties.headers.iter().filter(move |(name, _)| !(marked && **name == MARK));
        own.chain(mark)
    }

    const fn texts_before(&self) -> [(u16, &'a Option<ShortString>); 2] {
        let p = self.properties;
        [(flag::CONTENT_TYPE, &p.content_type), (flag::CONTENT_ENCODING, &p.content_encoding)]
    }

    const fn texts_between(&self) -> [(u16, &'a Option<ShortString>); 4] {
        let p = self.properties;
        [
            (flag::CORRELATION_ID, &p.correlation_id),
            (flag::REPLY_TO, &p.reply_to),
            (flag::EXPIRATION, &p.expiration),
            (flag::MESSAGE_ID, &p.message_id),
        ]
    }

    const fn texts_after(&self) -> [(u16, &'a Option<ShortString>); 4] {
        let p = self.properties;
        [
            (flag::KIND, &p.kind),
            (flag::USER_ID, &p.user_id),
            (flag::APP_ID, &p.app_id),
            (flag::CLUSTER_ID, &p.cluster_id),
        ]
    }
}

/// A place for the mark's name to be borrowed from.
static MARK_NAME: ShortString = MARK;

fn put_texts<const N: usize>(out: &mut BytesMut, texts: [(u16, &Option<ShortString>); N]) {
    for (_, text) in texts {
        if let Some(text) = text {
            put::short_string(out, text);
        }
    }
}

/// The payload of a content header frame, its properties not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentHeader<'a> {
    pub(crate) body_size: u64,
    pub(crate) properties: &'a [u8],
}

/// Splits the payload of a content header frame. `None` if it is too short, or of a class without content.
pub(crate) fn split_header(payload: &[u8]) -> Option<ContentHeader<'_>> {
    let mut reader = Reader::new(payload);
    let class = reader.u16()?;
    let _weight = reader.u16()?;
    let body_size = reader.u64()?;
    (class == BASIC).then(|| ContentHeader { body_size, properties: reader.rest() })
}

/// Reads a property list, with a bound on the depth of its headers before they are parsed.
pub(crate) fn decode(raw: &[u8]) -> Result<Properties, PropertiesError> {
    check_headers(raw)?;
    match parse_properties(raw) {
        Ok(([], properties)) => Ok(from_amq(&properties)),
        Ok(_) | Err(_) => Err(PropertiesError::Malformed),
    }
}

/// The mark of a publish in the property list of its return, if it is there.
pub(crate) fn decode_mark(raw: &[u8]) -> Option<i64> {
    decode(raw).ok()?.headers.get(MARK_HEADER)?.as_i64()
}

fn check_headers(raw: &[u8]) -> Result<(), PropertiesError> {
    let mut reader = Reader::new(raw);
    let flags = reader.u16().ok_or(PropertiesError::Malformed)?;
    if flags & flag::UNKNOWN != 0 {
        return Err(PropertiesError::Malformed);
    }
    if flags & flag::HEADERS == 0 {
        return Ok(());
    }
    for before in [flag::CONTENT_TYPE, flag::CONTENT_ENCODING] {
        if flags & before != 0 {
            reader.short_bytes().ok_or(PropertiesError::Malformed)?;
        }
    }
    depth::check_table(reader.rest()).map_err(|fault| match fault {
        TableFault::TooDeep => PropertiesError::TooDeep { limit: MAX_TABLE_DEPTH },
        TableFault::Malformed => PropertiesError::Malformed,
    })
}

fn from_amq(properties: &AMQPProperties) -> Properties {
    let text = |text: &Option<_>| text.as_ref().map(table::short_from_amq);
    Properties {
        content_type: text(properties.content_type()),
        content_encoding: text(properties.content_encoding()),
        headers: properties.headers().as_ref().map_or_else(Table::new, table::from_amq),
        // RabbitMQ: 2 is persistent, everything else is not.
        delivery_mode: properties.delivery_mode().map(|mode| match mode {
            2 => DeliveryMode::Persistent,
            _ => DeliveryMode::Transient,
        }),
        priority: *properties.priority(),
        correlation_id: text(properties.correlation_id()),
        reply_to: text(properties.reply_to()),
        expiration: text(properties.expiration()),
        message_id: text(properties.message_id()),
        timestamp: *properties.timestamp(),
        kind: text(properties.kind()),
        user_id: text(properties.user_id()),
        app_id: text(properties.app_id()),
        cluster_id: text(properties.cluster_id()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::testing::any_properties;

    fn encoded(properties: &Properties, mark: Option<&Value>) -> BytesMut {
        let list = PropertyList::new(properties, mark).unwrap();
        let mut out = BytesMut::new();
        list.put(&mut out);
        assert_eq!(out.len(), list.len());
        out
    }

    /// amq-protocol keeps tables in the order of their names, ours come back in that order.
    fn sorted(table: &Table) -> Table {
        fn value(original: &Value) -> Value {
            match original {
                Value::Table(table) => Value::Table(sorted(table)),
                Value::Array(values) => Value::Array(values.iter().map(value).collect()),
                other => other.clone(),
            }
        }
        let mut fields: Vec<_> = table.iter().map(|(name, v)| (name.clone(), value(v))).collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        fields.into_iter().collect()
    }

    #[test]
    fn headers_that_are_nested_too_deep_are_refused_both_ways() {
        const NAME: ShortString = ShortString::from_static("t");
        let nested = |levels| (1..levels).fold(Table::new(), |inner, _| Table::new().with(NAME, inner));
        let with = |headers| Properties { headers, ..Properties::default() };
        assert!(decode(&encoded(&with(nested(MAX_TABLE_DEPTH)), None)).is_ok());
        assert!(PropertyList::new(&with(nested(MAX_TABLE_DEPTH + 1)), None).is_err());

        // Written by somebody else: one level more around a list that is still allowed.
        let inner = encoded(&with(nested(MAX_TABLE_DEPTH)), None);
        let mut deeper = BytesMut::from(&inner[..2]);
        deeper.put_u32(u32::try_from(inner.len() - 2 + 3).unwrap());
        deeper.put_slice(b"\x01tF");
        deeper.put_slice(&inner[2..]);
        assert_eq!(decode(&deeper), Err(PropertiesError::TooDeep { limit: MAX_TABLE_DEPTH }));
    }

    #[test]
    fn the_mark_takes_the_place_of_a_header_of_its_name() {
        let own = Table::new().with(MARK, "theirs").with(ShortString::from_static("kept"), true);
        let properties = Properties { headers: own, ..Properties::default() };
        let bytes = encoded(&properties, Some(&Value::I64(7)));
        assert_eq!(decode_mark(&bytes), Some(7));
        assert_eq!(decode(&bytes).unwrap().headers.len(), 2);
        let names = bytes.windows(MARK.len()).filter(|window| *window == MARK.as_bytes());
        assert_eq!(names.count(), 1, "readers may take the first or the last of two");
        assert_eq!(decode_mark(&encoded(&properties, None)), None);
    }

    #[test]
    fn a_text_or_a_key_that_is_not_utf8_is_malformed() {
        // A message-id, then a header key.
        for bytes in [&b"\x00\x80\x01\xFF"[..], b"\x20\x00\x00\x00\x00\x04\x01\xFFt\x01"] {
            assert_eq!(decode(bytes), Err(PropertiesError::Malformed));
        }
        assert_eq!(decode(b""), Err(PropertiesError::Malformed));
        assert_eq!(decode(b"\x00\x01"), Err(PropertiesError::Malformed));
        assert_eq!(decode(b"\x00\x00rest"), Err(PropertiesError::Malformed));
    }

    #[test]
    fn the_letter_s_is_a_16_bit_integer() {
        let bytes = b"\x20\x00\x00\x00\x00\x07\x03keys\x00\x80";
        assert_eq!(decode(bytes).unwrap().headers.get("key"), Some(&Value::I16(128)));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(properties in any_properties()) {
            let read = decode(&encoded(&properties, None)).unwrap();
            let headers = sorted(&properties.headers);
            prop_assert_eq!(read, Properties { headers, ..properties });
        }

        #[test]
        fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
            let _ = decode(&[&[0x20, 0][..], &bytes].concat());
            let _ = split_header(&bytes);
        }
    }
}
