//! What an operator reads, and that no payload is among it.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::stranger;
use leveret_tokio::{Client, Config, Job, JobContext, JobError, Queue, Reconnect, RetryPolicy};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const SECRET: &str = "hunter2";

#[derive(Serialize, Deserialize)]
struct Login {
    password: String,
}

impl Job for Login {
    const NAME: &'static str = "login";
}

/// Has the name of [`Login`] and another payload.
#[derive(Serialize, Deserialize)]
struct Impostor {
    password: (String, u32),
}

impl Job for Impostor {
    const NAME: &'static str = "login";
}

#[derive(Serialize, Deserialize)]
struct Unheard;

impl Job for Unheard {
    const NAME: &'static str = "unheard";
}

/// Every event of leveret as a line: its level, its message, its other fields.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The one line that contains `text`.
    fn line(&self, text: &str) -> String {
        let lines: Vec<_> = self.lines().into_iter().filter(|line| line.contains(text)).collect();
        assert_eq!(lines.len(), 1, "lines with {text:?} in {:#?}", self.lines());
        lines.concat()
    }
}

struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => write!(self.fields, " {name}={value:?}").unwrap(),
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "leveret"
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { message: String::new(), fields: String::new() };
        event.record(&mut line);
        let level = event.metadata().level();
        self.0.lock().unwrap().push(format!("{level} {}:{}", line.message, line.fields));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn broker() -> TcpBroker {
    TcpBroker::start(BrokerConfig::default(), ("127.0.0.1", 0)).unwrap()
}

fn login() -> Login {
    Login { password: SECRET.to_owned() }
}

#[tokio::test]
async fn a_dead_letter_is_logged_with_its_queue_its_reason_and_its_attempt_and_without_its_payload() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let broker = broker();
    let queue = Queue::new("logins").unwrap().prefetch(1).retry(RetryPolicy::fixed(2, Duration::ZERO));
    let config = Config::from_uri(&broker.uri()).unwrap();
    let client = Client::new(config).queue(queue.clone()).connect().await.unwrap();
    client.enqueue(&queue, &login()).await.unwrap();
    client.enqueue(&queue, &Impostor { password: (SECRET.to_owned(), 1) }).await.unwrap();
    client.enqueue(&queue, &Unheard).await.unwrap();
    let uri = broker.uri();
    let body = format!("{{\"job_id\":\"{SECRET}\"}}");
    let published = move || stranger::publish_body(&uri, "logins", body);
    tokio::task::spawn_blocking(published).await.unwrap().unwrap();

    let (settled, mut settlements) = mpsc::unbounded_channel();
    let worker = client
        .worker(&queue)
        .handler(|_: Login, _: JobContext| async { Err(JobError::retry("the server is down")) })
        .on_settled(move |it| settled.send(it.settlement.clone()).unwrap());
    let stop = async {
        for _ in 0..5 {
            settlements.recv().await.unwrap();
        }
    };
    worker.run_until(stop).await.unwrap();
    client.shutdown(Duration::from_secs(5)).await.unwrap();

    assert!(log.line("attempt 1 of 2 failed").starts_with("WARN"));
    assert!(log.line("attempt 2 of 2 failed: queue").contains("error=the server is down"));
    let dead: Vec<_> =
        log.lines().into_iter().filter(|line| line.starts_with("ERROR dead letter:")).collect();
    assert_eq!(dead.len(), 4, "{:#?}", log.lines());
    for line in &dead {
        assert!(line.contains("queue=logins ") && line.contains(" into=logins.dead"), "{line}");
    }
    let of = |reason: &str| dead.iter().find(|line| line.contains(reason)).unwrap();
    assert!(of("attempt 2 of 2 failed: the server is down").contains(" attempt=2 max_attempts=2"));
    assert!(of("its handler cannot read the payload").contains(" attempt=1 max_attempts=2"));
    assert!(of("no handler for job type \"unheard\"").contains("job_type=unheard"));
    assert!(!of("the body is no job").contains("attempt"));
    log.line(&format!("INFO connected: link=publishing link endpoint={}", broker.addr()));
    log.line("INFO stopping: 0 handlers have up to 30s: queue=logins");
    log.line("INFO shutting down: 0 handlers have up to 5s");
    assert!(!log.lines().concat().contains(SECRET), "{:#?}", log.lines());
}

#[tokio::test]
async fn what_happens_to_a_connection_and_to_its_deliveries_is_said_in_plain_words() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let broker = broker();
    let queue = Queue::new("logins").unwrap();
    let quick = Reconnect { base: Duration::from_millis(1), ..Reconnect::default() };
    let config = Config::from_uri(&broker.uri()).unwrap().reconnect(quick);
    let client = Client::new(config).queue(queue.clone()).connect().await.unwrap();
    client.enqueue(&queue, &login()).await.unwrap();
    let (began, mut begun) = mpsc::unbounded_channel();
    let stop = Arc::new(Notify::new());
    let worker = client.worker(&queue).grace(Duration::ZERO).handler(move |_: Login, _: JobContext| {
        began.send(()).unwrap();
        std::future::pending()
    });
    let worker = tokio::spawn(worker.run_until(stop.clone().notified_owned()));
    begun.recv().await.unwrap();
    drop(broker);
    while !log.lines().iter().any(|line| line.starts_with("WARN cannot connect: trying again")) {
        tokio::task::yield_now().await;
    }
    stop.notify_one();
    worker.await.unwrap().unwrap();

    let stale = log.line("the broker delivers it again");
    assert!(stale.contains("queue=logins job_id="), "{stale}");
    let lost = log.lines().into_iter().filter(|line| line.starts_with("WARN disconnected: connecting again"));
    assert_eq!(lost.count(), 2, "one for each link, however often it cannot connect: {:#?}", log.lines());
    log.line("INFO stopping: 1 handlers have up to 0ns: queue=logins");
    assert!(!log.lines().concat().contains(SECRET), "{:#?}", log.lines());
}
