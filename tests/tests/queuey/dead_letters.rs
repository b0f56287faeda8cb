//! What either puts into `q.dead`, and what the other makes of it.

use std::time::Duration;

use leveret_core::table::Value;
use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::stranger::publish_body;
use leveret_tokio::Queue;
use queuey_core::{Backend, EnqueueOptions, QueueConfig, QueueSet};
use tokio_stream::StreamExt as _;

use super::envelopes::assert_same;
use super::services::{Answer, Emails, Ours, Run, Theirs};
use super::{PATIENCE, everywhere, leveret, queuey, tell};

/// A header that both write as a number, each in a width of its own.
fn number(header: Option<Value>) -> Option<i64> {
    match header? {
        Value::I64(number) => Some(number),
        Value::U32(number) => Some(number.into()),
        other => panic!("{other:?} is no number"),
    }
}

#[test]
fn a_dead_letter_of_either_is_a_job_to_the_other_and_has_the_same_headers() {
    let broker = TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0").expect("a free port");
    let story = async |uri: &str, _: &str| {
        let (ours, theirs) = (Ours::<5>::connect(uri).await, Theirs::<5>::connect(uri).await);
        theirs.enqueue("ada", EnqueueOptions::now()).await;
        ours.run(1, Answer::Fail).await;
        theirs.run(1, Answer::Defer).await;
        ours.run(1, Answer::GiveUp).await;
        ours.enqueue("ada", Duration::ZERO).await;
        theirs.run(1, Answer::Fail).await;
        ours.run(1, Answer::Defer).await;
        theirs.run(1, Answer::GiveUp).await;
        let (work, dead) = (ours.queue.name(), ours.queue.name().dead());
        let dead = broker.with(|broker, _now| broker.queue(&dead)).expect("it was declared");
        assert_eq!(dead.messages.len(), 2);
        for letter in dead.messages {
            let job = leveret(&letter.body).expect("leveret reads it");
            assert_same(&job, &queuey(&letter.body).expect("queuey reads it"));
            assert_eq!((job.attempt(), job.deferrals()), (2, 1));
            assert_eq!(letter.message_id.as_deref(), Some(job.job_id().to_string().as_str()));
            let header = |name: &str| letter.header(name);
            assert_eq!(header("x-original-queue").as_ref().and_then(Value::as_str), Some(work.as_str()));
            let reason = header("x-death-reason").expect("it says why");
            assert!(reason.as_str().is_some_and(|reason| reason.contains("no such address")), "{reason:?}");
            assert_eq!(number(header("x-attempts")), Some(2));
            assert_eq!(number(header("x-attempt")), Some(2));
            assert_eq!(number(header("x-deferrals")), Some(1));
        }
        theirs.end().await;
        ours.end().await;
    };
    tell(&story, &broker.uri(), "the embedded broker");
}

#[test]
fn either_takes_the_dead_letters_of_the_other_from_their_queue() {
    everywhere(async |uri, place| {
        let (ours, theirs) = (Ours::<6>::connect(uri).await, Theirs::<6>::connect(uri).await);
        let dead = ours.queue.name().dead();
        let id = ours.enqueue("ada", Duration::ZERO).await;
        theirs.run(1, Answer::GiveUp).await;
        let queue = Queue::new(&dead).expect("a good name").max_priority(0).dead_letters(false);
        let undertaker = Ours::<6>::connect_to(uri, queue).await;
        let run = Run { id, to: "ada".to_owned(), attempt: 1, deferrals: 0, correlation_id: None };
        assert_eq!(undertaker.run(1, Answer::Done).await, [run], "on {place}");

        let id = theirs.enqueue("grace", EnqueueOptions::now()).await;
        ours.run(1, Answer::GiveUp).await;
        let mut letters = theirs.backend.consume(&QueueConfig::new(&*dead)).await.expect("it is there");
        let letter = tokio::time::timeout(PATIENCE, letters.next()).await.expect("it comes");
        let letter = letter.expect("the stream goes on").expect("queuey reads it");
        assert_eq!(letter.envelope().job_id.to_string(), id, "on {place}");
        letter.ack().await.expect("it is acknowledged");
        theirs.end().await;
        undertaker.end().await;
        ours.end().await;
    });
}

#[test]
fn a_body_that_is_no_job_to_either_is_moved_aside_by_both() {
    everywhere(async |uri, place| {
        let (ours, theirs) = (Ours::<7>::connect(uri).await, Theirs::<7>::connect(uri).await);
        let dead = ours.queue.name().dead();
        let mut aside = 0;
        for body in ["", "{", "null", r#"{"job_id":"nope"}"#, "\u{feff}{}"] {
            publish(uri, body).await;
            ours.enqueue("ada", Duration::ZERO).await;
            theirs.run(1, Answer::Done).await;
            publish(uri, body).await;
            theirs.enqueue("ada", EnqueueOptions::now()).await;
            ours.run(1, Answer::Done).await;
            aside += 2;
            ours.wait_for_ready(&dead, aside).await;
        }
        assert_eq!(ours.ready(ours.queue.name().as_str()).await, Some(0), "on {place}");
        theirs.end().await;
        ours.end().await;
    });
}

async fn publish(uri: &str, body: &'static str) {
    let (uri, queue) = (uri.to_owned(), Emails::<7>.name());
    let published = tokio::task::spawn_blocking(move || publish_body(&uri, queue, body));
    published.await.expect("no panic").expect("the queue takes it");
}
