//! Short strings: the cut of a long text.

use crate::text::{SHORT_STRING_MAX, ShortString};

/// A cut text is the longest beginning of the text that AMQP takes: never above 255 bytes, never inside of a
/// character, and nothing is cut that fits.
///
/// # Panics
///
/// Where that does not hold.
pub fn body(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let cut = ShortString::truncated(&text);

    assert!(cut.len() <= SHORT_STRING_MAX, "{} bytes are too long", cut.len());
    let rest = text.strip_prefix(cut.as_str());
    assert!(rest.is_some(), "the cut is not how the text begins");
    // What was left out starts with a character that no longer fits.
    if let Some(next) = rest.and_then(|rest| rest.chars().next()) {
        assert!(cut.len() + next.len_utf8() > SHORT_STRING_MAX, "{next:?} would still fit");
    }
    assert_eq!(ShortString::new(&text).is_ok(), text.len() <= SHORT_STRING_MAX, "refused by another rule");
}
