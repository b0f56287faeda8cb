//! How deep a table is nested, found without recursion.
//!
//! amq-protocol's parser calls itself for every level. A header of 30 KB holds 6,000 levels, RabbitMQ relays it,
//! and the stack of a consumer that parses it overflows, which aborts the process. So every table is walked here
//! first, with a stack of fixed size.

use super::MAX_TABLE_DEPTH;
use super::reader::Reader;

/// Why a table is not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableFault {
    /// More than [`MAX_TABLE_DEPTH`] levels.
    TooDeep,
    /// Lengths that do not fit into each other, or a type letter that RabbitMQ does not know.
    Malformed,
}

/// Walks the table at the front of `bytes` (AMQP 0-9-1, 4.2.5.5) from its length on.
pub(super) fn check_table(bytes: &[u8]) -> Result<(), TableFault> {
    let mut reader = Reader::new(bytes);
    let mut levels = Levels::default();
    levels.enter(&mut reader, true)?;
    while let Some(level) = levels.leave_finished(&reader) {
        if level.keyed {
            reader.short_bytes().ok_or(TableFault::Malformed)?;
        }
        match reader.u8().ok_or(TableFault::Malformed)? {
            b'F' => levels.enter(&mut reader, true)?,
            b'A' => levels.enter(&mut reader, false)?,
            letter => skip_value(&mut reader, letter).ok_or(TableFault::Malformed)?,
        }
        // A value that reaches beyond the table or array around it.
        if reader.rest().len() < level.rest_after {
            return Err(TableFault::Malformed);
        }
    }
    Ok(())
}

fn skip_value(reader: &mut Reader<'_>, letter: u8) -> Option<()> {
    let bytes = match letter {
        b'V' => 0,
        b't' | b'b' | b'B' => 1,
        b's' | b'U' | b'u' => 2,
        b'I' | b'i' | b'f' => 4,
        b'D' => 5,
        b'l' | b'L' | b'd' | b'T' => 8,
        b'S' | b'x' => return reader.long_bytes().map(drop),
        _ => return None,
    };
    reader.bytes(bytes).map(drop)
}

/// A table or an array that is being walked.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Whether its values have names.
    keyed: bool,
    /// How many bytes are left to read when it ends.
    rest_after: usize,
}

#[derive(Default)]
struct Levels {
    open: [Level; MAX_TABLE_DEPTH],
    depth: usize,
}

impl Levels {
    fn enter(&mut self, reader: &mut Reader<'_>, keyed: bool) -> Result<(), TableFault> {
        let length = reader.u32().ok_or(TableFault::Malformed)?;
        let rest_after = usize::try_from(length)
            .ok()
            .and_then(|length| reader.rest().len().checked_sub(length))
            .ok_or(TableFault::Malformed)?;
        let outer = self.depth.checked_sub(1).map(|depth| self.open[depth]);
        if outer.is_some_and(|outer| rest_after < outer.rest_after) {
            return Err(TableFault::Malformed);
        }
        let level = self.open.get_mut(self.depth).ok_or(TableFault::TooDeep)?;
        *level = Level { keyed, rest_after };
        self.depth += 1;
        Ok(())
    }

    /// Leaves what has been read to its end; the innermost of what is left.
    fn leave_finished(&mut self, reader: &Reader<'_>) -> Option<Level> {
        while let Some(depth) = self.depth.checked_sub(1) {
            if reader.rest().len() > self.open[depth].rest_after {
                return Some(self.open[depth]);
            }
            self.depth = depth;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut, BytesMut};

    use super::*;

    /// A table with `levels` tables inside each other, the outermost included.
    fn nested(levels: usize) -> BytesMut {
        let mut table = BytesMut::from(&[0, 0, 0, 0][..]);
        for _ in 1..levels {
            let mut outer = BytesMut::new();
            outer.put_u32(u32::try_from(table.len() + 3).unwrap());
            outer.put_slice(b"\x01aF");
            outer.put_slice(&table);
            table = outer;
        }
        table
    }

    #[test]
    fn the_cap_is_exact() {
        assert_eq!(check_table(&nested(MAX_TABLE_DEPTH)), Ok(()));
        assert_eq!(check_table(&nested(MAX_TABLE_DEPTH + 1)), Err(TableFault::TooDeep));
        assert_eq!(check_table(&nested(6_000)), Err(TableFault::TooDeep));
    }

    #[test]
    fn arrays_count_as_well() {
        let mut array = BytesMut::from(&b"\0\0\0\0"[..]);
        for _ in 1..MAX_TABLE_DEPTH {
            let mut outer = BytesMut::new();
            outer.put_u32(u32::try_from(array.len() + 1).unwrap());
            outer.put_u8(b'A');
            outer.put_slice(&array);
            array = outer;
        }
        let mut table = BytesMut::new();
        table.put_u32(u32::try_from(array.len() + 3).unwrap());
        table.put_slice(b"\x01aA");
        table.put_slice(&array);
        assert_eq!(check_table(&table), Err(TableFault::TooDeep));
    }

    #[test]
    fn siblings_do_not_count() {
        let mut fields = BytesMut::new();
        for _ in 0..1_000 {
            fields.put_slice(b"\x01aF\0\0\0\0");
        }
        let mut table = BytesMut::new();
        table.put_u32(u32::try_from(fields.len()).unwrap());
        table.put_slice(&fields);
        assert_eq!(check_table(&table), Ok(()));
    }

    #[test]
    fn lengths_that_do_not_fit_are_malformed() {
        for bytes in [
            &b""[..],
            b"\0\0\0",
            b"\0\0\0\x01",
            b"\xff\xff\xff\xff\x01at\x01",
            // The long string is longer than the table, though the bytes are there.
            b"\0\0\0\x08\x01aS\0\0\0\x02xxxxxx",
            // An inner table that is longer than the outer one.
            b"\0\0\0\x07\x01aF\0\0\0\x04\x01at\x01",
            // A key that is longer than the table.
            b"\0\0\0\x02\x05aaaaat\x01",
            // An unknown letter.
            b"\0\0\0\x04\x01aZ\0",
        ] {
            assert_eq!(check_table(bytes), Err(TableFault::Malformed), "{bytes:?}");
        }
    }
}
