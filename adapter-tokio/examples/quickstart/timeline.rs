//! What happened, line by line, and when everything has come to its end.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use leveret_tokio::{JobContext, JobId, Queue, Settled, Settlement};
use tokio::sync::watch;
use tokio::time::Instant;

/// Prints what happens and counts what has come to its end.
pub(crate) struct Timeline {
    start: Instant,
    labels: Mutex<BTreeMap<JobId, String>>,
    /// E-mails and bodies that are done or dead.
    emails: watch::Sender<usize>,
    /// Calls that are done, and at which position the one ended that was put off.
    calls: watch::Sender<Calls>,
}

#[derive(Clone, Copy, Default)]
struct Calls {
    done: usize,
    deferred_at: usize,
}

impl Timeline {
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
            labels: Mutex::default(),
            emails: watch::Sender::new(0),
            calls: watch::Sender::new(Calls::default()),
        }
    }

    pub(crate) fn head(&self, broker: &str) {
        println!("quickstart on {broker}\n");
        println!("{:>9}  {:<8} {:<22} {:>3}  what happened", "time", "queue", "job", "try");
    }

    pub(crate) fn foot(&self, text: &str) {
        println!("\n{:>9}  {text}", self.time());
    }

    pub(crate) fn enqueued(&self, queue: &Queue, id: JobId, label: &str, what: &str) {
        self.labels().insert(id, label.to_owned());
        self.line(short(queue), label, None, &format!("enqueued: {what}"));
    }

    pub(crate) fn strange(&self, queue: &Queue) {
        self.line(short(queue), "(no job)", None, "somebody published a body that is no job");
    }

    pub(crate) fn note(&self, queue: &Queue, what: &str) {
        self.line(short(queue), "", None, what);
    }

    pub(crate) fn label(&self, context: &JobContext, label: &str) {
        self.labels().insert(context.job_id(), label.to_owned());
    }

    pub(crate) fn runs(&self, context: &JobContext, label: &str) {
        self.label(context, label);
        let queue = context.queue().as_str().rsplit('.').next().unwrap_or_default();
        self.line(queue, label, Some(context.attempt()), "runs");
    }

    pub(crate) fn settled(&self, queue: &str, settled: &Settled) {
        let attempt = settled.job.as_ref().map(|job| job.attempt);
        let label = settled.job.as_ref().and_then(|job| self.labels().get(&job.id).cloned());
        let label = label.unwrap_or_else(|| "(no job)".to_owned());
        let (what, is_end) = describe(&settled.settlement);
        let put_off = settled.job.as_ref().is_some_and(|job| job.deferrals > 0);
        if queue == "calls" {
            self.count_call(&settled.settlement, put_off);
        }
        // The calls of the backlog are all alike.
        if queue == "emails" || put_off || !is_end {
            self.line(queue, &label, attempt, &what);
        }
        if queue == "emails" && is_end {
            self.emails.send_modify(|ended| *ended += 1);
        }
    }

    /// Ready when so many e-mails and bodies have come to their end.
    pub(crate) async fn wait_for(&self, emails: usize) {
        let mut ended = self.emails.subscribe();
        // The sender is `self`, so the wait does not fail.
        let _ = ended.wait_for(|ended| *ended >= emails).await;
    }

    /// Ready when so many calls are done.
    pub(crate) async fn wait_for_calls(&self, calls: usize) {
        let mut done = self.calls.subscribe();
        let _ = done.wait_for(|counted| counted.done >= calls).await;
    }

    /// Which of all calls the one that was put off was: the first has position 1.
    pub(crate) fn position_of_the_deferred_call(&self) -> usize {
        self.calls.borrow().deferred_at
    }

    fn count_call(&self, settlement: &Settlement, put_off: bool) {
        if *settlement == Settlement::Done {
            self.calls.send_modify(|calls| {
                calls.done += 1;
                if put_off {
                    calls.deferred_at = calls.done;
                }
            });
        }
    }

    fn line(&self, queue: &str, label: &str, attempt: Option<u32>, what: &str) {
        let attempt = attempt.map(|attempt| attempt.to_string()).unwrap_or_default();
        println!("{:>9}  {queue:<8} {label:<22} {attempt:>3}  {what}", self.time());
    }

    fn time(&self) -> String {
        format!("{:.3} s", self.start.elapsed().as_secs_f64())
    }

    fn labels(&self) -> std::sync::MutexGuard<'_, BTreeMap<JobId, String>> {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In words, and whether nothing follows.
fn describe(settlement: &Settlement) -> (String, bool) {
    match settlement {
        Settlement::Done => ("done".to_owned(), true),
        Settlement::Retried { attempt, delay, waits_in } => {
            (format!("failed: attempt {attempt} waits {} in {waits_in}", humane(*delay)), false)
        }
        Settlement::Deferred { delay, waits_in, .. } => {
            (format!("put off: waits {} in {waits_in}, then goes first", humane(*delay)), false)
        }
        Settlement::DeadLettered { reason, into } => (format!("dead letter in {into}: {reason}"), true),
        other => (format!("{other:?}"), true),
    }
}

fn humane(delay: Duration) -> String {
    format!("{} s", delay.as_secs_f64())
}

fn short(queue: &Queue) -> &str {
    queue.name().as_str().rsplit('.').next().unwrap_or_default()
}
