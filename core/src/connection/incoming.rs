//! Frames from the server, once they are whole.

use super::channel::{Channel, Closing, Consumer, Reply};
use super::confirms::Confirmed;
use super::content::{Chunk, Delivery, Received};
use super::error::ProtocolError;
use super::event::{Event, Verdict};
use super::outgoing::Item;
use super::{ChannelClosed, ChannelId, CloseReason, Connection, ConnectionError, HandshakeStage, Phase};
use crate::time::Instant;
use crate::wire::frame::FrameKind;
use crate::wire::method::{self, Deliver, Incoming, MethodError};
use crate::wire::{lossy, properties};

type Handled = Result<(), ConnectionError>;

impl Connection {
    /// Takes a frame, except a body that is to be kept as it is.
    pub(super) fn handle_frame(
        &mut self,
        now: Instant,
        kind: FrameKind,
        channel: u16,
        payload: &[u8],
    ) -> Handled {
        match kind {
            FrameKind::Method => self.handle_method(now, channel, payload),
            FrameKind::Header => self.handle_header(channel, payload),
            FrameKind::Body => self.handle_body(channel, Chunk::Slice(payload)),
            // AMQP 0-9-1, 4.2.7: on channel 0 only. It has done its work by having come.
            FrameKind::Heartbeat if channel == 0 => Ok(()),
            FrameKind::Heartbeat => broken(ProtocolError::HeartbeatOnChannel { channel }),
        }
    }

    /// Takes a body frame.
    pub(super) fn handle_body(&mut self, channel: u16, chunk: Chunk<'_>) -> Handled {
        let Some(live) = self.content_channel(channel)? else { return Ok(()) };
        let received = live.assembly.body(chunk).map_err(ConnectionError::Protocol)?;
        self.handle_received(channel, received)
    }

    fn handle_header(&mut self, channel: u16, payload: &[u8]) -> Handled {
        let limit = self.config.max_message_bytes;
        let Some(live) = self.content_channel(channel)? else { return Ok(()) };
        let received = live.assembly.header(payload, limit).map_err(ConnectionError::Protocol)?;
        self.handle_received(channel, received)
    }

    fn handle_method(&mut self, now: Instant, channel: u16, payload: &[u8]) -> Handled {
        let decoded = method::decode(payload).map_err(|error| match error {
            MethodError::Malformed { class, method } => {
                ProtocolError::MalformedMethod { channel, class, method }
            }
            MethodError::Unexpected { class, method } => {
                ProtocolError::UnexpectedMethod { channel, class, method }
            }
        });
        let (class, method) = method::ids(payload);
        let unexpected = ProtocolError::UnexpectedMethod { channel, class, method };
        match (ChannelId::new(channel), &self.phase) {
            (None, Phase::Closing) => self.handle_while_closing(decoded.as_ref().ok()),
            (None, _) => return self.handle_connection_method(now, decoded?, unexpected),
            (Some(_), Phase::Closing | Phase::Closed) => {}
            (Some(id), _) => return self.handle_channel_method(id, decoded, unexpected),
        }
        Ok(())
    }

    /// AMQP 0-9-1, 1.4.2.10: after a close everything but a close and its answer is discarded.
    fn handle_while_closing(&mut self, incoming: Option<&Incoming<'_>>) {
        let acknowledged = match incoming {
            Some(Incoming::ConnectionCloseOk) => self.outgoing.is_control_sent(),
            Some(Incoming::ConnectionClose(_)) => {
                // It discards what came after its close, perhaps our last settlements, so this is no answer.
                self.outgoing.push_control(method::connection_close_ok());
                false
            }
            _ => return,
        };
        self.finish(ConnectionError::ClosedLocally { acknowledged });
    }

