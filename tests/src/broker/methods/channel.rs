//! Opening and closing of channels (AMQP 0-9-1, 1.5).

use amq_protocol::protocol::{AMQPClass, channel};

use super::unexpected;
use crate::broker::Broker;
use crate::broker::channel::{At, Channel};
use crate::broker::error::{AmqpError, Code};
use crate::broker::lifecycle::not_open;

impl Broker {
    pub(in crate::broker) fn on_channel_method(
        &mut self,
        at: At,
        method: channel::AMQPMethod,
    ) -> Result<(), AmqpError> {
        use channel::AMQPMethod as M;
        let Some(connection) = self.connections.get_mut(&at.conn) else { return Ok(()) };
        let closing = connection.channels.get(&at.channel).map(|channel| channel.closing);
        match (method, closing) {
            // RabbitMQ counts channels and does not look at their numbers.
            (M::Open(_), None) if connection.channels.len() >= connection.channel_max.into() => {
                let max = connection.channel_max;
                let detail = format!(
                    "number of channels opened ({max}) has reached the negotiated channel_max ({max})"
                );
                Err(AmqpError::new(Code::NotAllowed, detail))
            }
            (M::Open(_), None) => {
                connection.channels.insert(at.channel, Channel::default());
                connection.send(at.channel, reply(M::OpenOk(channel::OpenOk {})));
                Ok(())
            }
            (M::Open(_), Some(false)) => {
                Err(AmqpError::new(Code::ChannelError, "second 'channel.open' seen"))
            }
            (_, None) => Err(not_open()),
            // Both sides closed at the same time: RabbitMQ answers and still awaits its own answer.
            (M::Close(_), Some(true)) => {
                connection.send(at.channel, reply(M::CloseOk(channel::CloseOk {})));
                Ok(())
            }
            (M::CloseOk(_), Some(true)) => {
                connection.channels.remove(&at.channel);
                Ok(())
            }
            (_, Some(true)) => Ok(()),
            (M::Close(_), Some(false)) => {
                self.release_channel(at);
                self.reply(at, reply(M::CloseOk(channel::CloseOk {})));
                Ok(())
            }
            (M::Flow(flow), Some(false)) => {
                if !flow.active {
                    return Err(AmqpError::new(Code::NotImplemented, "active=false"));
                }
                connection.send(at.channel, reply(M::FlowOk(channel::FlowOk { active: true })));
                Ok(())
            }
            (M::FlowOk(_), Some(false)) => Ok(()),
            (M::CloseOk(_) | M::OpenOk(_), Some(false)) => Err(unexpected()),
        }
    }
}

const fn reply(method: channel::AMQPMethod) -> AMQPClass {
    AMQPClass::Channel(method)
}
