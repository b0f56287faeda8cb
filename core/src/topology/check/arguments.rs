//! What is wrong with one declaration by itself: its flags, and its arguments one by one and together.

use super::{Finding, Problem, Subject};
use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::topology::argument_list::queue_type as queue_type_of;
use crate::topology::arguments::{
    ALTERNATE_EXCHANGE, DEAD_LETTER_EXCHANGE, DEAD_LETTER_ROUTING_KEY, DEAD_LETTER_STRATEGY, DELAYED_TYPE,
    DELIVERY_LIMIT, EXPIRES, GROUP_SIZE, MAX_LENGTH, MAX_LENGTH_BYTES, MAX_PRIORITY, MESSAGE_TTL, OVERFLOW,
    QUEUE_TYPE, SINGLE_ACTIVE_CONSUMER,
};
use crate::topology::{ExchangeDeclaration, ExchangeKind, QueueDeclaration, QueueType};

/// The longest time that RabbitMQ takes, ten years in milliseconds.
const TEN_YEARS: i64 = 10 * 365 * 86_400 * 1_000;

/// What an argument may be.
struct Rule {
    argument: ShortString,
    /// The only type of queue that has it.
    only: Option<QueueType>,
    takes: Takes,
    allowed: &'static str,
}

enum Takes {
    Integer { least: i64, most: i64 },
    OneOf(&'static [&'static str]),
    ShortText,
    Bool,
}

const ANY: Option<QueueType> = None;
const CLASSIC: Option<QueueType> = Some(QueueType::Classic);
const QUORUM: Option<QueueType> = Some(QueueType::Quorum);

const fn rule(only: Option<QueueType>, argument: ShortString, takes: Takes, allowed: &'static str) -> Rule {
    Rule { argument, only, takes, allowed }
}

const fn integer(least: i64, most: i64) -> Takes {
    Takes::Integer { least, most }
}

const QUEUE_RULES: &[Rule] = &[
    rule(
        ANY,
        QUEUE_TYPE,
        Takes::OneOf(&["classic", "quorum", "stream"]),
        "\"classic\", \"quorum\" or \"stream\"",
    ),
    rule(CLASSIC, MAX_PRIORITY, integer(0, 255), "an integer from 1 to 255 (10 is plenty), or 0 for none"),
    rule(
        ANY,
        MESSAGE_TTL,
        integer(0, TEN_YEARS),
        "an integer of milliseconds from 0 to 315360000000 (ten years)",
    ),
    rule(
        ANY,
        EXPIRES,
        integer(1, TEN_YEARS),
        "an integer of milliseconds from 1 to 315360000000 (ten years)",
    ),
    rule(ANY, MAX_LENGTH, integer(0, i64::MAX), "an integer, 0 or more"),
    rule(ANY, MAX_LENGTH_BYTES, integer(0, i64::MAX), "an integer, 0 or more"),
    rule(
        ANY,
        OVERFLOW,
        Takes::OneOf(&["drop-head", "reject-publish", "reject-publish-dlx"]),
        "\"drop-head\", \"reject-publish\" or \"reject-publish-dlx\"",
    ),
    rule(ANY, DEAD_LETTER_EXCHANGE, Takes::ShortText, "the name of an exchange, \"\" for the default one"),
    rule(ANY, DEAD_LETTER_ROUTING_KEY, Takes::ShortText, "a text of at most 255 bytes"),
    rule(
        QUORUM,
        DEAD_LETTER_STRATEGY,
        Takes::OneOf(&["at-most-once", "at-least-once"]),
        "\"at-most-once\" or \"at-least-once\"",
    ),
    rule(
        QUORUM,
        DELIVERY_LIMIT,
        integer(0, i64::MAX),
        "an integer, 0 or more (a negative one means no limit from RabbitMQ 4.0 on, and 0 on 3.10)",
    ),
    rule(ANY, SINGLE_ACTIVE_CONSUMER, Takes::Bool, "true or false"),
    rule(QUORUM, GROUP_SIZE, integer(1, i64::MAX), "an integer, 1 or more"),
];

const EXCHANGE_RULES: &[Rule] = &[
    rule(ANY, ALTERNATE_EXCHANGE, Takes::ShortText, "the name of an exchange"),
    rule(ANY, DELAYED_TYPE, Takes::ShortText, "the type by which the exchange routes after the delay"),
];

