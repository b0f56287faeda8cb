//! Servers that misbehave towards a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leveret_tokio::{JobContext, RequestError, WorkerError, WorkerReport};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::server::{
    ACK, Answer, CANCEL, CHANNEL_CLOSE, CONSUME, DECLARE, Heard, OPEN, QOS, START_OK, Server, close, deliver,
    frame, header, method, tune,
};
use crate::{Note, connect, queue, soon};

/// The first connection publishes, those after it consume.
const CONSUMING: usize = 1;

fn note(number: u64) -> Vec<u8> {
    format!(
        r#"{{"job_id":"00000000-0000-4000-8000-{number:012}","job_type":"note","queue":"q","attempt":1,"enqueued_at_ms":0,"payload":"{number}"}}"#
    )
    .into_bytes()
}

/// The first messages for a consumer that has just started.
fn notes(heard: &Heard, tags: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let tag = heard.consumer_tag();
    tags.into_iter().flat_map(|number| deliver(heard.channel, tag, number, &note(number))).collect()
}

/// Runs a worker until `jobs` notes have been handled; answers with what they said.
async fn handle(server: &Server, jobs: usize) -> (Vec<String>, WorkerReport) {
    let client = connect(server).await.unwrap();
    let (ran, mut running) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = client.worker(&queue()).handler(move |note: Note, _: JobContext| {
        ran.send(note.0).unwrap();
        async { Ok(()) }
    });
    let worker = tokio::spawn(worker.run_until(stopped));
    let mut seen = Vec::new();
    while seen.len() < jobs {
        seen.push(soon(running.recv()).await.unwrap());
    }
    // The acknowledgement of the last one may still be under way.
    tokio::time::sleep(Duration::from_millis(50)).await;
    stop.send(()).unwrap();
    (seen, soon(worker).await.unwrap().unwrap())
}

