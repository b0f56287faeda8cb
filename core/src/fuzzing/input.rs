//! Texts out of any bytes, for the targets that build what they test.

use std::borrow::Cow;

/// The input as lines, so that a seed can be read and written by hand.
pub(super) struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next line, without its end; empty when there is none left.
    pub(super) fn next(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == b'\n');
        let (line, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        line
    }

    /// The next line as text; what is not UTF-8 is replaced.
    pub(super) fn text(&mut self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.next())
    }

    /// The next line as a number: its digits, saturating, whatever stands between them.
    pub(super) fn number(&mut self) -> u64 {
        let digits = self.next().iter().filter(|byte| byte.is_ascii_digit());
        digits.fold(0, |number: u64, digit| number.saturating_mul(10).saturating_add((digit - b'0').into()))
    }

    /// What comes after the lines that were taken.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
