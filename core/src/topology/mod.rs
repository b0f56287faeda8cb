//! What must exist on the broker, as plain values: names, declarations, the description of a job queue.
//!
//! A [`Queue`] is what a user writes. [`Queue::plan`] parses it once into a [`QueuePlan`], which cannot be
//! wrong and answers with the declarations of the work queue, its dead-letter queue and its hold queues. The
//! names and arguments are wire format: services that share a queue must agree on every one of them, or
//! RabbitMQ refuses the second one with 406, which [`Mismatch`] reads.

mod arguments;
pub mod binding;
pub mod declaration;
pub mod delay_plan;
pub mod exchange;
pub mod family;
pub mod mismatch;
pub mod name;
pub mod placement;
pub mod queue;

pub use binding::{Binding, BindingDestination};
pub use declaration::{Declaration, QueueDeclaration};
pub use delay_plan::{DelayPlan, DelayedExchangePlan, HoldPlan, WaitingQueuePlan};
pub use exchange::{DelayedRouting, ExchangeDeclaration, ExchangeKind};
pub use family::{FamilyMember, Role, SuffixError, Suffixes};
pub use mismatch::{Mismatch, MismatchOf};
pub use name::{ConsumerTag, ExchangeName, HeaderKey, NameError, NameKind, QueueName, RoutingKey};
pub use placement::{Placement, Wait};
pub use queue::{DELIVERY_LIMIT, Queue, QueueError, QueuePlan};
