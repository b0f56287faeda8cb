//! A text of an envelope: kept where it was read.

use bytes::Bytes;

use crate::text::{INLINE_MAX, ShortString};

/// A text of any length. It allocates nothing when it is read: a short one is copied into place, a long one is a
/// slice of the body, which the payload keeps in memory anyway.
#[derive(Clone)]
pub(super) enum Text {
    Short(ShortString),
    /// UTF-8.
    Slice(Bytes),
}

impl Text {
    /// `text` is a part of `body`.
    pub(super) fn of(body: &Bytes, text: &str) -> Self {
        if text.len() > INLINE_MAX {
            return Self::Slice(body.slice_ref(text.as_bytes()));
        }
        Self::Short(ShortString::truncated(text))
    }

    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Short(text) => text,
            Self::Slice(bytes) => std::str::from_utf8(bytes).expect("sliced from a text, whole"),
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(text) => text.as_bytes(),
            Self::Slice(bytes) => bytes,
        }
    }

    /// The same text where AMQP takes at most 255 bytes; `None` when it is longer.
    pub(super) fn to_short(&self) -> Option<ShortString> {
        match self {
            Self::Short(text) => Some(text.clone()),
            Self::Slice(_) => ShortString::new(self.as_str()).ok(),
        }
    }
}

impl From<ShortString> for Text {
    fn from(text: ShortString) -> Self {
        Self::Short(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Slice(text.into())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self.as_str(), f)
    }
}
