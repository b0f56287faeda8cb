//! Field tables, and the property lists around them.

use crate::wire::differential;

/// The bytes are read as a table, from its length on; as the fields of one, whose length is put before them; and as
/// the headers of a message. No table is read that is nested too deep, whatever it does to a parser that recurses; what
/// is read is what amq-protocol reads, and is written as that writes it.
///
/// # Panics
///
/// Where that does not hold.
pub fn body(bytes: &[u8]) {
    differential::check_table(bytes);
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
    let fields = [&length[..], bytes].concat();
    differential::check_table(&fields);
    let headers_only = [0x20, 0];
    differential::check_properties(&[&headers_only[..], &fields].concat());
    differential::check_properties(bytes);
}
