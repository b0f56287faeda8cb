//! What the owner of a connection asks for, by class of the protocol.

mod basic;
mod channel;
mod publish;
mod topology;
mod transaction;

use bytes::Bytes;

use super::channel::{Channel, Reply};
use super::outgoing::Item;
use super::{ChannelId, CommandError, Connection, ConnectionError, Negotiated, Phase, TimerKind};
use crate::text::ShortString;
use crate::time::Instant;
use crate::wire::MAX_TABLE_DEPTH;
use crate::wire::method;
use crate::wire::table::TooDeep;

/// How many commands of one channel may wait for their answer.
const MAX_UNANSWERED: usize = 4_096;

impl Connection {
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
                self.outgoing.keep_settlements(&mut self.channels);
                self.outgoing.push_control(method::connection_close(code, &ShortString::truncated(text)));
                self.timers.set(TimerKind::CloseDeadline, now + self.config.close_timeout);
            }
            Phase::Closing | Phase::Closed => {}
        }
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
        self.outgoing
            .push(channel, if reply == Reply::Recover { Item::Recover(frame) } else { Item::Request(frame) });
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
