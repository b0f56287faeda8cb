//! The main job, from end to end: jobs that succeed, fail and come back, are put off, give up, and a body that is
//! no job at all.
//!
//! ```console
//! $ cargo run -p leveret-tokio --example quickstart
//! $ AMQP_URL=amqp://guest:guest@localhost cargo run -p leveret-tokio --example quickstart
//! ```
//!
//! The first starts a broker in this process. The second does the same on yours and removes its queues afterwards.
//! Either checks what happened and ends with a line that begins with `quickstart: ok`, or exits with an error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

mod jobs;
mod timeline;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use leveret_testkit::broker::BrokerConfig;
use leveret_testkit::broker::tcp::TcpBroker;
use leveret_testkit::stranger;
use leveret_tokio::{Client, Config, ConnectedClient, HoldTtl, JobContext, Queue, RetryPolicy, ShortString};

use self::jobs::{CallApi, SendEmail};
use self::timeline::Timeline;

/// What waits behind the job that is put off.
const BACKLOG: usize = 12;
/// The whole thing takes about ten seconds.
const TOO_LONG: Duration = Duration::from_secs(28);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    // 1. A broker: yours, or one in this process.
    #[expect(clippy::disallowed_methods, reason = "an example is configured by its environment")]
    let given = std::env::var("AMQP_URL").ok();
    let embedded = match given {
        Some(_) => None,
        None => Some(TcpBroker::start(BrokerConfig::default(), "127.0.0.1:0")?),
    };
    let uri: String = given.or_else(|| embedded.as_ref().map(TcpBroker::uri)).unwrap_or_default();

    // 2. The queues. E-mails are tried four times, one, two and four seconds apart; the API is called by one
    //    handler at a time, so that a backlog builds up.
    let retry = RetryPolicy::exponential(4).base(Duration::from_secs(1)).jitter(false);
    let emails = Queue::new("leveret.quickstart.emails")?.prefetch(8).retry(retry);
    let calls = Queue::new("leveret.quickstart.calls")?.prefetch(1);

    // 3. A client. First one without queues, to remove what a run that was interrupted may have left.
    let config = Config::from_uri(&uri)?.connection_name("quickstart");
    let cleaner = Client::new(config.clone()).connect().await?;
    for queue in [&emails, &calls] {
        remove(&cleaner, queue).await?;
    }
    cleaner.shutdown(Duration::ZERO).await?;
    let client = Client::new(config).queue(emails.clone()).queue(calls.clone()).connect().await?;

    // 4. Work for it.
    let timeline = Arc::new(Timeline::start());
    timeline.head(if embedded.is_some() { "the broker in this process" } else { "the broker at AMQP_URL" });
    for to in ["ada@example.org", "bob@example.org", "eve@example.org"] {
        timeline.enqueued(&emails, client.enqueue(&emails, &SendEmail::good(to)).await?, to, "succeeds");
    }
    let flaky = SendEmail::failing("flaky@example.org", 2);
    timeline.enqueued(
        &emails,
        client.enqueue(&emails, &flaky).await?,
        &flaky.to,
        "fails twice, then succeeds",
    );
    let hopeless = SendEmail::failing("hopeless@example.org", u32::MAX);
    timeline.enqueued(&emails, client.enqueue(&emails, &hopeless).await?, &hopeless.to, "fails always");
    let later = SendEmail::good("later@example.org");
    let id = client.enqueue_in(&emails, &later, Duration::from_secs(2)).await?;
    timeline.enqueued(&emails, id, &later.to, "is not to run for 2 s");
    let queue = emails.name().to_string();
    tokio::task::spawn_blocking(move || stranger::publish_body(&uri, &queue, "this is no job")).await??;
    timeline.strange(&emails);

    let limited = CallApi { number: 0, limited: true };
    timeline.enqueued(
        &calls,
        client.enqueue(&calls, &limited).await?,
        "call 0",
        "is answered \"retry after 1 s\"",
    );
    for number in 1..=BACKLOG {
        client.enqueue(&calls, &CallApi { number, limited: false }).await?;
    }
    timeline.note(&calls, &format!("a backlog of {BACKLOG} calls waits behind it"));

    // 5. Workers, until everything has come to its end.
    let mail_worker = client
        .worker(&emails)
        .handler({
            let timeline = timeline.clone();
            move |email: SendEmail, context: JobContext| email.send(context, timeline.clone())
        })
        .on_settled({
            let timeline = timeline.clone();
            move |settled| timeline.settled("emails", settled)
        })
        .run_until(timeline.wait_for(5 + 2));
    let call_worker = client
        .worker(&calls)
        .handler({
            let timeline = timeline.clone();
            move |call: CallApi, context: JobContext| call.call(context, timeline.clone())
        })
        .on_settled({
            let timeline = timeline.clone();
            move |settled| timeline.settled("calls", settled)
        })
        .run_until(timeline.wait_for_calls(1 + BACKLOG));
    let (mail_report, call_report) =
        tokio::time::timeout(TOO_LONG, async { tokio::try_join!(mail_worker, call_worker) }).await??;

    // 6. What is left, and whether it is right.
    timeline.foot("what is on the broker now");
    let mut dead = 0;
    for queue in [&emails, &calls] {
        dead += show(&client, queue).await?;
    }
    check("e-mails done", mail_report.done, 5)?;
    check("attempts that failed and came back", mail_report.retried, 2 + 3)?;
    check("jobs given up and bodies that are no job", mail_report.dead_lettered, 2)?;
    check("calls done", call_report.done, 1 + BACKLOG as u64)?;
    check("calls put off", call_report.deferred, 1)?;
    check("dead letters kept", dead.into(), 2)?;
    let position = timeline.position_of_the_deferred_call();
    if position > BACKLOG {
        return Err(format!("the call that was put off ran last, at position {position}").into());
    }

    // 7. The end.
    for queue in [&emails, &calls] {
        remove(&client, queue).await?;
    }
    let closed = client.shutdown(Duration::from_secs(5)).await?;
    if !(closed.publish.is_clean() && closed.consume.is_clean()) {
        return Err(format!("the links were not closed in order: {closed:?}").into());
    }
    println!(
        "\nquickstart: ok, {} jobs done, {} retried, {} put off (back at position {position} of {}), {} dead letters",
        mail_report.done + call_report.done,
        mail_report.retried,
        call_report.deferred,
        BACKLOG + 1,
        mail_report.dead_lettered,
    );
    Ok(())
}

/// The names of a queue's family that this program uses.
fn family(queue: &Queue) -> Vec<ShortString> {
    let name = queue.name();
    let holds = [1_000, 2_000, 4_000].into_iter().filter_map(HoldTtl::from_millis);
    let mut names = vec![name.as_short().clone()];
    names.extend(holds.map(|ttl| name.hold(ttl)));
    names.push(name.dead());
    names
}

/// Prints how much is in each queue of a family. Returns the number of dead letters.
async fn show(client: &ConnectedClient, queue: &Queue) -> Result<u32, Box<dyn Error>> {
    let mut dead = 0;
    for name in family(queue) {
        if let Some(counts) = client.inspect(&name).await? {
            println!("{:>9}  {name:<42} {} ready, {} consumers", "", counts.ready, counts.consumers);
            if name == queue.name().dead() {
                dead = counts.ready;
            }
        }
    }
    Ok(dead)
}

async fn remove(client: &ConnectedClient, queue: &Queue) -> Result<(), Box<dyn Error>> {
    for name in family(queue) {
        client.delete(&name).await?;
    }
    Ok(())
}

fn check(what: &str, found: u64, wanted: u64) -> Result<(), Box<dyn Error>> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found}, expected {wanted}").into()) }
}
