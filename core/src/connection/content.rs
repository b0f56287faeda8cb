//! Messages from the server, and how they are put together from their frames (AMQP 0-9-1, 4.2.6).

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::ChannelId;
use super::error::ProtocolError;
use super::event::Returned;
use crate::message::Properties;
use crate::text::ShortString;
use crate::wire::method::{Deliver, GetOk, Return};
use crate::wire::{PropertiesError, SHARE_THRESHOLD, lossy, properties};

/// A message that the server gave to one of our consumers, or for a `basic.get`.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    channel: ChannelId,
    consumer_tag: ShortString,
    delivery_tag: u64,
    redelivered: bool,
    must_settle: bool,
    content: Content,
}

impl Delivery {
    /// The channel, on which it must be settled.
    #[must_use]
    pub const fn channel(&self) -> ChannelId {
        self.channel
    }

    /// The consumer that it is for. Empty where it was asked for by [`Connection::get`](super::Connection::get).
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

    /// Whether it must be settled. Not if it was asked for without acknowledgement: the server has forgotten it
    /// already, and a settlement is refused.
    #[must_use]
    pub const fn must_settle(&self) -> bool {
        self.must_settle
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
    body: Result<Bytes, Oversized>,
}

/// The body of a message is larger than the configuration allows, so it was skipped as it came.
///
/// The delivery is as outstanding as any other, and only its owner can decide what becomes of it: rejected, it
/// goes to the dead-letter target of its queue, body and all, or is dropped where there is none; given back, it
/// comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversized {
    /// The size that the server announced, in bytes.
    pub bytes: u64,
    /// The configured `max_message_bytes`.
    pub limit: u64,
}

impl fmt::Display for Oversized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, limit } = self;
        write!(
            f,
            "the message has {bytes} bytes, max_message_bytes is {limit}: raise the limit, or publish a reference instead"
        )
    }
}

impl std::error::Error for Oversized {}

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
    ///
    /// # Errors
    ///
    /// [`Oversized`] where it was larger than the limit, and is not here.
    pub const fn body(&self) -> Result<&Bytes, Oversized> {
        match &self.body {
            Ok(body) => Ok(body),
            Err(oversized) => Err(*oversized),
        }
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
        self.properties.len() + self.body.as_ref().map_or(0, Bytes::len)
    }
}

impl fmt::Debug for Content {
    // A body may hold anything: only its length is printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("exchange", &self.exchange)
            .field("routing_key", &self.routing_key)
            .field(
                "body_bytes",
                &self.body.as_ref().map_or_else(|skipped| skipped.bytes, |body| body.len() as u64),
            )
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
    fn len(&self) -> usize {
        self.as_slice().len()
    }

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
    /// The answer to a `basic.get`, with the number of messages left.
    Got(Delivery, u32),
    /// Of a publish that gets a verdict. Its properties hold the mark of that. Its body is not kept.
    Return {
        returned: Returned,
        properties: Bytes,
    },
    /// Of a publish that gets none.
    ReturnedMessage {
        returned: Returned,
        content: Content,
    },
}

/// Puts the frames of one channel together.
///
/// ```text
/// Idle --deliver, get-ok, return--> Header --header--> Body --last body frame--> Idle
///                                             \-- no body --------------------->
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
        body: Gathered,
    },
}

/// What is kept of a body.
#[derive(Debug)]
enum Gathered {
    Kept(BytesMut),
    /// Nothing, since nobody asks for it: that of a publish that gets a verdict.
    Unwanted,
    /// Nothing, since it is too large.
    Skipped {
        limit: u64,
    },
}

/// The method that content belongs to.
#[derive(Debug)]
enum Carrier {
    Deliver { consumer_tag: ShortString, head: Head },
    Get { head: Head, messages: u32 },
    Return(Returned),
    ReturnedMessage { returned: Returned, exchange: ShortString, routing_key: ShortString },
}

/// What deliveries and the answers to `basic.get` have in common.
#[derive(Debug)]
struct Head {
    delivery_tag: u64,
    redelivered: bool,
    must_settle: bool,
    exchange: ShortString,
    routing_key: ShortString,
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
    pub(super) fn deliver(&mut self, deliver: Deliver<'_>, consumer_tag: ShortString, must_settle: bool) {
        debug_assert!(self.is_idle(), "a method came within content");
        let head = Head {
            delivery_tag: deliver.delivery_tag,
            redelivered: deliver.redelivered,
            must_settle,
            exchange: same_or_new(&mut self.last_exchange, deliver.exchange),
            routing_key: same_or_new(&mut self.last_routing_key, deliver.routing_key),
        };
        self.stage = Stage::Header(Carrier::Deliver { consumer_tag, head });
    }

