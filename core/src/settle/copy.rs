//! What a copy of a message keeps of its original.
//!
//! A copy is built from scratch, since most of what a delivery carries was written by the broker or would make
//! the broker act. RabbitMQ up to 3.13 takes a copied `x-death` for history: it *drops* a message that expires
//! into a queue named there. `CC` would route the copy to other queues, `expiration` would end its wait early,
//! and a `user-id` that is not this connection's is refused.

use crate::message::Properties;

/// The headers that a copy does not keep, in lower case. One that ends in `-` stands for all that start with it.
const DROPPED: [&str; 17] = [
    // Stamped by the broker.
    "x-death",
    "x-first-death-",
    "x-last-death-",
    "x-delivery-count",
    "x-acquired-count",
    "x-opt-",
    // Stamped by federation, which refuses to move a message to where it has been.
    "x-received-from",
    // Would make the broker route, match or delay the copy.
    "cc",
    "bcc",
    "x-match",
    "x-delay",
    // Written by leveret for one publish, one attempt or one dead letter.
    "x-leveret-mark",
    "x-attempt",
    "x-deferrals",
    DEATH_REASON,
    ORIGINAL_QUEUE,
    ATTEMPTS,
];

pub(super) const DEATH_REASON: &str = "x-death-reason";
pub(super) const ORIGINAL_QUEUE: &str = "x-original-queue";
pub(super) const ATTEMPTS: &str = "x-attempts";

/// The properties that a copy keeps: content type and encoding, correlation id, reply-to, message id,
/// timestamp, type and app id, and the headers that the application set itself, with its trace context and the
/// partition key (`amqp-partition-key`).
///
/// The rest is the publisher's to set anew: delivery mode and priority, and everything that the broker stamped
/// or that would make it route, expire, delay or refuse the copy.
#[must_use]
pub fn copied_properties(original: &Properties) -> Properties {
    Properties {
        content_type: original.content_type.clone(),
        content_encoding: original.content_encoding.clone(),
        headers: original
            .headers
            .iter()
            .filter(|(name, _)| !is_dropped(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        delivery_mode: None,
        priority: None,
        correlation_id: original.correlation_id.clone(),
        reply_to: original.reply_to.clone(),
        expiration: None,
        message_id: original.message_id.clone(),
        timestamp: original.timestamp,
        kind: original.kind.clone(),
        user_id: None,
        app_id: original.app_id.clone(),
        cluster_id: None,
    }
}

fn is_dropped(header: &str) -> bool {
    DROPPED.iter().any(|dropped| {
        let start = header.get(..dropped.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(dropped) && (dropped.ends_with('-') || start.len() == header.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::DeliveryMode;
    use crate::table::{Table, Value};
    use crate::text::ShortString;

    fn short(text: &str) -> Option<ShortString> {
        Some(ShortString::new(text).unwrap())
    }

    #[test]
    fn a_copy_keeps_what_the_application_set_and_nothing_that_the_broker_acts_on() {
        let original = Properties {
            content_type: short("application/json"),
            content_encoding: short("utf-8"),
            headers: Table::new(),
            delivery_mode: Some(DeliveryMode::Transient),
            priority: Some(7),
            correlation_id: short("trace-1"),
            reply_to: short("replies"),
            expiration: short("1000"),
            message_id: short("id"),
            timestamp: Some(1_700_000_000),
            kind: short("send-email"),
            user_id: short("guest"),
            app_id: short("shop"),
            cluster_id: short("rabbit"),
        };
        let expected = Properties {
            delivery_mode: None,
            priority: None,
            expiration: None,
            user_id: None,
            cluster_id: None,
            ..original.clone()
        };
        assert_eq!(copied_properties(&original), expected);
    }

    #[test]
    fn headers_of_the_broker_are_dropped_and_those_of_the_application_stay_in_order() {
        let names = |headers: &Table| headers.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
        let kept = [
            "amqp-partition-key",
            "traceparent",
            "tracestate",
            "x-tenant",
            "x-deaths",
            "x-delayed",
            "x-ruststream-retry-count",
            "ccc",
            "",
            "é",
        ];
        let dropped = [
            "x-death",
            "X-Death",
            "x-first-death-exchange",
            "x-first-death-queue",
            "x-first-death-reason",
            "x-last-death-queue",
            "x-delivery-count",
            "x-acquired-count",
            "x-opt-enqueue-time",
            "x-received-from",
            "CC",
            "BCC",
            "x-match",
            "x-delay",
            "x-leveret-mark",
            "x-attempt",
            "x-deferrals",
            "x-death-reason",
            "x-original-queue",
            "x-attempts",
        ];
        let headers = kept.iter().chain(&dropped).map(|name| (ShortString::truncated(name), Value::Void));
        let original = Properties { headers: headers.collect(), ..Properties::default() };
        assert_eq!(names(&copied_properties(&original).headers), kept);
    }
}
