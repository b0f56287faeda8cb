//! Messages from the server, and how they are put together from their frames (AMQP 0-9-1, 4.2.6).

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::ChannelId;
use super::error::ProtocolError;
use super::event::Returned;
use crate::message::Properties;
use crate::text::ShortString;
use crate::wire::method::Deliver;
use crate::wire::{PropertiesError, SHARE_THRESHOLD, lossy, properties};

/// A message that the server gave to one of our consumers.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    channel: ChannelId,
    consumer_tag: ShortString,
    delivery_tag: u64,
    redelivered: bool,
    content: Content,
}

impl Delivery {
    /// The channel, on which it must be settled.
    #[must_use]
    pub const fn channel(&self) -> ChannelId {
        self.channel
    }

    /// The consumer that it is for.
    #[must_use]
    pub const fn consumer_tag(&self) -> &ShortString {
        &self.consumer_tag
    }

    /// Its number on the channel, by which it is settled.
    #[must_use]
    pub const fn delivery_tag(&self) -> u64 {
        self.delivery_tag
    }

    /// Whether it was delivered before, perhaps to someone else.
    #[must_use]
    pub const fn redelivered(&self) -> bool {
        self.redelivered
    }

    /// The message.
    #[must_use]
    pub const fn content(&self) -> &Content {
        &self.content
    }

    /// The message, taken out.
    #[must_use]
    pub fn into_content(self) -> Content {
        self.content
    }
}

/// A message as it was received. Its properties are read when they are asked for.
#[derive(Clone, PartialEq)]
pub struct Content {
    exchange: ShortString,
    routing_key: ShortString,
    /// The property list of the content header.
    properties: Bytes,
    body: Bytes,
}

impl Content {
    /// The exchange that it was published to. Bytes that are not UTF-8 read as U+FFFD.
    #[must_use]
    pub const fn exchange(&self) -> &ShortString {
        &self.exchange
    }

    /// The routing key that it was published with. Bytes that are not UTF-8 read as U+FFFD.
    #[must_use]
    pub const fn routing_key(&self) -> &ShortString {
        &self.routing_key
    }

    /// The body.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// Reads the properties, anew each time.
    ///
    /// # Errors
    ///
    /// [`PropertiesError`] where they cannot be read. RabbitMQ relays what a publisher sent, so one message can
    /// have such properties, and the next one is fine.
    pub fn properties(&self) -> Result<Properties, PropertiesError> {
        properties::decode(&self.properties)
    }

    /// Bytes of the properties and the body.
    pub(super) fn bytes(&self) -> usize {
        self.properties.len() + self.body.len()
    }
}

impl fmt::Debug for Content {
    // A body may hold anything: only its length is printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("exchange", &self.exchange)
            .field("routing_key", &self.routing_key)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// The payload of a body frame.
pub(super) enum Chunk<'a> {
    Slice(&'a [u8]),
    /// A slice of the block that was read, which can be kept.
    Shared(Bytes),
}

impl Chunk<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Slice(slice) => slice,
            Self::Shared(bytes) => bytes,
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Slice(slice) => Bytes::copy_from_slice(slice),
            Self::Shared(bytes) => bytes,
        }
    }
}

/// A method and the content that followed it.
#[derive(Debug)]
pub(super) enum Received {
    Delivery(Delivery),
    /// Its properties hold the mark of the publish. Its body is not kept.
    Return {
        returned: Returned,
        properties: Bytes,
    },
}

/// Puts the frames of one channel together.
///
/// ```text
/// Idle --deliver or return--> Header --header--> Body --last body frame--> Idle
///                                       \-- no body --------------------->
/// ```
#[derive(Debug)]
pub(super) struct Assembly {
    channel: ChannelId,
    stage: Stage,
    /// The texts of the last delivery: those of the next one are mostly the same, and need no allocation then.
    last_exchange: ShortString,
    last_routing_key: ShortString,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Idle,
    Header(Carrier),
    Body {
        carrier: Carrier,
        properties: Bytes,
        /// The size that the header announced. Never reserved: it may be a lie.
        announced: u64,
        received: u64,
        body: BytesMut,
    },
}

