//! Which job, and what kind of job.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::{Builder, Uuid};

use crate::text::{SHORT_STRING_MAX, ShortString};

/// The id of a job: a UUID, the same in every copy of it. It prints hyphenated and in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Uuid);

impl JobId {
    /// A version 4 UUID (RFC 9562, 5.4) from random bits. Six of them give way to version and variant.
    #[must_use]
    pub const fn from_random(bits: u128) -> Self {
        Self(Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
    }

    /// The bits of the UUID, most significant first.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0.as_u128()
    }

    /// The id as [`Display`](fmt::Display) prints it, in `buffer`.
    pub(super) fn encode(self, buffer: &mut [u8; 36]) -> &str {
        self.0.as_hyphenated().encode_lower(buffer)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0.as_hyphenated(), f)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for JobId {
    type Err = JobIdError;

    /// Reads a UUID of any version, with or without hyphens.
    fn from_str(text: &str) -> Result<Self, JobIdError> {
        Uuid::try_parse(text).map(Self).map_err(|_| JobIdError)
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that is no [`JobId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobIdError;

impl fmt::Display for JobIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a UUID: write 32 hexadecimal digits, as in 67e55044-10b1-426f-9247-bb680e5fe0c8")
    }
}

impl std::error::Error for JobIdError {}

/// What kind of job it is: 1 to 255 bytes of UTF-8 without a zero byte, so that it fits the property `type`
/// (AMQP 0-9-1, 4.2.5.3). Cloning costs at most a reference count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobType(ShortString);

impl JobType {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`JobTypeError`] when it is empty, too long, or holds a zero byte.
    pub fn new(name: impl AsRef<str>) -> Result<Self, JobTypeError> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(JobTypeError::Empty);
        }
        if name.contains('\0') {
            return Err(JobTypeError::ZeroByte);
        }
        ShortString::new(name).map(Self).map_err(|error| JobTypeError::TooLong { bytes: error.bytes })
    }

    /// A name that is known at compile time; allocates nothing.
    ///
    /// # Panics
    ///
    /// Where [`JobType::new`] would be an error; in a `const` that is a compile error.
    #[must_use]
    pub const fn from_static(name: &'static str) -> Self {
        assert!(!name.is_empty(), "the name of a job type has at least one character");
        let mut at = 0;
        while at < name.len() {
            assert!(name.as_bytes()[at] != 0, "the name of a job type holds no zero byte");
            at += 1;
        }
        Self(ShortString::from_static(name))
    }

    /// The name as the wire takes it.
    #[must_use]
    pub const fn as_short(&self) -> &ShortString {
        &self.0
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for JobType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::borrow::Borrow<str> for JobType {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

/// Why a text is no [`JobType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobTypeError {
    /// The text is empty.
    Empty,
    /// The text does not fit a short string.
    TooLong {
        /// The length found, in bytes.
        bytes: usize,
    },
    /// The text holds a zero byte.
    ZeroByte,
}

impl fmt::Display for JobTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the name of the job type is empty: give it at least one character"),
            Self::TooLong { bytes } => write!(
                f,
                "the name of the job type has {bytes} bytes, AMQP allows {SHORT_STRING_MAX}: shorten it"
            ),
            Self::ZeroByte => {
                f.write_str("the name of the job type holds a zero byte, which AMQP forbids: leave it out")
            }
        }
    }
}

impl std::error::Error for JobTypeError {}
