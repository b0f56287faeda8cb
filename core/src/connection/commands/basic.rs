//! Consuming and settling (AMQP 0-9-1, 1.8).

use std::num::NonZeroU16;

use crate::connection::channel::{Consumer, Reply};
use crate::connection::outgoing::Item;
use crate::connection::unacked::{Due, NotOutstanding};
use crate::connection::{ChannelId, CommandError, Connection, ConsumeOptions};
use crate::text::ShortString;
use crate::wire::method::{self, Settlement};

impl Connection {
    /// Sets how many unsettled deliveries each consumer may have that is started on the channel after it.
    /// Answered by [`Event::PrefetchSet`](crate::connection::Event::PrefetchSet).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn set_prefetch(&mut self, channel: ChannelId, count: NonZeroU16) -> Result<(), CommandError> {
        self.ask(channel, Reply::Qos, |number| Ok(method::basic_qos(number, count)))
    }

    /// Starts a consumer. The answer is its tag: the given one, or where that is empty one that no other
    /// consumer of the channel has. [`Event::ConsumeStarted`](crate::connection::Event::ConsumeStarted) follows.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::TooLarge`], [`CommandError::TooDeep`], [`CommandError::ConsumerTagInUse`].
    pub fn consume(
        &mut self,
        channel: ChannelId,
        queue: &ShortString,
        consumer_tag: &ShortString,
        options: &ConsumeOptions,
    ) -> Result<ShortString, CommandError> {
        let live = self.live(channel)?;
        let mut tag = consumer_tag.clone();
        // Chosen here and not by the server, so that deliveries are known before the answer has come.
        while tag.is_empty() || consumer_tag.is_empty() && live.consumers.contains_key(&tag) {
            live.named += 1;
            tag = ShortString::truncated(&format!("leveret-{}", live.named));
        }
        if live.consumers.contains_key(&tag) {
            return Err(CommandError::ConsumerTagInUse { channel });
        }
        self.ask(channel, Reply::Consume, |number| method::basic_consume(number, queue, &tag, options))?;
        self.live(channel)?.consumers.insert(tag.clone(), Consumer { no_ack: options.no_ack });
        Ok(tag)
    }

    /// Stops a consumer. Deliveries may come until it is answered by
    /// [`Event::ConsumerCancelled`](crate::connection::Event::ConsumerCancelled), and have to be settled like the
    /// others.
    ///
    /// Wait for its [`Event::ConsumeStarted`](crate::connection::Event::ConsumeStarted) first: RabbitMQ 3.10 ends the
    /// whole connection with 541 over a cancel that follows a consume of a classic queue too closely.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::NoSuchConsumer`].
    pub fn cancel(&mut self, channel: ChannelId, consumer_tag: &ShortString) -> Result<(), CommandError> {
        if !self.live(channel)?.consumers.contains_key(consumer_tag) {
            return Err(CommandError::NoSuchConsumer { channel });
        }
        self.ask(channel, Reply::Cancel, |number| Ok(method::basic_cancel(number, consumer_tag)))
    }

    /// Asks for one message of a queue, which with `no_ack` the server forgets as soon as it has sent it. Answered
    /// by [`Event::Got`](crate::connection::Event::Got) or [`Event::GetEmpty`](super::super::Event::GetEmpty). No
    /// prefetch counts it. A consumer costs the server far less than asking again and again.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn get(&mut self, channel: ChannelId, queue: &ShortString, no_ack: bool) -> Result<(), CommandError> {
        self.ask(channel, Reply::Get { no_ack }, |number| Ok(method::basic_get(number, queue, no_ack)))
    }

    /// Gives everything back that is in hand on a channel: it comes again, perhaps to others, with other tags and
    /// marked as redelivered. Answered by [`Event::Recovered`](crate::connection::Event::Recovered), until which
    /// deliveries may come that are given back as well: nothing that was told before it can be settled.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn recover(&mut self, channel: ChannelId) -> Result<(), CommandError> {
        self.ask(channel, Reply::Recover, |number| Ok(method::basic_recover(number)))?;
        self.live(channel)?.unacked.recover();
        Ok(())
    }

    /// Acknowledges a delivery; with `multiple`, all up to it on this channel that were taken out of
    /// [`poll_event`](Self::poll_event), and where the tag is 0, all of those.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::NotOutstanding`].
    pub fn ack(&mut self, channel: ChannelId, delivery_tag: u64, multiple: bool) -> Result<(), CommandError> {
        self.settle(channel, delivery_tag, Settlement::Ack { multiple })
    }

    /// Gives a delivery back to its queue, or with `requeue` false to the queue's dead-letter target; with
    /// `multiple`, all up to it on this channel as for [`ack`](Self::ack).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::NotOutstanding`].
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
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::NotOutstanding`].
    pub fn reject(
        &mut self,
        channel: ChannelId,
        delivery_tag: u64,
        requeue: bool,
    ) -> Result<(), CommandError> {
        self.settle(channel, delivery_tag, Settlement::Reject { requeue })
    }

    fn settle(
        &mut self,
        channel: ChannelId,
        delivery_tag: u64,
        settlement: Settlement,
    ) -> Result<(), CommandError> {
        match self.live(channel)?.unacked.settle(delivery_tag, settlement) {
            Ok(Due::Acks(count)) => self.outgoing.push_acks(channel, count),
            Ok(Due::Frame { delivery_tag, settlement }) => {
                self.outgoing.push(channel, Item::Settle { delivery_tag, settlement });
            }
            Ok(Due::Nothing) => {}
            Err(NotOutstanding) => return Err(CommandError::NotOutstanding { channel, delivery_tag }),
        }
        Ok(())
    }
}
