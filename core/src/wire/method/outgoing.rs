//! The methods of a connection, a channel and a publish, as whole frames.

use amq_protocol::frame::{AMQPFrame, WriteContext, gen_frame};
use amq_protocol::protocol::{AMQPClass, channel, confirm, connection, tx};
use bytes::{BufMut, Bytes, BytesMut};

use super::Tune;
use crate::message::{Message, Properties};
use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::wire::frame;
use crate::wire::properties::PropertyList;
use crate::wire::put;
use crate::wire::table::{self, TooDeep, short_to_amq};

/// The class `basic`, which alone has content.
pub(crate) const BASIC: u16 = 60;

/// Bytes of a content header's payload before the property list: class, weight, body size.
const CONTENT_HEADER: usize = 12;

/// `connection.start-ok`. The frame holds the password: it is never printed.
pub(crate) fn connection_start_ok(client_properties: &Table, mechanism: &str, response: Vec<u8>) -> Bytes {
    let method = connection::StartOk {
        client_properties: table::to_amq(client_properties),
        mechanism: mechanism.into(),
        response: response.into(),
        locale: "en_US".into(),
    };
    method_frame(0, AMQPClass::Connection(connection::AMQPMethod::StartOk(method)))
}

/// The response of AMQPLAIN: the fields of a table, without the length that a table begins with, since the long string
/// around it has one. Both texts are shorter than a frame.
pub(crate) fn amqplain_response(user: &str, password: &str) -> Vec<u8> {
    let fields = Table::new()
        .with(ShortString::from_static("LOGIN"), user.to_owned())
        .with(ShortString::from_static("PASSWORD"), password.to_owned());
    let mut response = BytesMut::new();
    table::put_fields(&mut response, fields.iter());
    response.into()
}

/// `connection.update-secret` (RabbitMQ). The frame holds the secret: it is never printed.
pub(crate) fn connection_update_secret(new_secret: &str, reason: &ShortString) -> Bytes {
    let method = connection::UpdateSecret { new_secret: new_secret.into(), reason: short_to_amq(reason) };
    method_frame(0, AMQPClass::Connection(connection::AMQPMethod::UpdateSecret(method)))
}

/// Bytes of a frame of [`connection_update_secret`]: class, method, and two texts with their lengths.
pub(crate) const fn update_secret_frame_len(new_secret: usize, reason: usize) -> usize {
    (2 + 2 + 4 + 1 + frame::OVERHEAD).saturating_add(new_secret).saturating_add(reason)
}

pub(crate) fn connection_tune_ok(tune: Tune) -> Bytes {
    let Tune { channel_max, frame_max, heartbeat } = tune;
    let method = connection::TuneOk { channel_max, frame_max, heartbeat };
    method_frame(0, AMQPClass::Connection(connection::AMQPMethod::TuneOk(method)))
}

pub(crate) fn connection_open(virtual_host: &ShortString) -> Bytes {
    let method = connection::Open { virtual_host: short_to_amq(virtual_host) };
    method_frame(0, AMQPClass::Connection(connection::AMQPMethod::Open(method)))
}

pub(crate) fn connection_close(code: u16, text: &ShortString) -> Bytes {
    let method =
        connection::Close { reply_code: code, reply_text: short_to_amq(text), class_id: 0, method_id: 0 };
    method_frame(0, AMQPClass::Connection(connection::AMQPMethod::Close(method)))
}

pub(crate) fn connection_close_ok() -> Bytes {
    let method = connection::CloseOk {};
    method_frame(0, AMQPClass::Connection(connection::AMQPMethod::CloseOk(method)))
}

pub(crate) fn channel_open(channel: u16) -> Bytes {
    method_frame(channel, AMQPClass::Channel(channel::AMQPMethod::Open(channel::Open {})))
}

/// Asks the server to send no deliveries, or to send them again.
pub(crate) fn channel_flow(channel: u16, active: bool) -> Bytes {
    method_frame(channel, AMQPClass::Channel(channel::AMQPMethod::Flow(channel::Flow { active })))
}

