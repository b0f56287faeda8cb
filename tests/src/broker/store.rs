//! What happens in queues: messages come in, expire, are handed back; queues are made and deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use amq_protocol::protocol::{AMQPClass, basic};
use amq_protocol::types::ShortString as AmqpShortString;
use leveret_core::text::ShortString;
use leveret_core::time::Instant;

use super::channel::{At, Unacked};
use super::event::{BrokerEvent, DeathReason, DeleteCause};
use super::exchange::Destination;
use super::message::Message;
use super::queue::{Admission, ConsumerRef, Key, Queue};
use super::{Broker, ConnectionId};

impl Broker {
    pub(super) fn next_queue_deadline(&self) -> Option<Instant> {
        self.queues.values().filter_map(Queue::deadline).min()
    }

    /// Handles the deadlines that have come: messages first, then leases, so that a message and the lease of
    /// its queue that end together are the message's.
    pub(super) fn queues_due(&mut self) {
        let now = self.now;
        let is_due = |queue: &Queue| queue.deadline().is_some_and(|due| due <= now);
        let due: Vec<Key> =
            self.queues.iter().filter(|(_, queue)| is_due(queue)).map(|(key, _)| key.clone()).collect();
        self.touched.extend(due.iter().cloned());
        self.work();
        for key in due {
            if self.queues.get(&key).is_some_and(|queue| queue.lease_is_over(now)) {
                self.remove_queue(&key, DeleteCause::Expired);
            }
        }
        self.work();
    }

    /// Expires and delivers from the next queue that was touched. False if there is none.
    pub(super) fn serve_next(&mut self) -> bool {
        let Some(key) = self.touched.pop_first() else { return false };
        loop {
            self.drop_expired(&key);
            if !self.deliver_head(&key) {
                return true;
            }
        }
    }

    fn drop_expired(&mut self, key: &Key) {
        while let Some(dead) = self.queues.get_mut(key).and_then(|queue| queue.take_expired(self.now)) {
            self.bury(key, &dead.message, DeathReason::Expired);
        }
    }

    /// The queues that an exchange sends a message to, each once, whatever the way. The default exchange (empty
    /// name) is the queues themselves.
    pub(super) fn route(&self, exchange: &Key, message: &Message) -> BTreeSet<ShortString> {
        let vhost = &exchange.vhost;
        if exchange.name.is_empty() {
            let key = Key { vhost: vhost.clone(), name: message.routing_key.clone() };
            return self.queues.get_key_value(&key).map(|(key, _)| key.name.clone()).into_iter().collect();
        }
        let (mut queues, mut seen) = (BTreeSet::new(), BTreeSet::from([exchange.name.clone()]));
        let mut to_visit = vec![exchange.name.clone()];
        while let Some(name) = to_visit.pop() {
            let Some(exchange) = self.exchanges.get(&Key { vhost: vhost.clone(), name }) else { continue };
            for destination in exchange.route(message) {
                match destination {
                    Destination::Queue(queue) => drop(queues.insert(queue.clone())),
                    Destination::Exchange(next) if seen.insert(next.clone()) => to_visit.push(next.clone()),
                    Destination::Exchange(_) => {}
                }
            }
        }
        queues
    }

    /// Takes the bindings to something away that is gone, and the exchanges that go with their last binding.
    pub(super) fn unbind_all(&mut self, vhost: &ShortString, gone: Destination) {
        let mut gone = vec![gone];
        while let Some(destination) = gone.pop() {
            let unused: Vec<Key> = self
                .exchanges
                .iter_mut()
                .filter(|(key, _)| key.vhost == *vhost)
                .filter_map(|(key, exchange)| {
                    exchange.unbind(|binding| binding.destination == destination).then(|| key.clone())
                })
                .collect();
            for key in unused {
                self.exchanges.remove(&key);
                gone.push(Destination::Exchange(key.name));
            }
        }
    }

