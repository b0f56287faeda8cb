//! Exchanges (AMQP 0-9-1, 1.6).

use amq_protocol::protocol::{AMQPClass, exchange};

use super::{no_exchange, not_implemented, text, unexpected};
use crate::broker::Broker;
use crate::broker::arguments::{flag_differs, inequivalent};
use crate::broker::channel::At;
use crate::broker::error::{AmqpError, Code};
use crate::broker::exchange::{Binding, Destination, Exchange, Kind, is_valid_match};
use crate::broker::queue::Key;
use crate::broker::table::to_table;

impl Broker {
    pub(super) fn on_exchange_method(
        &mut self,
        at: At,
        method: exchange::AMQPMethod,
    ) -> Result<(), AmqpError> {
        use exchange::AMQPMethod as M;
        match method {
            M::Declare(declare) => self.exchange_declare(at, &declare),
            M::Delete(delete) => self.exchange_delete(at, &delete),
            M::Bind(bind) => self.exchange_bind(at, &bind),
            M::Unbind(unbind) => self.exchange_unbind(at, &unbind),
            _ => Err(unexpected()),
        }
    }

    fn exchange_declare(&mut self, at: At, declare: &exchange::Declare) -> Result<(), AmqpError> {
        let key = self.key(at, text(&declare.exchange));
        refuse_default(&key)?;
        if declare.passive {
            if !self.exchanges.contains_key(&key) {
                return Err(no_exchange(&key));
            }
        } else {
            let wanted = self.described(declare)?;
            match self.exchanges.get(&key) {
                Some(current) => check_same(current, &wanted, &key)?,
                None => {
                    if is_reserved(&key) {
                        let detail = format!("exchange name '{}' contains reserved prefix 'amq.*'", key.name);
                        return Err(AmqpError::new(Code::AccessRefused, detail));
                    }
                    self.exchanges.insert(key, wanted);
                }
            }
        }
        if !declare.nowait {
            let ok = exchange::AMQPMethod::DeclareOk(exchange::DeclareOk {});
            self.reply(at, AMQPClass::Exchange(ok));
        }
        Ok(())
    }

    fn described(&self, declare: &exchange::Declare) -> Result<Exchange, AmqpError> {
        if declare.arguments.contains_key("alternate-exchange") {
            return Err(not_implemented("an alternate exchange"));
        }
        let name = declare.kind.as_str();
        let kind = Kind::parse(name)
            .ok_or_else(|| AmqpError::new(Code::CommandInvalid, format!("unknown exchange type '{name}'")))?;
        Ok(Exchange::new(kind, declare.durable, declare.auto_delete, declare.internal))
    }

    fn exchange_delete(&mut self, at: At, delete: &exchange::Delete) -> Result<(), AmqpError> {
        let key = self.key(at, text(&delete.exchange));
        refuse_default(&key)?;
        if is_reserved(&key) {
            let detail = format!("deletion of system {} not allowed", key.exchange_text());
            return Err(AmqpError::new(Code::AccessRefused, detail));
        }
        let used = self.exchanges.get(&key).is_some_and(Exchange::is_used);
        if delete.if_unused && used {
            return Err(AmqpError::new(Code::PreconditionFailed, format!("{} in use", key.exchange_text())));
        }
        self.exchanges.remove(&key);
        self.unbind_all(&key.vhost, Destination::Exchange(key.name));
        if !delete.nowait {
            let ok = exchange::AMQPMethod::DeleteOk(exchange::DeleteOk {});
            self.reply(at, AMQPClass::Exchange(ok));
        }
        Ok(())
    }

    fn exchange_bind(&mut self, at: At, bind: &exchange::Bind) -> Result<(), AmqpError> {
        let (source, destination) = (self.key(at, text(&bind.source)), self.key(at, text(&bind.destination)));
        refuse_default(&destination)?;
        if !self.exchanges.contains_key(&destination) {
            return Err(no_exchange(&destination));
        }
        let binding = Binding {
            destination: Destination::Exchange(destination.name),
            routing_key: text(&bind.routing_key),
            arguments: to_table(&bind.arguments),
        };
        self.bind(&source, binding)?;
        if !bind.nowait {
            self.reply(at, AMQPClass::Exchange(exchange::AMQPMethod::BindOk(exchange::BindOk {})));
        }
        Ok(())
    }

    fn exchange_unbind(&mut self, at: At, unbind: &exchange::Unbind) -> Result<(), AmqpError> {
        let (source, destination) =
            (self.key(at, text(&unbind.source)), self.key(at, text(&unbind.destination)));
        refuse_default(&destination)?;
        let unwanted = Binding {
            destination: Destination::Exchange(destination.name),
            routing_key: text(&unbind.routing_key),
            arguments: to_table(&unbind.arguments),
        };
        self.unbind(&source, &unwanted)?;
        if !unbind.nowait {
            self.reply(at, AMQPClass::Exchange(exchange::AMQPMethod::UnbindOk(exchange::UnbindOk {})));
        }
        Ok(())
    }

    /// Makes a route from an exchange; its other end was looked up.
    pub(super) fn bind(&mut self, source: &Key, binding: Binding) -> Result<(), AmqpError> {
        refuse_default(source)?;
        let exchange = self.exchanges.get_mut(source).ok_or_else(|| no_exchange(source))?;
        if exchange.kind == Kind::Headers && !is_valid_match(&binding.arguments) {
            let detail = "Invalid x-match field value; expected all, any, all-with-x, or any-with-x";
            return Err(AmqpError::new(Code::PreconditionFailed, detail));
        }
        exchange.bind(binding);
        Ok(())
    }

    /// Takes a route away. RabbitMQ: a binding, queue or exchange that is not there is not missed.
    pub(super) fn unbind(&mut self, source: &Key, unwanted: &Binding) -> Result<(), AmqpError> {
        refuse_default(source)?;
        let unused = self
            .exchanges
            .get_mut(source)
            .is_some_and(|exchange| exchange.unbind(|binding| binding == unwanted));
        if unused {
            self.exchanges.remove(source);
            self.unbind_all(&source.vhost, Destination::Exchange(source.name.clone()));
        }
        Ok(())
    }
}

/// RabbitMQ: the default exchange is neither declared nor deleted nor bound to.
fn refuse_default(key: &Key) -> Result<(), AmqpError> {
    if key.name.is_empty() {
        return Err(AmqpError::new(Code::AccessRefused, "operation not permitted on the default exchange"));
    }
    Ok(())
}

fn is_reserved(key: &Key) -> bool {
    key.name.starts_with("amq.")
}

fn check_same(current: &Exchange, wanted: &Exchange, key: &Key) -> Result<(), AmqpError> {
    let what = key.exchange_text();
    if current.kind != wanted.kind {
        let found = format!("received '{}' but current is '{}'", wanted.kind.name(), current.kind.name());
        return Err(inequivalent("type", &what, &found));
    }
    for (flag, wanted, current) in [
        ("durable", wanted.durable, current.durable),
        ("auto_delete", wanted.auto_delete, current.auto_delete),
        ("internal", wanted.internal, current.internal),
    ] {
        if wanted != current {
            return Err(flag_differs(flag, &what, wanted, current));
        }
    }
    Ok(())
}
