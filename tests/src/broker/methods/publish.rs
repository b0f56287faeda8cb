//! A publish: its method, its content, its routes, its return, its confirm (AMQP 0-9-1, 1.8.3.7).

use std::sync::Arc;

use amq_protocol::protocol::{AMQPClass, basic};
use amq_protocol::types::{Identifier, ShortString as AmqpShortString};
use bytes::BytesMut;
use leveret_core::time::Instant;

use super::{amqp, no_exchange, text};
use crate::broker::Broker;
use crate::broker::channel::{At, Incoming, Routed};
use crate::broker::confirm::{ConfirmStyle, Confirms, Receipt};
use crate::broker::error::{AmqpError, Code};
use crate::broker::event::BrokerEvent;
use crate::broker::frames::{self, Frame, FrameKind};
use crate::broker::lifecycle::not_open;
use crate::broker::message::Message;
use crate::broker::properties::{Properties, Property};
use crate::broker::queue::{Admission, Key};

/// Class and method id of `basic.publish`, which a refused content answers to.
const PUBLISH: (Identifier, Identifier) = (60, 40);

type Refusal = ((Identifier, Identifier), AmqpError);

impl Broker {
    pub(super) fn start_publish(&mut self, at: At, publish: &basic::Publish) {
        if let Some(connection) = self.connections.get_mut(&at.conn) {
            connection.publishes = true;
        }
        if let Some(channel) = self.channel_mut(at) {
            channel.incoming = Some(Incoming {
                exchange: text(&publish.exchange),
                routing_key: text(&publish.routing_key),
                mandatory: publish.mandatory,
                immediate: publish.immediate,
                content: None,
                body: BytesMut::new(),
            });
        }
    }

    /// A content header or body frame.
    pub(in crate::broker) fn on_content(&mut self, at: At, frame: &Frame) -> Result<(), Refusal> {
        let max = self.config.max_message_bytes;
        let Some(channel) = self.channel_mut(at) else { return Err(((0, 0), not_open())) };
        if channel.closing {
            return Ok(());
        }
        let Some(incoming) = &mut channel.incoming else {
            let detail = "expected method frame, got non method frame instead";
            return Err(((0, 0), AmqpError::new(Code::UnexpectedFrame, detail)));
        };
        match (frame.kind, &incoming.content) {
            (FrameKind::Header, None) => {
                incoming.content = Some(read_header(frame, max).map_err(|error| (PUBLISH, error))?);
            }
            (FrameKind::Body, Some((_, size))) => {
                if (incoming.body.len() + frame.payload.len()) as u64 > *size {
                    return Err((PUBLISH, incoming.out_of_place()));
                }
                incoming.body.extend_from_slice(&frame.payload);
            }
            _ => return Err((PUBLISH, incoming.out_of_place())),
        }
        self.finish_publish(at).map_err(|error| (PUBLISH, error))
    }

    /// Publishes what has come in, if it is complete.
    fn finish_publish(&mut self, at: At) -> Result<(), AmqpError> {
        let Some(channel) = self.channel_mut(at) else { return Ok(()) };
        let complete = channel.incoming.take_if(|incoming| {
            incoming.content.as_ref().is_some_and(|(_, size)| incoming.body.len() as u64 == *size)
        });
        let Some(Incoming {
            exchange,
            routing_key,
            content: Some((properties, _)),
            body,
            mandatory,
            immediate,
        }) = complete
        else {
            return Ok(());
        };
        if immediate {
            return Err(AmqpError::new(Code::NotImplemented, "immediate=true"));
        }
        let message = Message { exchange, routing_key, properties, body: body.freeze() };
        self.publish(at, message, mandatory)?;
        self.obey_alarm(at.conn);
        Ok(())
    }

    fn publish(&mut self, at: At, message: Message, mandatory: bool) -> Result<(), AmqpError> {
        let exchange = self.key(at, message.exchange.clone());
        self.check_publish(at, &exchange, &message)?;
        let confirms = self.channel_mut(at).and_then(|channel| channel.confirms.as_mut());
        let tag = confirms.map(Confirms::next_tag);
        let key = |name| Key { vhost: exchange.vhost.clone(), name };
        let targets = self.route(&exchange, &message).into_iter().map(key).collect();
        let routed = Routed { message: Arc::new(message), targets, mandatory };
        // RabbitMQ: routed when it comes, and delivered or returned when it is committed.
        if let Some(transaction) = self.channel_mut(at).and_then(|channel| channel.transaction.as_mut()) {
            transaction.publishes.push(routed);
            return Ok(());
        }
        let accepted = self.deliver_routed(at, routed);
        if let Some(tag) = tag {
            self.decide_confirm(at, tag, accepted);
        }
        Ok(())
    }

    /// Puts a publish into its queues, or returns it. False if one of them did not take it.
    pub(super) fn deliver_routed(&mut self, at: At, routed: Routed) -> bool {
        let Routed { message, targets, mandatory } = routed;
        self.events.push(BrokerEvent::Published {
            exchange: message.exchange.clone(),
            routing_key: message.routing_key.clone(),
            message_id: message.id(),
            queues: targets.len(),
        });
        if targets.is_empty() && mandatory {
            self.send_back(at, &message);
        }
        let mut accepted = true;
        for target in targets {
            accepted &= matches!(self.enqueue(&target, &message), Admission::Stored);
        }
        accepted
    }

