//! Each hand-written path against amq-protocol's, over any input. The fuzz targets and the tests share this.

mod incoming;
#[cfg(test)]
mod tests;

use std::num::NonZeroU16;

use amq_protocol::frame::{AMQPContentHeader, AMQPFrame, WriteContext, gen_frame, parse_frame};
use amq_protocol::protocol::basic::{AMQPProperties, gen_properties, parse_properties};
use amq_protocol::protocol::{AMQPClass, basic};
use amq_protocol::types::FieldTable;
use amq_protocol::types::generation::gen_field_table;
use amq_protocol::types::parsing::parse_field_table;
use bytes::{Bytes, BytesMut};

use super::depth::{self, TableFault};
use super::frame::{self, FrameError, FrameKind};
use super::method::{self, BASIC, ConsumeOptions, DeleteIf, PublishHead, Settlement};
use super::properties::{self, MARK_HEADER, PropertiesError, PropertyList};
use super::table::{self, TooDeep, short_to_amq};
use super::{MAX_TABLE_DEPTH, put};
use crate::message::{DeliveryMode, Message, Properties};
use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::topology::{
    Binding, BindingDestination, ExchangeDeclaration, ExchangeKind, ExchangeName, QueueDeclaration,
    RoutingKey,
};

pub(crate) use incoming::check_incoming;

/// Inputs up to this size cannot nest so deep that the oracle overflows a stack: a level takes five bytes.
const SHALLOW: usize = 1_000;

/// Bytes as a field table, from its length on: both read the same tables, ours none that is too deep.
pub(crate) fn check_table(bytes: &[u8]) {
    let ours = depth::check_table(bytes);
    if ours == Err(TableFault::TooDeep) && bytes.len() > SHALLOW {
        return;
    }
    let oracle = parse_field_table(bytes);
    match (ours, oracle) {
        (Err(TableFault::TooDeep), _) | (Err(TableFault::Malformed), Err(_)) => {}
        (Err(TableFault::Malformed), Ok(_)) => unreachable!("the oracle reads what is malformed here"),
        // The walk does not look at names, which the oracle wants to be UTF-8.
        (Ok(()), Err(_)) => assert!(String::from_utf8(bytes.to_vec()).is_err(), "the oracle reads less"),
        (Ok(()), Ok((_, read))) => {
            let ours = table::from_amq(&read);
            assert!(depth_of(&ours) <= MAX_TABLE_DEPTH, "a walk that counts wrongly");
            let length = table::fields_len(ours.iter()).expect("it is not too deep");
            let mut written = BytesMut::new();
            put::length(&mut written, length);
            table::put_fields(&mut written, ours.iter());
            assert_eq!(written.len(), 4 + length, "it was measured wrongly");
            assert_eq!(written, oracle_table(&read), "it is written differently");
            assert_eq!(
                oracle_table(&table::to_amq(&ours)),
                oracle_table(&read),
                "it is converted differently"
            );
        }
    }
}

/// Bytes as a property list: both read the same lists, and ours is written as it is read.
pub(crate) fn check_properties(raw: &[u8]) {
    let ours = properties::decode(raw);
    if matches!(ours, Err(PropertiesError::TooDeep { .. })) && raw.len() > SHALLOW {
        return;
    }
    let oracle = parse_properties(raw).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, read)| read);
    let ours = match (ours, oracle) {
        (Err(PropertiesError::TooDeep { .. }), _) | (Err(_), None) => return,
        // Flags without a meaning.
        (Err(_), Some(_)) => return assert!(raw[1] & 0b11 != 0, "the oracle reads more"),
        (Ok(_), None) => unreachable!("the oracle reads less"),
        (Ok(ours), Some(oracle)) => {
            assert_eq!(oracle_properties(&amq_properties(&ours)), oracle_properties(&plain(oracle)));
            ours
        }
    };
    let list = PropertyList::new(&ours, None).expect("it is not too deep");
    let mut written = BytesMut::new();
    list.put(&mut written);
    assert_eq!(written.len(), list.len(), "it was measured wrongly");
    assert_eq!(written, oracle_properties(&amq_properties(&ours)), "it is written differently");
}

