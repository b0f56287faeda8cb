//! Field tables as bytes: how deep they nest and where their fields lie (AMQP 0-9-1, 4.2.5.5).
//!
//! Nothing here recurses. A parser that does can be made to overflow its stack by one message of a few
//! thousand nested tables, and RabbitMQ relays such a message; so depth is measured here before a table is
//! given to amq-protocol, and headers that only pass through are never parsed at all.

use amq_protocol::types::parsing::parse_field_table;
use amq_protocol::types::{AMQPValue, FieldTable};
use leveret_core::table::{Table, Value};
use leveret_core::text::ShortString;

/// The deepest table that is parsed. Arguments of real clients nest two or three deep.
pub(super) const MAX_PARSED_DEPTH: usize = 32;

/// The bytes are not a field table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// One field of a table, as the bytes it came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    /// The name; UTF-8 only where the sender kept to the protocol.
    pub(super) name: &'a [u8],
    /// The type letter.
    pub(super) kind: u8,
    /// The value, its own length field included.
    pub(super) value: &'a [u8],
    /// Name, type letter and value.
    pub(super) raw: &'a [u8],
}

/// How many tables and arrays are open at once at the deepest point of `contents`, which are the bytes of a
/// table after its length. A flat table has depth 1.
pub(super) fn depth(contents: &[u8]) -> Result<usize, Malformed> {
    depth_within(contents, true)
}

/// The same for the contents of an array, whose values have no names.
pub(super) fn array_depth(contents: &[u8]) -> Result<usize, Malformed> {
    depth_within(contents, false)
}

fn depth_within(contents: &[u8], named: bool) -> Result<usize, Malformed> {
    // Where each open container ends and whether its values have names. One entry takes at least five bytes
    // of input, so this is bounded by the frame.
    let mut open = vec![(contents.len(), named)];
    let (mut at, mut deepest) = (0, 1);
    while let Some(&(end, named)) = open.last() {
        if at == end {
            open.pop();
            continue;
        }
        if named {
            at += 1 + usize::from(*contents.get(at).ok_or(Malformed)?);
        }
        let kind = *contents.get(at).ok_or(Malformed)?;
        at += 1;
        let length = value_length(kind, contents.get(at..).ok_or(Malformed)?)?;
        if end.checked_sub(at).is_none_or(|room| room < length) {
            return Err(Malformed);
        }
        if matches!(kind, b'A' | b'F') {
            open.push((at + length, kind == b'F'));
            deepest = deepest.max(open.len());
            at += LENGTH;
        } else {
            at += length;
        }
    }
    Ok(deepest)
}

/// The fields of a table, given the bytes after its length.
pub(super) fn fields(contents: &[u8]) -> impl Iterator<Item = Result<Field<'_>, Malformed>> {
    let mut rest = contents;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = first_field(rest);
        // After a broken field nothing that follows can be trusted.
        rest = field.as_ref().map_or(&[], |field| &rest[field.raw.len()..]);
        Some(field)
    })
}

fn first_field(bytes: &[u8]) -> Result<Field<'_>, Malformed> {
    let name_end = 1 + usize::from(*bytes.first().ok_or(Malformed)?);
    let kind = *bytes.get(name_end).ok_or(Malformed)?;
    let value = bytes.get(name_end + 1..).ok_or(Malformed)?;
    let length = value_length(kind, value)?;
    Ok(Field {
        name: &bytes[1..name_end],
        kind,
        value: value.get(..length).ok_or(Malformed)?,
        raw: &bytes[..name_end + 1 + length],
    })
}

/// The size of the length field of strings, arrays and tables.
const LENGTH: usize = 4;

/// How many bytes a value takes, its length field included; they need not all be there.
fn value_length(kind: u8, value: &[u8]) -> Result<usize, Malformed> {
    Ok(match kind {
        b'V' => 0,
        b't' | b'b' | b'B' => 1,
        b's' | b'U' | b'u' => 2,
        b'I' | b'i' | b'f' => 4,
        b'D' => 5,
        b'l' | b'L' | b'd' | b'T' => 8,
        b'S' | b'x' | b'A' | b'F' => {
            let length = value.first_chunk::<LENGTH>().ok_or(Malformed)?;
            LENGTH + u32::from_be_bytes(*length) as usize
        }
        _ => return Err(Malformed),
    })
}

/// One value of a table, given the bytes after the table's length. None where there is none that can be read.
pub(super) fn value(contents: &[u8], name: &str) -> Option<Value> {
    let field = fields(contents).map_while(Result::ok).find(|field| field.name == name.as_bytes())?;
    if depth(field.raw).ok()? > MAX_PARSED_DEPTH {
        return None;
    }
    let length = u32::try_from(field.raw.len()).ok()?;
    let alone = [&length.to_be_bytes(), field.raw].concat();
    let ([], parsed) = parse_field_table(alone.as_slice()).ok()? else { return None };
    to_table(&parsed).remove(name)
}

/// A parsed table as leveret's own type. Recurses, so the table must not be deeper than
/// [`MAX_PARSED_DEPTH`]: the caller measured it before it was parsed.
pub(super) fn to_table(parsed: &FieldTable) -> Table {
    parsed.into_iter().map(|(name, value)| (ShortString::truncated(name.as_str()), to_value(value))).collect()
}

fn to_value(parsed: &AMQPValue) -> Value {
    match parsed {
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
        AMQPValue::DecimalValue(v) => Value::Decimal { scale: v.scale, value: v.value },
        AMQPValue::ShortString(v) => Value::LongString(v.as_str().as_bytes().to_vec().into()),
        AMQPValue::LongString(v) => Value::LongString(v.as_bytes().to_vec().into()),
        AMQPValue::FieldArray(v) => Value::Array(v.as_slice().iter().map(to_value).collect()),
        AMQPValue::Timestamp(v) => Value::Timestamp(*v),
        AMQPValue::FieldTable(v) => Value::Table(to_table(v)),
        AMQPValue::ByteArray(v) => Value::ByteArray(v.as_slice().to_vec().into()),
        AMQPValue::Void => Value::Void,
    }
}
