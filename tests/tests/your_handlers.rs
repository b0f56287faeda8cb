//! How an application tests its handlers: a broker of the test's own, the real client, real time. Copy it.
//!
//! It is quick because the queue's granularity, in steps of which a retry waits, is 250 ms here and a second by
//! default. The test learns from the worker itself how each delivery ended, so it never sleeps.
#![expect(clippy::expect_used, reason = "a test that cannot go on says why")]

use std::io;
use std::time::Duration;

use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_tokio::{
    Client, Config, ConnectedClient, Granularity, Job, JobContext, JobError, Queue, RetryPolicy, Settlement,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

// The application: a job and its handler.

#[derive(Serialize, Deserialize)]
struct SendEmail {
    to: String,
}

impl Job for SendEmail {
    const NAME: &'static str = "send-email";
}

/// The mail server is down at every first attempt, and knows nobody without an `@`. Who has left gets no mail.
async fn send_email(job: SendEmail, context: JobContext) -> Result<(), JobError> {
    if job.to.ends_with(".invalid") {
        return Err(JobError::discard("the account was closed"));
    }
    if !job.to.contains('@') {
        return Err(JobError::fatal(io::Error::other("no such address")));
    }
    match context.attempt() {
        1 => Err(JobError::retry(io::Error::other("the mail server is down"))),
        _ => Ok(()),
    }
}

// Its tests.

/// The queue as the application describes it, with waits that a test can afford.
fn emails() -> Queue {
    let step = Duration::from_millis(250);
    Queue::new("emails")
        .expect("a good name")
        .retry(RetryPolicy::fixed(3, step))
        .granularity(Granularity::new(step).expect("a step that a queue can have"))
}

/// A broker on a free port, which ends when it is dropped. Every test has its own, so they can run side by side.
fn broker() -> TcpBroker {
    TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0").expect("a free port")
}

async fn connect(broker: &TcpBroker) -> ConnectedClient {
    let config = Config::from_uri(&broker.uri()).expect("a good URI");
    Client::new(config).queue(emails()).connect().await.expect("the broker is there")
}

/// Runs the worker until `count` deliveries are settled, and tells how.
async fn run(client: &ConnectedClient, count: usize) -> Vec<Settlement> {
    let (settled, mut settlements) = mpsc::unbounded_channel();
    let worker = client.worker(&emails()).handler(send_email).on_settled(move |event| {
        // The worker outlives the receiver only when the test has failed.
        let _ = settled.send(event.settlement.clone());
    });
    let mut seen = Vec::new();
    let stop = async {
        while seen.len() < count {
            seen.extend(settlements.recv().await);
        }
    };
    let ran = tokio::time::timeout(Duration::from_secs(30), worker.run_until(stop)).await;
    ran.expect("every job is settled in time").expect("the worker runs");
    seen
}

#[tokio::test]
async fn an_email_that_fails_once_is_sent_by_the_second_attempt() {
    let broker = broker();
    let client = connect(&broker).await;
    client.enqueue(&emails(), &SendEmail { to: "ada@example.org".into() }).await.expect("it is accepted");

    let seen = run(&client, 2).await;
    assert!(matches!(seen[..], [Settlement::Retried { .. }, Settlement::Done]), "{seen:?}");
}

#[tokio::test]
async fn an_email_to_nobody_becomes_a_dead_letter_that_says_why() {
    let broker = broker();
    let client = connect(&broker).await;
    client.enqueue(&emails(), &SendEmail { to: "nobody".into() }).await.expect("it is accepted");

    let seen = run(&client, 1).await;
    assert!(matches!(seen[..], [Settlement::DeadLettered { .. }]), "{seen:?}");
    // What an operator would find.
    let dead = broker.with(|broker, _now| broker.queue("emails.dead")).expect("the queue is declared");
    let reason = dead.messages[0].header("x-death-reason").expect("a dead letter says why");
    assert_eq!(reason.as_str(), Some("no such address"));
}

#[tokio::test]
async fn an_email_to_somebody_who_has_left_is_discarded_and_leaves_nothing_but_its_reason() {
    let broker = broker();
    let client = connect(&broker).await;
    client.enqueue(&emails(), &SendEmail { to: "ada@example.invalid".into() }).await.expect("it is accepted");

    let seen = run(&client, 1).await;
    assert_eq!(seen, [Settlement::Dropped { reason: "the account was closed".into() }]);
    let left =
        |queue| broker.with(|broker, _now| broker.queue(queue)).map_or(0, |queue| queue.messages.len());
    assert_eq!((left("emails"), left("emails.dead")), (0, 0));
}