/// The method that content belongs to.
#[derive(Debug)]
enum Carrier {
    Deliver {
        consumer_tag: ShortString,
        delivery_tag: u64,
        redelivered: bool,
        exchange: ShortString,
        routing_key: ShortString,
    },
    Return(Returned),
}

impl Assembly {
    pub(super) const fn new(channel: ChannelId) -> Self {
        Self {
            channel,
            stage: Stage::Idle,
            last_exchange: ShortString::EMPTY,
            last_routing_key: ShortString::EMPTY,
        }
    }

    /// Whether no content is being received, so that a method may come.
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Begins a delivery. The channel must be idle.
    pub(super) fn deliver(&mut self, deliver: Deliver<'_>, consumer_tag: ShortString) {
        debug_assert!(self.is_idle(), "a method came within content");
        self.stage = Stage::Header(Carrier::Deliver {
            consumer_tag,
            delivery_tag: deliver.delivery_tag,
            redelivered: deliver.redelivered,
            exchange: same_or_new(&mut self.last_exchange, deliver.exchange),
            routing_key: same_or_new(&mut self.last_routing_key, deliver.routing_key),
        });
    }

    /// Begins a return. The channel must be idle.
    pub(super) fn returned(&mut self, returned: Returned) {
        debug_assert!(self.is_idle(), "a method came within content");
        self.stage = Stage::Header(Carrier::Return(returned));
    }

    /// Takes the payload of a header frame.
    pub(super) fn header(&mut self, payload: &[u8], limit: u64) -> Result<Option<Received>, ProtocolError> {
        let channel = self.channel.get();
        let Stage::Header(carrier) = std::mem::take(&mut self.stage) else {
            return Err(ProtocolError::UnexpectedFrame { channel });
        };
        let Some(header) = properties::split_header(payload) else {
            return Err(ProtocolError::MalformedHeader { channel });
        };
        let announced = header.body_size;
        if announced > limit {
            return Err(ProtocolError::MessageTooLarge { channel, bytes: announced, limit });
        }
        let properties = Bytes::copy_from_slice(header.properties);
        if announced == 0 {
            return Ok(Some(self.complete(carrier, properties, Bytes::new())));
        }
        self.stage = Stage::Body { carrier, properties, announced, received: 0, body: BytesMut::new() };
        Ok(None)
    }

    /// Takes the payload of a body frame.
    pub(super) fn body(&mut self, chunk: Chunk<'_>) -> Result<Option<Received>, ProtocolError> {
        let channel = self.channel.get();
        let Stage::Body { carrier, properties, announced, received, mut body } =
            std::mem::take(&mut self.stage)
        else {
            return Err(ProtocolError::UnexpectedFrame { channel });
        };
        let received = received + chunk.as_slice().len() as u64;
        if received > announced {
            return Err(ProtocolError::BodyTooLong { channel, announced });
        }
        let wanted = matches!(carrier, Carrier::Deliver { .. });
        if received == announced && body.is_empty() {
            let body = if wanted { chunk.into_bytes() } else { Bytes::new() };
            return Ok(Some(self.complete(carrier, properties, body)));
        }
        if wanted {
            body.extend_from_slice(chunk.as_slice());
        }
        if received == announced {
            return Ok(Some(self.complete(carrier, properties, body.freeze())));
        }
        self.stage = Stage::Body { carrier, properties, announced, received, body };
        Ok(None)
    }

    fn complete(&self, carrier: Carrier, properties: Bytes, body: Bytes) -> Received {
        match carrier {
            Carrier::Return(returned) => Received::Return { returned, properties },
            Carrier::Deliver { consumer_tag, delivery_tag, redelivered, exchange, routing_key } => {
                let content = Content { exchange, routing_key, properties, body };
                let channel = self.channel;
                Received::Delivery(Delivery { channel, consumer_tag, delivery_tag, redelivered, content })
            }
        }
    }
}

/// Whether a body frame of so many bytes is kept as a slice of what was read.
pub(super) const fn is_shared(payload_bytes: usize) -> bool {
    payload_bytes >= SHARE_THRESHOLD
}

fn same_or_new(last: &mut ShortString, bytes: &[u8]) -> ShortString {
    if last.as_bytes() != bytes {
        *last = lossy(bytes);
    }
    last.clone()
}
