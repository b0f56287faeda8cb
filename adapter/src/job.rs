//! What a job is to the program that runs it.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use leveret_core::envelope::JobId;
use leveret_core::session::JobDelivery;
use leveret_core::settle::Outcome;
use leveret_core::time::UnixMillis;
use leveret_core::topology::QueueName;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::text::bounded;

/// A kind of job: what its payload is and what it is called.
///
/// The payload travels as JSON. Change it only in ways that jobs which already wait can still be read: add fields
/// with defaults, and give a changed meaning a new name.
///
/// ```
/// # use leveret_adapter::Job;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct SendEmail {
///     to: String,
/// }
///
/// impl Job for SendEmail {
///     const NAME: &'static str = "send-email";
/// }
/// ```
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The job type on the wire, which finds the handler: 1 to 255 bytes, none of them zero.
    ///
    /// Any other name fails `cargo build` where a call that enqueues or handles the job is compiled in. `cargo check`
    /// does not look at it.
    const NAME: &'static str;
}

/// Why a handler did not finish its job, and what is to be done with it.
///
/// Whatever implements [`std::error::Error`] converts into one that is retried, so `?` works in a handler. Types that
/// hold any error, such as `anyhow::Error`, `eyre::Report` and `Box<dyn Error + Send + Sync>`, do not implement it;
/// for them say what is to be done:
///
/// ```
/// # use leveret_adapter::JobError;
/// # fn bill(customer: &str) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> { Ok(customer.parse()?) }
/// # fn book(amount: u32) {}
/// async fn charge(customer: &str) -> Result<(), JobError> {
///     let amount = bill(customer).map_err(JobError::retry)?;
///     book(amount);
///     Ok(())
/// }
/// ```
///
/// The text is kept up to 4 KiB, with all causes; it goes into the dead-letter queue with the job when the attempts
/// are used up.
pub struct JobError {
    fate: Fate,
    text: String,
}

enum Fate {
    Retry { delay: Option<Duration> },
    Defer { delay: Duration },
    Fatal,
    Discard,
}

impl JobError {
    /// The attempt failed. The queue's retry policy says when the next one comes, or that this was the last.
    pub fn retry(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { fate: Fate::Retry { delay: None }, text: chain(&*error.into()) }
    }

    /// The attempt failed, and the next one, if the policy allows one more, comes after `delay` (rounded up to the
    /// queue's granularity; zero goes straight to the back of the queue).
    pub fn retry_after(error: impl Into<Box<dyn Error + Send + Sync>>, delay: Duration) -> Self {
        Self { fate: Fate::Retry { delay: Some(delay) }, text: chain(&*error.into()) }
    }

    /// No attempt can succeed: the job goes to the dead-letter queue now.
    pub fn fatal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { fate: Fate::Fatal, text: chain(&*error.into()) }
    }

    /// Nobody needs the job any more: it is acknowledged, and nothing takes its place, neither another attempt nor a
    /// dead letter. The reason goes to the log and the worker's observer as
    /// [`Settlement::Dropped`](leveret_core::session::Settlement::Dropped), and the worker's report counts it as
    /// `dropped`; nothing else tells. For a job that failed, that is [`fatal`](Self::fatal).
    ///
    /// ```
    /// # use leveret_adapter::JobError;
    /// # async fn account_is_open(customer: u32) -> bool { false }
    /// async fn remind(customer: u32) -> Result<(), JobError> {
    ///     if !account_is_open(customer).await {
    ///         return Err(JobError::discard("the account was closed"));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn discard(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { fate: Fate::Discard, text: chain(&*reason.into()) }
    }

    /// This is not the time, as a service says with `429` and `Retry-After`. The same attempt comes back after
    /// `delay` (rounded up to the queue's deferral granularity, at least one step) ahead of what waits on the
    /// queue. No attempt is used up; the queue bounds the number of deferrals.
    #[must_use]
    pub fn defer(delay: Duration) -> Self {
        Self { fate: Fate::Defer { delay }, text: "deferred by its handler".to_owned() }
    }

    /// A panic is a failed attempt.
    pub(crate) fn panicked(text: String) -> Self {
        Self { fate: Fate::Retry { delay: None }, text }
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        match self.fate {
            Fate::Retry { delay } => Outcome::Retry { delay, error: self.text },
            Fate::Defer { delay } => Outcome::Defer { delay, reason: self.text },
            Fate::Fatal => Outcome::DeadLetter { reason: self.text },
            Fate::Discard => Outcome::Drop { reason: self.text },
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.fate {
            Fate::Retry { delay: None } => "retry",
            Fate::Retry { delay: Some(_) } => "retry_after",
            Fate::Defer { .. } => "defer",
            Fate::Fatal => "fatal",
            Fate::Discard => "discard",
        };
        f.debug_tuple(name).field(&self.text).finish()
    }
}

