//! The payload of a job: JSON text that nobody has looked into yet.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::text::ShortString;

/// One JSON value as text. Cloning costs a reference count.
#[derive(Clone, PartialEq, Eq)]
pub struct RawPayload(Bytes);

impl RawPayload {
    /// Writes a value as JSON.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] when its `Serialize` fails, or when it has a map whose keys are no strings.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, PayloadError> {
        match serde_json::to_vec(value) {
            Ok(json) => Ok(Self(json.into())),
            Err(error) => Err(PayloadError::new(&error)),
        }
    }

    /// Checks that `json` is one JSON value. White space around it is left out, as a reader would.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] when it is not.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the payload goes on holding what the caller hands over"
    )]
    pub fn from_json(json: Bytes) -> Result<Self, PayloadError> {
        match serde_json::from_slice::<&RawValue>(&json) {
            Ok(value) => Ok(Self(json.slice_ref(value.get().as_bytes()))),
            Err(error) => Err(PayloadError::new(&error)),
        }
    }

    /// Reads the payload as a `T`, which may borrow from it.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] when the JSON does not describe a `T`.
    pub fn deserialize<'a, T: Deserialize<'a>>(&'a self) -> Result<T, PayloadError> {
        serde_json::from_slice(&self.0).map_err(|error| PayloadError::new(&error))
    }

    /// The JSON text.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Text that is known to be one JSON value.
    pub(super) const fn from_checked(json: Bytes) -> Self {
        Self(json)
    }
}

impl fmt::Debug for RawPayload {
    // A payload may hold secrets: only its length is printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// A payload that could not be written or read. Its text is cut at 255 bytes, as it may quote the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadError {
    message: ShortString,
}

impl PayloadError {
    fn new(error: &serde_json::Error) -> Self {
        Self { message: ShortString::truncated(&error.to_string()) }
    }
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the payload is not the JSON of its type: {}", self.message)
    }
}

impl std::error::Error for PayloadError {}
