//! Queue arguments: what RabbitMQ accepts, and when two declarations mean the same queue.

use std::time::Duration;

use leveret_core::table::{Table, Value};
use leveret_core::text::ShortString;

use super::error::{AmqpError, Code};
use super::message::MAX_TTL_MS;

const TYPE: &str = "x-queue-type";
const CLASSIC: &str = "classic";
const QUORUM: &str = "quorum";
/// What RabbitMQ 4 allows where a quorum queue says nothing.
const DELIVERY_LIMIT: u64 = 20;

/// The arguments that must be the same in every declaration of a queue.
const COMPARED: [&str; 12] = [
    TYPE,
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-delivery-limit",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-single-active-consumer",
];

/// What the arguments of a queue say, checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// A quorum queue; otherwise a classic one.
    pub(super) quorum: bool,
    /// Quorum queues: how often a message may be handed back. One time more buries it.
    pub(super) delivery_limit: Option<u64>,
    /// A dead message stays until a queue has taken it.
    pub(super) at_least_once: bool,
    pub(super) message_ttl: Option<Duration>,
    pub(super) expires: Option<Duration>,
    /// `None` or zero: one order for all messages.
    pub(super) max_priority: Option<u8>,
    pub(super) dead_letter_exchange: Option<ShortString>,
    pub(super) dead_letter_routing_key: Option<ShortString>,
    pub(super) max_length: Option<u64>,
    pub(super) max_length_bytes: Option<u64>,
    pub(super) overflow: Overflow,
}

/// What a full queue does (`x-overflow`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Overflow {
    /// The oldest message makes room.
    #[default]
    DropHead,
    /// The new message is refused, and its publisher is told by a nack.
    RejectPublish,
    /// The same, and the new message is dead-lettered.
    RejectPublishDlx,
}

impl Settings {
    /// Checks the arguments of a new queue. `queue` is how it is called in the refusal.
    pub(super) fn parse(arguments: &Table, queue: &str) -> Result<Self, AmqpError> {
        let reader = Reader { arguments, queue };
        let quorum = reader.is_quorum()?;
        reader.refuse_unsupported(quorum)?;
        let overflow = reader.overflow()?;
        let settings = Self {
            quorum,
            delivery_limit: reader.natural("x-delivery-limit")?.or(quorum.then_some(DELIVERY_LIMIT)),
            // RabbitMQ: without `reject-publish` the strategy falls back to at most once, silently.
            at_least_once: reader.at_least_once()? && overflow == Overflow::RejectPublish,
            message_ttl: reader.milliseconds("x-message-ttl", 0)?,
            expires: reader.milliseconds("x-expires", 1)?,
            max_priority: reader.max_priority()?,
            dead_letter_exchange: reader.dead_letter_exchange()?,
            dead_letter_routing_key: reader.short_text("x-dead-letter-routing-key")?,
            max_length: reader.natural("x-max-length")?,
            max_length_bytes: reader.natural("x-max-length-bytes")?,
            overflow,
        };
        if settings.dead_letter_routing_key.is_some() && settings.dead_letter_exchange.is_none() {
            return Err(reader.invalid("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined"));
        }
        Ok(settings)
    }
}

/// Checks that a declaration describes the queue that is there.
///
/// Integers are equal whatever their width, and a queue without a type is a classic one.
pub(super) fn check_equivalent(current: &Table, received: &Table, queue: &str) -> Result<(), AmqpError> {
    for name in COMPARED {
        let (current, received) = (current.get(name), received.get(name));
        let same = match (current, received) {
            (None, None) => true,
            (Some(current), Some(received)) => equal(current, received),
            (Some(only), None) | (None, Some(only)) => name == TYPE && only.as_str() == Some(CLASSIC),
        };
        if !same {
            let found = match (current, received) {
                (Some(current), Some(received)) => {
                    format!("received '{}' but current is '{}'", plain(received), plain(current))
                }
                _ => format!("received {} but current is {}", typed(received), typed(current)),
            };
            return Err(inequivalent(name, queue, &found));
        }
    }
    Ok(())
}

/// The refusal of a declaration whose flag differs, such as `durable`.
pub(super) fn flag_differs(flag: &str, what: &str, received: bool, current: bool) -> AmqpError {
    inequivalent(flag, what, &format!("received '{received}' but current is '{current}'"))
}

/// The refusal of a declaration that differs in `name`; `found` says how.
pub(super) fn inequivalent(name: &str, what: &str, found: &str) -> AmqpError {
    AmqpError::new(Code::PreconditionFailed, format!("inequivalent arg '{name}' for {what}: {found}"))
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// A value as RabbitMQ prints it between quotes.
fn plain(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => format!("{value:?}"),
    }
}

/// A value with its type, for the case that the other side has none.
fn typed(value: Option<&Value>) -> String {
    match value {
        None => "none".to_owned(),
        Some(value) => format!("the value '{}' of type '{}'", plain(value), type_name(value)),
    }
}

const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::I8(_) => "byte",
        Value::U8(_) => "unsignedbyte",
        Value::I16(_) => "short",
        Value::U16(_) => "unsignedshort",
        Value::I32(_) => "signedint",
        Value::U32(_) => "unsignedint",
        Value::I64(_) => "long",
        Value::F32(_) => "float",
        Value::F64(_) => "double",
        Value::Decimal { .. } => "decimal",
        Value::LongString(_) => "longstr",
        Value::Array(_) => "array",
        Value::Timestamp(_) => "timestamp",
        Value::Table(_) => "table",
        Value::ByteArray(_) => "binary",
        _ => "void",
    }
}

