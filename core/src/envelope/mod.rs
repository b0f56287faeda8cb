//! The wire format of a job: one JSON object, the body of a message.
//!
//! It is shared with services that use queuey 1.x, both ways, and with later versions of leveret: fields are
//! only ever added, with defaults, and those that this version does not know survive a retry byte for byte.
//! The payload stays the text it arrived as; nothing here builds a tree.
//!
//! | field | | |
//! |---|---|---|
//! | `job_id` | UUID | the same in every copy of the job |
//! | `job_type` | string of 1 to 255 bytes | names the handler |
//! | `queue` | string | where the job was first enqueued |
//! | `attempt` | number from 1 | which run this is |
//! | `enqueued_at_ms` | number | when it was first enqueued, ms since 1970 |
//! | `deferrals` | number, default 0 | how often it was deferred |
//! | `priority` | number 0 to 255, default 0 | its priority on the queue |
//! | `correlation_id` | string, optional | the application's own |
//! | `payload` | any JSON | the job itself |
//!
//! Several things that a body may hold are refused: anything but one JSON object, a field twice, a number that is
//! out of range or written with a fraction or an exponent, `null` in a field of the table other than
//! `correlation_id` and `payload`, and more than the [`Limits`].

mod decode;
mod encode;
pub mod error;
pub mod id;
pub mod limits;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod oracle;
pub mod payload;
mod payload_error;
pub mod properties;
mod scan;
mod text;

#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;

pub use error::{DecodeError, QUOTE_MAX};
pub use id::{JobId, JobIdError, JobType, JobTypeError};
pub use limits::Limits;
pub use payload::RawPayload;
pub use payload_error::PayloadError;
pub use properties::message;
use text::Text;

use crate::text::ShortString;
use crate::time::UnixMillis;

/// A job on its way: what is in the body of its message.
///
/// ```
/// use leveret_core::envelope::{Envelope, JobId, JobType, Limits, RawPayload};
/// use leveret_core::text::ShortString;
/// use leveret_core::time::UnixMillis;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let queue = ShortString::from_static("shop.emails");
/// let payload = RawPayload::from_serialize("ada@example.org")?;
/// let enqueued_at = UnixMillis(1_700_000_000_000);
/// let job = Envelope::new(JobId::from_random(1), JobType::new("email")?, queue, enqueued_at, payload);
///
/// let delivered = Envelope::decode(&job.encode(), &Limits::default())?;
/// assert_eq!(delivered, job);
/// assert_eq!(delivered.payload().deserialize::<String>()?, "ada@example.org");
///
/// // A retry counts the attempt and joins the back; a deferral counts for itself and goes to the top.
/// let retry = delivered.next_attempt();
/// assert_eq!((retry.attempt(), retry.deferrals(), retry.priority()), (2, 0, 0));
/// let deferral = delivered.deferred(Some(10));
/// assert_eq!((deferral.attempt(), deferral.deferrals(), deferral.priority()), (1, 1, 10));
/// assert_eq!(deferral.job_id(), job.job_id());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct Envelope {
    job_id: JobId,
    job_type: JobType,
    queue: Text,
    attempt: u32,
    enqueued_at: UnixMillis,
    deferrals: u32,
    priority: u8,
    correlation_id: Option<Text>,
    payload: RawPayload,
    /// Fields that this version does not know, as they were written: from the quote before the name to the end of
    /// the value.
    unknown: Vec<Bytes>,
}

impl Envelope {
    /// The first attempt of a new job, with priority 0.
    #[must_use]
    pub const fn new(
        job_id: JobId,
        job_type: JobType,
        queue: ShortString,
        enqueued_at: UnixMillis,
        payload: RawPayload,
    ) -> Self {
        Self {
            job_id,
            job_type,
            queue: Text::Short(queue),
            attempt: 1,
            enqueued_at,
            deferrals: 0,
            priority: 0,
            correlation_id: None,
            payload,
            unknown: Vec::new(),
        }
    }

    /// The same job with a correlation id, which every later copy keeps.
    #[must_use]
    pub fn with_correlation_id(self, correlation_id: ShortString) -> Self {
        Self { correlation_id: Some(correlation_id.into()), ..self }
    }

    /// The same job at another priority. It lasts until the job is next scheduled some other way.
    #[must_use]
    pub fn with_priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// Reads the body of a message in one pass. Nothing of it is copied but short texts and those written with
    /// escapes: the payload, longer texts and unknown fields are slices of `body` and keep it in memory.
    ///
    /// Two allocations at most, where there are neither escapes nor unknown fields: one that shares a `body` which was
    /// made from a vector, and one for a job type above 22 bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] says which field is wrong and where.
    pub fn decode(body: &Bytes, limits: &Limits) -> Result<Self, DecodeError> {
        decode::decode(body, limits)
    }

    /// The body of a message, written in one allocation: the fields in the order of the table above, then the unknown
    /// ones. Payload and unknown fields are written as they were read, blanks and escapes included.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        encode::encode(self)
    }

    /// The copy for the next attempt: attempt + 1 (saturating), priority 0, so that it joins the back.
    #[must_use]
    pub fn next_attempt(&self) -> Self {
        Self { attempt: self.attempt.saturating_add(1), priority: 0, ..self.clone() }
    }

    /// The copy for a deferral: deferrals + 1 (saturating) and the top priority of its queue, where it has
    /// priorities. The attempt stays: nothing has failed.
    #[must_use]
    pub fn deferred(&self, top_priority: Option<u8>) -> Self {
        Self {
            deferrals: self.deferrals.saturating_add(1),
            priority: top_priority.unwrap_or(0),
            ..self.clone()
        }
    }

    /// The id, the same in every copy of the job: what to recognise a second run by.
    #[must_use]
    pub const fn job_id(&self) -> JobId {
        self.job_id
    }

    /// What kind of job it is.
    #[must_use]
    pub const fn job_type(&self) -> &JobType {
        &self.job_type
    }

    /// The queue that the producer named. It decides nothing: the queue that a delivery came from does.
    #[must_use]
    pub fn queue(&self) -> &str {
        self.queue.as_str()
    }

    /// Which run this is, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When the job was first enqueued, by the producer's clock. It may lie in the future.
    #[must_use]
    pub const fn enqueued_at(&self) -> UnixMillis {
        self.enqueued_at
    }

    /// How often the job was deferred.
    #[must_use]
    pub const fn deferrals(&self) -> u32 {
        self.deferrals
    }

    /// The priority at which this copy was published.
    #[must_use]
    pub const fn priority(&self) -> u8 {
        self.priority
    }

    /// The application's correlation id.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.correlation_id.as_ref().map(Text::as_str)
    }

    /// The job itself.
    #[must_use]
    pub const fn payload(&self) -> &RawPayload {
        &self.payload
    }
}

impl fmt::Debug for Envelope {
    // The payload and what is unknown may hold anything: only their sizes are printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope")
            .field("job_id", &format_args!("{}", self.job_id))
            .field("job_type", &self.job_type)
            .field("queue", &self.queue)
            .field("attempt", &self.attempt)
            .field("enqueued_at", &self.enqueued_at)
            .field("deferrals", &self.deferrals)
            .field("priority", &self.priority)
            .field("correlation_id", &self.correlation_id)
            .field("payload", &self.payload)
            .field("unknown_fields", &self.unknown.len())
            .finish()
    }
}
