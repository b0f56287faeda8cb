//! Jobs from end to end: handles, driver and session on tokio, against the embedded broker on a TCP port.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::broker::{BrokerConfig, ConfirmStyle};
use leveret_tokio::{
    Client, Config, ConnectError, ConnectedClient, EnqueueError, Granularity, Job, JobContext, JobError,
    JobType, LinkEnd, Queue, Reconnect, RequestError, RetryPolicy, Settlement, WorkerError,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl Job for Greet {
    const NAME: &'static str = "greet";
}

#[derive(Serialize, Deserialize)]
struct Count(u32);

impl Job for Count {
    const NAME: &'static str = "count";
}

/// Has the name of [`Greet`] and another payload.
#[derive(Serialize, Deserialize)]
struct Impostor {
    age: u32,
}

impl Job for Impostor {
    const NAME: &'static str = "greet";
}

fn greet(name: &str) -> Greet {
    Greet { name: name.to_owned() }
}

fn queue() -> Queue {
    Queue::new("greetings").unwrap().retry(RetryPolicy::none())
}

fn broker() -> TcpBroker {
    TcpBroker::start(BrokerConfig::default(), ("127.0.0.1", 0)).unwrap()
}

async fn connect(broker: &TcpBroker, queue: &Queue) -> ConnectedClient {
    let config = Config::from_uri(&broker.uri()).unwrap();
    Client::new(config).queue(queue.clone()).connect().await.unwrap()
}

/// A channel whose sender tells a worker to stop.
fn stopper() -> (oneshot::Sender<()>, oneshot::Receiver<()>) {
    oneshot::channel()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_enqueued_and_run_and_gone() {
    let (broker, queue) = (broker(), queue());
    let client = connect(&broker, &queue).await;
    let id = client.enqueue(&queue, &greet("ada")).await.unwrap();

    let (ran, mut running) = mpsc::unbounded_channel();
    let (stop, stopped) = stopper();
    let worker = client.worker(&queue).handler(move |job: Greet, context: JobContext| {
        ran.send((job, context)).unwrap();
        async { Ok(()) }
    });
    let worker = tokio::spawn(worker.run_until(stopped));
    let (job, context) = running.recv().await.unwrap();
    assert_eq!(job, greet("ada"));
    assert_eq!((context.job_id(), context.attempt(), context.deferrals()), (id, 1, 0));
    assert!(!context.redelivered());
    assert_eq!(context.queue(), queue.name());

    stop.send(()).unwrap();
    let report = worker.await.unwrap().unwrap();
    assert_eq!((report.done, report.left), (1, 0));
    let counts = client.inspect(queue.name()).await.unwrap().unwrap();
    assert_eq!((counts.ready, counts.consumers), (0, 0));
    let closed = client.shutdown(Duration::from_secs(5)).await.unwrap();
    assert_eq!((closed.publish, closed.consume), (LinkEnd::Handshake, LinkEnd::Handshake));
    assert_eq!((closed.unconfirmed, closed.unsettled), (0, 0));
}

#[tokio::test]
async fn many_jobs_of_two_types_run_on_one_thread() {
    let (broker, queue) = (broker(), queue().prefetch(7));
    let client = connect(&broker, &queue).await;
    let producer = client.producer(&queue).unwrap();
    for number in 0..50 {
        producer.enqueue(&Count(number)).await.unwrap();
        producer.enqueue(&greet("ada")).await.unwrap();
    }
    let sum = Arc::new(Mutex::new((0, 0)));
    let (stop, stopped) = stopper();
    let stop = Mutex::new(Some(stop));
    let report = client
        .worker(&queue)
        .handler({
            let sum = sum.clone();
            move |job: Count, _| {
                let sum = sum.clone();
                async move {
                    tokio::task::yield_now().await;
                    sum.lock().unwrap().0 += job.0;
                    Ok(())
                }
            }
        })
        .handler({
            let sum = sum.clone();
            move |_: Greet, _| {
                sum.lock().unwrap().1 += 1;
                async { Ok(()) }
            }
        })
        .on_settled({
            let seen = Mutex::new(0);
            move |settled| {
                assert_eq!(settled.settlement, Settlement::Done);
                let mut seen = seen.lock().unwrap();
                *seen += 1;
                if *seen == 100 {
                    stop.lock().unwrap().take().unwrap().send(()).unwrap();
                }
            }
        })
        .run_until(stopped)
        .await
        .unwrap();
    assert_eq!((report.done, report.unobserved), (100, 0));
    assert_eq!(*sum.lock().unwrap(), ((0..50).sum(), 50));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_finds_no_room_waits_and_every_job_gets_through() {
    let (broker, queue) = (broker(), queue().prefetch(100));
    let mut config = Config::from_uri(&broker.uri()).unwrap();
    config.session_mut().max_waiting = 10;
    let client = Client::new(config).queue(queue.clone()).connect().await.unwrap();
    let sending: Vec<_> =
        (0..1000).map(|number| tokio::spawn(client.enqueue(&queue, &Count(number)))).collect();
    for enqueued in sending {
        enqueued.await.unwrap().unwrap();
    }
    let (ran, mut running) = mpsc::unbounded_channel();
    let worker = client.worker(&queue).handler(move |job: Count, _| {
        ran.send(job.0).unwrap();
        async { Ok(()) }
    });
    let worker = tokio::spawn(worker.run());
    let mut numbers = Vec::new();
    while numbers.len() < 1000 {
        numbers.push(running.recv().await.unwrap());
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..1000));
    client.shutdown(Duration::from_secs(10)).await.unwrap();
    assert_eq!(worker.await.unwrap().unwrap().done, 1000);
}

/// Runs a worker until the first settlement that `ends` accepts; answers with all of them.
async fn settlements(
    worker: leveret_tokio::Worker,
    ends: impl Fn(&Settlement) -> bool + Send + Sync + 'static,
) -> Vec<Settlement> {
    let (stop, stopped) = stopper();
    let (stop, seen) = (Mutex::new(Some(stop)), Arc::new(Mutex::new(Vec::new())));
    let worker = worker.on_settled({
        let seen = seen.clone();
        move |settled| {
            if ends(&settled.settlement)
                && let Some(stop) = stop.lock().unwrap().take()
            {
                stop.send(()).unwrap();
            }
            seen.lock().unwrap().push(settled.settlement.clone());
        }
    });
    worker.run_until(stopped).await.unwrap();
    Arc::into_inner(seen).expect("the worker is gone").into_inner().unwrap()
}

const fn is_dead(settlement: &Settlement) -> bool {
    matches!(settlement, Settlement::DeadLettered { .. })
}

fn reason(settlement: &Settlement) -> &str {
    match settlement {
        Settlement::DeadLettered { reason, .. } => reason,
        other => panic!("not a dead letter: {other:?}"),
    }
}

#[tokio::test]
async fn a_failing_job_is_tried_again_and_then_dead_lettered() {
    let (broker, queue) = (broker(), queue().retry(RetryPolicy::fixed(2, Duration::ZERO)));
    let client = connect(&broker, &queue).await;
    client.enqueue(&queue, &greet("ada")).await.unwrap();
    let worker = client.worker(&queue).handler(|_: Greet, context: JobContext| async move {
        Err(JobError::retry(format!("attempt {} went wrong", context.attempt())))
    });
    let seen = settlements(worker, is_dead).await;
    assert!(matches!(seen[0], Settlement::Retried { attempt: 2, .. }), "{seen:?}");
    assert!(reason(&seen[1]).contains("attempt 2 went wrong"), "{seen:?}");
    let dead = client.inspect(queue.name().dead()).await.unwrap().unwrap();
    assert_eq!(dead.ready, 1);
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_and_the_worker_goes_on() {
    let (broker, queue) = (broker(), queue());
    let client = connect(&broker, &queue).await;
    client.enqueue(&queue, &greet("early")).await.unwrap();
    client.enqueue(&queue, &greet("late")).await.unwrap();
    client.enqueue(&queue, &greet("ada")).await.unwrap();
    let worker = client.worker(&queue).handler(|job: Greet, _| {
        assert_ne!(job.name, "early", "before the first await");
        async move {
            tokio::task::yield_now().await;
            assert_ne!(job.name, "late", "after the first await");
            Ok(())
        }
    });
    let (dead, done) = (Mutex::new(0), Mutex::new(0));
    let seen = settlements(worker, move |settlement| {
        *dead.lock().unwrap() += u32::from(is_dead(settlement));
        *done.lock().unwrap() += u32::from(*settlement == Settlement::Done);
        *dead.lock().unwrap() == 2 && *done.lock().unwrap() == 1
    });
    let reasons: Vec<String> =
        seen.await.iter().filter(|settled| is_dead(settled)).map(|dead| reason(dead).to_owned()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("before the first await")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("after the first await")), "{reasons:?}");
}

#[tokio::test]
async fn what_no_handler_can_take_is_dead_lettered_without_a_run() {
    let (broker, queue) = (broker(), queue());
    let client = connect(&broker, &queue).await;
    client.enqueue(&queue, &Count(1)).await.unwrap();
    client.enqueue(&queue, &Impostor { age: 5 }).await.unwrap();
    let worker = client.worker(&queue).handler(|_: Greet, _| async { panic!("nothing of this runs") });
    let dead = Mutex::new(0);
    let seen = settlements(worker, move |_| {
        let mut dead = dead.lock().unwrap();
        *dead += 1;
        *dead == 2
    });
    let mut reasons: Vec<String> = seen.await.iter().map(|dead| reason(dead).to_owned()).collect();
    reasons.sort();
    assert!(reasons[0].contains("no handler for job type \"count\"; this worker has greet"), "{reasons:?}");
    assert!(reasons[1].contains("missing field `name`"), "{reasons:?}");
}

#[tokio::test]
async fn a_deferred_job_comes_back_with_its_attempt() {
    let step = Granularity::new(Duration::from_millis(100)).unwrap();
    let (broker, queue) = (broker(), queue().deferral_granularity(step));
    let client = connect(&broker, &queue).await;
    client.enqueue(&queue, &greet("ada")).await.unwrap();
    let worker = client.worker(&queue).handler(|_: Greet, context: JobContext| async move {
        match context.deferrals() {
            0 => Err(JobError::defer(Duration::from_millis(1))),
            _ if context.attempt() == 1 => Ok(()),
            _ => Err(JobError::fatal("a deferral is no attempt")),
        }
    });
    let seen = settlements(worker, |settlement| *settlement == Settlement::Done).await;
    assert!(matches!(seen[0], Settlement::Deferred { deferrals: 1, .. }), "{seen:?}");
    assert_eq!(seen[1], Settlement::Done);
}

#[tokio::test]
async fn a_delayed_job_waits_in_its_hold_queue() {
    let step = Granularity::new(Duration::from_millis(100)).unwrap();
    let (broker, queue) = (broker(), queue().granularity(step));
    let client = connect(&broker, &queue).await;
    let delay = Duration::from_millis(250);
    let began = tokio::time::Instant::now();
    client.enqueue_in(&queue, &greet("ada"), delay).await.unwrap();
    let worker = client.worker(&queue).handler(|_: Greet, _| async { Ok(()) });
    settlements(worker, |settlement| *settlement == Settlement::Done).await;
    assert!(began.elapsed() >= delay, "it ran early");

    let too_long = client.enqueue_in(&queue, &greet("ada"), Duration::from_secs(30 * 86_400)).await;
    assert!(matches!(too_long, Err(EnqueueError::DelayTooLong(_))), "{too_long:?}");
}

#[tokio::test]
async fn a_worker_that_is_dropped_gives_back_what_did_not_start_and_finishes_what_did() {
    let (broker, queue) = (broker(), queue().prefetch(1));
    let client = connect(&broker, &queue).await;
    client.enqueue(&queue, &greet("first")).await.unwrap();
    client.enqueue(&queue, &greet("second")).await.unwrap();
    let (began, mut begun) = mpsc::unbounded_channel();
    let go = Arc::new(tokio::sync::Notify::new());
    let worker = client.worker(&queue).handler({
        let go = go.clone();
        move |job: Greet, _| {
            let (began, go) = (began.clone(), go.clone());
            async move {
                began.send(job.name).unwrap();
                go.notified().await;
                Ok(())
            }
        }
    });
    let mut run = Box::pin(worker.run());
    let first = tokio::select! {
        name = begun.recv() => name.unwrap(),
        ended = &mut run => panic!("{ended:?}"),
    };
    assert_eq!(first, "first");
    drop(run);
    go.notify_one();

    // The subscription ends once the running job is settled; then a new worker can take the other one.
    let (ran, mut running) = mpsc::unbounded_channel();
    let second = loop {
        let ran = ran.clone();
        let worker = client.worker(&queue).handler(move |job: Greet, _| {
            ran.send(job.name).unwrap();
            async { Ok(()) }
        });
        tokio::select! {
            name = running.recv() => break name.unwrap(),
            ended = worker.run() => assert!(matches!(ended, Err(WorkerError::Subscribe(_))), "{ended:?}"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(second, "second");
    client.shutdown(Duration::from_secs(5)).await.unwrap();
    let left = broker.with(|broker, _| broker.queue("greetings").unwrap());
    assert_eq!((left.ready, left.unacked), (0, 0));
    drop(go);
}

#[tokio::test]
async fn a_shutdown_ends_the_workers_with_their_report() {
    let (broker, queue) = (broker(), queue());
    let client = connect(&broker, &queue).await;
    client.enqueue(&queue, &greet("ada")).await.unwrap();
    let (ran, mut running) = mpsc::unbounded_channel();
    let worker = client.worker(&queue).handler(move |_: Greet, _| {
        ran.send(()).unwrap();
        async { Ok(()) }
    });
    let worker = tokio::spawn(worker.run());
    running.recv().await.unwrap();
    client.shutdown(Duration::from_secs(5)).await.unwrap();
    assert_eq!(worker.await.unwrap().unwrap().done, 1);
    let late = client.worker(&queue).handler(|_: Greet, _| async { Ok(()) }).run().await;
    assert!(matches!(late, Err(WorkerError::Subscribe(_))), "{late:?}");
}

#[tokio::test]
async fn a_worker_says_what_is_wrong_with_it_before_it_consumes() {
    let (broker, queue) = (broker(), queue());
    let client = connect(&broker, &queue).await;
    assert_eq!(
        client.worker(&queue).run().await,
        Err(WorkerError::NoHandler { queue: queue.name().clone() })
    );
    let twice = client
        .worker(&queue)
        .handler(|_: Greet, _| async { Ok(()) })
        .handler(|_: Impostor, _| async { Ok(()) });
    assert_eq!(
        twice.run().await,
        Err(WorkerError::DuplicateHandler { job_type: JobType::from_static("greet") })
    );
    let other = queue.clone().prefetch(5);
    let described = client.worker(&other).handler(|_: Greet, _| async { Ok(()) }).run().await;
    assert_eq!(
        described,
        Err(WorkerError::DifferentDescription { queue: queue.name().clone(), setting: "prefetch" })
    );
}

#[tokio::test]
async fn what_does_not_connect_says_why() {
    let broker = broker();
    let wrong = |uri: String| async move {
        Client::new(Config::from_uri(&uri).unwrap()).queue(queue()).connect().await.unwrap_err()
    };
    let addr = broker.addr();
    let password = wrong(format!("amqp://guest:wrong@{addr}")).await;
    assert!(matches!(password, ConnectError::Link(_)), "{password:?}");
    assert!(!password.to_string().contains("wrong"), "{password}");
    let vhost = wrong(format!("amqp://{addr}/nowhere")).await;
    assert!(vhost.to_string().contains("nowhere"), "{vhost}");
    drop(broker);
    let nobody = wrong(format!("amqp://{addr}")).await;
    assert!(nobody.to_string().contains(&addr.to_string()), "{nobody}");
}

#[tokio::test]
async fn an_inspected_queue_that_is_not_there_is_none_and_deleting_it_is_no_error() {
    let (broker, queue) = (broker(), queue());
    let client = connect(&broker, &queue).await;
    let name = queue.name();
    client.enqueue(&queue, &greet("ada")).await.unwrap();
    assert_eq!(client.inspect(name).await.unwrap().unwrap().ready, 1);
    assert_eq!(client.delete(name).await.unwrap(), 1);
    assert_eq!(client.inspect(name).await.unwrap(), None);
    assert_eq!(client.delete(name).await.unwrap(), 0);
    let long = "q".repeat(256);
    assert_eq!(client.inspect(&long).await, Err(RequestError::NameTooLong { bytes: 256 }));
    assert_eq!(client.delete(long).await, Err(RequestError::NameTooLong { bytes: 256 }));
}

#[tokio::test]
async fn a_cut_connection_comes_back_by_itself_and_nothing_is_lost() {
    let (broker, queue) = (broker(), queue().retry(RetryPolicy::fixed(3, Duration::ZERO)));
    let quick = Reconnect { base: Duration::from_millis(1), ..Reconnect::default() };
    let config = Config::from_uri(&broker.uri()).unwrap().reconnect(quick);
    let client = Client::new(config).queue(queue.clone()).connect().await.unwrap();
    let cut_all = || {
        broker.with(|broker, now| {
            for connection in broker.connections() {
                broker.cut(now, connection.id);
            }
        });
    };
    // The broker takes the job and keeps its verdict to itself, so that the cut leaves it open.
    broker.with(|broker, _| broker.set_confirms(ConfirmStyle::Withheld));
    let enqueue = tokio::spawn(client.enqueue(&queue, &greet("ada")));
    while broker.with(|broker, _| broker.queue("greetings").unwrap().ready) == 0 {
        tokio::task::yield_now().await;
    }
    broker.with(|broker, _| broker.set_confirms(ConfirmStyle::Immediate));
    cut_all();
    let id = enqueue.await.unwrap().unwrap();

    let (began, mut begun) = mpsc::unbounded_channel();
    let (stop, stopped) = stopper();
    let go = Arc::new(tokio::sync::Notify::new());
    let worker = client.worker(&queue).handler({
        let go = go.clone();
        move |_: Greet, context: JobContext| {
            let (began, go) = (began.clone(), go.clone());
            async move {
                began.send(context).unwrap();
                go.notified().await;
                Ok(())
            }
        }
    });
    let worker = tokio::spawn(worker.run_until(stopped));
    assert_eq!(begun.recv().await.unwrap().job_id(), id);
    cut_all();
    // No run has ended yet when the broker delivers again.
    while !begun.recv().await.unwrap().redelivered() {}
    while broker.with(|broker, _| broker.queue("greetings").unwrap().unacked) > 0 {
        go.notify_waiters();
        tokio::task::yield_now().await;
    }
    stop.send(()).unwrap();
    let report = worker.await.unwrap().unwrap();
    assert!(report.stale >= 1 && report.done >= 1, "{report:?}");
}

#[tokio::test]
async fn what_became_stale_before_it_started_is_not_run() {
    let (broker, queue) = (broker(), queue().prefetch(1));
    let quick = Reconnect { base: Duration::from_millis(1), ..Reconnect::default() };
    let config = Config::from_uri(&broker.uri()).unwrap().reconnect(quick);
    let client = Client::new(config).queue(queue.clone()).connect().await.unwrap();
    client.enqueue(&queue, &greet("ada")).await.unwrap();

    let (began, mut begun) = mpsc::unbounded_channel();
    let (settled, mut settlements) = mpsc::unbounded_channel();
    let (stop, stopped) = stopper();
    let go = Arc::new(tokio::sync::Semaphore::new(0));
    let worker = client.worker(&queue).on_settled(move |it| settled.send(it.settlement.clone()).unwrap());
    let worker = worker.handler({
        let go = go.clone();
        move |_: Greet, _| {
            let (began, go) = (began.clone(), go.clone());
            async move {
                began.send(()).unwrap();
                go.acquire().await.unwrap().forget();
                Ok(())
            }
        }
    });
    let worker = tokio::spawn(worker.run_until(stopped));
    begun.recv().await.unwrap();
    // The one slot is busy, so whatever is delivered again has to wait for it.
    for _ in 0..5 {
        broker.with(|broker, now| {
            for connection in broker.connections() {
                broker.cut(now, connection.id);
            }
        });
        assert_eq!(settlements.recv().await.unwrap(), Settlement::Stale);
        while broker.with(|broker, _| broker.queue("greetings").unwrap().unacked) == 0 {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    go.add_permits(100);
    assert_eq!(settlements.recv().await.unwrap(), Settlement::Done);
    stop.send(()).unwrap();
    worker.await.unwrap().unwrap();
    assert!(begun.recv().await.is_some(), "the last delivery is run");
    assert!(begun.recv().await.is_none(), "and none of those in between");
}

/// A block_on that knows no runtime.
fn block_on_this_thread<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn a_worker_outside_of_any_runtime_gives_its_jobs_back_and_says_so() {
    let (broker, queue) = (broker(), queue());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let client = connect(&broker, &queue).await;
        client.enqueue(&queue, &greet("ada")).await.unwrap();
        client
    });
    let worker = client.worker(&queue).handler(|_: Greet, _| async { Ok(()) });
    assert_eq!(block_on_this_thread(worker.run()), Err(WorkerError::NoTasks));
    runtime.block_on(client.shutdown(Duration::from_secs(5))).unwrap();
    let left = broker.with(|broker, _| broker.queue("greetings").unwrap());
    assert_eq!((left.ready, left.unacked), (1, 0));
}
