//! Reading JSON text without building anything: where a value ends, and whether it is JSON at all.
//!
//! It accepts exactly the texts that `serde_json` accepts, up to [`NESTING_MAX`] levels, and reads every byte a
//! fixed number of times. Through `serde_json` the same takes two passes, one of them for the nesting, which it does
//! not limit where it skips a value: an envelope of 256 bytes then costs twice the instructions, and is hardly cheaper
//! than one that becomes a tree. The benchmark `envelope` shows both sides.

use std::ops::Range;

use super::error::DecodeError;

/// The deepest nesting that is read, the envelope counted: the most that `serde_json` reads, with which other services
/// read the whole envelope at once.
pub(super) const NESTING_MAX: usize = 127;

/// What is wrong, boxed: so the answer to a text that is right fits into registers.
pub(super) type Fault = Box<DecodeError>;

/// A place in a JSON text.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Whether a string of the current name or value is written with escapes.
    escaped: bool,
    max_nesting: usize,
    depth: usize,
    /// One bit for every open array (0) or object (1), the innermost lowest.
    objects: u128,
}

/// Where a value is, or the name of a member: in bytes from the start of the body.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Where it starts; a string with its quote.
    pub start: usize,
    /// Where it ends: behind its last byte.
    pub end: usize,
    /// Whether a string in it is written with escapes.
    pub escaped: bool,
}

impl Span {
    /// All of it.
    pub(super) const fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// A string without its quotes.
    pub(super) const fn inside(self) -> Range<usize> {
        self.start + 1..self.end - 1
    }
}

impl<'a> Scanner<'a> {
    /// Starts at the first byte that is not blank.
    pub(super) fn new(body: &'a [u8], max_nesting: usize) -> Result<Self, Fault> {
        let text = std::str::from_utf8(body).map_err(|error| {
            let at = error.valid_up_to();
            DecodeError::NotJson { at, wanted: "UTF-8", found: body.get(at).copied() }
        })?;
        let mut scanner = Self {
            text,
            at: 0,
            escaped: false,
            max_nesting: max_nesting.min(NESTING_MAX),
            depth: 0,
            objects: 0,
        };
        scanner.skip_blank();
        Ok(scanner)
    }

    /// The whole body.
    pub(super) const fn text(&self) -> &'a str {
        self.text
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Enters the object that starts here. `false` when it is empty, and then it is behind.
    pub(super) fn enter_object(&mut self) -> Result<bool, Fault> {
        self.open(true)?;
        Ok(!self.close(b'}'))
    }

    /// Steps from behind a member to the next. `false` at the end of the object, and then it is behind.
    #[inline]
    pub(super) fn next_member(&mut self) -> Result<bool, Fault> {
        self.skip_blank();
        if self.close(b'}') {
            return Ok(false);
        }
        self.take(b',', "a comma or a closing brace")?;
        self.skip_blank();
        Ok(true)
    }

    /// The name of a member, and the colon behind it.
    #[inline]
    pub(super) fn name(&mut self) -> Result<Span, Fault> {
        let start = self.start();
        self.name_string()?;
        let name = self.since(start);
        self.colon()?;
        Ok(name)
    }

    /// The value that starts here, of any kind.
    #[inline]
    pub(super) fn value(&mut self) -> Result<Span, Fault> {
        let start = self.start();
        match self.peek() {
            Some(b'{' | b'[') => self.nested()?,
            _ => self.scalar()?,
        }
        Ok(self.since(start))
    }

