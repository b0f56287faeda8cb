//! The body of a message that may be a job.

use crate::envelope::{Envelope, Limits, QUOTE_MAX};
use bytes::Bytes;

/// Any bytes decode or are refused. What decodes encodes to something that decodes to the same job, with its payload
/// byte for byte; an error quotes no more than a few bytes of what may be secret.
///
/// # Panics
///
/// Where that does not hold.
pub fn body(bytes: &[u8]) {
    let message = Bytes::copy_from_slice(bytes);
    match Envelope::decode(&message, &Limits::default()) {
        Ok(envelope) => {
            assert!(envelope.attempt() >= 1, "attempts count from 1");
            let copy = envelope.encode();
            let again = Envelope::decode(&copy, &Limits::default());
            assert_eq!(again.as_ref(), Ok(&envelope), "a copy is the same job");
            assert_eq!(envelope.next_attempt().payload().as_bytes(), envelope.payload().as_bytes());
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() < 512 + 4 * QUOTE_MAX, "an error of {} bytes", text.len());
        }
    }
}
