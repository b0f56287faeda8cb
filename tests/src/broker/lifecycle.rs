//! Frames come in, and channels and connections end (AMQP 0-9-1, 2.2.4 and 4.2).

use amq_protocol::protocol::{AMQPClass, channel, connection};
use amq_protocol::types::{Identifier, ShortString as AmqpShortString};
use bytes::{Buf, BytesMut};
use leveret_core::text::ShortString;

use super::channel::{At, Channel};
use super::connection::Stage;
use super::error::{AmqpError, Code};
use super::event::{BrokerEvent, DeleteCause, EndCause};
use super::frames::{self, Frame, FrameKind};
use super::queue::Key;
use super::{Broker, ConnectionId};

/// Class and method id of the method that a refusal answers; zeros where there is none.
type MethodId = (Identifier, Identifier);

impl Broker {
    /// Takes one frame off the input and handles it. False if none is whole.
    pub(super) fn read_frame(&mut self, conn: ConnectionId, input: &mut BytesMut) -> bool {
        let Some(connection) = self.connections.get(&conn) else { return false };
        if connection.stage == Stage::Header {
            return self.read_protocol_header(conn, input);
        }
        match frames::take_frame(input, connection.frame_max) {
            Ok(None) => false,
            Ok(Some(frame)) => {
                self.on_frame(conn, &frame);
                true
            }
            Err(error) => {
                // What follows cannot be told apart any more, so no close-ok can be awaited either.
                self.refuse(At { conn, channel: 0 }, (0, 0), &error);
                self.end_after_flush(conn);
                false
            }
        }
    }

    fn read_protocol_header(&mut self, conn: ConnectionId, input: &mut BytesMut) -> bool {
        let expected = frames::PROTOCOL_HEADER;
        let known = input.len().min(expected.len());
        if input[..known] != expected[..known] {
            // AMQP 0-9-1, 4.2.2: answer with the version that is spoken here, and close.
            if let Some(connection) = self.connections.get_mut(&conn) {
                connection.outgoing.extend_from_slice(&expected);
            }
            self.release(conn, EndCause::NotAmqp);
            self.end_after_flush(conn);
            return false;
        }
        if known < expected.len() {
            return false;
        }
        input.advance(expected.len());
        self.send_start(conn);
        true
    }

    fn on_frame(&mut self, conn: ConnectionId, frame: &Frame) {
        let at = At { conn, channel: frame.channel };
        let Some(connection) = self.connections.get(&conn) else { return };
        if connection.stage == Stage::Closing {
            self.on_frame_while_closing(at, frame);
            return;
        }
        if frame.kind == FrameKind::Heartbeat {
            return;
        }
        if frame.kind == FrameKind::Method {
            match frames::parse_method(&frame.payload) {
                Ok(method) => {
                    let id = (method.get_amqp_class_id(), method.get_amqp_method_id());
                    if let Err(error) = self.on_method(at, method) {
                        self.refuse(at, id, &error);
                    }
                }
                Err(error) => self.refuse(at, (0, 0), &error),
            }
        } else if let Err((id, error)) = self.on_content(at, frame) {
            self.refuse(at, id, &error);
        }
    }

    /// After `connection.close` only the answer matters, or the client's own close at the same time.
    fn on_frame_while_closing(&mut self, at: At, frame: &Frame) {
        if frame.kind != FrameKind::Method || at.channel != 0 {
            return;
        }
        match frames::parse_method(&frame.payload) {
            Ok(AMQPClass::Connection(connection::AMQPMethod::CloseOk(_))) => {
                self.end_after_flush(at.conn);
            }
            Ok(AMQPClass::Connection(connection::AMQPMethod::Close(_))) => {
                self.reply(at, close_ok());
            }
            _ => {}
        }
    }

    fn on_method(&mut self, at: At, method: AMQPClass) -> Result<(), AmqpError> {
        let stage = self.connections.get(&at.conn).map(|connection| connection.stage);
        if at.channel == 0 {
            return self.on_connection_method(at, method);
        }
        if stage != Some(Stage::Running) {
            let detail = format!("channel {} is used before the connection is open", at.channel);
            return Err(AmqpError::new(Code::ChannelError, detail));
        }
        if let AMQPClass::Channel(method) = method {
            return self.on_channel_method(at, method);
        }
        match self.channel_mut(at) {
            None => Err(not_open()),
            Some(channel) if channel.closing => Ok(()),
            Some(channel) => match &channel.incoming {
                Some(incoming) => Err(incoming.out_of_place()),
                None => self.on_work_method(at, method),
            },
        }
    }

    pub(super) fn reply(&mut self, at: At, method: AMQPClass) {
        if let Some(connection) = self.connections.get_mut(&at.conn) {
            connection.send(at.channel, method);
        }
    }

    /// Answers what cannot be done: a soft error closes the channel, a hard one the connection.
    fn refuse(&mut self, at: At, id: MethodId, error: &AmqpError) {
        let Some(connection) = self.connections.get_mut(&at.conn) else { return };
        let stage = connection.stage;
        if error.is_soft() && at.channel != 0 && connection.channels.contains_key(&at.channel) {
            self.close_channel(at, id, error.code.number(), error.text());
        } else if matches!(stage, Stage::TuneOk | Stage::Open | Stage::Running) {
            self.start_close(at.conn, id, error.code.number(), error.text());
        } else {
            // RabbitMQ: who has not logged in is not answered.
            let cause = EndCause::ClosedByBroker { code: error.code.number(), text: error.text() };
            self.release(at.conn, cause);
            self.end_after_flush(at.conn);
        }
    }