/// Bytes of a frame of [`channel_flow_ok`]: class, method, one flag.
pub(crate) const FLOW_OK_FRAME: usize = 2 + 2 + 1 + frame::OVERHEAD;

pub(crate) fn channel_flow_ok(channel: u16, active: bool) -> Bytes {
    method_frame(channel, AMQPClass::Channel(channel::AMQPMethod::FlowOk(channel::FlowOk { active })))
}

pub(crate) fn channel_close(channel: u16) -> Bytes {
    const REPLY_SUCCESS: u16 = 200;
    let method =
        channel::Close { reply_code: REPLY_SUCCESS, reply_text: "done".into(), class_id: 0, method_id: 0 };
    method_frame(channel, AMQPClass::Channel(channel::AMQPMethod::Close(method)))
}

pub(crate) fn channel_close_ok(channel: u16) -> Bytes {
    method_frame(channel, AMQPClass::Channel(channel::AMQPMethod::CloseOk(channel::CloseOk {})))
}

pub(crate) fn confirm_select(channel: u16) -> Bytes {
    let method = confirm::Select { nowait: false };
    method_frame(channel, AMQPClass::Confirm(confirm::AMQPMethod::Select(method)))
}

pub(crate) fn tx_select(channel: u16) -> Bytes {
    method_frame(channel, AMQPClass::Tx(tx::AMQPMethod::Select(tx::Select {})))
}

pub(crate) fn tx_commit(channel: u16) -> Bytes {
    method_frame(channel, AMQPClass::Tx(tx::AMQPMethod::Commit(tx::Commit {})))
}

pub(crate) fn tx_rollback(channel: u16) -> Bytes {
    method_frame(channel, AMQPClass::Tx(tx::AMQPMethod::Rollback(tx::Rollback {})))
}

/// The frames before the body of one publish, measured: its method and its content header.
pub(crate) struct PublishHead<'a> {
    channel: u16,
    message: &'a Message,
    list: PropertyList<'a>,
}

impl<'a> PublishHead<'a> {
    /// Measures the head. `mark` is added to the headers.
    pub(crate) fn new(channel: u16, message: &'a Message, mark: Option<&'a Value>) -> Result<Self, TooDeep> {
        let properties: &Properties = &message.properties;
        Ok(Self { channel, message, list: PropertyList::new(properties, mark)? })
    }

    /// Bytes of the content header frame, which cannot be split (AMQP 0-9-1, 4.2.6.1).
    pub(crate) fn header_frame_len(&self) -> usize {
        self.list.len().saturating_add(CONTENT_HEADER + frame::OVERHEAD)
    }

    /// Bytes of both frames.
    pub(crate) fn len(&self) -> usize {
        self.header_frame_len().saturating_add(self.method_len() + frame::OVERHEAD)
    }

    /// Writes both frames. The header frame must fit into 32 bits.
    pub(crate) fn put(&self, out: &mut BytesMut) {
        let before = out.len();
        frame::put_method_head(out, self.channel, self.method_len());
        out.put_u16(BASIC);
        out.put_u16(40);
        out.put_u16(0); // reserved: once the access ticket
        put::short_string(out, &self.message.exchange);
        put::short_string(out, &self.message.routing_key);
        put::flags(out, [self.message.mandatory, false]);
        frame::put_end(out);

        frame::put_header_head(out, self.channel, CONTENT_HEADER + self.list.len());
        out.put_u16(BASIC);
        out.put_u16(0); // weight: unused
        out.put_u64(self.message.body.len() as u64);
        self.list.put(out);
        frame::put_end(out);
        debug_assert_eq!(out.len() - before, self.len(), "a publish was measured wrongly");
    }

    fn method_len(&self) -> usize {
        // Class, method, ticket, two texts with their lengths, flags.
        2 + 2 + 2 + 1 + self.message.exchange.len() + 1 + self.message.routing_key.len() + 1
    }
}

pub(super) fn method_frame(channel: u16, class: AMQPClass) -> Bytes {
    let frame = AMQPFrame::Method(channel, class);
    let written = gen_frame(&frame)(WriteContext::from(Vec::new())).expect("a Vec takes every write");
    written.into_inner().0.into()
}