    /// Begins the answer to a `basic.get`. The channel must be idle.
    pub(super) fn got(&mut self, got: GetOk<'_>, must_settle: bool) {
        debug_assert!(self.is_idle(), "a method came within content");
        let head = Head {
            delivery_tag: got.delivery_tag,
            redelivered: got.redelivered,
            must_settle,
            exchange: same_or_new(&mut self.last_exchange, got.exchange),
            routing_key: same_or_new(&mut self.last_routing_key, got.routing_key),
        };
        self.stage = Stage::Header(Carrier::Get { head, messages: got.messages });
    }

    /// Begins a return, whose message is wanted where `keep` says so. The channel must be idle.
    pub(super) fn returned(&mut self, method: Return<'_>, keep: bool) {
        debug_assert!(self.is_idle(), "a method came within content");
        let returned = Returned { code: method.code, text: method.text };
        self.stage = Stage::Header(if keep {
            let (exchange, routing_key) = (lossy(method.exchange), lossy(method.routing_key));
            Carrier::ReturnedMessage { returned, exchange, routing_key }
        } else {
            Carrier::Return(returned)
        });
    }

    /// Takes the payload of a header frame. A body of more than `limit` bytes is going to be skipped.
    pub(super) fn header(&mut self, payload: &[u8], limit: u64) -> Result<Option<Received>, ProtocolError> {
        let channel = self.channel.get();
        let Stage::Header(carrier) = std::mem::take(&mut self.stage) else {
            return Err(ProtocolError::UnexpectedFrame { channel });
        };
        let Some(header) = properties::split_header(payload) else {
            return Err(ProtocolError::MalformedHeader { channel });
        };
        let announced = header.body_size;
        let properties = Bytes::copy_from_slice(header.properties);
        if announced == 0 {
            return Ok(Some(self.complete(carrier, properties, Ok(Bytes::new()))));
        }
        let body = match carrier {
            Carrier::Return(_) => Gathered::Unwanted,
            _ if announced > limit => Gathered::Skipped { limit },
            _ => Gathered::Kept(BytesMut::new()),
        };
        self.stage = Stage::Body { carrier, properties, announced, received: 0, body };
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
        // Checked, since the announced size may be as large as a number can be.
        let total = received.checked_add(chunk.len() as u64).filter(|received| *received <= announced);
        let Some(received) = total else {
            return Err(ProtocolError::BodyTooLong { channel, announced });
        };
        let is_whole = received == announced;
        match &mut body {
            Gathered::Kept(kept) if is_whole && kept.is_empty() => {
                return Ok(Some(self.complete(carrier, properties, Ok(chunk.into_bytes()))));
            }
            Gathered::Kept(kept) => kept.extend_from_slice(chunk.as_slice()),
            Gathered::Unwanted | Gathered::Skipped { .. } => {}
        }
        if !is_whole {
            self.stage = Stage::Body { carrier, properties, announced, received, body };
            return Ok(None);
        }
        let body = match body {
            Gathered::Kept(kept) => Ok(kept.freeze()),
            Gathered::Unwanted => Ok(Bytes::new()),
            Gathered::Skipped { limit } => Err(Oversized { bytes: announced, limit }),
        };
        Ok(Some(self.complete(carrier, properties, body)))
    }

    fn complete(&self, carrier: Carrier, properties: Bytes, body: Result<Bytes, Oversized>) -> Received {
        let (consumer_tag, head, left) = match carrier {
            Carrier::Return(returned) => return Received::Return { returned, properties },
            Carrier::ReturnedMessage { returned, exchange, routing_key } => {
                let content = Content { exchange, routing_key, properties, body };
                return Received::ReturnedMessage { returned, content };
            }
            Carrier::Deliver { consumer_tag, head } => (consumer_tag, head, None),
            Carrier::Get { head, messages } => (ShortString::EMPTY, head, Some(messages)),
        };
        let Head { delivery_tag, redelivered, must_settle, exchange, routing_key } = head;
        let content = Content { exchange, routing_key, properties, body };
        let channel = self.channel;
        let delivery = Delivery { channel, consumer_tag, delivery_tag, redelivered, must_settle, content };
        match left {
            None => Received::Delivery(delivery),
            Some(messages) => Received::Got(delivery, messages),
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
