//! leveret beside queuey 1.1: the published crates, on the same queues of the same broker.
//!
//! [`envelopes`] and [`generated`] pass the body of a message from one to the other, [`differences`] lists what one
//! takes and the other does not. [`declarations`] and [`crossing`] run both against every broker there is: the
//! embedded one over TCP and each RabbitMQ.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on says why")]

mod crossing;
mod dead_letters;
mod declarations;
mod differences;
mod envelopes;
mod generated;
mod services;
mod watched;

use std::time::Duration;

use bytes::Bytes;
use leveret_core::envelope::{DecodeError, Envelope, Limits};
use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::rabbitmq::brokers;

/// Longer than anything here should take, on a machine that does something else as well.
const PATIENCE: Duration = Duration::from_secs(60);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What leveret makes of a body.
fn leveret(body: &[u8]) -> Result<Envelope, DecodeError> {
    Envelope::decode(&Bytes::copy_from_slice(body), &Limits::default())
}

/// What queuey makes of a body.
fn queuey(body: &[u8]) -> queuey_core::Result<queuey_core::Envelope> {
    queuey_core::Envelope::from_bytes(body)
}

/// Tells a story at every broker: its URI, and what to call it.
#[expect(clippy::needless_pass_by_value, reason = "a story is written where it is passed")]
fn everywhere(story: impl AsyncFn(&str, &str)) {
    let embedded = TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0").expect("a free port");
    tell(&story, &embedded.uri(), "the embedded broker");
    for broker in brokers().expect("the brokers that are required are there") {
        tell(&story, broker.uri(), &format!("RabbitMQ {}", broker.version()));
    }
}

fn tell(story: &impl AsyncFn(&str, &str), uri: &str, place: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let told = tokio::time::timeout(3 * PATIENCE, story(uri, place)).await;
        assert!(told.is_ok(), "it hangs on {place}");
    });
}
