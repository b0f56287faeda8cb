//! Workers that are told to stop while a handler runs, with the broker and without it.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::sync::Arc;
use std::time::Duration;

use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_tokio::{Client, Config, ConnectedClient, Job, JobContext, Queue, Settlement, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, yield_now};

/// More grace than any of these tests takes.
const LONG: Duration = Duration::from_secs(600);

#[derive(Serialize, Deserialize)]
struct Greet;

impl Job for Greet {
    const NAME: &'static str = "greet";
}

/// A worker whose one job is running.
struct Busy {
    client: ConnectedClient,
    worker: Option<Worker>,
    /// Lets the handler end.
    go: Arc<Notify>,
    begun: mpsc::UnboundedReceiver<()>,
    settlements: mpsc::UnboundedReceiver<Settlement>,
}

impl Busy {
    async fn new(broker: &TcpBroker) -> Self {
        let queue = Queue::new("greetings").unwrap();
        let config = Config::from_uri(&broker.uri()).unwrap();
        let client = Client::new(config).queue(queue.clone()).connect().await.unwrap();
        client.enqueue(&queue, &Greet).await.unwrap();
        let (began, begun) = mpsc::unbounded_channel();
        let (settled, settlements) = mpsc::unbounded_channel();
        let go = Arc::new(Notify::new());
        let worker = client.worker(&queue).grace(LONG).handler({
            let go = go.clone();
            move |_: Greet, _: JobContext| {
                let (began, go) = (began.clone(), go.clone());
                async move {
                    began.send(()).unwrap();
                    go.notified().await;
                    Ok(())
                }
            }
        });
        // Nobody looks at what happens after the end of a test.
        let worker = worker.on_settled(move |it| drop(settled.send(it.settlement.clone())));
        Self { client, worker: Some(worker), go, begun, settlements }
    }

    fn worker(&mut self) -> Worker {
        self.worker.take().expect("it is run once")
    }

    async fn lose(&mut self, broker: TcpBroker) {
        self.begun.recv().await.unwrap();
        drop(broker);
        assert_eq!(self.settlements.recv().await.unwrap(), Settlement::Stale);
    }
}

fn broker() -> TcpBroker {
    TcpBroker::start(BrokerConfig::default(), ("127.0.0.1", 0)).unwrap()
}

/// Lets every task on this thread go as far as it can.
async fn settle_down<T>(task: &JoinHandle<T>) {
    for _ in 0..100 {
        yield_now().await;
    }
    assert!(!task.is_finished(), "a handler still runs");
}

#[tokio::test]
async fn without_a_connection_a_worker_waits_for_its_handlers_all_the_same() {
    let broker = broker();
    let mut busy = Busy::new(&broker).await;
    let stop = Arc::new(Notify::new());
    let worker = busy.worker().run_until(stop.clone().notified_owned());
    let worker = tokio::spawn(worker);
    busy.lose(broker).await;
    stop.notify_one();
    settle_down(&worker).await;
    busy.go.notify_one();
    let report = worker.await.unwrap().unwrap();
    assert_eq!((report.done, report.stale, report.left), (0, 1, 0));
}

#[tokio::test]
async fn without_a_connection_a_shutdown_waits_for_handlers_too() {
    let broker = broker();
    let mut busy = Busy::new(&broker).await;
    let worker = tokio::spawn(busy.worker().run());
    busy.lose(broker).await;
    let client = busy.client.clone();
    let shutdown = tokio::spawn(async move { client.shutdown(LONG).await });
    settle_down(&shutdown).await;
    busy.go.notify_one();
    assert_eq!(shutdown.await.unwrap().unwrap().unsettled, 0);
    assert_eq!(worker.await.unwrap().unwrap().stale, 1);
}

#[tokio::test]
async fn without_a_connection_the_grace_ends_as_ever() {
    let broker = broker();
    let mut busy = Busy::new(&broker).await;
    let worker = tokio::spawn(busy.worker().run());
    busy.lose(broker).await;
    busy.client.shutdown(Duration::from_millis(20)).await.unwrap();
    assert_eq!(worker.await.unwrap().unwrap().stale, 1);
}

#[tokio::test]
async fn a_handler_that_outlives_the_grace_is_counted_once() {
    let broker = broker();
    let mut busy = Busy::new(&broker).await;
    let stop = Arc::new(Notify::new());
    let worker = busy.worker().grace(Duration::ZERO).run_until(stop.clone().notified_owned());
    let worker = tokio::spawn(worker);
    busy.begun.recv().await.unwrap();
    stop.notify_one();
    let report = worker.await.unwrap().unwrap();
    assert_eq!((report.done, report.stale, report.left), (0, 0, 1));
    assert_eq!(busy.settlements.recv().await, Some(Settlement::Stale));
}
