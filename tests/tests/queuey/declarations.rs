//! `q`, `q.dead` and `q.deferred.N`, declared by one and then by the other.

use std::time::Duration;

use leveret_core::table::{Table, Value};
use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::rabbitmq::unique_name;
use leveret_tokio::{Client, Config, ConnectedClient, Job, Queue};
use queuey_core::{Backend, Envelope, QueueConfig};
use queuey_rabbitmq::RabbitMqOptions;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::services::{connect_leveret, connect_queuey, steps};
use super::{everywhere, seconds, tell};

#[derive(Serialize, Deserialize)]
struct SendEmail {
    to: String,
}

impl Job for SendEmail {
    const NAME: &'static str = "send-email";
}

/// A queue as both describe it, and what is kept on it.
struct Family {
    name: String,
    max_priority: u8,
    granularity: u64,
    /// Long enough that none of them comes back while it is looked at.
    delays: &'static [u64],
}

impl Family {
    fn all() -> [Self; 4] {
        let family = |max_priority, granularity, delays| {
            let name = unique_name("shop.emails");
            Self { name, max_priority, granularity, delays }
        };
        [
            family(10, 1_000, &[600_000, 3_600_000, 2_147_483_000]),
            family(0, 1_000, &[86_400_000]),
            family(255, 100, &[1_234_500, 2_147_483_600]),
            Self { name: unique_name("søk.Über\u{1f407} emails.dead"), ..family(1, 250, &[600_750]) },
        ]
    }

    fn hold(&self, delay: u64) -> String {
        format!("{}.deferred.{delay}", self.name)
    }

    /// queuey's producer: declares, enqueues, keeps a job for each delay, twice.
    async fn under_queuey(&self, uri: &str) {
        let step = Duration::from_millis(self.granularity);
        let options = RabbitMqOptions::default().retry_granularity(step).deferred_granularity(step);
        let backend = connect_queuey(uri, options).await;
        let config = QueueConfig::new(&self.name).max_priority(self.max_priority);
        backend.declare(&[config]).await.expect("queuey declares q and q.dead");
        let job = Envelope::raw(SendEmail::NAME, &self.name, json!({"to": "ada"}));
        backend.publish(&job, None).await.expect("queuey publishes to q");
        for delay in self.delays {
            let delay = Duration::from_millis(*delay);
            backend.publish(&job, Some(delay)).await.expect("queuey declares the hold");
            backend.defer(&job.deferred(self.max_priority), delay).await.expect("queuey declares the hold");
        }
        backend.close().await.expect("it closes in good order");
    }

    /// The same under leveret.
    async fn under_leveret(&self, uri: &str) -> ConnectedClient {
        let queue = Queue::new(&self.name).expect("a good name").max_priority(self.max_priority);
        let queue = queue.granularity(steps(self.granularity));
        let client = connect_leveret(uri, &queue).await;
        let job = SendEmail { to: "grace".to_owned() };
        client.enqueue(&queue, &job).await.expect("leveret declares q and q.dead");
        for delay in self.delays {
            for _ in 0..2 {
                let delay = Duration::from_millis(*delay);
                client.enqueue_in(&queue, &job, delay).await.expect("leveret declares the hold");
            }
        }
        client
    }

    /// Asserts that both are on the same queues, and deletes them.
    async fn end(&self, client: &ConnectedClient, each: u32, place: &str) {
        let dead = format!("{}.dead", self.name);
        let mut expected = vec![(self.name.clone(), each), (dead, 0)];
        expected.extend(self.delays.iter().map(|delay| (self.hold(*delay), 2 * each)));
        for (queue, ready) in expected {
            let found = client.inspect(&queue).await.expect("the broker answers");
            assert_eq!(found.map(|counts| counts.ready), Some(ready), "{queue} on {place}");
            client.delete(&queue).await.expect("it is deleted");
        }
        client.shutdown(seconds(5)).await.expect("the driver runs");
    }
}

#[test]
fn what_queuey_has_declared_leveret_finds_as_it_wants_it_and_queuey_again() {
    everywhere(async |uri, place| {
        for family in Family::all() {
            family.under_queuey(uri).await;
            let client = family.under_leveret(uri).await;
            family.under_queuey(uri).await;
            family.end(&client, 3, place).await;
        }
    });
}

#[test]
fn what_leveret_has_declared_queuey_finds_as_it_wants_it_and_leveret_again() {
    everywhere(async |uri, place| {
        for family in Family::all() {
            let first = family.under_leveret(uri).await;
            first.shutdown(seconds(5)).await.expect("the driver runs");
            family.under_queuey(uri).await;
            let client = family.under_leveret(uri).await;
            family.end(&client, 3, place).await;
        }
    });
}

#[test]
fn the_only_argument_that_one_sends_and_the_other_does_not_is_the_type_classic() {
    let arguments = |table: &Table| -> Vec<String> {
        let number = |value: &Value| match value {
            Value::U8(number) => Value::I64((*number).into()),
            value => value.clone(),
        };
        table.iter().map(|(name, value)| format!("{name}={:?}", number(value))).collect()
    };
    let declared_by = |queuey: bool| {
        let broker = TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0").expect("a free port");
        let name = "shop.emails".to_owned();
        let family = Family { name, max_priority: 10, granularity: 1_000, delays: &[600_000] };
        let declare = async |uri: &str, _: &str| {
            if queuey {
                family.under_queuey(uri).await;
            } else {
                family.under_leveret(uri).await;
            }
        };
        tell(&declare, &broker.uri(), "the embedded broker");
        broker.with(|broker, _now| broker.queues())
    };
    let (theirs, ours) = (declared_by(true), declared_by(false));
    let names = |queues: &[_]| queues.len();
    assert_eq!((names(&theirs), names(&ours)), (3, 3));
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!((&theirs.name, theirs.durable), (&ours.name, ours.durable));
        let mut expected = arguments(&theirs.arguments);
        expected.push("x-queue-type=\"classic\"".to_owned());
        let mut found = arguments(&ours.arguments);
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{}", ours.name);
    }
}

/// leveret has no setting for the first two. Where they are refused they stay, since the broker has them.
#[test]
fn a_queue_of_queuey_with_a_message_ttl_or_without_durability_is_refused_by_name() {
    everywhere(async |uri, place| {
        let config = || QueueConfig::new(unique_name("shop.emails"));
        let cases = [
            (config().message_ttl(seconds(600)), "x-message-ttl"),
            (config().durable(false), "durable"),
            (config().max_priority(5), "x-max-priority"),
        ];
        for (config, argument) in cases {
            let backend = connect_queuey(uri, RabbitMqOptions::default()).await;
            backend.declare(std::slice::from_ref(&config)).await.expect("queuey declares it");
            let queue = Queue::new(&config.name).expect("a good name");
            let refused =
                Client::new(Config::from_uri(uri).expect("a good URI")).queue(queue).connect().await;
            let refused = refused.expect_err("leveret is refused").to_string();
            assert!(refused.contains(argument), "{argument}: {refused} on {place}");
            backend.close().await.expect("it closes in good order");
        }
    });
}
