//! What a copy of a message keeps of its original.
//!
//! A copy is built from scratch, since most of what a delivery carries was written by the broker or would make
//! the broker act. RabbitMQ up to 3.13 takes a copied `x-death` for history: it *drops* a message that expires
//! into a queue named there. `CC` would route the copy to other queues, `expiration` would end its wait early,
//! and a `user-id` that is not this connection's is refused.

use crate::message::Properties;
use crate::table::Table;

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
        headers: copied_headers(&original.headers),
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

/// In one pass: a hostile message brings some 25,000 headers.
fn copied_headers(original: &Table) -> Table {
    let kept = original.iter().filter(|(name, _)| !is_dropped(name));
    Table::from_distinct(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Whether a copy does not keep a header. The broker reads names as they are written: an application's `cc` is not
/// the broker's `CC`.
pub(crate) fn is_dropped(header: &str) -> bool {
    match header {
        // Stamped by the broker.
        "x-death" | "x-delivery-count" | "x-acquired-count"
        // Stamped by federation, which refuses to move a message to where it has been.
        | "x-received-from"
        // Would make the broker route, match or delay the copy.
        | "CC" | "BCC" | "x-match" | "x-delay"
        // Written by leveret for one publish or one dead letter.
        | "x-leveret-mark" | "x-death-reason" | "x-original-queue" | "x-attempts" => true,
        // Stamped by the broker as well.
        _ => ["x-first-death-", "x-last-death-", "x-opt-"].iter().any(|start| header.starts_with(start)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::DeliveryMode;
    use crate::table::Value;
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
            "x-attempt",
            "cc",
            "CCC",
            "",
            "é",
        ];
        let dropped = [
            "x-death",
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
            "x-death-reason",
            "x-original-queue",
            "x-attempts",
        ];
        let headers = kept.iter().chain(&dropped).map(|name| (ShortString::truncated(name), Value::Void));
        let original = Properties { headers: headers.collect(), ..Properties::default() };
        assert_eq!(names(&copied_properties(&original).headers), kept);
    }

    #[test]
    fn every_header_of_a_message_full_of_them_is_kept_in_its_place() {
        let fields = (0..25_000_u32).map(|n| (ShortString::truncated(&n.to_string()), Value::from(n)));
        let headers = Table::from_distinct(fields.collect());
        let original = Properties { headers: headers.clone(), ..Properties::default() };
        assert_eq!(copied_properties(&original).headers, headers);
    }
}
