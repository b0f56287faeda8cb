//! Bytes: frames, methods, properties and the buffer that carries them out.
//!
//! The only place that names `amq_protocol`. Frames are split by hand, so that sizes are checked before
//! anything is buffered. What is sent or received once per message is encoded and decoded by hand as well:
//! amq-protocol allocates a `String` for every text and for the *name* of every flag. So are the server's
//! methods, because amq-protocol refuses a whole frame for one text that is not UTF-8, and such texts reach
//! consumers. The tests hold each hand-written path against amq-protocol.

mod depth;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod differential;
pub(crate) mod frame;
pub(crate) mod method;
pub(crate) mod properties;
mod put;
mod reader;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(not(test), expect(dead_code, reason = "tests say more than the fuzz targets do"))]
pub(crate) mod script;
mod send_buf;
#[cfg(feature = "fuzzing")]
pub mod side_by_side;
pub(crate) mod table;
#[cfg(test)]
mod testing;

pub use frame::ProtocolVersion;
pub use method::{CloseReason, ConsumeOptions, DeleteIf};
pub use properties::{MARK_HEADER, PropertiesError};
pub(crate) use reader::lossy;
pub use send_buf::SendBuf;

/// How deep tables and arrays may be nested, the outermost table counted as 1.
///
/// Real headers nest three or four deep (`x-death` is an array of tables). A parser that recurses overflows its
/// stack somewhere above a thousand, and RabbitMQ relays such a message to every consumer that asks.
pub const MAX_TABLE_DEPTH: usize = 32;

/// From this size on a body is passed along as a slice of the block it came in, below it is copied: a small
/// slice would keep a whole block alive, and costs more to track than to copy. One page.
pub(crate) const SHARE_THRESHOLD: usize = 4096;
