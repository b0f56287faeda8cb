//! What a test does to the broker from outside: alarms, cuts, closes, deletions, confirm styles.

use leveret_core::time::Instant;

use amq_protocol::protocol::{AMQPClass, connection};
use amq_protocol::types::ShortString as AmqpShortString;

use super::connection::Stage;
use super::event::{DeleteCause, EndCause};
use super::{Broker, ConfirmStyle, ConnectionId};

impl Broker {
    /// Raises the memory alarm. RabbitMQ: connections that have published are told `connection.blocked` (if
    /// they advertised it) and are not read from any more, acknowledgements and closes included. Others are
    /// stopped by their first publish.
    pub fn block(&mut self, now: Instant) {
        self.advance(now);
        self.alarm = true;
        let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for conn in all {
            self.obey_alarm(conn);
        }
    }

    /// Ends the memory alarm; [`Broker::wants_read`] turns true again.
    pub fn unblock(&mut self, now: Instant) {
        self.advance(now);
        self.alarm = false;
        let now = self.now;
        for connection in self.connections.values_mut().filter(|connection| connection.blocked) {
            connection.blocked = false;
            // Its silence was not its own.
            connection.last_read = now;
            if connection.capabilities.connection_blocked {
                let unblocked = connection::AMQPMethod::Unblocked(connection::Unblocked {});
                connection.send(0, AMQPClass::Connection(unblocked));
            }
        }
    }

    /// Stops a connection that publishes while an alarm is on.
    pub(super) fn obey_alarm(&mut self, conn: ConnectionId) {
        let alarm = self.alarm;
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if !alarm || !connection.publishes || connection.blocked || connection.stage != Stage::Running {
            return;
        }
        connection.blocked = true;
        if connection.capabilities.connection_blocked {
            let reason = AmqpShortString::from("low on memory");
            let blocked = connection::AMQPMethod::Blocked(connection::Blocked { reason });
            connection.send(0, AMQPClass::Connection(blocked));
        }
    }

    /// Cuts a connection as a broken network does: what was not transmitted yet is lost, both ways.
    pub fn cut(&mut self, now: Instant, conn: ConnectionId) {
        self.advance(now);
        self.end_at_once(conn, EndCause::Cut);
        self.work();
    }

    /// Closes a connection as an operator does, with RabbitMQ's `connection.close`: 320 and
    /// `CONNECTION_FORCED - ...` are usual. A text above 255 bytes is cut.
    pub fn close_connection(&mut self, now: Instant, conn: ConnectionId, code: u16, text: &str) {
        self.advance(now);
        let stage = self.connections.get(&conn).map(|connection| connection.stage);
        if matches!(stage, Some(Stage::TuneOk | Stage::Open | Stage::Running)) {
            self.start_close(conn, (0, 0), code, text.to_owned());
        }
        self.work();
    }

    /// Cancels one consumer of a queue of the virtual host `/`, as a broker does whose queue moves: the oldest
    /// in turn. The queue and the consumer's unacknowledged messages stay. False if there is none.
    pub fn cancel_consumer(&mut self, now: Instant, queue: &str) -> bool {
        self.advance(now);
        let Some(key) = Self::default_vhost_key(queue) else { return false };
        let Some(queue) = self.queues.get_mut(&key) else { return false };
        let Some(consumer) = queue.consumers.front().cloned() else { return false };
        let id = queue.id;
        let at = super::At { conn: consumer.conn, channel: consumer.channel };
        self.drop_consumer(&consumer);
        self.detach_consumer(&key, id, at, &consumer.tag);
        self.work();
        true
    }

    /// Deletes a queue of the virtual host `/`, whoever uses it. False if there is none.
    pub fn delete_queue(&mut self, now: Instant, queue: &str) -> bool {
        self.advance(now);
        let removed =
            Self::default_vhost_key(queue).and_then(|key| self.remove_queue(&key, DeleteCause::Deleted));
        self.work();
        removed.is_some()
    }

    /// Changes how publishes are confirmed from now on. Verdicts that are owed already keep their time.
    pub const fn set_confirms(&mut self, style: ConfirmStyle) {
        self.confirms = style;
    }

    /// Sends every verdict that is owed, also the withheld ones.
    pub fn release_confirms(&mut self, now: Instant) {
        self.advance(now);
        for at in self.channels_that(|_| true) {
            self.send_confirms(at);
        }
    }
}
