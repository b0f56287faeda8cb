//! What each method of the protocol does, one file per class (AMQP 0-9-1, 1.4 to 1.9).

mod basic;
mod channel;
mod connection;
mod exchange;
mod publish;
mod queue;
mod tx;

use amq_protocol::protocol::{AMQPClass, confirm};
use amq_protocol::types::ShortString as AmqpShortString;
use leveret_core::text::ShortString;

use super::Broker;
use super::channel::At;
use super::confirm::Confirms;
use super::error::{AmqpError, Code};
use super::queue::Key;

/// The answer to what this broker leaves out.
fn not_implemented(what: &str) -> AmqpError {
    AmqpError::new(Code::NotImplemented, format!("{what} is not supported by this broker"))
}

/// The answer to a method that only a server sends.
fn unexpected() -> AmqpError {
    AmqpError::new(Code::CommandInvalid, "unimplemented method")
}

fn text(name: &AmqpShortString) -> ShortString {
    ShortString::new(name.as_str()).expect("amq-protocol checked the length")
}

fn amqp(name: &ShortString) -> AmqpShortString {
    AmqpShortString::from(name.as_str())
}

impl Broker {
    /// A method of a class that works on an open channel.
    pub(super) fn on_work_method(&mut self, at: At, method: AMQPClass) -> Result<(), AmqpError> {
        match method {
            AMQPClass::Queue(method) => self.on_queue_method(at, method),
            AMQPClass::Exchange(method) => self.on_exchange_method(at, method),
            AMQPClass::Basic(method) => self.on_basic_method(at, method),
            AMQPClass::Confirm(confirm::AMQPMethod::Select(select)) => {
                if let Some(channel) = self.channel_mut(at) {
                    if channel.transaction.is_some() {
                        let detail = "cannot switch from tx to confirm mode";
                        return Err(AmqpError::new(Code::PreconditionFailed, detail));
                    }
                    channel.confirms.get_or_insert_with(Confirms::default);
                }
                if !select.nowait {
                    let ok = confirm::AMQPMethod::SelectOk(confirm::SelectOk {});
                    self.reply(at, AMQPClass::Confirm(ok));
                }
                Ok(())
            }
            AMQPClass::Confirm(_) => Err(unexpected()),
            AMQPClass::Tx(method) => self.on_tx_method(at, &method),
            AMQPClass::Access(_) => Err(not_implemented("access.request")),
            AMQPClass::Connection(_) | AMQPClass::Channel(_) => Err(unexpected()),
        }
    }

    /// The name as a key of the connection's virtual host.
    fn key(&self, at: At, name: ShortString) -> Key {
        let connection = self.connections.get(&at.conn);
        Key { vhost: connection.map(|connection| connection.vhost.clone()).unwrap_or_default(), name }
    }

    /// The name of a queue, where empty means the last one that was declared on the channel
    /// (AMQP 0-9-1, 1.7.2.3).
    fn queue_key(&mut self, at: At, name: &AmqpShortString) -> Result<Key, AmqpError> {
        let name = if name.as_str().is_empty() {
            let last = self.channel_mut(at).and_then(|channel| channel.last_queue.clone());
            last.ok_or_else(|| AmqpError::new(Code::NotFound, "no previously declared queue"))?
        } else {
            text(name)
        };
        Ok(self.key(at, name))
    }

    /// Checks that a queue exists and is not exclusive to another connection.
    fn check_access(&self, at: At, key: &Key) -> Result<(), AmqpError> {
        match self.queues.get(key) {
            None => Err(no_queue(key)),
            Some(queue) if queue.owner.is_some_and(|owner| owner != at.conn) => Err(locked(key)),
            Some(_) => Ok(()),
        }
    }

    /// A name that nobody can guess: `prefix` and 128 random bits.
    fn generated_name(&mut self, prefix: &str) -> ShortString {
        ShortString::truncated(&format!("{prefix}{:032x}", self.rng.next_u128()))
    }
}

fn no_queue(key: &Key) -> AmqpError {
    AmqpError::new(Code::NotFound, format!("no {}", key.queue_text()))
}

fn no_exchange(key: &Key) -> AmqpError {
    AmqpError::new(Code::NotFound, format!("no {}", key.exchange_text()))
}

fn locked(key: &Key) -> AmqpError {
    let detail = format!(
        "cannot obtain exclusive access to locked {}. It could be originally declared on another connection \
         or the exclusive property value does not match that of the original declaration.",
        key.queue_text()
    );
    AmqpError::new(Code::ResourceLocked, detail)
}