struct Reader<'a> {
    arguments: &'a Table,
    queue: &'a str,
}

impl Reader<'_> {
    fn invalid(&self, name: &str, why: &str) -> AmqpError {
        let detail = format!("invalid arg '{name}' for {}: {why}", self.queue);
        AmqpError::new(Code::PreconditionFailed, detail)
    }

    fn unacceptable(&self, name: &str, value: &Value) -> AmqpError {
        self.invalid(name, &format!("{{unacceptable_type,{}}}", type_name(value)))
    }

    fn is_quorum(&self) -> Result<bool, AmqpError> {
        match self.arguments.get(TYPE) {
            None => Ok(false),
            Some(value) => match value.as_str() {
                Some(CLASSIC) => Ok(false),
                Some(QUORUM) => Ok(true),
                Some(other @ "stream") => Err(AmqpError::new(
                    Code::NotImplemented,
                    format!("{TYPE} '{other}' for {}: this broker has no streams", self.queue),
                )),
                Some(other) => Err(self.invalid(TYPE, &format!("\"unsupported queue type '{other}'\""))),
                None => Err(self.unacceptable(TYPE, value)),
            },
        }
    }

    fn at_least_once(&self) -> Result<bool, AmqpError> {
        const NAME: &str = "x-dead-letter-strategy";
        match self.arguments.get(NAME) {
            None => Ok(false),
            Some(value) => match value.as_str() {
                Some("at-least-once") => Ok(true),
                Some("at-most-once") => Ok(false),
                Some(_) => Err(self.invalid(NAME, "invalid_dlx_strategy")),
                None => Err(self.unacceptable(NAME, value)),
            },
        }
    }

    /// RabbitMQ refuses on a queue what only those of the other type know. What this broker does not do is
    /// refused too, since a test must not pass because it was ignored.
    fn refuse_unsupported(&self, quorum: bool) -> Result<(), AmqpError> {
        let (kind, unknown): (_, &[&str]) = if quorum {
            ("rabbit_quorum_queue", &["x-max-priority"])
        } else {
            (
                "rabbit_classic_queue",
                &["x-dead-letter-strategy", "x-delivery-limit", "x-quorum-initial-group-size"],
            )
        };
        for name in unknown {
            if self.arguments.get(name).is_some() {
                let detail = format!("invalid arg '{name}' for {} of queue type {kind}", self.queue);
                return Err(AmqpError::new(Code::PreconditionFailed, detail));
            }
        }
        match self.arguments.get("x-single-active-consumer") {
            Some(Value::Bool(true)) => Err(AmqpError::new(
                Code::NotImplemented,
                format!("x-single-active-consumer for {}: this broker does not have it", self.queue),
            )),
            _ => Ok(()),
        }
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, AmqpError> {
        match self.arguments.get(name) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.invalid(name, &format!("\"expected integer, got {}\"", type_name(value)))),
            },
        }
    }

    fn natural(&self, name: &str) -> Result<Option<u64>, AmqpError> {
        let Some(number) = self.integer(name)? else { return Ok(None) };
        match u64::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.invalid(name, &format!("{{value_negative,{number}}}"))),
        }
    }

    fn milliseconds(&self, name: &str, least: u64) -> Result<Option<Duration>, AmqpError> {
        let Some(number) = self.natural(name)? else { return Ok(None) };
        if number < least {
            return Err(self.invalid(name, &format!("{{value_zero,{number}}}")));
        }
        if number > MAX_TTL_MS.unsigned_abs() {
            return Err(self.invalid(name, &format!("{{value_too_large,{number}}}")));
        }
        Ok(Some(Duration::from_millis(number)))
    }

    fn max_priority(&self) -> Result<Option<u8>, AmqpError> {
        const NAME: &str = "x-max-priority";
        let Some(number) = self.natural(NAME)? else { return Ok(None) };
        match u8::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.invalid(NAME, &format!("{{max_value_exceeded,{number}}}"))),
        }
    }

    /// RabbitMQ has a wording of its own for the type of this one.
    fn dead_letter_exchange(&self) -> Result<Option<ShortString>, AmqpError> {
        const NAME: &str = "x-dead-letter-exchange";
        match self.arguments.get(NAME) {
            Some(value) if !matches!(value, Value::LongString(_)) => {
                let found = type_name(value);
                let detail = format!("invalid type '{found}' for arg '{NAME}' in {}", self.queue);
                Err(AmqpError::new(Code::PreconditionFailed, detail))
            }
            _ => self.short_text(NAME),
        }
    }

    fn short_text(&self, name: &str) -> Result<Option<ShortString>, AmqpError> {
        match self.arguments.get(name) {
            None => Ok(None),
            Some(value) => match value.as_str().map(ShortString::new) {
                Some(Ok(text)) => Ok(Some(text)),
                Some(Err(too_long)) => Err(self.invalid(name, &too_long.to_string())),
                None => Err(self.unacceptable(name, value)),
            },
        }
    }

    fn overflow(&self) -> Result<Overflow, AmqpError> {
        const NAME: &str = "x-overflow";
        match self.arguments.get(NAME) {
            None => Ok(Overflow::default()),
            Some(value) => match value.as_str() {
                Some("drop-head") => Ok(Overflow::DropHead),
                Some("reject-publish") => Ok(Overflow::RejectPublish),
                Some("reject-publish-dlx") => Ok(Overflow::RejectPublishDlx),
                Some(_) => Err(self.invalid(NAME, "invalid_overflow")),
                None => Err(self.unacceptable(NAME, value)),
            },
        }
    }
}
