//! Dead-lettering: the copy that moves on, its `x-death`, and the cycles that end.

use std::sync::Arc;

use amq_protocol::frame::WriteContext;
use amq_protocol::types::generation::gen_value;
use amq_protocol::types::parsing::parse_field_array;
use amq_protocol::types::{AMQPValue, FieldTable, LongString, ShortString as AmqpShortString};
use leveret_core::text::ShortString;

use super::Broker;
use super::event::{BrokerEvent, DeathReason};
use super::message::Message;
use super::properties::Property;
use super::queue::{Admission, Key};
use super::table::{self, Malformed};

const X_DEATH: &str = "x-death";
/// Where and why a message died for the first time: written once, with the first `x-death`.
const FIRST_DEATH: [&str; 3] = ["x-first-death-exchange", "x-first-death-queue", "x-first-death-reason"];

/// A message that left a queue unconsumed and is on its way to a dead-letter exchange.
#[derive(Debug)]
pub(super) struct Death {
    queue: Key,
    reason: DeathReason,
    /// It stays until a queue has taken it.
    at_least_once: bool,
    /// The copy, addressed to the dead-letter exchange.
    message: Message,
}

impl Broker {
    /// Buries a message of `key`: it is moved to the queue's dead-letter exchange, or lost without one.
    ///
    /// The copy is routed by [`Broker::route_dead`] and not here, since it may push other messages out in turn.
    pub(super) fn bury(&mut self, key: &Key, message: &Arc<Message>, reason: DeathReason) {
        let settings = self.queues.get(key).map(|queue| queue.settings.clone()).unwrap_or_default();
        let at_least_once = settings.at_least_once;
        let copy = settings.dead_letter_exchange.and_then(|exchange| {
            let routing_key = settings.dead_letter_routing_key.unwrap_or_else(|| message.routing_key.clone());
            self.copy_of_dead(key, message, reason, exchange, routing_key).ok()
        });
        match copy {
            Some(message) => {
                self.deaths.push_back(Death { queue: key.clone(), reason, at_least_once, message });
            }
            None => self.events.push(BrokerEvent::Dropped {
                queue: key.name.clone(),
                reason,
                message_id: message.id(),
            }),
        }
    }

    /// Routes the next dead message. False if there is none.
    pub(super) fn route_dead(&mut self) -> bool {
        let Some(death) = self.deaths.pop_front() else { return false };
        let Death { queue, reason, at_least_once, message } = death;
        let exchange = Key { vhost: queue.vhost.clone(), name: message.exchange.clone() };
        // RabbitMQ: a missing exchange or queue loses the message silently.
        let mut targets = self.route(&exchange, &message);
        if targets.is_empty() && at_least_once {
            self.unrouted.push_back(Death { queue, reason, at_least_once, message });
            return true;
        }
        targets.retain(|target| !is_cycle(message.properties.headers(), target));
        let message = Arc::new(message);
        let mut taken = 0;
        for name in targets {
            let target = Key { vhost: queue.vhost.clone(), name };
            if let Admission::Stored = self.enqueue(&target, &message) {
                taken += 1;
            }
        }
        self.events.push(BrokerEvent::DeadLettered {
            queue: queue.name,
            reason,
            routing_key: message.routing_key.clone(),
            message_id: message.id(),
            queues: taken,
        });
        true
    }

