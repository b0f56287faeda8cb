use std::time::Duration;

use super::*;

#[test]
fn priorities_on_a_quorum_queue() {
    let words =
        ["refused, queue \"q\"", "x-max-priority is 10, which a quorum queue does not have", "leave it out"];
    finds(&with(&plain("q").quorum().max_priority(10)), &words);
    fine(&with(&plain("q").quorum().max_priority(0)));
    fine(&with(&plain("q").max_priority(10)));
}

#[test]
fn what_only_quorum_queues_have_on_a_classic_one() {
    finds(
        &with(&plain("q").delivery_limit(5)),
        &["refused", "x-delivery-limit is 5, which a classic queue", "quorum"],
    );
    fine(&with(&plain("q").quorum().delivery_limit(5)));
    let strategy = [("x-dead-letter-strategy", "at-most-once".into())];
    finds(&with(&raw("q", &strategy)), &["refused", "x-dead-letter-strategy is \"at-most-once\""]);
    fine(&with(&raw("q", &strategy).quorum()));
    finds(
        &with(&raw("q", &[("x-quorum-initial-group-size", 3_i64.into())])),
        &["refused", "group-size is 3"],
    );
}

#[test]
fn values_that_the_broker_refuses_or_takes_for_something_else() {
    let bad: [(&'static str, Value, &str); 11] = [
        ("x-max-priority", 256_i64.into(), "x-max-priority is 256: set it to an integer from 1 to 255"),
        ("x-max-priority", (-1_i64).into(), "x-max-priority is -1"),
        ("x-expires", 0_i64.into(), "x-expires is 0: set it to an integer of milliseconds from 1 to"),
        (
            "x-message-ttl",
            (-1_i64).into(),
            "x-message-ttl is -1: set it to an integer of milliseconds from 0 to",
        ),
        ("x-message-ttl", 315_360_000_001_i64.into(), "ten years"),
        ("x-message-ttl", "5000".into(), "x-message-ttl is the text \"5000\": set it to an integer"),
        ("x-max-length", (-1_i64).into(), "x-max-length is -1: set it to an integer, 0 or more"),
        ("x-max-length-bytes", Value::F64(1.5), "x-max-length-bytes is 1.5"),
        ("x-overflow", "drop".into(), "x-overflow is the text \"drop\": set it to \"drop-head\""),
        ("x-single-active-consumer", "yes".into(), "set it to true or false"),
        ("x-dead-letter-exchange", 1_i64.into(), "x-dead-letter-exchange is 1"),
    ];
    for (argument, value, words) in bad {
        finds(&with(&raw("q", &[(argument, value)])), &["refused, queue \"q\"", words]);
    }
    let good: [(&'static str, Value); 7] = [
        ("x-max-priority", 255_i64.into()),
        ("x-expires", 1_i64.into()),
        ("x-message-ttl", 0_i64.into()),
        ("x-message-ttl", Value::U32(u32::MAX)),
        ("x-max-length", 0_i64.into()),
        ("x-overflow", "reject-publish".into()),
        ("x-anything-else", Value::Void),
    ];
    for (argument, value) in good {
        fine(&with(&raw("q", &[(argument, value)])));
    }
}

#[test]
fn a_duration_beyond_the_numbers_of_the_wire_is_not_said_to_be_their_last_one() {
    for queue in [plain("q").message_ttl(Duration::MAX), plain("q").expires(Duration::MAX)] {
        finds(&with(&queue), &["refused", "is 9223372036854775807 or more", "315360000000 (ten years)"]);
    }
}

#[test]
fn a_negative_delivery_limit_means_two_things() {
    let limit = |limit: i64| with(&raw("q", &[("x-delivery-limit", limit.into())]).quorum());
    finds(&limit(-1), &["refused", "x-delivery-limit is -1", "no limit from RabbitMQ 4.0 on, and 0 on 3.10"]);
    fine(&limit(0));
}

#[test]
fn a_setting_that_says_something_else_than_a_raw_argument() {
    let ttl = |raw_ttl: i64| {
        with(&raw("q", &[("x-message-ttl", raw_ttl.into())]).message_ttl(Duration::from_secs(5)))
    };
    finds(
        &ttl(6_000),
        &["refused", "x-message-ttl is 5000 by its message_ttl and 6000 by its argument", "leave one out"],
    );
    fine(&ttl(5_000));
    fine(&with(&raw("q", &[("x-message-ttl", Value::I32(5_000))]).message_ttl(Duration::from_secs(5))));
    finds(
        &with(&raw("q", &[("x-queue-type", "quorum".into())])),
        &["x-queue-type is \"classic\" by its queue type and \"quorum\" by its argument"],
    );
    let alternate = ShortString::from_static("alternate-exchange");
    let exchange = topic("x").alternate(exchange_name("amq.fanout"));
    finds(
        &Topology::new().exchange(&exchange.clone().argument(alternate.clone(), "y")),
        &[
            "refused, exchange \"x\"",
            "alternate-exchange is \"amq.fanout\" by its alternate and \"y\" by its argument",
        ],
    );
    fine(&Topology::new().exchange(&exchange.argument(alternate, "amq.fanout")));
}

#[test]
fn a_dead_letter_routing_key_without_its_exchange() {
    let key_alone = raw("q", &[("x-dead-letter-routing-key", "q.dead".into())]);
    finds(
        &with(&key_alone),
        &["refused", "x-dead-letter-routing-key is \"q.dead\"", "x-dead-letter-exchange is missing"],
    );
    fine(&with(&plain("q").dead_letter(to("q.dead"))).queue(&plain("q.dead")));
}

#[test]
fn at_least_once_that_would_be_at_most_once() {
    let quorum = |arguments: &[(&'static str, Value)]| {
        let strategy = ShortString::from_static("x-dead-letter-strategy");
        let queue = raw("q", arguments).quorum().argument(strategy, "at-least-once");
        with(&queue.dead_letter(to("q.dead"))).queue(&plain("q.dead"))
    };
    finds(&quorum(&[]), &["refused", "x-overflow is missing", "set x-overflow to \"reject-publish\""]);
    finds(&quorum(&[("x-overflow", "drop-head".into())]), &["x-overflow is \"drop-head\"", "without a word"]);
    fine(&quorum(&[("x-overflow", "reject-publish".into())]));
    let no_target = raw(
        "q",
        &[("x-dead-letter-strategy", "at-least-once".into()), ("x-overflow", "reject-publish".into())],
    );
    finds(&with(&no_target.quorum()), &["refused", "x-dead-letter-exchange is missing"]);
}

#[test]
fn an_overflow_that_quorum_queues_do_not_have() {
    let queue = plain("q").overflow(Overflow::RejectPublishDlx);
    finds(
        &with(&queue.clone().quorum()),
        &["refused", "x-overflow is \"reject-publish-dlx\", which a quorum queue"],
    );
    fine(&with(&queue));
}

#[test]
fn a_lease_on_a_quorum_queue() {
    let queue = plain("q").expires(Duration::from_secs(8));
    finds(&with(&queue.clone().quorum()), &["warned", "x-expires is 8000", "dropped"]);
    fine(&with(&queue));
}

#[test]
fn exclusive_with_durable() {
    finds(
        &with(&plain("q").exclusive(true)),
        &["refused", "exclusive and durable", "make it transient, or share it"],
    );
    fine(&with(&plain("q").exclusive(true).durable(false)));
    fine(&with(&PlainQueue::server_named()));
    finds(&with(&PlainQueue::server_named().durable(true)), &["a queue that the server names: ", "durable"]);
}

#[test]
fn a_transient_queue_that_is_shared() {
    finds(
        &with(&plain("q").durable(false)),
        &["warned", "RabbitMQ 4.3", "541", "make it durable or exclusive"],
    );
}

#[test]
fn a_quorum_queue_that_does_not_last() {
    let quorum = || plain("q").quorum();
    finds(&with(&quorum().durable(false)), &["refused", "durable is false", "406"]);
    finds(&with(&quorum().exclusive(true)), &["refused", "exclusive is true"]);
    finds(&with(&quorum().auto_delete(true)), &["refused", "auto_delete is true"]);
    fine(&with(&quorum()));
}

#[test]
fn names_that_the_broker_keeps_for_itself() {
    let queue = QueueDeclaration::durable(short("amq.mine"), Table::new());
    finds(&Topology::new().declaration(Declaration::Queue(queue)), &["refused, queue \"amq.mine\"", "403"]);
    let passive = QueueDeclaration::passive(short("amq.mine"));
    fine(&Topology::new().declaration(Declaration::Queue(passive)));
    finds(
        &Topology::new().exchange(&topic("amq.mine")),
        &["refused, exchange \"amq.mine\"", "without declaring it"],
    );
    finds(&Topology::new().exchange(&topic("")), &["refused, the default exchange"]);
    fine(&Topology::new().exchange(&topic("mine")));
}

#[test]
fn an_exchange_of_no_type() {
    let custom = |kind| Exchange::new(exchange_name("x"), ExchangeKind::Custom(short(kind)));
    finds(&Topology::new().exchange(&custom("")), &["refused, exchange \"x\"", "type is the text \"\""]);
    fine(&Topology::new().exchange(&custom("x-random")));
}

#[test]
fn a_binding_that_its_exchange_does_not_take() {
    let exchange =
        |kind| Topology::new().exchange(&Exchange::new(exchange_name("x"), kind)).queue(&plain("q"));
    let matching = |source: &str, value: Value| {
        let arguments = Table::new().with(ShortString::from_static("x-match"), value);
        Binding { arguments, ..bind(source, "q", "") }
    };
    let of_headers = [ExchangeKind::Headers, ExchangeKind::Delayed { routes: DelayedRouting::Headers }];
    for kind in of_headers {
        for wrong in [Value::from("some"), Value::from("ALL"), Value::from(true), Value::Void] {
            let words = ["refused, the binding of \"q\" to exchange \"x\"", "x-match is", "\"any-with-x\""];
            finds(&exchange(kind.clone()).binding(matching("x", wrong)), &words);
        }
        for right in ["all", "any", "all-with-x", "any-with-x"] {
            fine(&exchange(kind.clone()).binding(matching("x", right.into())));
        }
        fine(&exchange(kind).binding(bind("x", "q", "")));
    }
    for existing in ["amq.headers", "amq.match"] {
        finds(&with(&plain("q")).binding(matching(existing, "some".into())), &["refused", "x-match"]);
    }
    for wrong in ["", "0", "00", "-1", "abc", " 5", "1.5"] {
        let bound = exchange(ExchangeKind::ConsistentHash).binding(bind("x", "q", wrong));
        finds(&bound, &["refused", &format!("routing key is {wrong:?}"), "1 or more in decimal digits"]);
    }
    fine(&exchange(ExchangeKind::ConsistentHash).binding(bind("x", "q", "10")));
    // To others it is an argument like any other.
    fine(&exchange(ExchangeKind::Topic).binding(matching("x", "some".into())));
}
