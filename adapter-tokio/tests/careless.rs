//! What a program may do by mistake: each has an answer, and none of it hangs, panics or leaks.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_tokio::{
    Client, Config, ConnectedClient, EnqueueError, Job, JobContext, JobError, Queue, RetryPolicy, Settlement,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Note(serde_json::Value);

impl Job for Note {
    const NAME: &'static str = "note";
}

fn note(text: &str) -> Note {
    Note(text.into())
}

fn queue() -> Queue {
    Queue::new("notes").unwrap().retry(RetryPolicy::none())
}

fn broker() -> TcpBroker {
    TcpBroker::start(BrokerConfig::default(), ("127.0.0.1", 0)).unwrap()
}

async fn connect(broker: &TcpBroker) -> ConnectedClient {
    Client::new(Config::from_uri(&broker.uri()).unwrap()).queue(queue()).connect().await.unwrap()
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing waits for ever")
}

#[tokio::test]
async fn a_job_that_no_worker_could_read_is_refused_where_it_is_enqueued() {
    let broker = broker();
    let client = connect(&broker).await;
    let deep = (0..200).fold(serde_json::Value::Null, |inner, _| vec![inner].into());
    for unreadable in [Note("x".repeat(17 << 20).into()), Note(deep)] {
        let error = soon(client.enqueue(&queue(), &unreadable)).await.unwrap_err();
        assert!(matches!(error, EnqueueError::Unreadable(_)), "{error}");
    }
    soon(client.enqueue(&queue(), &note("fine"))).await.unwrap();
}

#[tokio::test]
async fn every_delay_is_kept_or_refused() {
    let broker = broker();
    let client = connect(&broker).await;
    let longest = Duration::from_millis(2_147_483_000);
    for fine in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(1), longest] {
        soon(client.enqueue_in(&queue(), &note("x"), fine)).await.unwrap();
    }
    for refused in [longest + Duration::from_millis(1), Duration::from_millis(u64::MAX), Duration::MAX] {
        let error = soon(client.enqueue_in(&queue(), &note("x"), refused)).await.unwrap_err();
        assert!(matches!(error, EnqueueError::DelayTooLong(_)), "{error}");
    }
}

#[test]
fn names_that_would_not_work_are_refused_before_anything_is_sent() {
    for fine in ["a", "a b", "é", &"x".repeat(235)] {
        assert!(Queue::new(fine).is_ok());
    }
    for bad in
        ["", "a\0b", "a\nb", "amq.x", "x.deferred.1000", "x.held.1", &"x".repeat(236), &"é".repeat(128)]
    {
        assert!(Queue::new(bad).is_err(), "{bad:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_jobs_at_once_get_through() {
    let broker = broker();
    let client = connect(&broker).await;
    let sending: Vec<_> = (0..100_000).map(|_| tokio::spawn(client.enqueue(&queue(), &note("x")))).collect();
    for sent in sending {
        soon(sent).await.unwrap().unwrap();
    }
    let counts = client.inspect(queue().name().as_short()).await.unwrap().unwrap();
    assert_eq!(counts.ready, 100_000);
}

#[test]
fn sixteen_threads_share_one_client() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let broker = broker();
    let client = runtime.block_on(connect(&broker));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..200 {
                    runtime.block_on(soon(client.enqueue(&queue(), &note("x")))).unwrap();
                }
            });
        }
    });
    let counts = runtime.block_on(client.inspect(queue().name().as_short())).unwrap().unwrap();
    assert_eq!(counts.ready, 16 * 200);
}

#[tokio::test]
async fn a_worker_can_be_started_again_a_thousand_times() {
    let broker = broker();
    let client = connect(&broker).await;
    for round in 0..1_000 {
        let worker = client.worker(&queue()).handler(async |_: Note, _| Ok(()));
        let stop = tokio::time::sleep(Duration::from_micros(round * 3));
        soon(worker.run_until(stop)).await.unwrap();
    }
    let counts = client.inspect(queue().name().as_short()).await.unwrap().unwrap();
    assert_eq!(counts.consumers, 0);
    let channels: usize =
        broker.with(|broker, _| broker.connections().iter().map(|c| c.channels.len()).sum());
    assert!(channels <= 3, "{channels} channels");
}

