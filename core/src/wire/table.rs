//! Field tables (AMQP 0-9-1, 4.2.5.5), with RabbitMQ's type letters.
//!
//! Written by hand, in the order of the fields and in one pass; read by amq-protocol, after [`super::depth`].

use amq_protocol::types::{AMQPValue, DecimalValue, FieldArray, FieldTable};
use bytes::{BufMut, Bytes, BytesMut};

use super::{MAX_TABLE_DEPTH, put};
use crate::table::{Table, Value};
use crate::text::ShortString;

/// A table of more than [`MAX_TABLE_DEPTH`] levels: no consumer of ours would read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooDeep;

/// Bytes of the fields of a table, without the length before them.
pub(super) fn fields_len<'a>(
    fields: impl Iterator<Item = (&'a ShortString, &'a Value)>,
) -> Result<usize, TooDeep> {
    fields_len_at(fields, 1)
}

/// Writes fields. Their length, and that they are not too deep, is known from [`fields_len`].
pub(super) fn put_fields<'a>(out: &mut BytesMut, fields: impl Iterator<Item = (&'a ShortString, &'a Value)>) {
    for (name, value) in fields {
        put::short_string(out, name);
        put_value(out, value);
    }
}

fn fields_len_at<'a>(
    mut fields: impl Iterator<Item = (&'a ShortString, &'a Value)>,
    level: usize,
) -> Result<usize, TooDeep> {
    if level > MAX_TABLE_DEPTH {
        return Err(TooDeep);
    }
    fields.try_fold(0, |sum: usize, (name, value)| {
        Ok(sum.saturating_add(1 + name.len()).saturating_add(value_len(value, level)?))
    })
}

/// Bytes of a value and its type letter, within the table or array of that level.
fn value_len(value: &Value, level: usize) -> Result<usize, TooDeep> {
    let bytes = match value {
        Value::Void => 0,
        Value::Bool(_) | Value::I8(_) | Value::U8(_) => 1,
        Value::I16(_) | Value::U16(_) => 2,
        Value::I32(_) | Value::U32(_) | Value::F32(_) => 4,
        Value::Decimal { .. } => 5,
        Value::I64(_) | Value::F64(_) | Value::Timestamp(_) => 8,
        Value::LongString(bytes) | Value::ByteArray(bytes) => 4 + bytes.len(),
        Value::Array(values) => array_len(values, level + 1)?.saturating_add(4),
        Value::Table(table) => fields_len_at(table.iter(), level + 1)?.saturating_add(4),
    };
    Ok(bytes.saturating_add(1))
}

fn array_len(values: &[Value], level: usize) -> Result<usize, TooDeep> {
    if level > MAX_TABLE_DEPTH {
        return Err(TooDeep);
    }
    values.iter().try_fold(0, |sum: usize, value| Ok(sum.saturating_add(value_len(value, level)?)))
}

fn put_value(out: &mut BytesMut, value: &Value) {
    out.put_u8(letter(value));
    match value {
        Value::Void => {}
        Value::Bool(v) => out.put_u8(u8::from(*v)),
        Value::I8(v) => out.put_i8(*v),
        Value::U8(v) => out.put_u8(*v),
        Value::I16(v) => out.put_i16(*v),
        Value::U16(v) => out.put_u16(*v),
        Value::I32(v) => out.put_i32(*v),
        Value::U32(v) => out.put_u32(*v),
        Value::I64(v) => out.put_i64(*v),
        Value::F32(v) => out.put_f32(*v),
        Value::F64(v) => out.put_f64(*v),
        Value::Timestamp(v) => out.put_u64(*v),
        Value::Decimal { scale, value } => {
            out.put_u8(*scale);
            out.put_u32(*value);
        }
        Value::LongString(bytes) | Value::ByteArray(bytes) => {
            put::length(out, bytes.len());
            out.put_slice(bytes);
        }
        Value::Array(values) => put_sized(out, |out| values.iter().for_each(|value| put_value(out, value))),
        Value::Table(table) => put_sized(out, |out| put_fields(out, table.iter())),
    }
}

