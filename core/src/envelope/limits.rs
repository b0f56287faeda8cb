//! What a body may cost.

use bytes::Bytes;

use super::error::DecodeError;

/// What a body may cost. Reading takes time in proportion to the body, whatever it holds.
///
/// A decoded envelope keeps its body in memory, and takes beside it: one allocation of 24 bytes that shares the body,
/// the job type where it has more than 22 bytes, 128 bytes where there are unknown fields and 64 bytes for each of
/// them, and a copy of each known text that is written with escapes.
///
/// ```
/// # use leveret_core::envelope::Limits;
/// let mut limits = Limits::default();
/// limits.max_bytes = 64 * 1024;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest body, in bytes. Default 16 MiB, as RabbitMQ 4.
    pub max_bytes: usize,
    /// How deep arrays and objects may nest, the envelope counted. Default 127, and more counts as 127: the most
    /// that `serde_json` reads, and with it every service that shares a queue. It leaves the payload 126 levels.
    pub max_nesting: usize,
    /// How many fields may be unknown. Default 64.
    pub max_unknown_fields: usize,
    /// The longest name of an unknown field, in bytes as it is written. Default 255. Its value is limited by
    /// `max_bytes` alone.
    pub max_name_bytes: usize,
    /// The longest `job_type`, in bytes. Default 255, and more counts as 255: it is the property `type` of every
    /// copy (AMQP 0-9-1, 4.2.5.3).
    pub max_job_type_bytes: usize,
    /// The longest `queue`, in bytes. Default 255, the longest name that a queue can have. More can be read, as the
    /// field decides nothing.
    pub max_queue_bytes: usize,
    /// The longest `correlation_id`, in bytes. Default 64 KiB: other writers set no limit, and an application's id
    /// is no reason to refuse its job. One above 255 bytes stays in the body and is left out of the property.
    pub max_correlation_id_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 16 * 1024 * 1024,
            max_nesting: super::scan::NESTING_MAX,
            max_unknown_fields: 64,
            max_name_bytes: 255,
            max_job_type_bytes: 255,
            max_queue_bytes: 255,
            max_correlation_id_bytes: 64 * 1024,
        }
    }
}

/// How much longer a body can become when its attempt, deferrals and priority are counted on, in bytes.
const COUNTERS_GROW: usize = 32;

impl Limits {
    /// Checks a body that is about to be sent: whether it can be read, now and when its counters have grown.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] as [`Envelope::decode`](super::Envelope::decode), and `TooLarge` already 32 bytes below
    /// `max_bytes`.
    pub fn admit(&self, body: &Bytes) -> Result<(), DecodeError> {
        let room = Self { max_bytes: self.max_bytes.saturating_sub(COUNTERS_GROW), ..*self };
        super::decode::decode(body, &room).map(drop)
    }
}
