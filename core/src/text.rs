//! The short strings of AMQP: at most 255 **bytes** of UTF-8.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The longest short string, in bytes (AMQP 0-9-1, 4.2.5.3: the length is one octet).
pub const SHORT_STRING_MAX: usize = 255;

/// The longest text that a [`ShortString`] holds without an allocation, in bytes: what fits beside the length in
/// the three words that the other forms take.
pub(crate) const INLINE_MAX: usize = 22;

/// A `shortstr`: at most 255 bytes of UTF-8. Up to 22 bytes are kept in place; a longer text is allocated once, and
/// cloning it costs a reference count.
///
/// It compares, orders, hashes and prints as the text it holds.
#[derive(Clone)]
pub struct ShortString(Text);

#[derive(Clone)]
enum Text {
    Static(&'static str),
    /// UTF-8 in the first `len` bytes.
    Inline {
        len: u8,
        bytes: [u8; INLINE_MAX],
    },
    Shared(Arc<str>),
}

impl Text {
    fn copied(text: &str) -> Self {
        let mut bytes = [0; INLINE_MAX];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(room), Ok(len)) => {
                room.copy_from_slice(text.as_bytes());
                Self::Inline { len, bytes }
            }
            _ => Self::Shared(text.into()),
        }
    }
}

impl ShortString {
    /// The empty string, which names the default exchange.
    pub const EMPTY: Self = Self(Text::Static(""));

    /// Checks the length and keeps a copy.
    ///
    /// # Errors
    ///
    /// [`TextTooLong`] above 255 bytes.
    pub fn new(text: impl AsRef<str>) -> Result<Self, TextTooLong> {
        let text = text.as_ref();
        if text.len() > SHORT_STRING_MAX {
            return Err(TextTooLong { bytes: text.len() });
        }
        Ok(Self(Text::copied(text)))
    }

    /// A string that is known at compile time; allocates nothing.
    ///
    /// # Panics
    ///
    /// Above 255 bytes; in a `const` that is a compile error.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        assert!(text.len() <= SHORT_STRING_MAX, "an AMQP short string has at most 255 bytes");
        Self(Text::Static(text))
    }

    /// As much of `text` as fits, cut at a character boundary.
    #[must_use]
    pub fn truncated(text: &str) -> Self {
        Self(Text::copied(cut(text, SHORT_STRING_MAX)))
    }

    /// Formats a text, in at most one allocation.
    ///
    /// # Errors
    ///
    /// [`TextTooLong`] above 255 bytes.
    ///
    /// ```
    /// # use leveret_core::text::ShortString;
    /// assert_eq!(ShortString::format(format_args!("tag-{}", 7))?, "tag-7");
    /// # Ok::<(), leveret_core::text::TextTooLong>(())
    /// ```
    pub fn format(text: fmt::Arguments<'_>) -> Result<Self, TextTooLong> {
        let mut buffer = Buffer { text: [0; SHORT_STRING_MAX], bytes: 0 };
        // Writing into the buffer does not fail. If a `Display` of the text does, what it wrote counts.
        let _ = fmt::write(&mut buffer, text);
        match buffer.text.get(..buffer.bytes) {
            // Pieces of text, one after the other, are text.
            Some(text) => Ok(Self(Text::copied(&String::from_utf8_lossy(text)))),
            None => Err(TextTooLong { bytes: buffer.bytes }),
        }
    }

    /// The text. A short one is checked to be UTF-8 at every call; [`as_bytes`](Self::as_bytes) is free.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "what is kept in place was copied from a text")]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Static(text) => text,
            Text::Inline { .. } => std::str::from_utf8(self.as_bytes()).expect("copied from a text, whole"),
            Text::Shared(text) => text,
        }
    }

    /// The bytes of the text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Static(text) => text.as_bytes(),
            Text::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Text::Shared(text) => text.as_bytes(),
        }
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }
}

/// As much of a text as `most` bytes hold, cut at a character.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// As much of a text as fits, and how long all of it is.
struct Buffer {
    text: [u8; SHORT_STRING_MAX],
    bytes: usize,
}

impl fmt::Write for Buffer {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let end = self.bytes.saturating_add(piece.len());
        if let Some(place) = self.text.get_mut(self.bytes..end) {
            place.copy_from_slice(piece.as_bytes());
        }
        self.bytes = end;
        Ok(())
    }
}

/// A text of more than 255 bytes where AMQP takes a short string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextTooLong {
    /// The length found, in bytes.
    pub bytes: usize,
}

impl fmt::Display for TextTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the text has {} bytes, AMQP allows {SHORT_STRING_MAX} here: shorten it", self.bytes)
    }
}

impl std::error::Error for TextTooLong {}

impl Deref for ShortString {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for ShortString {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for ShortString {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Default for ShortString {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PartialEq for ShortString {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for ShortString {}

impl PartialEq<str> for ShortString {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for ShortString {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialOrd for ShortString {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ShortString {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Bytes order as the texts that they spell.
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl std::hash::Hash for ShortString {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for ShortString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for ShortString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_bytes_and_not_characters() {
        assert!(ShortString::new("a".repeat(255)).is_ok());
        assert_eq!(ShortString::new("a".repeat(256)), Err(TextTooLong { bytes: 256 }));
        assert!(ShortString::new("é".repeat(127) + "a").is_ok());
        assert_eq!(ShortString::new("é".repeat(128)), Err(TextTooLong { bytes: 256 }));
    }

    #[test]
    fn a_cut_text_ends_at_a_character() {
        let cut = ShortString::truncated(&"é".repeat(200));
        assert_eq!(cut.len(), 254);
        assert_eq!(ShortString::truncated("short"), "short");
    }

    #[test]
    fn a_formatted_text_is_the_same_text_or_refused_with_its_whole_length() {
        let format = |bytes: usize| ShortString::format(format_args!("{}{}", "a".repeat(bytes - 2), 'é'));
        assert_eq!(format(5).unwrap(), "aaaé");
        assert_eq!(format(255).unwrap().len(), 255);
        assert_eq!(format(256), Err(TextTooLong { bytes: 256 }));
        assert_eq!(format(1_000), Err(TextTooLong { bytes: 1_000 }));
    }

    #[test]
    fn a_text_is_the_same_key_wherever_it_is_kept() {
        const LONGEST: &str = "123456789 123456789 123456789 123456789 ";
        for end in 0..LONGEST.len() {
            let text = &LONGEST[..end];
            let (fixed, copied) = (ShortString::from_static(text), ShortString::new(text).unwrap());
            assert_eq!((&fixed, fixed.len()), (&copied, end));
            assert_eq!(copied.as_str(), text);
            assert_eq!(std::collections::BTreeSet::from([fixed, copied]).len(), 1);
        }
        assert!(ShortString::new("").unwrap().is_empty());
    }

    #[test]
    fn a_short_text_is_kept_in_place_and_takes_no_more_room_than_a_long_one() {
        assert_eq!(size_of::<Option<ShortString>>(), 24);
        let cut = ShortString::truncated(&"é".repeat(INLINE_MAX / 2));
        assert!(matches!(cut.0, Text::Inline { len: 22, .. }));
        assert_eq!(cut, *"é".repeat(11));
        assert!(matches!(ShortString::new("a".repeat(23)).unwrap().0, Text::Shared(_)));
    }
}