/// Writes something whose length goes before it.
fn put_sized(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let at = out.len();
    out.put_u32(0);
    write(out);
    let length = u32::try_from(out.len() - at - 4).expect("nothing written is larger than a frame");
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

const fn letter(value: &Value) -> u8 {
    match value {
        Value::Void => b'V',
        Value::Bool(_) => b't',
        Value::I8(_) => b'b',
        Value::U8(_) => b'B',
        Value::I16(_) => b's',
        Value::U16(_) => b'u',
        Value::I32(_) => b'I',
        Value::U32(_) => b'i',
        Value::I64(_) => b'l',
        Value::F32(_) => b'f',
        Value::F64(_) => b'd',
        Value::Timestamp(_) => b'T',
        Value::Decimal { .. } => b'D',
        Value::LongString(_) => b'S',
        Value::ByteArray(_) => b'x',
        Value::Array(_) => b'A',
        Value::Table(_) => b'F',
    }
}

/// The table as amq-protocol has it, for methods that carry arguments. It recurses: [`fields_len`] first.
pub(super) fn to_amq(table: &Table) -> FieldTable {
    let mut fields = FieldTable::default();
    for (name, value) in table.iter() {
        fields.insert(short_to_amq(name), value_to_amq(value));
    }
    fields
}

fn value_to_amq(value: &Value) -> AMQPValue {
    match value {
        Value::Void => AMQPValue::Void,
        Value::Bool(v) => AMQPValue::Boolean(*v),
        Value::I8(v) => AMQPValue::ShortShortInt(*v),
        Value::U8(v) => AMQPValue::ShortShortUInt(*v),
        Value::I16(v) => AMQPValue::ShortInt(*v),
        Value::U16(v) => AMQPValue::ShortUInt(*v),
        Value::I32(v) => AMQPValue::LongInt(*v),
        Value::U32(v) => AMQPValue::LongUInt(*v),
        Value::I64(v) => AMQPValue::LongLongInt(*v),
        Value::F32(v) => AMQPValue::Float(*v),
        Value::F64(v) => AMQPValue::Double(*v),
        Value::Timestamp(v) => AMQPValue::Timestamp(*v),
        Value::Decimal { scale, value } => {
            AMQPValue::DecimalValue(DecimalValue { scale: *scale, value: *value })
        }
        Value::LongString(bytes) => AMQPValue::LongString(bytes.to_vec().into()),
        Value::ByteArray(bytes) => AMQPValue::ByteArray(bytes.to_vec().into()),
        Value::Array(values) => {
            AMQPValue::FieldArray(FieldArray::from(values.iter().map(value_to_amq).collect::<Vec<_>>()))
        }
        Value::Table(table) => AMQPValue::FieldTable(to_amq(table)),
    }
}

/// The table that amq-protocol read, its fields in the order of their names.
pub(super) fn from_amq(table: &FieldTable) -> Table {
    Table::from_distinct(
        table.inner().iter().map(|(name, value)| (short_from_amq(name), value_from_amq(value))).collect(),
    )
}

fn value_from_amq(value: &AMQPValue) -> Value {
    match value {
        AMQPValue::Void => Value::Void,
        AMQPValue::Boolean(v) => Value::Bool(*v),
        AMQPValue::ShortShortInt(v) => Value::I8(*v),
        AMQPValue::ShortShortUInt(v) => Value::U8(*v),
        AMQPValue::ShortInt(v) => Value::I16(*v),
        AMQPValue::ShortUInt(v) => Value::U16(*v),
        AMQPValue::LongInt(v) => Value::I32(*v),
        AMQPValue::LongUInt(v) => Value::U32(*v),
        AMQPValue::LongLongInt(v) => Value::I64(*v),
        AMQPValue::Float(v) => Value::F32(*v),
        AMQPValue::Double(v) => Value::F64(*v),
        AMQPValue::Timestamp(v) => Value::Timestamp(*v),
        AMQPValue::DecimalValue(v) => Value::Decimal { scale: v.scale, value: v.value },
        // The parser never makes one: RabbitMQ's letter `s` is a 16-bit integer.
        AMQPValue::ShortString(v) => Value::LongString(Bytes::copy_from_slice(v.as_str().as_bytes())),
        AMQPValue::LongString(v) => Value::LongString(Bytes::copy_from_slice(v.as_bytes())),
        AMQPValue::ByteArray(v) => Value::ByteArray(Bytes::copy_from_slice(v.as_slice())),
        AMQPValue::FieldArray(v) => Value::Array(v.as_slice().iter().map(value_from_amq).collect()),
        AMQPValue::FieldTable(v) => Value::Table(from_amq(v)),
    }
}

/// Never panics: both types hold at most 255 bytes.
pub(super) fn short_to_amq(text: &ShortString) -> amq_protocol::types::ShortString {
    text.as_str().into()
}

pub(super) fn short_from_amq(text: &amq_protocol::types::ShortString) -> ShortString {
    ShortString::truncated(text.as_str())
}