/// An error with its causes, outermost first: what a person needs who finds the job in the dead-letter queue.
fn chain(error: &(dyn Error + Send + Sync + 'static)) -> String {
    struct Chain<'e>(&'e dyn Error);

    impl fmt::Display for Chain<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Display::fmt(self.0, f)?;
            let mut cause = self.0.source();
            while let Some(error) = cause {
                write!(f, ": {error}")?;
                cause = error.source();
            }
            Ok(())
        }
    }

    bounded(format_args!("{}", Chain(error)))
}

/// What a handler is told about the run it is asked for.
#[derive(Clone, Debug)]
pub struct JobContext {
    job_id: JobId,
    attempt: u32,
    deferrals: u32,
    queue: QueueName,
    enqueued_at: UnixMillis,
    redelivered: bool,
    correlation_id: Option<String>,
}

impl JobContext {
    pub(crate) fn new(queue: QueueName, delivery: &JobDelivery) -> Self {
        let envelope = &delivery.envelope;
        Self {
            job_id: envelope.job_id(),
            attempt: envelope.attempt(),
            deferrals: envelope.deferrals(),
            queue,
            enqueued_at: envelope.enqueued_at(),
            redelivered: delivery.redelivered,
            correlation_id: envelope.correlation_id().map(str::to_owned),
        }
    }

    /// The job's id: the same for every attempt, and for every copy when a job runs twice. What a handler makes
    /// idempotent, it keys by this.
    #[must_use]
    pub const fn job_id(&self) -> JobId {
        self.job_id
    }

    /// The number of this attempt, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How often the job has been deferred so far.
    #[must_use]
    pub const fn deferrals(&self) -> u32 {
        self.deferrals
    }

    /// The queue that the job came from.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// When the job was first enqueued, by the wall clock of the program that did it.
    #[must_use]
    pub const fn enqueued_at(&self) -> UnixMillis {
        self.enqueued_at
    }

    /// Whether the broker delivered this message before, so that a run of this very attempt may have begun and not
    /// been settled, for example in a process that crashed.
    #[must_use]
    pub const fn redelivered(&self) -> bool {
        self.redelivered
    }

    /// The application's correlation id, if the job was enqueued with one: by a producer of another system, or through
    /// `leveret_core::session`. The producers of this crate set none.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.correlation_id.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the order number is unreadable")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    fn parse(text: &str) -> Result<u32, JobError> {
        Ok(text.parse::<u32>().map_err(Outer)?)
    }

    #[test]
    fn a_question_mark_in_a_handler_retries_with_the_whole_story() {
        let Outcome::Retry { delay: None, error } = parse("x").unwrap_err().into_outcome() else {
            panic!("an error of the program's own is retried by the policy");
        };
        assert_eq!(error, "the order number is unreadable: invalid digit found in string");
    }

    #[test]
    fn every_constructor_has_its_own_outcome() {
        let second = Duration::from_secs(1);
        assert!(matches!(JobError::retry("x").into_outcome(), Outcome::Retry { delay: None, .. }));
        assert!(matches!(
            JobError::retry_after("x".to_owned(), second).into_outcome(),
            Outcome::Retry { delay: Some(delay), .. } if delay == second
        ));
        assert!(matches!(
            JobError::defer(second).into_outcome(), Outcome::Defer { delay, .. } if delay == second
        ));
        let Outcome::DeadLetter { reason } = JobError::fatal("no such user").into_outcome() else {
            panic!("fatal goes to the dead-letter queue");
        };
        assert_eq!(reason, "no such user");
        let Outcome::Drop { reason } = JobError::discard("the account was closed").into_outcome() else {
            panic!("what is discarded leaves nothing behind");
        };
        assert_eq!(reason, "the account was closed");
    }
}
