//! A message as plain values: where it goes, its properties, its body.

mod copy;

use std::fmt;

use bytes::Bytes;

use crate::table::Table;
use crate::text::ShortString;

pub use copy::copied_properties;
pub(crate) use copy::is_dropped;

/// The properties of a message (AMQP 0-9-1, 1.8.3: class `basic`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    /// MIME type of the body.
    pub content_type: Option<ShortString>,
    /// Encoding of the body, such as `gzip`.
    pub content_encoding: Option<ShortString>,
    /// The headers.
    pub headers: Table,
    /// Whether the message survives a restart of the broker.
    pub delivery_mode: Option<DeliveryMode>,
    /// 0 to 255; a classic queue cuts it at its `x-max-priority`.
    pub priority: Option<u8>,
    /// The application's correlation id.
    pub correlation_id: Option<ShortString>,
    /// The queue that awaits a reply.
    pub reply_to: Option<ShortString>,
    /// Milliseconds until the message expires, as decimal digits.
    pub expiration: Option<ShortString>,
    /// The application's id of the message.
    pub message_id: Option<ShortString>,
    /// Seconds since 1970.
    pub timestamp: Option<u64>,
    /// The application's name for the kind of message (property `type`).
    pub kind: Option<ShortString>,
    /// The user who published it; RabbitMQ refuses a wrong one.
    pub user_id: Option<ShortString>,
    /// The application that published it.
    pub app_id: Option<ShortString>,
    /// Reserved by the protocol; kept so that nothing is lost in reading.
    pub cluster_id: Option<ShortString>,
}

/// Whether a message is written to disk (property `delivery-mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryMode {
    /// 1: gone after a restart of the broker.
    Transient,
    /// 2: kept in a durable queue.
    Persistent,
}

/// A message to publish.
#[derive(Clone, PartialEq)]
pub struct Message {
    /// The exchange; empty for the default exchange, which routes to the queue that the routing key names.
    pub exchange: ShortString,
    /// The routing key.
    pub routing_key: ShortString,
    /// Whether the broker must send it back when no queue takes it.
    pub mandatory: bool,
    /// The properties.
    pub properties: Properties,
    /// The body.
    pub body: Bytes,
}

impl Message {
    /// A mandatory message to one queue and no other. It goes through the default exchange: any other could hand it
    /// to every queue that is bound alike.
    #[must_use]
    pub const fn to_queue(queue: ShortString, properties: Properties, body: Bytes) -> Self {
        Self { exchange: ShortString::EMPTY, routing_key: queue, mandatory: true, properties, body }
    }
}

impl fmt::Debug for Message {
    // A body may hold anything: only its length is printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("exchange", &self.exchange)
            .field("routing_key", &self.routing_key)
            .field("mandatory", &self.mandatory)
            .field("properties", &self.properties)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}
