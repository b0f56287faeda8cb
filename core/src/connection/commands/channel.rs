//! Opening, closing and pausing channels (AMQP 0-9-1, 1.5), and confirm mode.

use crate::connection::channel::{Closing, Reply};
use crate::connection::confirms::Confirms;
use crate::connection::outgoing::Item;
use crate::connection::{ChannelId, CommandError, Connection};
use crate::wire::method;

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
        self.outgoing.push(id, Item::Open(method::channel_open(id.get())));
        Ok(id)
    }

    /// Closes a channel, after what is queued on it. From now on everything the server sends on it is
    /// discarded, and publishes that have no verdict get [`Verdict::Unknown`](crate::connection::Verdict::Unknown).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`].
    pub fn close_channel(&mut self, channel: ChannelId) -> Result<(), CommandError> {
        self.live(channel)?.closing = Some(Closing { crossed: None });
        self.outgoing.push(channel, Item::Method(method::channel_close(channel.get())));
        Ok(())
    }

    /// Asks the server to send no deliveries on a channel, or to send them again (AMQP 0-9-1, 1.5.2.3). Answered
    /// by [`Event::FlowSet`](crate::connection::Event::FlowSet).
    ///
    /// RabbitMQ answers `active` only; a pause ends the connection with 540. A prefetch does what a pause is for.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn set_flow(&mut self, channel: ChannelId, active: bool) -> Result<(), CommandError> {
        self.ask(channel, Reply::Flow, |number| Ok(method::channel_flow(number, active)))
    }

    /// Puts a channel into confirm mode: each publish that comes after it gets a verdict. Answered by
    /// [`Event::ConfirmSelected`](crate::connection::Event::ConfirmSelected).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::OtherMode`] where the channel is transactional.
    pub fn confirm_select(&mut self, channel: ChannelId) -> Result<(), CommandError> {
        if self.live(channel)?.transactional {
            return Err(CommandError::OtherMode { channel });
        }
        self.ask(channel, Reply::ConfirmSelect, |number| Ok(method::confirm_select(number)))?;
        // A second select changes nothing on the server, so it must not start the count anew here.
        self.live(channel)?.confirms.get_or_insert_with(Confirms::new);
        Ok(())
    }
}