/// The method and the header of a publish. The properties are the list `raw`, where that is one.
pub(crate) fn check_publish(channel: u16, texts: [&ShortString; 2], flags: u8, mark: i64, raw: &[u8]) {
    let properties = properties::decode(raw).unwrap_or_default();
    let [exchange, routing_key] = texts.map(Clone::clone);
    let body = Bytes::from(vec![0; usize::from(flags)]);
    let mandatory = flags & 1 != 0;
    let mark = (flags & 2 != 0).then_some(Value::I64(mark));
    let message = Message { exchange, routing_key, mandatory, properties, body };
    let head = PublishHead::new(channel, &message, mark.as_ref()).expect("what was read is not too deep");
    let mut written = BytesMut::new();
    head.put(&mut written);
    assert_eq!(written.len(), head.len(), "it was measured wrongly");

    let mut marked = message.properties.clone();
    if let Some(mark) = mark {
        marked.headers.insert(ShortString::from_static(MARK_HEADER), mark);
    }
    let publish = basic::Publish {
        exchange: short_to_amq(&message.exchange),
        routing_key: short_to_amq(&message.routing_key),
        mandatory,
        immediate: false,
    };
    let body_size = message.body.len() as u64;
    let header = AMQPContentHeader { class_id: BASIC, body_size, properties: amq_properties(&marked) };
    let expected = [
        AMQPFrame::Method(channel, AMQPClass::Basic(basic::AMQPMethod::Publish(publish))),
        AMQPFrame::Header(channel, header),
    ];
    // Read and written again, since the oracle sorts headers and a float need not equal itself.
    let read = frames(&written);
    assert_eq!(read.iter().map(encode).collect::<Vec<_>>(), expected.iter().map(encode).collect::<Vec<_>>());
}

/// `basic.ack`, `basic.nack` and `basic.reject`.
pub(crate) fn check_settlement(channel: u16, delivery_tag: u64, choice: u8) {
    let (multiple, requeue) = (choice & 1 != 0, choice & 2 != 0);
    let (settlement, expected) = match choice >> 2 & 3 {
        0 => (Settlement::Ack { multiple }, basic::AMQPMethod::Ack(basic::Ack { delivery_tag, multiple })),
        1 => (
            Settlement::Nack { multiple, requeue },
            basic::AMQPMethod::Nack(basic::Nack { delivery_tag, multiple, requeue }),
        ),
        _ => (
            Settlement::Reject { requeue },
            basic::AMQPMethod::Reject(basic::Reject { delivery_tag, requeue }),
        ),
    };
    let mut written = BytesMut::new();
    method::put_settlement(&mut written, channel, delivery_tag, settlement);
    assert_eq!(written, encode(&AMQPFrame::Method(channel, AMQPClass::Basic(expected)))[..]);
    assert_eq!(written.len(), method::SETTLEMENT_FRAME);
}