    /// Goes behind the array or object that starts here.
    #[inline(never)]
    fn nested(&mut self) -> Result<(), Fault> {
        let outside = self.depth;
        loop {
            match self.peek() {
                Some(b'{') => {
                    if self.enter_object()? {
                        self.name_string()?;
                        self.colon()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.open(false)?;
                    if !self.close(b']') {
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // Behind a value: out of everything that ends here, then to the next value.
            loop {
                if self.depth == outside {
                    return Ok(());
                }
                if self.objects & 1 == 1 {
                    if self.next_member()? {
                        self.name_string()?;
                        self.colon()?;
                        break;
                    }
                } else if self.next_element()? {
                    break;
                }
            }
        }
    }

    /// Goes behind the value that starts here and is neither array nor object.
    #[inline(always)]
    fn scalar(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(self.wanted("a value")),
        }
    }

    /// Checks that nothing but blanks is left.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.skip_blank();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wanted("the end")),
        }
    }

    #[inline]
    fn name_string(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'"') => self.string(),
            _ => Err(self.wanted("the name of a field in quotes")),
        }
    }

    #[inline]
    fn colon(&mut self) -> Result<(), Fault> {
        self.skip_blank();
        self.take(b':', "a colon")?;
        self.skip_blank();
        Ok(())
    }

    fn next_element(&mut self) -> Result<bool, Fault> {
        self.skip_blank();
        if self.close(b']') {
            return Ok(false);
        }
        self.take(b',', "a comma or a closing bracket")?;
        self.skip_blank();
        Ok(true)
    }

    fn open(&mut self, object: bool) -> Result<(), Fault> {
        if self.depth == self.max_nesting {
            return Err(DecodeError::TooDeep { at: self.at, limit: self.max_nesting }.into());
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(object);
        self.at += 1;
        self.skip_blank();
        Ok(())
    }

    #[inline]
    fn close(&mut self, bracket: u8) -> bool {
        if self.peek() != Some(bracket) {
            return false;
        }
        self.depth -= 1;
        self.objects >>= 1;
        self.at += 1;
        true
    }

    /// Goes behind the string that starts here.
    #[inline]
    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        self.skip_plain();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(());
        }
        self.string_with_escapes()
    }

    /// Apart from [`string`](Self::string), which so stays short enough to be inlined.
    #[inline(never)]
    fn string_with_escapes(&mut self) -> Result<(), Fault> {
        self.escaped = true;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                _ => {
                    return Err(
                        self.wanted("a closing quote before the end and before any control character")
                    );
                }
            }
            self.skip_plain();
        }
    }

    #[inline]
    fn skip_plain(&mut self) {
        self.at = plain_end(self.text.as_bytes(), self.at);
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.wanted("four hexadecimal digits"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.wanted("one of \"\\/bfnrtu behind a backslash")),
        }
        Ok(())
    }

    /// Goes behind the number that starts here (RFC 8259, 6).
    #[inline]
    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(self.wanted("no digit behind a leading zero"));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    #[inline]
    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.wanted("a digit")) } else { Ok(()) }
    }

    fn word(&mut self, word: &'static str) -> Result<(), Fault> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return Err(self.wanted(word));
            }
            self.at += 1;
        }
        Ok(())
    }

    #[inline]
    fn skip_blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn take(&mut self, byte: u8, wanted: &'static str) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err(self.wanted(wanted));
        }
        self.at += 1;
        Ok(())
    }

    /// Where the name or value that is read next starts.
    const fn start(&mut self) -> usize {
        self.escaped = false;
        self.at
    }

    /// The name or value that started there and ends here.
    const fn since(&self, start: usize) -> Span {
        Span { start, end: self.at, escaped: self.escaped }
    }

    #[cold]
    fn wanted(&self, wanted: &'static str) -> Fault {
        DecodeError::NotJson { at: self.at, wanted, found: self.peek() }.into()
    }
}

/// Where the first byte is, from `at` on, that a JSON string does not take as it is (RFC 8259, 7): a quote, a backslash,
/// a control character.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    let (words, _) = bytes.get(at..).unwrap_or_default().as_chunks();
    for word in words {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, 0..0x20 | b'"' | b'\\')) {
        at += 1;
    }
    at
}

/// Eight bytes at once: the highest bit of the lowest byte that is special, and none where none is. Above that byte
/// a borrow may set bits that mean nothing.
const fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    // Changing this bit takes a quote below 0x21, keeps every control character there, and takes a space away.
    let quote_or_control = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (quote_or_control | backslash) & !word & (ONES << 7)
}
