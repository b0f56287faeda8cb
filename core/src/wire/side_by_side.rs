//! The hand-written paths and amq-protocol's, one beside the other and alike to call, for the benchmarks.

use amq_protocol::frame::{AMQPContentHeader, AMQPFrame, WriteContext, gen_frame};
use amq_protocol::protocol::basic::parse_properties;
use amq_protocol::protocol::{AMQPClass, basic, parse_class};
use bytes::BytesMut;

use super::differential::amq_properties;
use super::method::{self, BASIC, Incoming, PublishHead, Settlement};
use super::properties;
use super::table::short_to_amq;
use crate::message::Message;
use crate::table::Value;

/// Writes the method and the header of a publish on channel 1. True if it could.
pub fn encode_publish(message: &Message, mark: i64, out: &mut BytesMut) -> bool {
    let mark = Value::I64(mark);
    PublishHead::new(1, message, Some(&mark)).map(|head| head.put(out)).is_ok()
}

/// The same by amq-protocol, without the mark.
pub fn encode_publish_oracle(message: &Message, out: Vec<u8>) -> Vec<u8> {
    let publish = basic::Publish {
        exchange: short_to_amq(&message.exchange),
        routing_key: short_to_amq(&message.routing_key),
        mandatory: message.mandatory,
        immediate: false,
    };
    let body_size = message.body.len() as u64;
    let header =
        AMQPContentHeader { class_id: BASIC, body_size, properties: amq_properties(&message.properties) };
    let method = AMQPFrame::Method(1, AMQPClass::Basic(basic::AMQPMethod::Publish(publish)));
    written(&AMQPFrame::Header(1, header), written(&method, out))
}

/// Writes an acknowledgement.
pub fn encode_ack(tag: u64, out: &mut BytesMut) {
    method::put_settlement(out, 1, tag, Settlement::Ack { multiple: false });
}

/// The same by amq-protocol.
#[must_use]
pub fn encode_ack_oracle(delivery_tag: u64, out: Vec<u8>) -> Vec<u8> {
    let ack = basic::AMQPMethod::Ack(basic::Ack { delivery_tag, multiple: false });
    written(&AMQPFrame::Method(1, AMQPClass::Basic(ack)), out)
}

/// Reads the payload of a method that has a delivery tag: the tag.
#[must_use]
pub fn decode_method(payload: &[u8]) -> Option<u64> {
    match method::decode(payload).ok()? {
        Incoming::BasicDeliver(deliver) => Some(deliver.delivery_tag),
        Incoming::BasicAck { delivery_tag, .. } => Some(delivery_tag),
        _ => None,
    }
}

/// The same by amq-protocol.
#[must_use]
pub fn decode_method_oracle(payload: &[u8]) -> Option<u64> {
    match parse_class(payload).ok()?.1 {
        AMQPClass::Basic(basic::AMQPMethod::Deliver(deliver)) => Some(deliver.delivery_tag),
        AMQPClass::Basic(basic::AMQPMethod::Ack(ack)) => Some(ack.delivery_tag),
        _ => None,
    }
}

/// Reads a property list, after its depth was found: the number of its headers.
#[must_use]
pub fn decode_properties(raw: &[u8]) -> Option<usize> {
    properties::decode(raw).ok().map(|read| read.headers.len())
}

/// The same by amq-protocol, which does not look at the depth.
#[must_use]
pub fn decode_properties_oracle(raw: &[u8]) -> Option<usize> {
    let (_, read) = parse_properties(raw).ok()?;
    Some(read.headers().as_ref().map_or(0, |headers| headers.inner().len()))
}

fn written(frame: &AMQPFrame, out: Vec<u8>) -> Vec<u8> {
    gen_frame(frame)(WriteContext::from(out)).expect("a Vec takes every write").into_inner().0
}
