//! Deliveries: which consumer is next, and what it is sent.

use amq_protocol::protocol::{AMQPClass, basic};
use amq_protocol::types::ShortString as AmqpShortString;

use super::Broker;
use super::channel::Unacked;
use super::connection::Stage;
use super::deadletter::with_delivery_count;
use super::event::BrokerEvent;
use super::frames;
use super::queue::{ConsumerRef, Key};

impl Broker {
    /// Gives the head of a queue to the next consumer in turn that can take it. False if there is no message
    /// or no such consumer.
    pub(super) fn deliver_head(&mut self, key: &Key) -> bool {
        let Some(queue) = self.queues.get(key).filter(|queue| queue.ready() > 0) else { return false };
        let Some(turn) = queue.consumers.iter().position(|consumer| self.can_take(consumer)) else {
            return false;
        };
        self.deliver_to(key, turn).is_some()
    }

    fn can_take(&self, consumer: &ConsumerRef) -> bool {
        self.connections.get(&consumer.conn).is_some_and(|connection| {
            let channel = connection.channels.get(&consumer.channel);
            connection.stage == Stage::Running
                && connection.outgoing.len() < self.config.outgoing_high_water
                && channel
                    .and_then(|channel| channel.consumers.get(&consumer.tag))
                    .is_some_and(super::channel::Consumer::has_room)
        })
    }

    fn deliver_to(&mut self, key: &Key, turn: usize) -> Option<()> {
        let queue = self.queues.get_mut(key)?;
        let to = queue.consumers.remove(turn)?;
        queue.consumers.push_back(to.clone());
        let connection = self.connections.get_mut(&to.conn)?;
        let channel = connection.channels.get_mut(&to.channel)?;
        let consumer = channel.consumers.get_mut(&to.tag)?;
        let (position, stored) = queue.take_head()?;

        let message = with_delivery_count(&stored.message, stored.handed_back);
        let redelivered = stored.redelivered;
        let no_ack = consumer.no_ack;
        if !no_ack {
            consumer.unacked += 1;
            queue.unacked += 1;
        }
        let delivery_tag = channel.next_delivery_tag();
        if !no_ack {
            let consumer = Some(to.tag.clone());
            let unacked = Unacked { queue: key.clone(), queue_id: queue.id, position, stored, consumer };
            channel.unacked.insert(delivery_tag, unacked);
        }
        let deliver = basic::AMQPMethod::Deliver(basic::Deliver {
            consumer_tag: AmqpShortString::from(to.tag.as_str()),
            delivery_tag,
            redelivered,
            exchange: AmqpShortString::from(message.exchange.as_str()),
            routing_key: AmqpShortString::from(message.routing_key.as_str()),
        });
        connection.send(to.channel, AMQPClass::Basic(deliver));
        let frame_max = connection.frame_max;
        frames::put_content(
            &mut connection.outgoing,
            to.channel,
            frame_max,
            message.properties.raw(),
            &message.body,
        );
        self.events.push(BrokerEvent::Delivered {
            queue: key.name.clone(),
            conn: to.conn,
            message_id: message.id(),
            redelivered,
        });
        Some(())
    }
}
