//! Publishing (AMQP 0-9-1, 1.8.3.7).

use bytes::BytesMut;

use crate::connection::confirms::Confirms;
use crate::connection::outgoing::{Item, publish_bytes};
use crate::connection::{ChannelId, Connection, PublishError};
use crate::message::Message;
use crate::table::Value;
use crate::wire::MAX_TABLE_DEPTH;
use crate::wire::method::PublishHead;
use crate::wire::table::TooDeep;

/// Bytes of a block in which the heads of publishes are encoded, one allocation for some fifty of them.
const SCRATCH_BLOCK: usize = 8 * 1024;

impl Connection {
    /// Queues a message. On a channel in confirm mode the answer is its number there, from 1 on, by which its
    /// verdict is told; on others it is 0, and no verdict comes.
    ///
    /// A mandatory message on a channel in confirm mode gets the header [`MARK_HEADER`](crate::connection::MARK_HEADER),
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
}
