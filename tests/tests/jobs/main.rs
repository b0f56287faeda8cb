//! What an application sees, on every broker: the embedded one over TCP and each RabbitMQ that is there.
//!
//! A behaviour is one function over a [`Place`]; [`everywhere`] runs it at each, [`everywhere_alone`] where it
//! disturbs a whole broker, [`on_our_brokers`] where it needs `rabbitmqctl`. Waits are for conditions, with generous
//! bounds: the real brokers run in real time.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why")]

mod behaviours;
mod place;
mod poison;
mod quorum;
mod trouble;

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use leveret_testkit::rabbitmq::{RealBroker, our_brokers};
use leveret_tokio::{Client, Config, ConnectedClient, Job, Queue, RetryPolicy, Settled};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::place::Place;

/// Longer than anything here should take, on a machine that does something else as well.
const PATIENCE: Duration = Duration::from_secs(60);

/// The brokers are shared by all tests of this process: a fault of a whole broker waits until nobody else is there.
static BROKERS: RwLock<()> = RwLock::new(());

/// Runs a behaviour on every broker, beside others.
#[expect(clippy::needless_pass_by_value, reason = "a behaviour is written where it is passed")]
fn everywhere(behaviour: impl AsyncFn(&Place)) {
    let _shared = BROKERS.read().unwrap_or_else(PoisonError::into_inner);
    at_each(&place::all(), &behaviour);
}

/// Runs a behaviour on every broker, with the brokers to itself.
#[expect(clippy::needless_pass_by_value, reason = "a behaviour is written where it is passed")]
fn everywhere_alone(behaviour: impl AsyncFn(&Place)) {
    let _alone = BROKERS.write().unwrap_or_else(PoisonError::into_inner);
    at_each(&place::all(), &behaviour);
}

/// Runs a behaviour on every RabbitMQ that takes orders from the suite, with the brokers to itself.
#[expect(clippy::needless_pass_by_value, reason = "a behaviour is written where it is passed")]
fn on_our_brokers(behaviour: impl AsyncFn(&Place, &RealBroker)) {
    let _alone = BROKERS.write().unwrap_or_else(PoisonError::into_inner);
    for broker in our_brokers().expect("the brokers that are required are there") {
        at_each(&[Place::real(broker)], &async |place: &Place| behaviour(place, broker).await);
    }
}

fn at_each(places: &[Place], behaviour: &impl AsyncFn(&Place)) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for place in places {
        runtime.block_on(async {
            let outcome = tokio::time::timeout(3 * PATIENCE, behaviour(place)).await;
            assert!(outcome.is_ok(), "it hangs on {place}");
        });
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SendEmail {
    to: String,
}

impl Job for SendEmail {
    const NAME: &'static str = "send-email";
}

fn email(to: &str) -> SendEmail {
    SendEmail { to: to.to_owned() }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A queue that nobody else uses: three attempts, two seconds apart. Shorter waits could be doubled by the slow confirm
/// of a busy machine, and then a job is there twice.
fn fresh_queue() -> Queue {
    let name = leveret_testkit::rabbitmq::unique_name("leveret.test");
    Queue::new(name).expect("a good name").retry(RetryPolicy::fixed(3, seconds(2)))
}

async fn connect(place: &Place, queue: &Queue) -> ConnectedClient {
    let config = Config::from_uri(place.uri()).expect("a good URI").connection_name("leveret tests");
    Client::new(config).queue(queue.clone()).connect().await.expect("the broker is there")
}

/// What has happened, in order.
#[derive(Clone, Debug, Default)]
struct Diary(Arc<Mutex<Vec<(Instant, String)>>>);

impl Diary {
    #[expect(clippy::disallowed_methods, reason = "a test measures real time")]
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), what.into()));
    }

    fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(_, what)| what.clone()).collect()
    }

    fn count(&self, what: &str) -> usize {
        self.entries().iter().filter(|entry| *entry == what).count()
    }

    /// The time between two entries.
    fn between(&self, first: &str, second: &str) -> Duration {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let time = |wanted: &str| {
            let found = entries.iter().find(|(_, what)| what == wanted);
            found.expect("both have happened").0
        };
        time(second).saturating_duration_since(time(first))
    }

    async fn wait_for(&self, what: &str, count: usize) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.count(what) < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(waited.await.is_ok(), "{count} x {what:?} do not come; there are {:?}", self.entries());
    }
}

/// Waits until a queue holds so many ready messages.
async fn wait_for_ready(client: &ConnectedClient, queue: &str, ready: u32) {
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            let found = client.inspect(queue).await.expect("the broker answers");
            if found.map_or(0, |counts| counts.ready) == ready {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_ok(), "{queue} does not come to {ready} ready messages");
}

/// A worker that runs until it is stopped.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<leveret_tokio::WorkerReport>,
}

impl Running {
    async fn stop(self) -> leveret_tokio::WorkerReport {
        // The worker may have ended by itself, which its report tells.
        let _ = self.stop.send(());
        self.task.await.expect("the worker does not panic")
    }
}

/// Runs a worker whose handler is a function of the job and the number of the attempt, and notes every settlement.
fn run<F>(client: &ConnectedClient, queue: &Queue, settled: Diary, handler: F) -> Running
where
    F: Fn(SendEmail, leveret_tokio::JobContext) -> Result<(), leveret_tokio::JobError>
        + Send
        + Sync
        + 'static,
{
    let (stop, stopped) = oneshot::channel();
    let worker = client
        .worker(queue)
        .handler(move |job: SendEmail, context| {
            let outcome = handler(job, context);
            async move { outcome }
        })
        .on_settled(move |event: &Settled| settled.note(place::name_of(&event.settlement)));
    let task = tokio::spawn(async move { worker.run_until(stopped).await.expect("the worker runs") });
    Running { stop, task }
}
