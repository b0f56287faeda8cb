//! What the owner of a connection asks for.

use std::num::NonZeroU16;

use bytes::{Bytes, BytesMut};

use super::channel::{Channel, Closing, Reply};
use super::confirms::Confirms;
use super::outgoing::{Item, publish_bytes};
use super::{
    ChannelId, CommandError, Connection, ConnectionError, Negotiated, Phase, PublishError, TimerKind,
};
use crate::message::Message;
use crate::table::Value;
use crate::text::ShortString;
use crate::time::Instant;
use crate::topology::QueueDeclaration;
use crate::wire::MAX_TABLE_DEPTH;
use crate::wire::method::{self, PublishHead, Settlement};
use crate::wire::table::TooDeep;

/// How many commands of one channel may wait for their answer.
const MAX_UNANSWERED: usize = 4_096;

/// Bytes of a block in which the heads of publishes are encoded, one allocation for some fifty of them.
const SCRATCH_BLOCK: usize = 8 * 1024;

impl Connection {
    /// Opens a channel, with the lowest free number. Commands can be queued on it at once; if the server
    /// refuses it, they are dropped with it.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::ChannelsExhausted`].
    pub fn open_channel(&mut self) -> Result<ChannelId, CommandError> {
        let limit = self.open_limits().ok_or(CommandError::NotOpen)?.channel_max;
        let id = self.channels.open(limit).ok_or(CommandError::ChannelsExhausted { limit })?;
        self.outgoing.push(id, Item::Method(method::channel_open(id.get())));
        Ok(id)
    }

    /// Closes a channel, after what is queued on it. From now on everything the server sends on it is
    /// discarded, and publishes that have no verdict get [`Verdict::Unknown`](super::Verdict::Unknown).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`].
    pub fn close_channel(&mut self, channel: ChannelId) -> Result<(), CommandError> {
        self.live(channel)?.closing = Some(Closing { crossed: None });
        self.outgoing.push(channel, Item::Method(method::channel_close(channel.get())));
        Ok(())
    }