/// Bytes as a frame: where one ends, and whose it is.
pub(crate) fn check_frame(bytes: &[u8]) {
    let limit = 4_096;
    match frame::peek(bytes, limit) {
        Ok(Some(found)) => {
            assert!(found.len() <= bytes.len().min(limit as usize));
            let whole = &bytes[..found.len()];
            match (found.kind, parse_frame(whole)) {
                (FrameKind::Body, Ok((rest, AMQPFrame::Body(channel, payload)))) => {
                    assert!(rest.is_empty() && channel == found.channel);
                    assert_eq!(payload, &whole[found.payload()]);
                }
                (FrameKind::Heartbeat, Ok((_, AMQPFrame::Heartbeat))) => assert_eq!(found.channel, 0),
                (FrameKind::Heartbeat, Ok((_, AMQPFrame::InvalidHeartbeat(channel)))) => {
                    assert_eq!(found.channel, channel);
                }
                (FrameKind::Method, Ok((_, AMQPFrame::Method(channel, _))))
                | (FrameKind::Header, Ok((_, AMQPFrame::Header(channel, _)))) => {
                    assert_eq!(found.channel, channel);
                }
                // A frame around a payload that the oracle cannot read.
                (FrameKind::Method | FrameKind::Header, Err(_)) => {}
                (kind, oracle) => unreachable!("{kind:?} and {oracle:?}"),
            }
        }
        Ok(None) => assert!(bytes.is_empty() || bytes[0] == b'A' || parse_frame(bytes).is_err()),
        Err(FrameError::TooLarge { bytes: claimed, .. }) => assert!(claimed > limit.into()),
        Err(FrameError::UnknownKind { found }) => assert!(found == b'A' || parse_frame(bytes).is_err()),
        Err(FrameError::BadEnd { .. }) => assert!(parse_frame(bytes).is_err()),
    }
}

/// Every method that we send, as one frame that the oracle reads and would write the same.
pub(crate) fn check_outgoing(channel: u16, text: &ShortString, flags: u8, raw_table: &[u8]) {
    let flag = |bit: u8| flags & 1 << bit != 0;
    let arguments = match depth::check_table(raw_table).map(|()| parse_field_table(raw_table)) {
        Ok(Ok((_, read))) => table::from_amq(&read),
        _ => Table::new(),
    };
    let number = channel;
    let count = NonZeroU16::new(u16::from(flags) + 1).unwrap_or(NonZeroU16::MAX);
    let options = ConsumeOptions { no_ack: flag(0), exclusive: flag(1), arguments: arguments.clone() };
    let queue = QueueDeclaration {
        name: text.clone(),
        passive: flag(0),
        durable: flag(1),
        exclusive: flag(2),
        auto_delete: flag(3),
        arguments: arguments.clone(),
    };
    let only_if = DeleteIf { unused: flag(0), empty: flag(1) };
    let mut written: Vec<Result<Bytes, TooDeep>> = vec![
        Ok(method::connection_open(text)),
        Ok(method::connection_close(channel, text)),
        Ok(method::connection_update_secret(text.as_str(), text)),
        Ok(method::channel_open(number)),
        Ok(method::channel_flow(number, flag(0))),
        Ok(method::channel_flow_ok(number, flag(0))),
        Ok(method::channel_close(number)),
        Ok(method::channel_close_ok(number)),
        Ok(method::confirm_select(number)),
        Ok(method::tx_select(number)),
        Ok(method::tx_commit(number)),
        Ok(method::tx_rollback(number)),
        method::queue_declare(number, &queue),
        Ok(method::queue_purge(number, text)),
        Ok(method::queue_delete(number, text, only_if)),
        Ok(method::basic_qos(number, count)),
        method::basic_consume(number, text, text, &options),
        Ok(method::basic_cancel(number, text)),
        Ok(method::basic_cancel_ok(number, text)),
        Ok(method::basic_get(number, text, flag(0))),
        Ok(method::basic_recover(number)),
    ];
    if let (Ok(name), Ok(routing_key)) = (ExchangeName::new(text.as_str()), RoutingKey::new(text.as_str())) {
        let exchange = ExchangeDeclaration::durable(name.clone(), ExchangeKind::Topic);
        written.push(method::exchange_declare(number, &exchange));
        written.push(Ok(method::exchange_delete(number, &name, flag(0))));
        for destination in
            [BindingDestination::Queue(text.clone()), BindingDestination::Exchange(name.clone())]
        {
            let (source, routing_key, arguments) = (name.clone(), routing_key.clone(), arguments.clone());
            let binding = Binding { source, destination, routing_key, arguments };
            written.push(method::bind(number, &binding));
            written.push(method::unbind(number, &binding));
        }
    }
    for frame in written {
        let frame = frame.expect("what was read is not too deep");
        let read = frames(&frame);
        assert_eq!(read.len(), 1, "one frame for each method");
        assert_eq!(encode(&read[0]), frame, "the oracle writes {:?} differently", read[0]);
        assert!(matches!(read[0].channel_id(), id if id == channel || id == 0));
    }
}

