//! The payload of a job: JSON text that nobody has looked into yet.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::payload_error::PayloadError;

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
            Err(error) => Err(PayloadError::of_writing(&error)),
        }
    }

    /// Checks that `json` is one JSON value, and leaves out the blanks around it.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] when it is not.
    pub fn from_json(json: Bytes) -> Result<Self, PayloadError> {
        let value: &RawValue =
            serde_json::from_slice(&json).map_err(|error| PayloadError::of_json(&error))?;
        if value.get().len() < json.len() {
            return Ok(Self(json.slice_ref(value.get().as_bytes())));
        }
        Ok(Self(json))
    }

    /// Reads the payload as a `T`, which may borrow from it.
    ///
    /// # Errors
    ///
    /// [`PayloadError`] when the JSON does not describe a `T`.
    pub fn deserialize<'a, T: Deserialize<'a>>(&'a self) -> Result<T, PayloadError> {
        serde_json::from_slice(&self.0).map_err(|error| PayloadError::of_type(&error))
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