    fn handle_connection_method(
        &mut self,
        now: Instant,
        incoming: Incoming<'_>,
        unexpected: ProtocolError,
    ) -> Handled {
        let stage = match &self.phase {
            Phase::Handshake { stage, .. } => Some(*stage),
            Phase::Open | Phase::Closing | Phase::Closed => None,
        };
        let next = match (stage, incoming) {
            (_, Incoming::ConnectionClose(reason)) => {
                self.outgoing.push_control(method::connection_close_ok());
                return Err(self.refusal(reason));
            }
            (Some(HandshakeStage::Start), Incoming::ConnectionStart(start)) => self.handle_start(&start)?,
            (Some(HandshakeStage::Tune), Incoming::ConnectionSecure) => {
                return Err(ConnectionError::UnexpectedChallenge);
            }
            (Some(HandshakeStage::Tune), Incoming::ConnectionTune(offer)) => self.handle_tune(now, offer)?,
            (Some(HandshakeStage::OpenOk), Incoming::ConnectionOpenOk) => {
                self.handle_open_ok();
                return Ok(());
            }
            (None, Incoming::ConnectionBlocked { reason }) => {
                self.set_blocked(true, Event::Blocked { reason });
                return Ok(());
            }
            (None, Incoming::ConnectionUnblocked) => {
                self.set_blocked(false, Event::Unblocked);
                return Ok(());
            }
            (None, Incoming::ConnectionUpdateSecretOk) => {
                // One that nobody asked for changes nothing.
                if std::mem::take(&mut self.secret_unanswered) {
                    self.events.push(Event::SecretUpdated);
                }
                return Ok(());
            }
            _ => return broken(unexpected),
        };
        self.phase = Phase::Handshake { stage: next, opening: bytes::Bytes::new() };
        Ok(())
    }

    fn set_blocked(&mut self, blocked: bool, event: Event) {
        if self.blocked != blocked {
            self.blocked = blocked;
            self.outgoing.set_blocked(blocked);
            self.events.push(event);
        }
    }

    fn handle_channel_method(
        &mut self,
        id: ChannelId,
        decoded: Result<Incoming<'_>, ProtocolError>,
        unexpected: ProtocolError,
    ) -> Handled {
        let Some(channel) = self.channels.get(id).filter(|channel| channel.open_sent) else {
            return broken(ProtocolError::UnknownChannel { channel: id.get() });
        };
        if channel.closing.is_some() {
            return match decoded {
                Ok(Incoming::ChannelClose(reason)) => self.handle_channel_close(id, reason),
                Ok(Incoming::ChannelCloseOk) => self.handle_channel_close_ok(id, unexpected),
                _ => Ok(()),
            };
        }
        let incoming = decoded?;
        if !channel.assembly.is_idle() && !matches!(incoming, Incoming::ChannelClose(_)) {
            return broken(ProtocolError::UnexpectedFrame { channel: id.get() });
        }
        match incoming {
            Incoming::ChannelClose(reason) => self.handle_channel_close(id, reason),
            Incoming::ChannelFlow { active } => {
                self.outgoing.set_flowing(id, active);
                Ok(())
            }
            Incoming::BasicDeliver(deliver) => {
                begin_delivery(channel, deliver);
                Ok(())
            }
            Incoming::BasicGetOk(got) => {
                let Some(Reply::Get { no_ack }) = channel.answered(|due| matches!(due, Reply::Get { .. }))
                else {
                    return broken(unexpected);
                };
                channel.assembly.got(got, !no_ack);
                Ok(())
            }
            Incoming::BasicReturn(returned) => {
                // A verdict needs nothing but its mark.
                let keep = channel.confirms.is_none();
                channel.assembly.returned(returned, keep);
                Ok(())
            }
            Incoming::BasicAck { delivery_tag, multiple } => {
                self.handle_confirm(id, delivery_tag, multiple, true);
                Ok(())
            }
            Incoming::BasicNack { delivery_tag, multiple } => {
                self.handle_confirm(id, delivery_tag, multiple, false);
                Ok(())
            }
            Incoming::BasicCancel { consumer_tag, no_wait } => {
                if channel.consumers.remove(&consumer_tag).is_some() {
                    if !no_wait {
                        let answer = method::basic_cancel_ok(id.get(), &consumer_tag);
                        self.outgoing.push(id, Item::Method(answer));
                    }
                    self.events.push(Event::ConsumerCancelled { channel: id, consumer_tag, by_server: true });
                }
                Ok(())
            }
            answer => match take_answer(channel, id, answer) {
                Some(event) => {
                    self.events.extend(event);
                    Ok(())
                }
                None => broken(unexpected),
            },
        }
    }