#[tokio::test]
async fn a_server_that_ignores_the_prefetch_count_is_left_for_a_better_one() {
    let server = Server::start(|heard| match heard.method {
        CONSUME if heard.connection == CONSUMING => Answer::Flood(notes(heard, 1..=100)),
        _ => Answer::Usual,
    });
    let client = connect(&server).await.unwrap();
    let worker = client.worker(&queue()).handler(|_: Note, _| std::future::pending());
    let worker = tokio::spawn(worker.run());
    soon(async {
        while server.connections() < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    worker.abort();
}

#[tokio::test]
async fn jobs_that_wait_for_a_handler_do_not_pile_up_over_lost_connections() {
    const LOST: usize = 5;
    let server = Server::start(|heard| match heard.method {
        CONSUME => {
            let two =
                [method(heard.channel, (60, 21), &[&[9][..], b"leveret-0"].concat()), notes(heard, 1..=2)];
            if heard.connection <= LOST {
                Answer::LastWords(two.concat())
            } else {
                Answer::Bytes(two.concat())
            }
        }
        _ => Answer::Usual,
    });
    let client = connect(&server).await.unwrap();
    let (ran, mut running) = mpsc::unbounded_channel();
    let release = Arc::new(Semaphore::new(0));
    let worker = client.worker(&queue()).handler({
        let release = release.clone();
        move |_: Note, _| {
            ran.send(()).unwrap();
            let release = release.clone();
            async move {
                release.acquire().await.unwrap().forget();
                Ok(())
            }
        }
    });
    let worker = tokio::spawn(worker.run());
    soon(async {
        while server.connections() < 2 + LOST {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    release.add_permits(100);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut runs = 0;
    while running.try_recv().is_ok() {
        runs += 1;
    }
    assert_eq!(runs, 4, "two that ran when the first connection was lost, and the two of the last");
    client.shutdown(Duration::from_secs(1)).await.unwrap();
    worker.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_worker_stops_though_the_server_never_answers() {
    let mut all = JoinSet::new();
    for step in [DECLARE, QOS, CONSUME, CANCEL, CHANNEL_CLOSE] {
        all.spawn(async move {
            let server = Server::start(move |heard| match heard.method {
                method if heard.connection == CONSUMING && method == step => Answer::Silence,
                _ => Answer::Usual,
            });
            let client = connect(&server).await.unwrap();
            let moment = Duration::from_millis(200);
            let worker = client.worker(&queue()).handler(async |_: Note, _| Ok(())).grace(moment);
            soon(worker.run_until(tokio::time::sleep(moment))).await.unwrap();
        });
    }
    all.join_all().await;
}

#[tokio::test]
async fn nonsense_about_deliveries_costs_the_connection_at_most() {
    let odd: [fn(&Heard) -> Vec<u8>; 9] = [
        // For a consumer that there is not.
        |heard| deliver(heard.channel, b"somebody-else", 1, &note(7)),
        // With a body and no header.
        |heard| {
            [
                method(heard.channel, (60, 60), b"\x01x\0\0\0\0\0\0\0\x01\0\0\0"),
                frame(3, heard.channel, b"{}"),
            ]
            .concat()
        },
        // A header and nothing before it.
        |heard| header(heard.channel, 2, &[0, 0]),
        // Two headers.
        |heard| {
            let deliver = method(heard.channel, (60, 60), b"\x01x\0\0\0\0\0\0\0\x01\0\0\0");
            [deliver, header(heard.channel, 2, &[0, 0]), header(heard.channel, 2, &[0, 0])].concat()
        },
        // More body than the header said, and more than anybody has.
        |heard| {
            let deliver = method(heard.channel, (60, 60), b"\x01x\0\0\0\0\0\0\0\x01\0\0\0");
            [deliver, header(heard.channel, u64::MAX, &[0, 0])].concat()
        },
        // Property flags that go on without end.
        |heard| {
            let deliver = method(heard.channel, (60, 60), b"\x01x\0\0\0\0\0\0\0\x01\0\0\0");
            [deliver, header(heard.channel, 0, &[0xFF; 1000])].concat()
        },
        // The answer to a question that was not asked, on a channel that there is not.
        |heard| method(heard.channel, (50, 11), b"\x01q\0\0\0\0\0\0\0\0"),
        |_| method(77, (20, 41), &[]),
        // A consumer tag of bytes that are no text.
        |heard| method(heard.channel, (60, 30), b"\x02\xFF\xFE\x01"),
    ];
    for (number, odd) in odd.into_iter().enumerate() {
        let server = Server::start(move |heard| match heard.method {
            CONSUME if heard.connection == CONSUMING => {
                Answer::UsualAnd([odd(heard), notes(heard, 1..=1)].concat())
            }
            CONSUME => Answer::UsualAnd(notes(heard, 1..=1)),
            _ => Answer::Usual,
        });
        let (seen, report) = handle(&server, 1).await;
        assert!(seen.iter().all(|text| ["1", "7"].contains(&text.as_str())), "{number}: {seen:?}");
        assert!(report.done + report.stale >= 1, "{number}: {report:?}");
    }
}

#[tokio::test]
async fn a_consumer_that_is_cancelled_and_a_channel_that_is_closed_come_back() {
    let server = Server::start(|heard| match (heard.method, heard.before) {
        (CONSUME, 0) => {
            let tag = [&[9][..], heard.consumer_tag(), &[0]].concat();
            Answer::UsualAnd(method(heard.channel, (60, 30), &tag))
        }
        (CONSUME, 1) => Answer::CloseChannel(406, "PRECONDITION_FAILED - delivery acknowledgement timed out"),
        (CONSUME, _) => Answer::UsualAnd(notes(heard, 1..=1)),
        _ => Answer::Usual,
    });
    let (seen, report) = handle(&server, 1).await;
    assert_eq!((seen.len(), report.done), (1, 1));
}

#[tokio::test]
async fn a_worker_survives_a_connection_that_is_lost_at_each_step() {
    for step in [OPEN, DECLARE, QOS, CONSUME, ACK] {
        let server = Server::start(move |heard| match heard.method {
            method if heard.connection == CONSUMING + 1 && method == step => Answer::HangUp,
            CONSUME if heard.connection == CONSUMING => Answer::LastWords(notes(heard, 1..=1)),
            CONSUME => Answer::UsualAnd(notes(heard, 1..=1)),
            _ => Answer::Usual,
        });
        let (_, report) = handle(&server, 2).await;
        assert!(report.done >= 1, "{report:?}");
    }
}

#[tokio::test]
async fn a_worker_whose_connection_is_refused_says_why() {
    let server = Server::start(|heard| match heard.method {
        OPEN if heard.connection >= CONSUMING => {
            Answer::Bytes(close(0, 530, "NOT_ALLOWED - connection limit (1) is reached", OPEN))
        }
        _ => Answer::Usual,
    });
    let client = connect(&server).await.unwrap();
    let error = soon(client.worker(&queue()).handler(async |_: Note, _| Ok(())).run()).await.unwrap_err();
    assert!(matches!(error, WorkerError::Ended(_)), "{error}");
    assert!(error.to_string().contains("connection limit"), "{error}");
}

#[tokio::test]
async fn a_question_for_which_there_is_no_channel_is_answered() {
    let server = Server::start(|heard| match heard.method {
        START_OK => Answer::Bytes(tune(2, 131_072, 60)),
        _ => Answer::Usual,
    });
    let client = connect(&server).await.unwrap();
    let name = queue().name().as_short().clone();
    let answer = soon(client.inspect(&name)).await;
    assert!(matches!(answer, Err(RequestError::NoChannel(_))), "{answer:?}");
    let answer = soon(client.delete(&name)).await;
    assert!(matches!(answer, Err(RequestError::NoChannel(_))), "{answer:?}");
}

#[tokio::test]
async fn a_consumer_that_is_cancelled_again_and_again_is_no_storm() {
    let consumed = Arc::new(AtomicUsize::new(0));
    let count = consumed.clone();
    let server = Server::start(move |heard| {
        if heard.method != CONSUME {
            return Answer::Usual;
        }
        count.fetch_add(1, Ordering::Relaxed);
        let tag = [&[9][..], heard.consumer_tag(), &[0]].concat();
        Answer::UsualAnd(method(heard.channel, (60, 30), &tag))
    });
    let client = connect(&server).await.unwrap();
    let worker = client.worker(&queue()).handler(async |_: Note, _| Ok(()));
    soon(worker.run_until(tokio::time::sleep(Duration::from_secs(1)))).await.unwrap();
    let consumed = consumed.load(Ordering::Relaxed);
    assert!((2..20).contains(&consumed), "consumed {consumed} times within a second");
}
