//! Consuming and settling (AMQP 0-9-1, 1.8). Publishing is in the module `publish`.

use amq_protocol::protocol::{AMQPClass, basic};
use leveret_core::text::ShortString;

use super::queue::count;
use super::{amqp, not_implemented, text, unexpected};
use crate::broker::channel::{At, Consumer, Settlement, Unacked};
use crate::broker::deadletter::with_delivery_count;
use crate::broker::error::{AmqpError, Code};
use crate::broker::event::BrokerEvent;
use crate::broker::queue::{ConsumerRef, Key};
use crate::broker::{Broker, frames};

impl Broker {
    pub(super) fn on_basic_method(&mut self, at: At, method: basic::AMQPMethod) -> Result<(), AmqpError> {
        use basic::AMQPMethod as M;
        match method {
            M::Publish(publish) => {
                self.start_publish(at, &publish);
                Ok(())
            }
            M::Qos(qos) => self.qos(at, &qos),
            M::Consume(consume) => self.consume(at, &consume),
            M::Cancel(cancel) => {
                self.cancel(at, &cancel);
                Ok(())
            }
            M::Get(get) => self.get(at, &get),
            M::Ack(ack) => self.settle_tags(at, ack.delivery_tag, ack.multiple, Settlement::Acknowledge),
            M::Nack(nack) => {
                self.settle_tags(at, nack.delivery_tag, nack.multiple, Settlement::refused(nack.requeue))
            }
            M::Reject(reject) => {
                self.settle_tags(at, reject.delivery_tag, false, Settlement::refused(reject.requeue))
            }
            M::Recover(recover) => {
                self.recover(at, recover.requeue)?;
                self.reply(at, reply(basic::AMQPMethod::RecoverOk(basic::RecoverOk {})));
                Ok(())
            }
            M::RecoverAsync(recover) => self.recover(at, recover.requeue),
            M::CancelOk(_) => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// RabbitMQ: with `global` unset the prefetch holds for each consumer that is started from now on.
    fn qos(&mut self, at: At, qos: &basic::Qos) -> Result<(), AmqpError> {
        if qos.global {
            return Err(not_implemented("basic.qos with global=true"));
        }
        if let Some(channel) = self.channel_mut(at) {
            channel.prefetch = qos.prefetch_count;
        }
        self.reply(at, reply(basic::AMQPMethod::QosOk(basic::QosOk {})));
        Ok(())
    }

    fn consume(&mut self, at: At, consume: &basic::Consume) -> Result<(), AmqpError> {
        if consume.arguments.contains_key("x-priority") {
            return Err(not_implemented("a priority of a consumer"));
        }
        let key = self.queue_key(at, &consume.queue)?;
        self.check_access(at, &key)?;
        let tag = match text(&consume.consumer_tag) {
            empty if empty.is_empty() => self.generated_name("amq.ctag-"),
            tag => tag,
        };
        let Some(channel) =
            self.connections.get_mut(&at.conn).and_then(|it| it.channels.get_mut(&at.channel))
        else {
            return Ok(());
        };
        if channel.consumers.contains_key(&tag) {
            return Err(AmqpError::new(Code::NotAllowed, format!("attempt to reuse consumer tag '{tag}'")));
        }
        let Some(queue) = self.queues.get_mut(&key) else { return Ok(()) };
        let taken = queue.consumers.iter().any(|consumer| consumer.exclusive)
            || consume.exclusive && !queue.consumers.is_empty();
        if taken {
            let detail = format!("{} in exclusive use", key.queue_text());
            return Err(AmqpError::new(Code::AccessRefused, detail));
        }
        queue.consumers.push_back(ConsumerRef {
            conn: at.conn,
            channel: at.channel,
            tag: tag.clone(),
            exclusive: consume.exclusive,
        });
        let consumer = Consumer {
            queue: key.clone(),
            queue_id: queue.id,
            no_ack: consume.no_ack,
            prefetch: channel.prefetch,
            unacked: 0,
        };
        channel.consumers.insert(tag.clone(), consumer);
        if !consume.nowait {
            let ok = basic::ConsumeOk { consumer_tag: amqp(&tag) };
            self.reply(at, reply(basic::AMQPMethod::ConsumeOk(ok)));
        }
        self.touched.insert(key);
        Ok(())
    }

    /// RabbitMQ: cancelling what is not there succeeds. Deliveries in hand stay the client's to settle.
    fn cancel(&mut self, at: At, cancel: &basic::Cancel) {
        let tag = text(&cancel.consumer_tag);
        let consumer = self.channel_mut(at).and_then(|channel| channel.consumers.remove(&tag));
        if let Some(consumer) = consumer {
            self.detach_consumer(&consumer.queue, consumer.queue_id, at, &tag);
        }
        if !cancel.nowait {
            let ok = basic::CancelOk { consumer_tag: amqp(&tag) };
            self.reply(at, reply(basic::AMQPMethod::CancelOk(ok)));
        }
    }

    /// RabbitMQ: `basic.get` renews the lease of the queue.
    fn get(&mut self, at: At, get: &basic::Get) -> Result<(), AmqpError> {
        let key = self.queue_key(at, &get.queue)?;
        self.check_access(at, &key)?;
        let Some(queue) = self.queues.get_mut(&key) else { return Ok(()) };
        queue.renew_lease(self.now);
        let Some((position, stored)) = queue.take_head() else {
            self.reply(at, reply(basic::AMQPMethod::GetEmpty(basic::GetEmpty {})));
            return Ok(());
        };
        let Some(connection) = self.connections.get_mut(&at.conn) else { return Ok(()) };
        let Some(channel) = connection.channels.get_mut(&at.channel) else { return Ok(()) };
        let message = with_delivery_count(&stored.message, stored.handed_back);
        let redelivered = stored.redelivered;
        let delivery_tag = channel.next_delivery_tag();
        if !get.no_ack {
            queue.unacked += 1;
            let unacked =
                Unacked { queue: key.clone(), queue_id: queue.id, position, stored, consumer: None };
            channel.unacked.insert(delivery_tag, unacked);
        }
        let ok = basic::GetOk {
            delivery_tag,
            redelivered,
            exchange: amqp(&message.exchange),
            routing_key: amqp(&message.routing_key),
            message_count: count(queue.ready()),
        };
        connection.send(at.channel, reply(basic::AMQPMethod::GetOk(ok)));
        let frame_max = connection.frame_max;
        let properties = message.properties.raw();
        frames::put_content(&mut connection.outgoing, at.channel, frame_max, properties, &message.body);
        self.events.push(BrokerEvent::Delivered {
            queue: key.name,
            conn: at.conn,
            message_id: message.id(),
            redelivered,
        });
        Ok(())
    }

    fn settle_tags(
        &mut self,
        at: At,
        tag: u64,
        multiple: bool,
        settlement: Settlement,
    ) -> Result<(), AmqpError> {
        let Some(channel) = self.channel_mut(at) else { return Ok(()) };
        let Some(settled) = channel.take_unacked(tag, multiple) else {
            let detail = format!("unknown delivery tag {tag}");
            return Err(AmqpError::new(Code::PreconditionFailed, detail));
        };
        if let Some(transaction) = &mut channel.transaction {
            let held = settled.into_iter().map(|(tag, unacked)| (tag, unacked, settlement));
            transaction.settled.extend(held);
            return Ok(());
        }
        for unacked in settled.into_values() {
            self.settle_one(at, unacked, settlement);
        }
        Ok(())
    }

    pub(super) fn settle_one(&mut self, at: At, unacked: Unacked, settlement: Settlement) {
        self.free_prefetch(at, unacked.consumer.as_ref(), &unacked.queue);
        match settlement {
            Settlement::Acknowledge => self.settle(&unacked, false),
            Settlement::Reject => self.settle(&unacked, true),
            Settlement::Requeue => self.requeue(unacked),
        }
    }

    fn free_prefetch(&mut self, at: At, tag: Option<&ShortString>, queue: &Key) {
        let Some(channel) = self.channel_mut(at) else { return };
        let consumer = tag.and_then(|tag| channel.consumers.get_mut(tag));
        // A new consumer of that tag may read another queue; it has nothing to do with this delivery.
        if let Some(consumer) = consumer.filter(|consumer| consumer.queue == *queue) {
            consumer.unacked = consumer.unacked.saturating_sub(1);
        }
    }

    fn recover(&mut self, at: At, requeue: bool) -> Result<(), AmqpError> {
        if !requeue {
            return Err(AmqpError::new(Code::NotImplemented, "requeue=false"));
        }
        let Some(channel) = self.channel_mut(at) else { return Ok(()) };
        for unacked in std::mem::take(&mut channel.unacked).into_values() {
            self.settle_one(at, unacked, Settlement::Requeue);
        }
        Ok(())
    }
}

const fn reply(method: basic::AMQPMethod) -> AMQPClass {
    AMQPClass::Basic(method)
}