    fn handle_confirm(&mut self, id: ChannelId, tag: u64, multiple: bool, acked: bool) {
        let Self { channels, events, unmatched, .. } = self;
        let confirms = channels.get(id).and_then(|channel| channel.confirms.as_mut());
        let told = confirms.is_some_and(|confirms| {
            confirms.confirm(tag, multiple, acked, |sequence, confirmed| {
                let verdict = match confirmed {
                    Confirmed::Ok => Verdict::Ok,
                    Confirmed::Unroutable(returned) => Verdict::Unroutable(returned),
                    Confirmed::Nacked => Verdict::Nacked,
                };
                events.push(Event::Verdict { channel: id, sequence, verdict });
            })
        });
        if !told {
            unmatched.confirms += 1;
        }
    }

    /// The server closes a channel: nothing goes out on it any more but the answer.
    fn handle_channel_close(&mut self, id: ChannelId, reason: CloseReason) -> Handled {
        let close_sent = self.outgoing.is_idle(id);
        match self.channels.get(id).map(|channel| &mut channel.closing) {
            Some(Some(Closing { crossed: Some(_) })) => {
                return broken(ProtocolError::UnknownChannel { channel: id.get() });
            }
            // Our close is under way as well, and RabbitMQ answers it.
            Some(Some(closing)) if close_sent => closing.crossed = Some(reason),
            _ => {
                self.outgoing.drop_channel(id);
                self.end_channel(id, &ChannelClosed::Peer(reason));
            }
        }
        self.outgoing.push_control(method::channel_close_ok(id.get()));
        self.tell_writable();
        Ok(())
    }

    fn handle_channel_close_ok(&mut self, id: ChannelId, unexpected: ProtocolError) -> Handled {
        if !self.outgoing.is_idle(id) {
            // Our close was not even sent.
            return broken(unexpected);
        }
        let closing = self.channels.get(id).and_then(|channel| channel.closing.take());
        let crossed = closing.and_then(|closing| closing.crossed);
        self.outgoing.drop_channel(id);
        self.end_channel(id, &crossed.map_or(ChannelClosed::Ours, ChannelClosed::Peer));
        Ok(())
    }

    fn handle_received(&mut self, channel: u16, received: Option<Received>) -> Handled {
        match received {
            None => {}
            Some(Received::Delivery(delivery)) => {
                self.note_delivery(&delivery)?;
                self.events.push(Event::Delivery(delivery));
            }
            Some(Received::Got(delivery, messages)) => {
                self.note_delivery(&delivery)?;
                self.events.push(Event::Got { delivery, messages });
            }
            Some(Received::ReturnedMessage { returned, content }) => {
                if let Some(channel) = ChannelId::new(channel) {
                    self.events.push(Event::Returned { channel, returned, content });
                }
            }
            Some(Received::Return { returned, properties }) => {
                let confirms = ChannelId::new(channel)
                    .and_then(|id| self.channels.get(id))
                    .and_then(|channel| channel.confirms.as_mut());
                let mark = properties::decode_mark(&properties).map(i64::cast_unsigned);
                let known = confirms
                    .zip(mark)
                    .is_some_and(|(confirms, sequence)| confirms.record_return(sequence, returned));
                if !known {
                    self.unmatched.returns += 1;
                }
            }
        }
        Ok(())
    }

    fn note_delivery(&mut self, delivery: &Delivery) -> Handled {
        let (id, found) = (delivery.channel(), delivery.delivery_tag());
        let Some(channel) = self.channels.get(id) else { return Ok(()) };
        if !channel.unacked.delivered(found, delivery.must_settle()) {
            return broken(ProtocolError::DeliveryTag { channel: id.get(), found });
        }
        Ok(())
    }

    /// The channel that a header or body frame is for. `Ok(None)`: the frame is discarded.
    fn content_channel(&mut self, number: u16) -> Result<Option<&mut Channel>, ConnectionError> {
        if matches!(self.phase, Phase::Closing | Phase::Closed) {
            return Ok(None);
        }
        match ChannelId::new(number).map(|id| self.channels.get(id).filter(|channel| channel.open_sent)) {
            None => Err(ProtocolError::UnexpectedFrame { channel: number }.into()),
            Some(None) => Err(ProtocolError::UnknownChannel { channel: number }.into()),
            Some(Some(channel)) => Ok(Some(channel).filter(|channel| channel.closing.is_none())),
        }
    }
}

