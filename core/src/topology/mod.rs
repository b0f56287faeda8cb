//! What must exist on the broker, as plain values: names, declarations, the description of a job queue.
//!
//! A [`Queue`] is what a user writes. [`Queue::plan`] parses it once into a [`QueuePlan`], which cannot be
//! wrong and answers with the declarations of the work queue, its dead-letter queue and its hold queues. The
//! names and arguments are wire format: services that share a queue must agree on every one of them, or
//! RabbitMQ refuses the second one with 406, which [`Mismatch`] reads.

pub mod binding;
pub mod declaration;
pub mod exchange;
pub mod family;
pub mod mismatch;
pub mod name;
pub mod queue;

pub use binding::{Binding, BindingDestination};
pub use declaration::{Declaration, QueueDeclaration};
pub use exchange::{DelayedRouting, ExchangeDeclaration, ExchangeKind};
pub use family::{FamilyMember, Role, SuffixError, Suffixes};
pub use mismatch::Mismatch;
pub use name::{ConsumerTag, ExchangeName, HeaderKey, NameError, NameKind, QueueName, RoutingKey};
pub use queue::{Queue, QueueError, QueuePlan};
