//! What leveret relies on a broker to do: the same on the embedded one and on every RabbitMQ that is there.
//!
//! A new version of RabbitMQ that changes one of these is noticed here, and a difference of the embedded broker is a
//! fault of that.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why")]

mod delays;
mod raw;
mod refused;

use std::thread::sleep;
use std::time::Duration;

use leveret_core::connection::Verdict;
use leveret_core::message::{Message, Properties};
use leveret_core::table::{Table, Value};
use leveret_core::text::ShortString;
use leveret_core::topology::{Mismatch, QueueDeclaration};
use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::rabbitmq::{brokers, unique_name};
use leveret_testkit::stranger::bare;

use self::raw::RawClient;

/// Checks a fact on every broker.
fn everywhere(fact: impl Fn(&mut RawClient, &str)) {
    let embedded = TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0").expect("a free port");
    fact(&mut RawClient::connect(&embedded.uri()), "the embedded broker");
    for broker in brokers().expect("the brokers that are required are there") {
        fact(&mut RawClient::connect(broker.uri()), &format!("RabbitMQ {}", broker.version()));
    }
}

fn queue(name: &str, arguments: &[(&'static str, i64)]) -> QueueDeclaration {
    let mut table = Table::new().with(ShortString::from_static("x-queue-type"), "classic");
    for (name, value) in arguments {
        table.insert(ShortString::from_static(name), *value);
    }
    QueueDeclaration::durable(ShortString::truncated(name), table)
}

/// Sleeping is what these tests are about: a broker's timers run in real time.
#[expect(clippy::disallowed_methods, reason = "a broker's timers run in real time")]
fn wait(millis: u64) {
    sleep(Duration::from_millis(millis));
}

#[test]
fn a_publish_does_not_renew_the_lease_of_a_queue() {
    everywhere(|client, place| {
        let name = unique_name("fact");
        client.declare(&queue(&name, &[("x-expires", 1_500)])).expect("it is new");
        let mut verdicts = Vec::new();
        for _ in 0..20 {
            verdicts.push(client.publish(&bare(&name, "x")).expect("no channel error"));
            wait(200);
        }
        assert_eq!(verdicts.first(), Some(&Verdict::Ok), "{place}");
        assert!(matches!(verdicts.last(), Some(Verdict::Unroutable(_))), "it is gone on {place}");
    });
}

#[test]
fn a_declare_renews_the_lease_also_a_passive_one() {
    everywhere(|client, place| {
        let (name, asked) = (unique_name("fact"), unique_name("fact"));
        client.declare(&queue(&name, &[("x-expires", 2_000)])).expect("it is new");
        client.declare(&queue(&asked, &[("x-expires", 2_000)])).expect("it is new");
        client.publish(&bare(&name, "x")).expect("no channel error");
        client.publish(&bare(&asked, "x")).expect("no channel error");
        for _ in 0..8 {
            wait(600);
            client.declare(&queue(&name, &[("x-expires", 2_000)])).expect("it is the same");
            client.declare(&QueueDeclaration::passive(ShortString::truncated(&asked))).expect("it is there");
        }
        assert_eq!((client.ready(&name), client.ready(&asked)), (Some(1), Some(1)), "{place}");
    });
}

#[test]
fn a_queue_that_expires_drops_its_messages_and_dead_letters_none() {
    everywhere(|client, place| {
        let (work, hold) = (unique_name("fact"), unique_name("fact"));
        client.declare(&queue(&work, &[])).expect("it is new");
        let mut holding = queue(&hold, &[("x-expires", 1_000), ("x-message-ttl", 60_000)]);
        holding.arguments.insert(ShortString::from_static("x-dead-letter-exchange"), "");
        holding.arguments.insert(ShortString::from_static("x-dead-letter-routing-key"), work.clone());
        client.declare(&holding).expect("it is new");
        assert_eq!(client.publish(&bare(&hold, "x")), Ok(Verdict::Ok), "{place}");
        wait(3_000);
        assert_eq!((client.ready(&hold), client.ready(&work)), (None, Some(0)), "{place}");
        client.delete(&work);
    });
}

#[test]
fn a_message_leaves_its_hold_on_time_and_keeps_its_priority() {
    everywhere(|client, place| {
        let (work, hold) = (unique_name("fact"), unique_name("fact"));
        client.declare(&queue(&work, &[("x-max-priority", 10)])).expect("it is new");
        let mut holding = queue(&hold, &[("x-expires", 2_000), ("x-message-ttl", 1_000)]);
        holding.arguments.insert(ShortString::from_static("x-dead-letter-exchange"), "");
        holding.arguments.insert(ShortString::from_static("x-dead-letter-routing-key"), work.clone());
        client.declare(&holding).expect("it is new");
        client.publish(&bare(&work, "before")).expect("no channel error");
        let properties = Properties { priority: Some(10), ..Properties::default() };
        client.publish(&Message { properties, ..bare(&hold, "held") }).expect("no channel error");
        wait(500);
        assert_eq!(client.ready(&work), Some(1), "not early on {place}");
        wait(1_500);
        assert_eq!(client.take(&work, 2), ["held", "before"], "{place}");
        client.delete(&work);
    });
}

#[test]
fn a_queue_without_a_type_is_a_classic_one() {
    everywhere(|client, place| {
        let name = unique_name("fact");
        let untyped = QueueDeclaration::durable(ShortString::truncated(&name), Table::new());
        client.declare(&untyped).expect("it is new");
        assert_eq!(client.declare(&queue(&name, &[])), Ok(()), "{place}");
        assert_eq!(client.declare(&untyped), Ok(()), "{place}");
        client.delete(&name);
    });
}

#[test]
fn every_width_of_integer_is_the_same_number_and_another_number_is_refused_with_both() {
    everywhere(|client, place| {
        let name = unique_name("fact");
        client.declare(&queue(&name, &[("x-message-ttl", 5_000)])).expect("it is new");
        let mut other = queue(&name, &[]);
        other.arguments.insert(ShortString::from_static("x-message-ttl"), Value::I32(5_000));
        assert_eq!(client.declare(&other), Ok(()), "{place}");
        let refused = client.declare(&queue(&name, &[("x-message-ttl", 6_000)])).expect_err("it differs");
        assert_eq!(refused.code, 406, "{place}");
        let mismatch = Mismatch::from_reply_text(&refused.text).expect("the text is understood");
        assert_eq!(mismatch.argument, "x-message-ttl", "{place}");
        assert_eq!(
            (mismatch.wanted.as_deref(), mismatch.found.as_deref()),
            (Some("6000"), Some("5000")),
            "{place}"
        );
        client.delete(&name);
    });
}

#[test]
fn arguments_that_cannot_be_are_refused() {
    let impossible = [("x-expires", 0), ("x-expires", -1), ("x-message-ttl", -1), ("x-max-priority", 256)];
    everywhere(|client, place| {
        for (argument, value) in impossible {
            let refused = client.declare(&queue(&unique_name("fact"), &[(argument, value)]));
            assert_eq!(refused.map_err(|reason| reason.code), Err(406), "{argument} = {value} on {place}");
        }
    });
}

#[test]
fn an_expiration_that_is_no_number_closes_the_channel() {
    everywhere(|client, place| {
        let name = unique_name("fact");
        client.declare(&queue(&name, &[])).expect("it is new");
        for text in ["-1", "", "1.5", "abc", "100000000000000"] {
            let properties =
                Properties { expiration: Some(ShortString::truncated(text)), ..Properties::default() };
            let refused = client.publish(&Message { properties, ..bare(&name, "x") });
            assert_eq!(refused.map_err(|reason| reason.code), Err(406), "{text:?} on {place}");
        }
        client.delete(&name);
    });
}

#[test]
fn after_a_refused_declare_nothing_later_on_its_channel_is_done_and_all_earlier_is() {
    everywhere(|client, place| {
        let name = unique_name("fact");
        client.declare(&queue(&name, &[])).expect("it is new");
        for _ in 0..20 {
            client.pipeline(&bare(&name, "x"), 5, &queue(&name, &[("x-message-ttl", 1)]));
        }
        assert_eq!(client.ready(&name), Some(100), "{place}");
        client.delete(&name);
    });
}

#[test]
fn an_unroutable_message_comes_back_and_its_neighbours_are_confirmed() {
    everywhere(|client, place| {
        let name = unique_name("fact");
        client.declare(&queue(&name, &[])).expect("it is new");
        let nowhere = unique_name("fact");
        let targets = [&name, &nowhere, &name, &nowhere];
        let verdicts = client.publish_all(&targets.map(|target| bare(target, "the same")));
        let routed: Vec<bool> = verdicts.iter().map(|verdict| *verdict == Verdict::Ok).collect();
        assert_eq!(routed, [true, false, true, false], "{place}");
        client.delete(&name);
    });
}
