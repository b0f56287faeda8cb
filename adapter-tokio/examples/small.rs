//! The program of the README: one queue, one kind of job, until Ctrl-C.
//!
//! ```console
//! $ cargo run -p leveret-testkit --bin broker -- --port 5673
//! $ AMQP_URL=amqp://localhost:5673 cargo run -p leveret-tokio --example small
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io;
use std::time::Duration;

use leveret_tokio::{Client, Config, Job, JobContext, JobError, Queue, RetryPolicy};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct SendEmail {
    to: String,
}

impl Job for SendEmail {
    const NAME: &'static str = "send-email";
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[expect(clippy::disallowed_methods, reason = "an example is configured by its environment")]
    let uri = std::env::var("AMQP_URL").unwrap_or_else(|_| "amqp://localhost".to_owned());
    let emails = Queue::new("myapp.emails")?.prefetch(32).retry(RetryPolicy::exponential(5));
    let client = Client::new(Config::from_uri(&uri)?).queue(emails.clone()).connect().await?;

    client.enqueue(&emails, &SendEmail { to: "ada@example.org".into() }).await?;
    client.enqueue_in(&emails, &SendEmail { to: "bob@example.org".into() }, Duration::from_secs(30)).await?;

    let report = client
        .worker(&emails)
        .handler(
            |job: SendEmail, _: JobContext| async move { deliver(&job.to).await.map_err(JobError::retry) },
        )
        .run_until(tokio::signal::ctrl_c())
        .await?;
    println!("{} done, {} retried, {} dead", report.done, report.retried, report.dead_lettered);

    client.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}

async fn deliver(to: &str) -> io::Result<()> {
    println!("an e-mail to {to}");
    Ok(())
}