    fn check_publish(&self, at: At, exchange: &Key, message: &Message) -> Result<(), AmqpError> {
        if !exchange.name.is_empty() {
            match self.exchanges.get(exchange) {
                None => return Err(no_exchange(exchange)),
                Some(found) if found.internal => {
                    let detail = format!("cannot publish to internal {}", exchange.exchange_text());
                    return Err(AmqpError::new(Code::AccessRefused, detail));
                }
                Some(_) => {}
            }
        }
        let user = self.connections.get(&at.conn).map_or("", |connection| &*connection.user);
        if let Some(claimed) = message.properties.text(Property::UserId)
            && claimed != user.as_bytes()
        {
            let claimed = String::from_utf8_lossy(claimed);
            let detail = format!("user_id property set to '{claimed}' but authenticated user was '{user}'");
            return Err(AmqpError::new(Code::PreconditionFailed, detail));
        }
        message.ttl().map(drop)
    }

    /// Returns an unroutable mandatory message. It carries no tag; its acknowledgement comes later.
    fn send_back(&mut self, at: At, message: &Message) {
        const NO_ROUTE: u16 = 312;
        let Some(connection) = self.connections.get_mut(&at.conn) else { return };
        let method = basic::AMQPMethod::Return(basic::Return {
            reply_code: NO_ROUTE,
            reply_text: AmqpShortString::from("NO_ROUTE"),
            exchange: amqp(&message.exchange),
            routing_key: amqp(&message.routing_key),
        });
        connection.send(at.channel, AMQPClass::Basic(method));
        let frame_max = connection.frame_max;
        let properties = message.properties.raw();
        frames::put_content(&mut connection.outgoing, at.channel, frame_max, properties, &message.body);
        self.events.push(BrokerEvent::Returned {
            routing_key: message.routing_key.clone(),
            message_id: message.id(),
        });
    }

    fn decide_confirm(&mut self, at: At, tag: u64, ack: bool) {
        let (now, style) = (self.now, self.confirms);
        let confirms = self.channel_mut(at).and_then(|channel| channel.confirms.as_mut());
        if let Some(confirms) = confirms {
            confirms.decide(now, tag, ack, style);
        }
        if style == ConfirmStyle::Immediate {
            self.send_confirms(at);
        }
    }

    /// Sends the verdicts whose time has come, on every channel.
    pub(in crate::broker) fn send_due_confirms(&mut self) {
        let now = self.now;
        for at in self.channels_that(|due| due.is_some_and(|due| due <= now)) {
            self.send_confirms(at);
        }
    }

    /// The channels in confirm mode whose verdicts are due when `wanted` says.
    pub(in crate::broker) fn channels_that(&self, wanted: impl Fn(Option<Instant>) -> bool) -> Vec<At> {
        let mut found = Vec::new();
        for (conn, connection) in &self.connections {
            for (number, channel) in &connection.channels {
                if channel.confirms.as_ref().is_some_and(|confirms| wanted(confirms.due())) {
                    found.push(At { conn: *conn, channel: *number });
                }
            }
        }
        found
    }

    /// Sends every verdict that a channel is owed.
    pub(in crate::broker) fn send_confirms(&mut self, at: At) {
        let Some(connection) = self.connections.get_mut(&at.conn) else { return };
        let confirms = connection.channels.get_mut(&at.channel).and_then(|channel| channel.confirms.as_mut());
        let Some(confirms) = confirms else { return };
        for receipt in confirms.settle(self.confirms, &mut self.rng) {
            connection.send(at.channel, AMQPClass::Basic(receipt_method(receipt)));
            let Receipt { tag, multiple, ack } = receipt;
            let event = BrokerEvent::Confirmed { conn: at.conn, channel: at.channel, tag, multiple, ack };
            self.events.push(event);
        }
    }
}

fn receipt_method(receipt: Receipt) -> basic::AMQPMethod {
    let Receipt { tag: delivery_tag, multiple, ack } = receipt;
    if ack {
        basic::AMQPMethod::Ack(basic::Ack { delivery_tag, multiple })
    } else {
        basic::AMQPMethod::Nack(basic::Nack { delivery_tag, multiple, requeue: false })
    }
}

fn read_header(frame: &Frame, max: u64) -> Result<(Properties, u64), AmqpError> {
    let header = frames::parse_content_header(&frame.payload)?;
    // RabbitMQ: the announced size is judged, so that a body that is too large is never taken in.
    if header.body_size > max {
        let detail = format!("message size {} is larger than configured max size {max}", header.body_size);
        return Err(AmqpError::new(Code::PreconditionFailed, detail));
    }
    let properties = Properties::parse(header.properties)
        .map_err(|_| AmqpError::new(Code::SyntaxError, "the properties of the message cannot be read"))?;
    Ok((properties, header.body_size))
}
