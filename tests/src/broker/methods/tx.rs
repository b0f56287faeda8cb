//! Transactions: publishes and settlements of a channel that are done together (AMQP 0-9-1, 1.9).

use amq_protocol::protocol::{AMQPClass, tx};

use super::unexpected;
use crate::broker::Broker;
use crate::broker::channel::{At, Transaction};
use crate::broker::error::{AmqpError, Code};

impl Broker {
    pub(super) fn on_tx_method(&mut self, at: At, method: &tx::AMQPMethod) -> Result<(), AmqpError> {
        use tx::AMQPMethod as M;
        let answer = match method {
            M::Select(_) => {
                self.tx_select(at)?;
                M::SelectOk(tx::SelectOk {})
            }
            M::Commit(_) => {
                let Transaction { publishes, settled } = self.take_transaction(at)?;
                for routed in publishes {
                    self.deliver_routed(at, routed);
                }
                for (_, unacked, settlement) in settled {
                    self.settle_one(at, unacked, settlement);
                }
                M::CommitOk(tx::CommitOk {})
            }
            M::Rollback(_) => {
                let settled = self.take_transaction(at)?.settled;
                if let Some(channel) = self.channel_mut(at) {
                    channel.unacked.extend(settled.into_iter().map(|(tag, unacked, _)| (tag, unacked)));
                }
                M::RollbackOk(tx::RollbackOk {})
            }
            M::SelectOk(_) | M::CommitOk(_) | M::RollbackOk(_) => return Err(unexpected()),
        };
        self.reply(at, AMQPClass::Tx(answer));
        Ok(())
    }

    fn tx_select(&mut self, at: At) -> Result<(), AmqpError> {
        let Some(channel) = self.channel_mut(at) else { return Ok(()) };
        if channel.confirms.is_some() {
            let detail = "cannot switch from confirm to tx mode";
            return Err(AmqpError::new(Code::PreconditionFailed, detail));
        }
        channel.transaction.get_or_insert_default();
        Ok(())
    }

    /// What waits for a commit, with an empty transaction in its place.
    fn take_transaction(&mut self, at: At) -> Result<Transaction, AmqpError> {
        let transaction = self.channel_mut(at).and_then(|channel| channel.transaction.as_mut());
        let transaction = transaction
            .ok_or_else(|| AmqpError::new(Code::PreconditionFailed, "channel is not transactional"))?;
        Ok(std::mem::take(transaction))
    }
}
