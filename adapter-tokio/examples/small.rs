//! The program of the README: one queue, one kind of job, until Ctrl-C or SIGTERM.
//!
//! ```console
//! $ cargo run -p leveret-testkit --bin broker -- --port 5673
//! $ AMQP_URL=amqp://localhost:5673 cargo run -p leveret-tokio --example small
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("small: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    #[expect(clippy::disallowed_methods, reason = "an example is configured by its environment")]
    let uri = std::env::var("AMQP_URL").unwrap_or_else(|_| "amqp://localhost".to_owned());
    let emails = Queue::new("myapp.emails")?.prefetch(32).retry(RetryPolicy::exponential(5));
    let client = Client::new(Config::from_uri(&uri)?).queue(emails.clone()).connect().await?;

    client.enqueue(&emails, &SendEmail { to: "ada@example.org".into() }).await?;
    client.enqueue_in(&emails, &SendEmail { to: "bob@example.org".into() }, Duration::from_secs(30)).await?;

    let mailer = Arc::new(Mailer::default());
    let report = client
        .worker(&emails)
        .handler({
            let mailer = mailer.clone();
            move |job: SendEmail, _: JobContext| {
                let mailer = mailer.clone(); // One for each run.
                async move { mailer.deliver(&job.to).await.map_err(JobError::retry) }
            }
        })
        .run_until(shutdown_signal())
        .await?;
    println!("{} done, {} retried, {} dead", report.done, report.retried, report.dead_lettered);
    println!("{} e-mails delivered", mailer.delivered.load(Ordering::Relaxed));

    client.shutdown(Duration::from_secs(10)).await?;
    Ok(())
}

/// Ready at Ctrl-C, and on Unix at SIGTERM, by which services and containers are stopped; at once where neither can
/// be waited for.
async fn shutdown_signal() -> io::Result<()> {
    #[cfg(unix)]
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate())?.recv().await;
        Ok(())
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending();
    tokio::select! {
        done = tokio::signal::ctrl_c() => done,
        done = terminated => done,
    }
}

/// What the handlers share.
#[derive(Default)]
struct Mailer {
    delivered: AtomicU64,
}

impl Mailer {
    async fn deliver(&self, to: &str) -> io::Result<()> {
        println!("an e-mail to {to}");
        self.delivered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