/// The same properties as amq-protocol has them.
pub(crate) fn amq_properties(properties: &Properties) -> AMQPProperties {
    let p = properties;
    let mut amq = AMQPProperties::default();
    macro_rules! texts {
        ($($field:ident $with:ident),*) => {
            $(if let Some(text) = &p.$field {
                amq = amq.$with(short_to_amq(text));
            })*
        };
    }
    texts!(
        content_type with_content_type, content_encoding with_content_encoding,
        correlation_id with_correlation_id, reply_to with_reply_to, expiration with_expiration,
        message_id with_message_id, kind with_type, user_id with_user_id, app_id with_app_id,
        cluster_id with_cluster_id
    );
    if !p.headers.is_empty() {
        amq = amq.with_headers(table::to_amq(&p.headers));
    }
    if let Some(mode) = p.delivery_mode {
        amq = amq.with_delivery_mode(match mode {
            DeliveryMode::Transient => 1,
            DeliveryMode::Persistent => 2,
        });
    }
    if let Some(priority) = p.priority {
        amq = amq.with_priority(priority);
    }
    if let Some(timestamp) = p.timestamp {
        amq = amq.with_timestamp(timestamp);
    }
    amq
}

/// What we do not keep apart: every delivery mode that is not persistent, and a table with nothing in it.
fn plain(properties: AMQPProperties) -> AMQPProperties {
    let mode = *properties.delivery_mode();
    let has_headers = properties.headers().as_ref().is_some_and(|headers| !headers.inner().is_empty());
    let properties = match mode {
        Some(0 | 3..) => properties.with_delivery_mode(1),
        _ => properties,
    };
    if has_headers { properties } else { without_headers(&properties) }
}

fn without_headers(p: &AMQPProperties) -> AMQPProperties {
    let mut plain = AMQPProperties::default();
    macro_rules! copy {
        ($($field:ident $with:ident),*) => {
            $(if let Some(value) = p.$field().clone() {
                plain = plain.$with(value);
            })*
        };
    }
    copy!(
        content_type with_content_type, content_encoding with_content_encoding, delivery_mode with_delivery_mode,
        priority with_priority, correlation_id with_correlation_id, reply_to with_reply_to,
        expiration with_expiration, message_id with_message_id, timestamp with_timestamp, kind with_type,
        user_id with_user_id, app_id with_app_id, cluster_id with_cluster_id
    );
    plain
}

/// Levels of a table, itself included.
fn depth_of(table: &Table) -> usize {
    fn of_value(value: &Value) -> usize {
        match value {
            Value::Table(table) => depth_of(table),
            Value::Array(values) => 1 + values.iter().map(of_value).max().unwrap_or(0),
            _ => 0,
        }
    }
    1 + table.iter().map(|(_, value)| of_value(value)).max().unwrap_or(0)
}

fn oracle_table(table: &FieldTable) -> Vec<u8> {
    let written = gen_field_table(table)(WriteContext::from(Vec::new()));
    written.expect("a Vec takes every write").into_inner().0
}

fn oracle_properties(properties: &AMQPProperties) -> Vec<u8> {
    let written = gen_properties(properties)(WriteContext::from(Vec::new()));
    written.expect("a Vec takes every write").into_inner().0
}

fn encode(frame: &AMQPFrame) -> Vec<u8> {
    let written = gen_frame(frame)(WriteContext::from(Vec::new()));
    written.expect("a Vec takes every write").into_inner().0
}

/// What the oracle makes of whole frames.
pub(super) fn frames(mut bytes: &[u8]) -> Vec<AMQPFrame> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (rest, frame) = parse_frame(bytes).expect("a frame that the oracle reads");
        frames.push(frame);
        bytes = rest;
    }
    frames
}
