//! Queues (AMQP 0-9-1, 1.7).

use amq_protocol::protocol::{AMQPClass, queue};

use super::{amqp, locked, no_queue, text, unexpected};
use crate::broker::Broker;
use crate::broker::arguments::{check_equivalent, flag_differs};
use crate::broker::channel::At;
use crate::broker::error::{AmqpError, Code};
use crate::broker::event::{BrokerEvent, DeleteCause};
use crate::broker::exchange::{Binding, Destination};
use crate::broker::queue::{Declaration, Key, Queue};
use crate::broker::table::to_table;

impl Broker {
    pub(super) fn on_queue_method(&mut self, at: At, method: queue::AMQPMethod) -> Result<(), AmqpError> {
        use queue::AMQPMethod as M;
        match method {
            M::Declare(declare) => self.queue_declare(at, &declare),
            M::Delete(delete) => self.queue_delete(at, &delete),
            M::Purge(purge) => self.queue_purge(at, &purge),
            M::Bind(bind) => self.queue_bind(at, &bind),
            M::Unbind(unbind) => self.queue_unbind(at, &unbind),
            _ => Err(unexpected()),
        }
    }

    fn queue_declare(&mut self, at: At, declare: &queue::Declare) -> Result<(), AmqpError> {
        let name = match text(&declare.queue) {
            empty if empty.is_empty() && !declare.passive => self.generated_name("amq.gen-"),
            name => name,
        };
        let key = self.key(at, name);
        if declare.passive {
            self.check_access(at, &key)?;
        } else if self.queues.contains_key(&key) {
            self.check_same_queue(at, &key, declare)?;
        } else {
            if key.name.starts_with("amq.") && !declare.queue.as_str().is_empty() {
                let detail = format!("queue name '{}' contains reserved prefix 'amq.*'", key.name);
                return Err(AmqpError::new(Code::AccessRefused, detail));
            }
            self.create_queue(at, &key, declare)?;
        }
        let Some(queue) = self.queues.get_mut(&key) else { return Err(no_queue(&key)) };
        let (ready, consumers) = (queue.ready(), queue.consumers.len());
        // RabbitMQ: a declaration renews the lease by asking the queue for its counts, which a `no-wait` one
        // does not do.
        if !declare.nowait {
            queue.declared(self.now);
            let ok = queue::AMQPMethod::DeclareOk(queue::DeclareOk {
                queue: amqp(&key.name),
                message_count: count(ready),
                consumer_count: count(consumers),
            });
            self.reply(at, AMQPClass::Queue(ok));
        }
        if let Some(channel) = self.channel_mut(at) {
            channel.last_queue = Some(key.name);
        }
        Ok(())
    }

    fn create_queue(&mut self, at: At, key: &Key, declare: &queue::Declare) -> Result<(), AmqpError> {
        let declared = Declaration {
            durable: declare.durable,
            auto_delete: declare.auto_delete,
            owner: declare.exclusive.then_some(at.conn),
            arguments: to_table(&declare.arguments),
        };
        self.queues_created += 1;
        let queue = Queue::new(self.queues_created, self.now, declared, &key.queue_text())?;
        if queue.settings.quorum && !(queue.durable && queue.owner.is_none() && !queue.auto_delete) {
            let property = match queue.durable {
                false => "non-durable",
                true if queue.auto_delete => "auto-delete",
                true => "exclusive",
            };
            let detail = format!("invalid property '{property}' for {}", key.queue_text());
            return Err(AmqpError::new(Code::PreconditionFailed, detail));
        }
        self.queues.insert(key.clone(), queue);
        // RabbitMQ tries again after a while; here the new queue is the occasion.
        self.deaths.append(&mut self.unrouted);
        self.events.push(BrokerEvent::QueueCreated { queue: key.name.clone() });
        Ok(())
    }

    fn check_same_queue(&self, at: At, key: &Key, declare: &queue::Declare) -> Result<(), AmqpError> {
        let Some(queue) = self.queues.get(key) else { return Ok(()) };
        if queue.owner != declare.exclusive.then_some(at.conn) {
            return Err(locked(key));
        }
        let what = key.queue_text();
        for (flag, received, current) in [
            ("durable", declare.durable, queue.durable),
            ("auto_delete", declare.auto_delete, queue.auto_delete),
        ] {
            if received != current {
                return Err(flag_differs(flag, &what, received, current));
            }
        }
        check_equivalent(&queue.arguments, &to_table(&declare.arguments), &what)
    }

    fn queue_delete(&mut self, at: At, delete: &queue::Delete) -> Result<(), AmqpError> {
        let key = self.queue_key(at, &delete.queue)?;
        // RabbitMQ: deleting what is not there succeeds.
        if let Some(queue) = self.queues.get(&key) {
            let refusal = if delete.if_unused && !queue.consumers.is_empty() {
                Some("in use")
            } else if delete.if_empty && queue.ready() > 0 {
                Some("not empty")
            } else {
                None
            };
            self.check_access(at, &key)?;
            if let Some(why) = refusal {
                let detail = format!("{} {why}", key.queue_text());
                return Err(AmqpError::new(Code::PreconditionFailed, detail));
            }
        }
        let messages = self.remove_queue(&key, DeleteCause::Deleted).unwrap_or(0);
        if !delete.nowait {
            let ok = queue::AMQPMethod::DeleteOk(queue::DeleteOk { message_count: count(messages) });
            self.reply(at, AMQPClass::Queue(ok));
        }
        Ok(())
    }

    fn queue_purge(&mut self, at: At, purge: &queue::Purge) -> Result<(), AmqpError> {
        let key = self.queue_key(at, &purge.queue)?;
        self.check_access(at, &key)?;
        let messages = self.queues.get_mut(&key).map_or(0, Queue::purge);
        self.events.push(BrokerEvent::QueuePurged { queue: key.name, messages });
        if !purge.nowait {
            let ok = queue::AMQPMethod::PurgeOk(queue::PurgeOk { message_count: count(messages) });
            self.reply(at, AMQPClass::Queue(ok));
        }
        Ok(())
    }

    fn queue_bind(&mut self, at: At, bind: &queue::Bind) -> Result<(), AmqpError> {
        let key = self.queue_key(at, &bind.queue)?;
        self.check_access(at, &key)?;
        let source = self.key(at, text(&bind.exchange));
        let binding = Binding {
            destination: Destination::Queue(key.name),
            routing_key: text(&bind.routing_key),
            arguments: to_table(&bind.arguments),
        };
        self.bind(&source, binding)?;
        if !bind.nowait {
            self.reply(at, AMQPClass::Queue(queue::AMQPMethod::BindOk(queue::BindOk {})));
        }
        Ok(())
    }

    fn queue_unbind(&mut self, at: At, unbind: &queue::Unbind) -> Result<(), AmqpError> {
        let key = self.queue_key(at, &unbind.queue)?;
        if self.queues.contains_key(&key) {
            self.check_access(at, &key)?;
        }
        let source = self.key(at, text(&unbind.exchange));
        let unwanted = Binding {
            destination: Destination::Queue(key.name),
            routing_key: text(&unbind.routing_key),
            arguments: to_table(&unbind.arguments),
        };
        self.unbind(&source, &unwanted)?;
        self.reply(at, AMQPClass::Queue(queue::AMQPMethod::UnbindOk(queue::UnbindOk {})));
        Ok(())
    }
}

/// A number of messages or consumers, as many as the field can say.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