    fn close_channel(&mut self, at: At, id: MethodId, code: u16, text: String) {
        self.release_channel(at);
        let Some(connection) = self.connections.get_mut(&at.conn) else { return };
        connection.channels.insert(at.channel, Channel::closing());
        let close = channel::Close {
            reply_code: code,
            reply_text: reply_text(&text),
            class_id: id.0,
            method_id: id.1,
        };
        connection.send(at.channel, AMQPClass::Channel(channel::AMQPMethod::Close(close)));
        self.events.push(BrokerEvent::ChannelClosed { conn: at.conn, channel: at.channel, code, text });
    }

    /// Sends `connection.close` and waits for the answer.
    pub(super) fn start_close(&mut self, conn: ConnectionId, id: MethodId, code: u16, text: String) {
        let give_up_at = self.now + self.config.handshake_timeout;
        if let Some(connection) = self.connections.get_mut(&conn) {
            let close = connection::Close {
                reply_code: code,
                reply_text: reply_text(&text),
                class_id: id.0,
                method_id: id.1,
            };
            connection.send(0, AMQPClass::Connection(connection::AMQPMethod::Close(close)));
            connection.stage = Stage::Closing;
            connection.give_up_at = Some(give_up_at);
            connection.blocked = false;
        }
        self.release(conn, EndCause::ClosedByBroker { code, text });
    }

    /// Gives everything back that a connection had: deliveries, consumers, exclusive queues.
    pub(super) fn release(&mut self, conn: ConnectionId, cause: EndCause) {
        let channels = self.connections.get(&conn).map(|connection| connection.channels.keys().copied());
        let channels: Vec<u16> = channels.into_iter().flatten().collect();
        for channel in channels {
            self.release_channel(At { conn, channel });
        }
        let owned = self.queues.iter().filter(|(_, queue)| queue.owner == Some(conn));
        let owned: Vec<Key> = owned.map(|(key, _)| key.clone()).collect();
        for key in owned {
            self.remove_queue(&key, DeleteCause::OwnerGone);
        }
        self.events.push(BrokerEvent::Ended { conn, cause });
    }

    /// Gives everything back that a channel had.
    pub(super) fn release_channel(&mut self, at: At) {
        let channels = self.connections.get_mut(&at.conn).map(|connection| &mut connection.channels);
        let Some(channel) = channels.and_then(|channels| channels.remove(&at.channel)) else { return };
        // What waited for a commit was not done.
        let held = channel.transaction.into_iter().flat_map(|transaction| transaction.settled);
        let held = held.map(|(_, unacked, _)| unacked);
        for unacked in channel.unacked.into_values().chain(held) {
            self.requeue(unacked);
        }
        for (tag, consumer) in channel.consumers {
            self.detach_consumer(&consumer.queue, consumer.queue_id, at, &tag);
        }
    }

    /// Nothing is read any more; the socket is to be closed once the output is gone.
    pub(super) fn end_after_flush(&mut self, conn: ConnectionId) {
        let give_up_at = self.now + self.config.handshake_timeout;
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        connection.stage = Stage::Ended;
        connection.give_up_at = Some(give_up_at);
        if connection.outgoing.is_empty() {
            self.forget(conn);
        }
    }

    /// Ends a connection without a word, as a broken network does.
    pub(super) fn end_at_once(&mut self, conn: ConnectionId, cause: EndCause) {
        let Some(connection) = self.connections.get(&conn) else { return };
        if !matches!(connection.stage, Stage::Closing | Stage::Ended) {
            self.release(conn, cause);
        }
        self.forget(conn);
    }

    pub(super) fn forget(&mut self, conn: ConnectionId) {
        if self.connections.remove(&conn).is_some() {
            self.events.close_socket(conn);
        }
    }

    /// Handles the deadlines of a connection that have come. However late, it is one orderly step.
    pub(super) fn connection_timers(&mut self, conn: ConnectionId) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let is_due = |deadline: Option<super::Instant>| deadline.is_some_and(|due| due <= now);
        if is_due(connection.give_up_at) {
            self.end_at_once(conn, EndCause::HandshakeTimeout);
        } else if is_due(connection.silence_ends()) {
            self.end_at_once(conn, EndCause::HeartbeatMissed);
        } else if is_due(connection.heartbeat_due()) {
            // A client that takes nothing is not sent more of it.
            if connection.outgoing.is_empty() {
                frames::put_heartbeat(&mut connection.outgoing);
            }
            connection.last_written = now;
        }
    }
}

/// The refusal of a frame on a channel that is not open (AMQP 0-9-1, 1.2: 504).
pub(super) fn not_open() -> AmqpError {
    AmqpError::new(Code::ChannelError, "expected 'channel.open'")
}

pub(super) fn close_ok() -> AMQPClass {
    AMQPClass::Connection(connection::AMQPMethod::CloseOk(connection::CloseOk {}))
}

/// A reply text is a short string, so what is longer is cut.
fn reply_text(text: &str) -> AmqpShortString {
    AmqpShortString::from(ShortString::truncated(text).as_str())
}