/// Looks at a queue by itself.
pub(super) fn check_queue(queue: &QueueDeclaration, found: &mut Vec<Finding>) {
    if queue.passive {
        return;
    }
    let mut report = |problem| found.push(Finding::of_queue(queue.name.clone(), problem));
    if queue.name.starts_with("amq.") {
        report(Problem::ReservedName);
    }
    let queue_type = match queue_type_of(&queue.arguments) {
        Some("classic") => Some(QueueType::Classic),
        Some("quorum") => Some(QueueType::Quorum),
        _ => None,
    };
    match queue_type {
        Some(QueueType::Quorum) => {
            let flags = [
                (!queue.durable, "durable is false"),
                (queue.exclusive, "exclusive is true"),
                (queue.auto_delete, "auto_delete is true"),
            ];
            for (_, flag) in flags.into_iter().filter(|(wrong, _)| *wrong) {
                report(Problem::QuorumFlag { flag });
            }
        }
        _ if queue.exclusive && queue.durable => report(Problem::ExclusiveDurable),
        _ if !queue.exclusive && !queue.durable => report(Problem::TransientShared),
        _ => {}
    }
    check_values(QUEUE_RULES, &queue.arguments, queue_type, &mut report);
    check_together(&queue.arguments, queue_type, &mut report);
}

/// Looks at an exchange by itself.
pub(super) fn check_exchange(exchange: &ExchangeDeclaration, found: &mut Vec<Finding>) {
    if exchange.passive {
        return;
    }
    let mut report =
        |problem| found.push(Finding { subject: Subject::Exchange(exchange.name.clone()), problem });
    if exchange.name.is_predeclared() {
        report(Problem::ReservedName);
    }
    if let ExchangeKind::Custom(kind) = &exchange.kind
        && kind.is_empty()
    {
        report(Problem::BadValue {
            argument: ShortString::from_static("type"),
            value: Value::from(kind),
            allowed: "the type that a plugin brings",
        });
    }
    check_values(EXCHANGE_RULES, &exchange.arguments, None, &mut report);
}

fn check_values(
    rules: &[Rule],
    arguments: &Table,
    queue_type: Option<QueueType>,
    report: &mut impl FnMut(Problem),
) {
    for rule in rules {
        let Some(value) = arguments.get(&rule.argument) else { continue };
        let (argument, value_found) = (rule.argument.clone(), value.clone());
        match (rule.only, queue_type) {
            (Some(only), Some(queue_type)) if only != queue_type => {
                report(Problem::Unsupported { argument, value: value_found, queue_type });
            }
            _ if !rule.takes.accepts(value) => {
                report(Problem::BadValue { argument, value: value_found, allowed: rule.allowed });
            }
            _ => {}
        }
    }
}

/// Arguments that each are fine and together are not.
fn check_together(arguments: &Table, queue_type: Option<QueueType>, report: &mut impl FnMut(Problem)) {
    let target = arguments.get(&DEAD_LETTER_EXCHANGE);
    if let (Some(key), None) = (arguments.get(&DEAD_LETTER_ROUTING_KEY), target) {
        report(Problem::RoutingKeyWithoutExchange { routing_key: key.clone() });
    }
    if queue_type != Some(QueueType::Quorum) {
        return;
    }
    let overflow = arguments.get(&OVERFLOW);
    if arguments.get(&DEAD_LETTER_STRATEGY).and_then(Value::as_str) == Some("at-least-once") {
        if overflow.and_then(Value::as_str) != Some("reject-publish") {
            report(Problem::AtLeastOnceWithoutRejectPublish { overflow: overflow.cloned() });
        }
        if target.is_none() {
            report(Problem::AtLeastOnceWithoutTarget);
        }
    }
    if let Some(overflow) = overflow.filter(|overflow| overflow.as_str() == Some("reject-publish-dlx")) {
        report(Problem::Unsupported {
            argument: OVERFLOW,
            value: overflow.clone(),
            queue_type: QueueType::Quorum,
        });
    }
    if let Some(expires) = arguments.get(&EXPIRES) {
        report(Problem::LeaseOfQuorumQueue { expires: expires.clone() });
    }
}

impl Takes {
    fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::Integer { least, most } => {
                value.as_i64().is_some_and(|number| (*least..=*most).contains(&number))
            }
            Self::OneOf(texts) => value.as_str().is_some_and(|text| texts.contains(&text)),
            Self::ShortText => value.as_str().is_some_and(|text| ShortString::new(text).is_ok()),
            Self::Bool => matches!(value, Value::Bool(_)),
        }
    }
}