fn begin_delivery(channel: &mut Channel, deliver: Deliver<'_>) {
    // Most channels have one consumer, and comparing bytes costs a fraction of looking up a text.
    let only = channel.consumers.first_key_value().filter(|(tag, _)| tag.as_bytes() == deliver.consumer_tag);
    let known = only.or_else(|| {
        let tag = std::str::from_utf8(deliver.consumer_tag).ok()?;
        channel.consumers.get_key_value(tag)
    });
    let (consumer_tag, must_settle) = match known {
        Some((tag, consumer)) => (tag.clone(), !consumer.no_ack),
        None => (lossy(deliver.consumer_tag), true),
    };
    channel.assembly.deliver(deliver, consumer_tag, must_settle);
}

/// What an answer says, where it is the one that is due. `Some(None)`: nothing to tell.
fn take_answer(channel: &mut Channel, id: ChannelId, answer: Incoming<'_>) -> Option<Option<Event>> {
    let (reply, event) = match answer {
        Incoming::ChannelOpenOk => (Reply::Open, Event::ChannelOpened { channel: id }),
        Incoming::ChannelFlowOk { active } => (Reply::Flow, Event::FlowSet { channel: id, active }),
        Incoming::ConfirmSelectOk => (Reply::ConfirmSelect, Event::ConfirmSelected { channel: id }),
        Incoming::TxSelectOk => (Reply::TxSelect, Event::TxSelected { channel: id }),
        Incoming::TxCommitOk => (Reply::TxCommit, Event::TxCommitted { channel: id }),
        Incoming::TxRollbackOk => (Reply::TxRollback, Event::TxRolledBack { channel: id }),
        Incoming::ExchangeDeclareOk => (Reply::ExchangeDeclare, Event::ExchangeDeclared { channel: id }),
        Incoming::ExchangeDeleteOk => (Reply::ExchangeDelete, Event::ExchangeDeleted { channel: id }),
        Incoming::ExchangeBindOk => (Reply::ExchangeBind, Event::Bound { channel: id }),
        Incoming::ExchangeUnbindOk => (Reply::ExchangeUnbind, Event::Unbound { channel: id }),
        Incoming::QueueDeclareOk { queue, messages, consumers } => {
            let event = Event::QueueDeclared { channel: id, name: queue, messages, consumers };
            (Reply::QueueDeclare, event)
        }
        Incoming::QueueBindOk => (Reply::QueueBind, Event::Bound { channel: id }),
        Incoming::QueueUnbindOk => (Reply::QueueUnbind, Event::Unbound { channel: id }),
        Incoming::QueuePurgeOk { messages } => {
            (Reply::QueuePurge, Event::QueuePurged { channel: id, messages })
        }
        Incoming::QueueDeleteOk { messages } => {
            (Reply::QueueDelete, Event::QueueDeleted { channel: id, messages })
        }
        Incoming::BasicQosOk => (Reply::Qos, Event::PrefetchSet { channel: id }),
        Incoming::BasicConsumeOk { consumer_tag } => {
            (Reply::Consume, Event::ConsumeStarted { channel: id, consumer_tag })
        }
        Incoming::BasicCancelOk { consumer_tag } => {
            (Reply::Cancel, Event::ConsumerCancelled { channel: id, consumer_tag, by_server: false })
        }
        Incoming::BasicGetEmpty => {
            channel.answered(|due| matches!(due, Reply::Get { .. }))?;
            return Some(Some(Event::GetEmpty { channel: id }));
        }
        Incoming::BasicRecoverOk => (Reply::Recover, Event::Recovered { channel: id }),
        _ => return None,
    };
    channel.answered(|due| due == reply)?;
    match &event {
        Event::Recovered { .. } => channel.unacked.recovered(),
        // Known since the command, except where the server takes another tag.
        Event::ConsumeStarted { consumer_tag, .. } => {
            channel.consumers.entry(consumer_tag.clone()).or_insert(Consumer { no_ack: false });
        }
        // The server may have cancelled it by itself in the meantime, and that was told.
        Event::ConsumerCancelled { consumer_tag, .. } if channel.consumers.remove(consumer_tag).is_none() => {
            return Some(None);
        }
        _ => {}
    }
    Some(Some(event))
}

fn broken(error: ProtocolError) -> Handled {
    Err(error.into())
}
