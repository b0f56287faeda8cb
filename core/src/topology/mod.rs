//! What must exist on the broker, as plain values.

pub mod declaration;

pub use declaration::QueueDeclaration;
