use std::time::Duration;

use super::*;
use crate::table::Value;
use crate::text::ShortString;
use crate::topology::{DelayedRouting, ExchangeKind, ExchangeName, QueueDeclaration, QueueName, RoutingKey};

fn plain() -> PlainQueue {
    PlainQueue::new("q").unwrap()
}

fn text(declaration: &QueueDeclaration) -> String {
    format!("{} {:?}", declaration.name, declaration.arguments)
}

#[test]
fn a_plain_queue_is_durable_and_shared_and_says_its_type() {
    let declaration = plain().declaration();
    assert!(
        declaration.durable && !declaration.exclusive && !declaration.auto_delete && !declaration.passive
    );
    assert_eq!(text(&declaration), r#"q {"x-queue-type": "classic"}"#);
    assert_eq!(text(&plain().quorum().declaration()), r#"q {"x-queue-type": "quorum"}"#);
}

#[test]
fn a_server_named_queue_ends_with_its_connection() {
    let declaration = PlainQueue::server_named().declaration();
    assert!(!declaration.durable && declaration.exclusive);
    assert_eq!(text(&declaration), r#" {"x-queue-type": "classic"}"#);
}

#[test]
fn every_setting_becomes_its_argument_as_a_64_bit_integer() {
    let queue = plain()
        .max_priority(10)
        .message_ttl(Duration::from_secs(5))
        .expires(Duration::from_secs(60))
        .max_length(u32::MAX)
        .max_length_bytes(1)
        .overflow(Overflow::RejectPublish)
        .dead_letter(DeadLetter::to_queue(&QueueName::new("q.dead").unwrap()))
        .single_active_consumer(true)
        .argument(ShortString::from_static("x-queue-mode"), "lazy");
    let declaration = queue.declaration();
    assert_eq!(
        text(&declaration),
        r#"q {"x-queue-type": "classic", "x-max-priority": 10, "x-message-ttl": 5000, "x-expires": 60000, "#
            .to_owned()
            + r#""x-max-length": 4294967295, "x-max-length-bytes": 1, "x-overflow": "reject-publish", "#
            + r#""x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q.dead", "#
            + r#""x-single-active-consumer": true, "x-queue-mode": "lazy"}"#
    );
    assert_eq!(declaration.arguments.get("x-max-length"), Some(&Value::I64(u32::MAX.into())));
    assert_eq!(
        text(&plain().quorum().delivery_limit(3).declaration()),
        r#"q {"x-queue-type": "quorum", "x-delivery-limit": 3}"#
    );
}

#[test]
fn a_time_is_rounded_up_to_whole_milliseconds_and_never_overflows() {
    let ttl =
        |ttl| plain().message_ttl(ttl).declaration().arguments.get("x-message-ttl").and_then(Value::as_i64);
    assert_eq!(ttl(Duration::from_nanos(1)), Some(1));
    assert_eq!(ttl(Duration::ZERO), Some(0));
    assert_eq!(ttl(Duration::MAX), Some(i64::MAX));
}

#[test]
fn an_exchange_is_declared_with_what_its_kind_and_its_settings_need() {
    let name = |name| ExchangeName::new(name).unwrap();
    let kind = ExchangeKind::Delayed { routes: DelayedRouting::Topic };
    let exchange = Exchange::new(name("x"), kind).alternate(name("rest")).internal(true).durable(false);
    let declaration = exchange.auto_delete(true).declaration();
    assert!(declaration.internal && declaration.auto_delete && !declaration.durable && !declaration.passive);
    assert_eq!(
        format!("{:?}", declaration.arguments),
        r#"{"x-delayed-type": "topic", "alternate-exchange": "rest"}"#
    );
}

#[test]
fn a_dead_letter_target_says_where_it_is() {
    let exchange = || DeadLetter::to_exchange(ExchangeName::new("x").unwrap());
    assert_eq!(exchange().to_string(), "exchange \"x\"");
    assert_eq!(
        exchange().routing_key(RoutingKey::new("k").unwrap()).to_string(),
        "exchange \"x\" with routing key \"k\""
    );
    let own_key = DeadLetter::to_exchange(ExchangeName::DEFAULT);
    assert_eq!(own_key.to_string(), "the queue that the message's routing key names");
    assert!(own_key.key().is_none());
}
