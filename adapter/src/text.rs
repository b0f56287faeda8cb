//! Texts of bounded length, whoever wrote them.

use std::fmt::{self, Write};

/// The longest text that is kept of an error or a panic, in bytes: enough to read, and a bound on what a thousand
/// failing jobs hold in memory.
pub(crate) const TEXT_MAX: usize = 4096;

/// Formats at most [`TEXT_MAX`] bytes, cut at a character, and does not even produce the rest.
pub(crate) fn bounded(arguments: fmt::Arguments<'_>) -> String {
    let mut text = Bounded(String::new());
    // The only error is that it is full, or one that a `Display` made up: what was written so far counts.
    let _ = text.write_fmt(arguments);
    text.0
}

struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let mut end = part.len().min(TEXT_MAX - self.0.len());
        while !part.is_char_boundary(end) {
            end -= 1;
        }
        self.0.push_str(&part[..end]);
        if end == part.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(bounded(format_args!("{} {}", "short", 1)), "short 1");
        let long = "é".repeat(TEXT_MAX);
        assert_eq!(bounded(format_args!("a{long}")).len(), TEXT_MAX - 1);
        assert_eq!(bounded(format_args!("{long}b")).len(), TEXT_MAX);
    }

    #[test]
    fn a_text_without_end_is_not_produced() {
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("and so on ")?;
                }
            }
        }
        assert_eq!(bounded(format_args!("{Endless}")).len(), TEXT_MAX);
    }
}
