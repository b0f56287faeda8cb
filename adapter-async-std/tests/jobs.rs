//! A job from end to end on async-std, against the embedded broker on a TCP port.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_std::channel;
use async_std::task;
use leveret_async_std::{Client, Config, Job, JobContext, JobError, LinkEnd, Queue, RetryPolicy};
use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl Job for Greet {
    const NAME: &'static str = "greet";
}

#[test]
fn a_job_that_fails_once_runs_twice() {
    let broker = TcpBroker::start(BrokerConfig::default(), ("127.0.0.1", 0)).unwrap();
    let queue = Queue::new("greetings").unwrap().retry(RetryPolicy::fixed(2, Duration::ZERO));
    task::block_on(async {
        let config = Config::from_uri(&broker.uri()).unwrap();
        let client = Client::new(config).queue(queue.clone()).connect().await.unwrap();
        client.enqueue(&queue, &Greet { name: "ada".to_owned() }).await.unwrap();

        let (stop, stopped) = channel::bounded::<()>(1);
        let attempts = Arc::new(Mutex::new(Vec::new()));
        let seen = attempts.clone();
        let report = client
            .worker(&queue)
            .handler(move |job: Greet, context: JobContext| {
                seen.lock().unwrap().push((job.name, context.attempt()));
                async move { if context.attempt() == 1 { Err(JobError::retry("not yet")) } else { Ok(()) } }
            })
            .on_settled(move |settled| {
                if settled.settlement == leveret_async_std::Settlement::Done {
                    stop.close();
                }
            })
            .run_until(stopped.recv())
            .await
            .unwrap();
        assert_eq!((report.retried, report.done), (1, 1));
        assert_eq!(*attempts.lock().unwrap(), [("ada".to_owned(), 1), ("ada".to_owned(), 2)]);
        let closed = client.shutdown(Duration::from_secs(5)).await.unwrap();
        assert_eq!((closed.publish, closed.consume), (LinkEnd::Handshake, LinkEnd::Handshake));
    });
}
