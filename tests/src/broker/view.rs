//! What a test sees when it looks into the broker.

use bytes::Bytes;
use leveret_core::table::{Table, Value};
use leveret_core::text::ShortString;
use leveret_core::time::Instant;

use super::properties::Properties;
use super::{Broker, ConnectionId, Key, Queue, Stage, table};

/// A queue at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QueueView {
    /// The virtual host.
    pub vhost: ShortString,
    /// The name.
    pub name: ShortString,
    /// Whether it would survive a restart.
    pub durable: bool,
    /// The arguments of its declaration.
    pub arguments: Table,
    /// Messages that wait for a consumer.
    pub ready: usize,
    /// Messages that were delivered and not settled.
    pub unacked: usize,
    /// Consumers.
    pub consumers: usize,
    /// The waiting messages, head first.
    pub messages: Vec<MessageView>,
}

/// A waiting message at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MessageView {
    /// The property `message-id`, where it is text.
    pub message_id: Option<ShortString>,
    /// The priority that counts in this queue.
    pub priority: u8,
    /// Whether it has been delivered before.
    pub redelivered: bool,
    /// When its time in this queue is over; it leaves then, or when it becomes the head after that.
    pub expires_at: Option<Instant>,
    /// The body.
    pub body: Bytes,
    properties: Properties,
}

impl MessageView {
    /// One header, such as `x-death-reason` of a dead letter. None also where it is no valid value, or nests more
    /// than 31 deep.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<Value> {
        table::value(self.properties.headers(), name)
    }
}

/// A connection at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionView {
    /// Its id, for [`Broker::cut`] and the like.
    pub id: ConnectionId,
    /// The `connection_name` that the client gave.
    pub name: Option<ShortString>,
    /// The user.
    pub user: ShortString,
    /// The virtual host.
    pub vhost: ShortString,
    /// The open channels.
    pub channels: Vec<u16>,
    /// Whether an alarm keeps the broker from reading it.
    pub blocked: bool,
}

impl QueueView {
    fn new(key: &Key, queue: &Queue) -> Self {
        let messages = queue.waiting().map(|(priority, stored)| MessageView {
            message_id: stored.message.id(),
            priority,
            redelivered: stored.redelivered,
            expires_at: stored.expires_at,
            body: stored.message.body.clone(),
            properties: stored.message.properties.clone(),
        });
        Self {
            vhost: key.vhost.clone(),
            name: key.name.clone(),
            durable: queue.durable,
            arguments: queue.arguments.clone(),
            ready: queue.ready(),
            unacked: queue.unacked,
            consumers: queue.consumers.len(),
            messages: messages.collect(),
        }
    }
}

impl Broker {
    /// A queue of the virtual host `/`.
    #[must_use]
    pub fn queue(&self, name: &str) -> Option<QueueView> {
        let key = Self::default_vhost_key(name)?;
        Some(QueueView::new(&key, self.queues.get(&key)?))
    }

    /// The queues of all virtual hosts, by virtual host and name.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueView> {
        self.queues.iter().map(|(key, queue)| QueueView::new(key, queue)).collect()
    }

    /// The connections whose handshake is done, oldest first.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionView> {
        let running = self.connections.iter().filter(|(_, connection)| connection.stage == Stage::Running);
        running
            .map(|(id, connection)| ConnectionView {
                id: *id,
                name: connection.name.clone(),
                user: connection.user.clone(),
                vhost: connection.vhost.clone(),
                channels: connection.channels.keys().copied().collect(),
                blocked: connection.blocked,
            })
            .collect()
    }
}
