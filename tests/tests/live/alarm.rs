//! A broker that is short of memory.

use std::sync::PoisonError;
use std::time::Duration;

use leveret_core::connection::{ConnectionError, Event, Verdict};
use leveret_testkit::rabbitmq::needed_brokers;
use leveret_testkit::skip::skip;
use leveret_testkit::stranger::bare;

use crate::{ALARM, Client};

#[test]
fn publishes_wait_for_the_end_of_an_alarm_and_a_close_does_not() {
    let _alone = ALARM.write().unwrap_or_else(PoisonError::into_inner);
    for broker in needed_brokers().expect("the brokers that are required are there") {
        if !broker.is_ours() {
            skip("an alarm needs a broker that takes orders");
            continue;
        }
        let memory =
            |limit| drop(broker.ctl(&["set_vm_memory_high_watermark", limit]).expect("it takes orders"));
        let close_timeout = Duration::from_secs(3);
        let mut client = Client::with(broker, |mut config| {
            config.close_timeout = close_timeout;
            config
        });
        let channel = client.channel();
        let queue = client.queue(channel);
        client.on().confirm_select(channel).expect("it is open");
        client.expect("selected", |event| matches!(event, Event::ConfirmSelected { .. }));

        memory("0.00001");
        // The first one makes it a publishing connection, which the server stops reading.
        client.on().publish(channel, &bare(&queue, "first")).expect("there is room");
        client.expect("blocked", |event| matches!(event, Event::Blocked { .. }));
        for _ in 0..10 {
            client.on().publish(channel, &bare(&queue, "waiting")).expect("there is room");
        }
        assert!(client.on().unsent_bytes() > 0);
        memory("0.6");
        let mut told = Vec::new();
        while told.len() < 11 {
            match client.event() {
                Event::Unblocked => {}
                Event::Verdict { sequence, verdict: Verdict::Ok, .. } => told.push(sequence),
                other => panic!("{other:?}"),
            }
        }
        told.sort_unstable();
        assert_eq!(told, (1..=11).collect::<Vec<_>>(), "RabbitMQ {}", broker.version());

        memory("0.00001");
        client.on().publish(channel, &bare(&queue, "last")).expect("there is room");
        client.expect("blocked", |event| matches!(event, Event::Blocked { .. }));
        let started = client.socket.now();
        client.on().close(started, 200, "done");
        let error = loop {
            if let Event::Closed(error) = client.event() {
                break error;
            }
        };
        let took = client.socket.now().saturating_duration_since(started);
        memory("0.6");
        assert!(matches!(*error, ConnectionError::ClosedLocally { .. }), "{error}");
        assert!(took < close_timeout + Duration::from_secs(2), "{took:?}");
    }
}
