//! Field tables as plain values: queue arguments and message headers.
//!
//! This is leveret's own type, so that no codec shows in a public signature. The module `wire` turns it into
//! bytes and back.

use std::fmt;

use bytes::Bytes;

use crate::text::ShortString;

/// One field of a [`Table`] (AMQP 0-9-1, 4.2.5.5, as RabbitMQ reads the type letters).
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `t`
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s` (RabbitMQ), 16 bits signed and not a short string
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l`, the form in which leveret sends every integer
    I64(i64),
    /// `f`
    F32(f32),
    /// `d`
    F64(f64),
    /// `D`: `value` divided by ten to the power of `scale`
    Decimal {
        /// Digits after the decimal point.
        scale: u8,
        /// The digits.
        value: u32,
    },
    /// `S`: a long string. Usually UTF-8, but the protocol does not say so.
    LongString(Bytes),
    /// `A`
    Array(Vec<Value>),
    /// `T`: seconds since 1970
    Timestamp(u64),
    /// `F`
    Table(Table),
    /// `x`
    ByteArray(Bytes),
    /// `V`
    Void,
}

impl Value {
    /// The value as an integer, whatever integer type it was sent in.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::I8(n) => Some(n.into()),
            Self::U8(n) => Some(n.into()),
            Self::I16(n) => Some(n.into()),
            Self::U16(n) => Some(n.into()),
            Self::I32(n) => Some(n.into()),
            Self::U32(n) => Some(n.into()),
            Self::I64(n) => Some(n),
            _ => None,
        }
    }

    /// The value as text, where it is a long string of UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::LongString(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The value as a table.
    #[must_use]
    pub const fn as_table(&self) -> Option<&Table> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The value as an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::LongString(Bytes::from_static(text.as_bytes()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::LongString(text.into())
    }
}

impl From<&ShortString> for Value {
    fn from(text: &ShortString) -> Self {
        Self::LongString(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::I64(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::I64(number.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Table> for Value {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(v) => write!(f, "{v}"),
            Self::I8(v) => write!(f, "{v}"),
            Self::U8(v) => write!(f, "{v}"),
            Self::I16(v) => write!(f, "{v}"),
            Self::U16(v) => write!(f, "{v}"),
            Self::I32(v) => write!(f, "{v}"),
            Self::U32(v) => write!(f, "{v}"),
            Self::I64(v) => write!(f, "{v}"),
            Self::F32(v) => write!(f, "{v}"),
            Self::F64(v) => write!(f, "{v}"),
            Self::Decimal { scale, value } => write!(f, "{value}e-{scale}"),
            Self::LongString(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => write!(f, "{text:?}"),
                Err(_) => write!(f, "{bytes:?}"),
            },
            Self::Array(values) => f.debug_list().entries(values).finish(),
            Self::Timestamp(v) => write!(f, "timestamp {v}"),
            Self::Table(table) => table.fmt(f),
            Self::ByteArray(bytes) => write!(f, "{bytes:?}"),
            Self::Void => f.write_str("void"),
        }
    }
}

/// Named fields, in the order in which they were added. A name occurs once: the last value stays.
#[derive(Clone, Default, PartialEq)]
pub struct Table(Vec<(ShortString, Value)>);

impl Table {
    /// A table with no fields; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// A table of fields whose names are known to differ. [`Table::insert`] looks for the name every time, which
    /// a peer could make expensive: a frame holds some 25,000 fields.
    pub(crate) fn from_distinct(fields: Vec<(ShortString, Value)>) -> Self {
        Self(fields)
    }

    /// The table with one more field.
    #[must_use]
    pub fn with(mut self, name: ShortString, value: impl Into<Value>) -> Self {
        self.insert(name, value);
        self
    }

    /// Adds a field, in place of an earlier one of that name.
    pub fn insert(&mut self, name: ShortString, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Looks a field up.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The fields in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ShortString, &Value)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// The number of fields.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no fields.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(ShortString, Value)> for Table {
    fn from_iter<I: IntoIterator<Item = (ShortString, Value)>>(fields: I) -> Self {
        let mut table = Self::new();
        for (name, value) in fields {
            table.insert(name, value);
        }
        table
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: ShortString = ShortString::from_static("x-max-priority");

    #[test]
    fn a_name_occurs_once_and_keeps_its_place() {
        let table =
            Table::new().with(NAME, 5_i64).with(ShortString::from_static("b"), "text").with(NAME, 10_i64);
        assert_eq!(table.len(), 2);
        assert_eq!(table.iter().next(), Some((&NAME, &Value::I64(10))));
    }

    #[test]
    fn every_integer_type_reads_as_a_number() {
        for value in [Value::I8(7), Value::U8(7), Value::I16(7), Value::U16(7), Value::I32(7), Value::U32(7)]
        {
            assert_eq!(value.as_i64(), Some(7));
        }
        assert_eq!(Value::from("7").as_i64(), None);
    }
}
