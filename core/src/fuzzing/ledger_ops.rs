//! The ledger of settlements under any sequence of outcomes, answers and cuts.

use crate::settle::ledger::model;

/// The first byte says how many successors may be owed at once (0 to 3). After that, two bytes are something that
/// happens: what, and to which or how. Of the first only the lower four bits count, so that a seed can be written with
/// the characters `0` to `?`:
///
/// | byte | what | second byte |
/// |---|---|---|
/// | `0` `1` | a delivery arrives | odd: settled in the ordered form |
/// | `2` | a delivery is settled, one that has ended included | lower two bits: how |
/// | `3` | a delivery is settled with a successor | which |
/// | `4` `5` | a successor is written | which |
/// | `6` `7` `8` | the broker handles a frame | odd: of the consuming link; the bits above: what it answers |
/// | `9` `:` | the client reads an answer | odd: of the consuming link; the bits above: which |
/// | `;` | a pause ends | which |
/// | `<` | a dead letter is decided on | odd: the queue keeps none |
/// | `=` | a successor fails before it is written | odd: it cannot heal |
/// | `>` | the ledger is told something that is not so | what |
/// | `?` | a link is cut, or blocked, or no longer blocked | odd: the consuming link |
///
/// # Panics
///
/// Where a job is lost, a step is out of order, or something is left once everything has healed.
pub fn body(bytes: &[u8]) {
    let Some((max_owed, script)) = bytes.split_first() else { return };
    model::run(usize::from(max_owed % 4), script);
}