#[tokio::test]
async fn a_handler_can_shut_its_client_down() {
    let broker = broker();
    let client = connect(&broker).await;
    soon(client.enqueue(&queue(), &note("last"))).await.unwrap();
    let own = client.clone();
    let worker = client.worker(&queue()).handler(move |_: Note, _| {
        let own = own.clone();
        async move {
            let (one, two) = tokio::join!(own.shutdown(Duration::from_millis(200)), own.shutdown(PATIENCE));
            assert_eq!(one, two);
            Ok(())
        }
    });
    let report = soon(worker.run()).await.unwrap();
    assert_eq!((report.done, report.left), (0, 1), "its own job could not be settled any more");
    let error = soon(client.enqueue(&queue(), &note("late"))).await.unwrap_err();
    assert_eq!(error, EnqueueError::Closed);
}

#[test]
fn a_client_whose_runtime_is_gone_says_so_wherever_it_is_used() {
    let broker = broker();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(connect(&broker));
    let waiting = client.enqueue(&queue(), &note("x"));
    drop(runtime);
    let other = tokio::runtime::Runtime::new().unwrap();
    other.block_on(async {
        assert_eq!(soon(waiting).await.unwrap_err(), EnqueueError::Closed);
        assert!(soon(client.shutdown(PATIENCE)).await.is_err());
        assert!(soon(client.worker(&queue()).handler(async |_: Note, _| Ok(())).run()).await.is_err());
        assert!(soon(client.inspect(queue().name().as_short())).await.is_err());
    });
    drop(client);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_be_dropped_while_jobs_are_under_way() {
    let broker = broker();
    let client = connect(&broker).await;
    let under_way: Vec<_> = (0..100).map(|_| tokio::spawn(client.enqueue(&queue(), &note("x")))).collect();
    drop(client);
    for sent in under_way {
        soon(sent).await.unwrap().unwrap();
    }
    soon(async {
        while broker.with(|broker, _| !broker.connections().is_empty()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_that_panic_hang_or_block_leave_the_others_alone() {
    let broker = broker();
    let client = connect(&broker).await;
    for text in ["panic", "any", "display", "hang", "block", "fine", "fine"] {
        soon(client.enqueue(&queue(), &note(text))).await.unwrap();
    }
    let (told, mut settled) = mpsc::unbounded_channel();
    let fine = Arc::new(AtomicUsize::new(0));
    let seen = fine.clone();
    let worker = client
        .worker(&queue())
        .handler(move |note: Note, _: JobContext| {
            let seen = seen.clone();
            async move {
                match note.0.as_str().unwrap() {
                    "panic" => std::panic::panic_any("plain"),
                    "any" => std::panic::panic_any(vec![1_u8; 100]),
                    "display" => return Err(JobError::retry(Endless)),
                    "hang" => std::future::pending().await,
                    "block" => sleep(Duration::from_millis(300)),
                    _ => drop(seen.fetch_add(1, Ordering::Relaxed)),
                }
                Ok(())
            }
        })
        .grace(Duration::from_millis(500))
        .on_settled(move |event| told.send(event.settlement.clone()).unwrap());
    let worker = tokio::spawn(worker.run());
    let mut dead = 0;
    let mut done = 0;
    while dead + done < 6 {
        match soon(settled.recv()).await.unwrap() {
            Settlement::DeadLettered { .. } => dead += 1,
            Settlement::Done => done += 1,
            other => unreachable!("{other:?}"),
        }
    }
    assert_eq!((dead, done, fine.load(Ordering::Relaxed)), (3, 3, 2));
    soon(client.shutdown(Duration::from_millis(100))).await.unwrap();
    assert_eq!(soon(worker).await.unwrap().unwrap().left, 1);
}

#[expect(clippy::disallowed_methods, reason = "it blocks on purpose")]
fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// An error that is its own cause.
#[derive(Debug)]
struct Endless;

impl std::fmt::Display for Endless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("again")
    }
}

impl std::error::Error for Endless {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self)
    }
}