    /// The message as its dead-letter exchange gets it. RabbitMQ: delivery mode, priority and everything else
    /// stay; `expiration` goes, and is kept as `original-expiration` in the newest entry of `x-death`.
    fn copy_of_dead(
        &self,
        queue: &Key,
        message: &Message,
        reason: DeathReason,
        exchange: ShortString,
        routing_key: ShortString,
    ) -> Result<Message, Malformed> {
        let mut death = FieldTable::default();
        let mut set = |name: &str, value| {
            death.insert(AmqpShortString::from(name), value);
        };
        set("count", AMQPValue::LongLongInt(1));
        set("reason", text(reason.as_str()));
        set("queue", text(&queue.name));
        set("time", AMQPValue::Timestamp(self.unix_seconds()));
        set("exchange", text(&message.exchange));
        set("routing-keys", AMQPValue::FieldArray(vec![text(&message.routing_key)].into()));
        if let Some(expiration) = message.properties.text(Property::Expiration) {
            set("original-expiration", AMQPValue::LongString(LongString::from(expiration)));
        }
        let headers =
            with_death(message.properties.headers(), death, &queue.name, reason, &message.exchange)?;
        Ok(Message {
            exchange,
            routing_key,
            properties: message.properties.reborn(&headers)?,
            body: message.body.clone(),
        })
    }
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

/// The headers with one more death in front of `x-death`. Entries are grouped by queue and reason: a second
/// death of that kind counts the first one up and moves it to the front.
///
/// All other headers pass as bytes, so that one which cannot be parsed is no obstacle.
fn with_death(
    headers: &[u8],
    death: FieldTable,
    queue: &str,
    reason: DeathReason,
    exchange: &str,
) -> Result<Vec<u8>, Malformed> {
    let died_before =
        table::fields(headers).filter_map(Result::ok).any(|field| field.name == X_DEATH.as_bytes());
    let mut deaths = deaths(headers).unwrap_or_default();
    let same = |death: &FieldTable| {
        field(death, "queue") == Some(queue.as_bytes())
            && field(death, "reason") == Some(reason.as_str().as_bytes())
    };
    let newest = match deaths.iter().position(same) {
        Some(at) => counted_up(deaths.remove(at)),
        None => death,
    };
    deaths.insert(0, newest);

    let mut new = Vec::with_capacity(headers.len() + 256);
    let deaths: Vec<AMQPValue> = deaths.into_iter().map(AMQPValue::FieldTable).collect();
    put_field(&mut new, X_DEATH, &AMQPValue::FieldArray(deaths.into()));
    if !died_before {
        for (name, value) in FIRST_DEATH.into_iter().zip([exchange, queue, reason.as_str()]) {
            put_field(&mut new, name, &text(value));
        }
    }
    for field in table::fields(headers) {
        let field = field?;
        let is_first = FIRST_DEATH.iter().any(|name| name.as_bytes() == field.name);
        let replaced = field.name == X_DEATH.as_bytes() || !died_before && is_first;
        if !replaced {
            new.extend_from_slice(field.raw);
        }
    }
    Ok(new)
}

/// A message as it is delivered after it was handed back so often. RabbitMQ: the header is absent the first time.
pub(super) fn with_delivery_count(message: &Arc<Message>, count: u64) -> Arc<Message> {
    const COUNT: &str = "x-delivery-count";
    let counted = || {
        let mut headers = Vec::new();
        put_field(&mut headers, COUNT, &AMQPValue::LongLongInt(i64::try_from(count).unwrap_or(i64::MAX)));
        for field in table::fields(message.properties.headers()) {
            let field = field?;
            if field.name != COUNT.as_bytes() {
                headers.extend_from_slice(field.raw);
            }
        }
        Ok::<_, Malformed>(Message {
            exchange: message.exchange.clone(),
            routing_key: message.routing_key.clone(),
            properties: message.properties.with_headers(&headers)?,
            body: message.body.clone(),
        })
    };
    if count == 0 { message.clone() } else { counted().map_or_else(|_| message.clone(), Arc::new) }
}

/// The entries of `x-death`, newest first; `None` where there is none that can be read.
fn deaths(headers: &[u8]) -> Option<Vec<FieldTable>> {
    let header =
        table::fields(headers).filter_map(Result::ok).find(|field| field.name == X_DEATH.as_bytes())?;
    if header.kind != b'A' || table::array_depth(header.value.get(4..)?).ok()? > table::MAX_PARSED_DEPTH {
        return None;
    }
    let ([], entries) = parse_field_array(header.value).ok()? else { return None };
    let tables = entries.as_slice().iter().filter_map(|entry| entry.as_field_table().cloned());
    Some(tables.collect())
}

fn field<'a>(death: &'a FieldTable, name: &str) -> Option<&'a [u8]> {
    death.inner().get(name)?.as_long_string().map(LongString::as_bytes)
}

fn counted_up(mut death: FieldTable) -> FieldTable {
    let count = death.inner().get("count").and_then(AMQPValue::as_long_long_int).unwrap_or(0);
    death.insert(AmqpShortString::from("count"), AMQPValue::LongLongInt(count.saturating_add(1)));
    death
}

fn put_field(out: &mut Vec<u8>, name: &str, value: &AMQPValue) {
    out.push(u8::try_from(name.len()).expect("the names written here are short"));
    out.extend_from_slice(name.as_bytes());
    let value = gen_value(value)(WriteContext::from(Vec::new())).expect("a Vec takes every write").write;
    out.extend_from_slice(&value);
}

/// Whether a dead message has come around: the target is in its death history and nothing since was a
/// rejection. RabbitMQ up to 3.13 takes the header `x-death` for that history, also where a client wrote it.
fn is_cycle(headers: &[u8], target: &str) -> bool {
    let deaths = deaths(headers).unwrap_or_default();
    let Some(at) = deaths.iter().position(|death| field(death, "queue") == Some(target.as_bytes())) else {
        return false;
    };
    deaths[..=at].iter().all(|death| field(death, "reason") != Some(b"rejected"))
}