    /// Puts a channel into confirm mode: each publish that comes after it gets a verdict.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn confirm_select(&mut self, channel: ChannelId) -> Result<(), CommandError> {
        self.ask(channel, Reply::ConfirmSelect, |number| Ok(method::confirm_select(number)))?;
        // A second select changes nothing on the server, so it must not start the count anew here.
        self.live(channel)?.confirms.get_or_insert_with(Confirms::new);
        Ok(())
    }

    /// Declares a queue, or checks for it where the declaration is passive. Always answered, since RabbitMQ
    /// renews the lease of an expiring queue only for a declare that is.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::TooLarge`], [`CommandError::TooDeep`].
    pub fn declare_queue(
        &mut self,
        channel: ChannelId,
        declaration: &QueueDeclaration,
    ) -> Result<(), CommandError> {
        self.ask(channel, Reply::QueueDeclare, |number| method::queue_declare(number, declaration))
    }

    /// Deletes a queue with everything in it, whoever uses it.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn delete_queue(&mut self, channel: ChannelId, name: &ShortString) -> Result<(), CommandError> {
        self.ask(channel, Reply::QueueDelete, |number| Ok(method::queue_delete(number, name)))
    }

    /// Sets how many unsettled deliveries each consumer may have that is started on the channel after it.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn set_prefetch(&mut self, channel: ChannelId, count: NonZeroU16) -> Result<(), CommandError> {
        self.ask(channel, Reply::Qos, |number| Ok(method::basic_qos(number, count)))
    }

    /// Starts a consumer whose deliveries have to be acknowledged. With an empty tag the server chooses one.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn consume(
        &mut self,
        channel: ChannelId,
        queue: &ShortString,
        consumer_tag: &ShortString,
    ) -> Result<(), CommandError> {
        self.ask(channel, Reply::Consume, |number| Ok(method::basic_consume(number, queue, consumer_tag)))?;
        if !consumer_tag.is_empty() {
            self.live(channel)?.consumers.insert(consumer_tag.clone());
        }
        Ok(())
    }

    /// Stops a consumer. Deliveries may come until it is answered, and have to be settled like the others.
    ///
    /// Wait for its [`Event::ConsumeStarted`](super::Event::ConsumeStarted) first: RabbitMQ 3.10 ends the whole
    /// connection with 541 over a cancel that follows a consume of a classic queue too closely.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn cancel(&mut self, channel: ChannelId, consumer_tag: &ShortString) -> Result<(), CommandError> {
        self.ask(channel, Reply::Cancel, |number| Ok(method::basic_cancel(number, consumer_tag)))
    }

    /// Acknowledges a delivery; with `multiple`, all up to it on this channel.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`].
    pub fn ack(&mut self, channel: ChannelId, delivery_tag: u64, multiple: bool) -> Result<(), CommandError> {
        self.settle(channel, delivery_tag, Settlement::Ack { multiple })
    }

    /// Gives a delivery back to its queue, or with `requeue` false to the queue's dead-letter target; with
    /// `multiple`, all up to it on this channel.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`].
    pub fn nack(
        &mut self,
        channel: ChannelId,
        delivery_tag: u64,
        multiple: bool,
        requeue: bool,
    ) -> Result<(), CommandError> {
        self.settle(channel, delivery_tag, Settlement::Nack { multiple, requeue })
    }

    /// Like [`nack`](Self::nack) of one delivery. RabbitMQ 4.3 and later count it as a failed attempt of a
    /// quorum queue's message, and a nack not.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`].
    pub fn reject(
        &mut self,
        channel: ChannelId,
        delivery_tag: u64,
        requeue: bool,
    ) -> Result<(), CommandError> {
        self.settle(channel, delivery_tag, Settlement::Reject { requeue })
    }

    /// Queues a message. On a channel in confirm mode the answer is its number there, from 1 on, by which its
    /// verdict is told; on others it is 0, and no verdict comes.
    ///
    /// A mandatory message on a channel in confirm mode gets the header [`MARK_HEADER`](super::MARK_HEADER),
    /// which tells its return from those of others. Publishes are queued also while the connection is blocked.
    /// A message larger than `max_unsent_bytes` is taken while nothing else is queued.
    ///
    /// # Errors
    ///
    /// Any [`PublishError`].
    pub fn publish(&mut self, channel: ChannelId, message: &Message) -> Result<u64, PublishError> {
        let frame_max = self.open_limits().ok_or(PublishError::NotOpen)?.frame_max;
        let (max_unsent, max_unconfirmed) = (self.config.max_unsent_bytes, self.config.max_unconfirmed);
        let bytes = message.body.len() as u64;
        if bytes > self.config.max_message_bytes {
            return Err(PublishError::BodyTooLarge { bytes, limit: self.config.max_message_bytes });
        }

        let open = self.channels.get(channel).filter(|channel| channel.closing.is_none());
        let live = open.ok_or(PublishError::NoSuchChannel { channel })?;
        if live.confirms.as_ref().is_some_and(|confirms| confirms.span() >= max_unconfirmed) {
            return Err(PublishError::TooManyUnconfirmed { limit: max_unconfirmed });
        }

        let sequence = live.confirms.as_ref().map(Confirms::next_sequence);
        let mark = sequence.filter(|_| message.mandatory).map(|sequence| Value::I64(sequence.cast_signed()));
        let head = PublishHead::new(channel.get(), message, mark.as_ref())
            .map_err(|TooDeep| PublishError::HeadersTooDeep { limit: MAX_TABLE_DEPTH })?;
        let bytes = head.header_frame_len();
        if bytes > frame_max as usize {
            return Err(PublishError::HeadersTooLarge { bytes, limit: frame_max });
        }

        let bytes = publish_bytes(head.len(), message.body.len(), frame_max as usize);
        let unsent = self.outgoing.unsent();
        if unsent > 0 && unsent.saturating_add(bytes) > max_unsent {
            self.refused = true;
            return Err(PublishError::Full { limit: max_unsent });
        }

        if self.scratch.capacity() < head.len() {
            self.scratch = BytesMut::with_capacity(head.len().max(SCRATCH_BLOCK));
        }
        head.put(&mut self.scratch);
        let head = self.scratch.split().freeze();
        let sequence = live.confirms.as_mut().map_or(0, Confirms::publish);
        self.outgoing.push(channel, Item::Publish { sequence, head, body: message.body.clone() });
        Ok(sequence)
    }

    /// Gives the server a secret in place of the password that the connection was opened with (RabbitMQ): with OAuth2 a
    /// fresh token, before the one in use expires and the server closes channels for it. `reason` is for the server's
    /// log, and cut at 255 bytes.
    ///
    /// [`Event::SecretUpdated`](super::Event::SecretUpdated) follows once it holds. If the server refuses the secret,
    /// it closes the whole connection: [`ConnectionError::SecretRefused`]. A connection that comes after this one
    /// needs the secret in its own [`Credentials`](super::Credentials).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::SecretUnanswered`], [`CommandError::TooLarge`].
    pub fn update_secret(&mut self, new_secret: &str, reason: &str) -> Result<(), CommandError> {
        let limit = self.open_limits().ok_or(CommandError::NotOpen)?.frame_max;
        if self.secret_unanswered {
            return Err(CommandError::SecretUnanswered);
        }
        let reason = ShortString::truncated(reason);
        let bytes = method::update_secret_frame_len(new_secret.len(), reason.len());
        if bytes > limit as usize {
            return Err(CommandError::TooLarge { bytes, limit });
        }
        self.secret_unanswered = true;
        self.outgoing.push_control(method::connection_update_secret(new_secret, &reason));
        Ok(())
    }

    /// Closes the connection: drops what is queued, except for acknowledgements and the like, tells the server
    /// after those, and waits for the answer, at most `close_timeout` from `now`. During the handshake there is
    /// nothing to wait for, and after the end nothing to do.
    ///
    /// `text` is cut at 255 bytes.
    pub fn close(&mut self, now: Instant, code: u16, text: &str) {
        self.timers.observe(now);
        match self.phase {
            Phase::Handshake { .. } => {
                self.outgoing.drop_all();
                self.fail(ConnectionError::ClosedLocally { acknowledged: false });
            }
            Phase::Open => {
                self.phase = Phase::Closing;
                self.outgoing.keep_settlements();
                self.outgoing.push_control(method::connection_close(code, &ShortString::truncated(text)));
                self.timers.set(TimerKind::CloseDeadline, now + self.config.close_timeout);
            }
            Phase::Closing | Phase::Closed => {}
        }
    }

    fn settle(
        &mut self,
        channel: ChannelId,
        delivery_tag: u64,
        settlement: Settlement,
    ) -> Result<(), CommandError> {
        self.live(channel)?;
        self.outgoing.push(channel, Item::Settle { delivery_tag, settlement });
        Ok(())
    }

    /// Queues a method that is answered.
    fn ask(
        &mut self,
        channel: ChannelId,
        reply: Reply,
        encode: impl FnOnce(u16) -> Result<Bytes, TooDeep>,
    ) -> Result<(), CommandError> {
        let limit = self.open_limits().ok_or(CommandError::NotOpen)?.frame_max;
        let live = self.live(channel)?;
        if live.replies.len() >= MAX_UNANSWERED {
            return Err(CommandError::TooManyUnanswered { limit: MAX_UNANSWERED });
        }
        let frame =
            encode(channel.get()).map_err(|TooDeep| CommandError::TooDeep { limit: MAX_TABLE_DEPTH })?;
        if frame.len() > limit as usize {
            return Err(CommandError::TooLarge { bytes: frame.len(), limit });
        }
        live.replies.push_back(reply);
        self.outgoing.push(channel, Item::Method(frame));
        Ok(())
    }

    fn live(&mut self, channel: ChannelId) -> Result<&mut Channel, CommandError> {
        if !self.is_open() {
            return Err(CommandError::NotOpen);
        }
        let live = self.channels.get(channel).filter(|channel| channel.closing.is_none());
        live.ok_or(CommandError::NoSuchChannel { channel })
    }

    fn open_limits(&self) -> Option<Negotiated> {
        self.negotiated.filter(|_| self.is_open())
    }
}