    /// Puts a message into a queue.
    pub(super) fn enqueue(&mut self, key: &Key, message: &Arc<Message>) -> Admission {
        let Some(queue) = self.queues.get_mut(key) else {
            return Admission::Refused { dead_letter: false };
        };
        let idle = queue.ready() == 0;
        let admission = queue.admit(self.now, message.clone());
        match admission {
            Admission::Refused { dead_letter: true } => self.bury(key, message, DeathReason::MaxLength),
            Admission::Refused { dead_letter: false } => self.events.push(BrokerEvent::Dropped {
                queue: key.name.clone(),
                reason: DeathReason::MaxLength,
                message_id: message.id(),
            }),
            Admission::Stored => {
                // RabbitMQ: a TTL of 0 means "to a consumer at once, or never".
                if idle {
                    self.deliver_head(key);
                }
                while let Some(dead) = self.queues.get_mut(key).and_then(Queue::take_overflow) {
                    self.bury(key, &dead.message, DeathReason::MaxLength);
                }
                self.touched.insert(key.clone());
            }
        }
        admission
    }

    /// Hands an unacknowledged message back to where it stood.
    pub(super) fn requeue(&mut self, unacked: Unacked) {
        let Unacked { queue: key, queue_id, position, stored, .. } = unacked;
        let Some(queue) = self.queues.get_mut(&key).filter(|queue| queue.id == queue_id) else { return };
        queue.unacked -= 1;
        let message_id = stored.message.id();
        match queue.put_back(position, stored) {
            None => self.events.push(BrokerEvent::Requeued { queue: key.name.clone(), message_id }),
            Some(dead) => self.bury(&key, &dead.message, DeathReason::DeliveryLimit),
        }
        self.touched.insert(key);
    }

    /// Settles a message for good: acknowledged, or rejected and buried.
    pub(super) fn settle(&mut self, unacked: &Unacked, rejected: bool) {
        let key = &unacked.queue;
        let Some(queue) = self.queues.get_mut(key).filter(|queue| queue.id == unacked.queue_id) else {
            return;
        };
        queue.unacked -= 1;
        self.touched.insert(key.clone());
        if rejected {
            self.bury(key, &unacked.stored.message, DeathReason::Rejected);
        } else {
            let message_id = unacked.stored.message.id();
            self.events.push(BrokerEvent::Acked { queue: key.name.clone(), message_id });
        }
    }

    /// Takes a consumer off its queue, which may end the queue or start its lease.
    pub(super) fn detach_consumer(&mut self, key: &Key, queue_id: u64, at: At, tag: &ShortString) {
        let Some(queue) = self.queues.get_mut(key).filter(|queue| queue.id == queue_id) else { return };
        queue.consumers.retain(|one| (one.conn, one.channel, &one.tag) != (at.conn, at.channel, tag));
        if queue.consumers.is_empty() {
            queue.renew_lease(self.now);
            if queue.auto_delete {
                self.remove_queue(key, DeleteCause::Unused);
            }
        }
    }

    /// Deletes a queue and returns how many ready messages are lost with it. Its consumers are told if they
    /// can understand it.
    pub(super) fn remove_queue(&mut self, key: &Key, cause: DeleteCause) -> Option<usize> {
        let queue = self.queues.remove(key)?;
        let messages = queue.ready();
        for consumer in queue.consumers {
            self.drop_consumer(&consumer);
        }
        self.unbind_all(&key.vhost, Destination::Queue(key.name.clone()));
        self.events.push(BrokerEvent::QueueDeleted { queue: key.name.clone(), cause, messages });
        Some(messages)
    }

    /// Ends a consumer from the broker's side, with a `basic.cancel` to a client that advertised
    /// `consumer_cancel_notify`. Its unacknowledged messages stay its own.
    pub(super) fn drop_consumer(&mut self, consumer: &ConsumerRef) {
        let Some(connection) = self.connections.get_mut(&consumer.conn) else { return };
        let Some(channel) = connection.channels.get_mut(&consumer.channel) else { return };
        channel.consumers.remove(&consumer.tag);
        if connection.capabilities.consumer_cancel_notify {
            let consumer_tag = AmqpShortString::from(consumer.tag.as_str());
            let cancel = basic::AMQPMethod::Cancel(basic::Cancel { consumer_tag, nowait: true });
            connection.send(consumer.channel, AMQPClass::Basic(cancel));
        }
    }

    /// Lets the queues that a connection consumes try again: it has room for deliveries.
    pub(super) fn touch_consumed_by(&mut self, conn: ConnectionId) {
        let Some(connection) = self.connections.get(&conn) else { return };
        let consumers = connection.channels.values().flat_map(|channel| channel.consumers.values());
        self.touched.extend(consumers.map(|consumer| consumer.queue.clone()));
    }
}
