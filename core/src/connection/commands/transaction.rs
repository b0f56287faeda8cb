//! Transactions (AMQP 0-9-1, 1.9): publishes and settlements of one channel that are done together, or not.
//!
//! A commit that ends with the channel or the connection may have been done or not. RabbitMQ is atomic only
//! where a single queue is involved, and routes at once: an unroutable mandatory publish is returned at the
//! commit and does not stop it.

use crate::connection::channel::Reply;
use crate::connection::{ChannelId, CommandError, Connection};
use crate::wire::method;

impl Connection {
    /// Lets the publishes and settlements that follow wait for a [`tx_commit`](Self::tx_commit). Answered by
    /// [`Event::TxSelected`](crate::connection::Event::TxSelected); a channel stays transactional until it ends.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::OtherMode`] where the channel is in confirm mode.
    pub fn tx_select(&mut self, channel: ChannelId) -> Result<(), CommandError> {
        if self.live(channel)?.confirms.is_some() {
            return Err(CommandError::OtherMode { channel });
        }
        self.ask(channel, Reply::TxSelect, |number| Ok(method::tx_select(number)))?;
        let live = self.live(channel)?;
        live.transactional = true;
        live.unacked.begin_transactions();
        Ok(())
    }

    /// Does what was published and settled since the last commit or rollback, and begins anew. Answered by
    /// [`Event::TxCommitted`](crate::connection::Event::TxCommitted).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::NotTransactional`].
    pub fn tx_commit(&mut self, channel: ChannelId) -> Result<(), CommandError> {
        self.transactional(channel)?;
        self.ask(channel, Reply::TxCommit, |number| Ok(method::tx_commit(number)))?;
        self.live(channel)?.unacked.commit();
        Ok(())
    }

    /// Drops what was published since the last commit or rollback, and takes the settlements back: those
    /// deliveries are to be settled again, under the same tags; the server does not send them again. Answered by
    /// [`Event::TxRolledBack`](crate::connection::Event::TxRolledBack).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::NotTransactional`].
    pub fn tx_rollback(&mut self, channel: ChannelId) -> Result<(), CommandError> {
        self.transactional(channel)?;
        self.ask(channel, Reply::TxRollback, |number| Ok(method::tx_rollback(number)))?;
        self.live(channel)?.unacked.roll_back();
        Ok(())
    }

    fn transactional(&mut self, channel: ChannelId) -> Result<(), CommandError> {
        match self.live(channel)?.transactional {
            true => Ok(()),
            false => Err(CommandError::NotTransactional { channel }),
        }
    }
}
