//! What must exist on the broker, as plain values: names, declarations, descriptions, and what is wrong with them.
//!
//! # Descriptions and plans
//!
//! | a user writes | is parsed by | into |
//! |---|---|---|
//! | [`Queue`]: a queue of jobs | [`Queue::plan`] | [`QueuePlan`] |
//! | [`Subscription`]: any messages, from a [`PlainQueue`], by [`Route`]s from [`Exchange`]s | [`Subscription::plan`] | [`SubscriptionPlan`] |
//! | all of these, and [`Declaration`]s as they are sent | [`Topology::check`] | [`Finding`]s |
//!
//! Setters take anything; a plan cannot be wrong, and answers with its declarations. [`Topology`] puts the
//! declarations of all descriptions into one order and finds what is wrong *between* them before anything is sent:
//! two descriptions of one name, dead letters that come around, a limit that makes a hold lose jobs. RabbitMQ
//! accepts much of that without a word. What it does refuse, because a queue is already there with other arguments,
//! is a 406 that [`Mismatch`] reads.
//!
//! # Names and arguments
//!
//! For a job queue `q`, with the default [`Suffixes`]. They are wire format: services that share a queue must agree
//! on every one of them.
//!
//! | name | what it is | arguments |
//! |---|---|---|
//! | `q` | work queue, classic | `x-queue-type: classic`; `x-max-priority` (10; none for 0); `x-message-ttl` if one is set |
//! | `q` | work queue, quorum | `x-queue-type: quorum`; `x-delivery-limit` (20); dead letters kept: `x-dead-letter-exchange: ""`, `x-dead-letter-routing-key: q.dead`; `x-message-ttl` if one is set |
//! | `q.dead` | dead letters | `x-queue-type` as `q`; on quorum also `x-delivery-limit: 2147483647`, which is never reached. They never expire and are never routed on |
//! | `q.deferred.{ms}` | what waits that long, [`HoldKind::Expiring`](crate::delay::HoldKind) | `x-queue-type: classic`; `x-message-ttl: {ms}`; `x-dead-letter-exchange: ""`, `x-dead-letter-routing-key: q`; `x-expires: 2 * {ms}` |
//! | `q.held.{ms}` | what waits that long, [`HoldKind::Replicated`](crate::delay::HoldKind) | `x-queue-type: quorum`; `x-message-ttl` and dead-lettering as above; `x-dead-letter-strategy: at-least-once`; `x-overflow: reject-publish`; no `x-expires` |
//! | `q.retry` | what waits as long as each message says | `x-queue-type: classic`; `x-dead-letter-exchange: ""`, `x-dead-letter-routing-key: q` |
//! | `q.delay` | exchange of the delayed-message plugin | type `x-delayed-message`; `x-delayed-type: direct`; bound to `q` by `q` |
//!
//! All of them are durable, and none is exclusive or auto-delete. What is behind it:
//!
//! * **The type is always said.** A virtual host may have another default, and an expiring hold that is a quorum queue
//!   loses messages: no declare renews its lease.
//! * **Integers are sent as 64 bits, signed.** RabbitMQ takes all widths for the same number; a narrow one is cut.
//! * **The arguments of a hold follow from its name alone**, so that no two services can lock each other out.
//! * **Holds and `q.retry` have no priorities.** Messages expire from the head only, so they would release nothing
//!   sooner.
//! * **A name has room for what is derived from it**: at most 235 bytes, and none that ends like a hold.
//! * Exchanges, queues and bindings that a [`Subscription`] describes have the arguments that it says, and the type.
//!
//! A queue's dead letters go nowhere, silently, where their target does not exist; and a message that comes back to a
//! queue in which it died is dropped, unless a consumer rejected it on the way. So leveret publishes retries itself,
//! and never builds a circle of dead-letter exchanges.

mod argument_list;
mod arguments;
pub mod binding;
pub mod check;
pub mod declaration;
pub mod delay_plan;
pub mod description;
pub mod exchange;
pub mod family;
mod list;
pub mod mismatch;
pub mod name;
pub mod placement;
pub mod queue;
pub mod subscription;

pub use binding::{Binding, BindingDestination};
pub use check::{Finding, Problem, Severity, ShortLived, Subject};
pub use declaration::{Declaration, QueueDeclaration};
pub use delay_plan::{DelayPlan, DelayedExchangePlan, HoldPlan, WaitingQueuePlan};
pub use description::{DeadLetter, Exchange, Overflow, PlainQueue, QueueType};
pub use exchange::{DelayedRouting, ExchangeDeclaration, ExchangeKind};
pub use family::{FamilyMember, Role, SuffixError, Suffixes};
pub use list::Topology;
pub use mismatch::{Mismatch, MismatchOf};
pub use name::{ConsumerTag, ExchangeName, HeaderKey, NameError, NameKind, QueueName, RoutingKey};
pub use placement::{Placement, Wait};
pub use queue::{DELIVERY_LIMIT, Queue, QueueError, QueuePlan};
pub use subscription::{Delay, Route, Subscription, SubscriptionError, SubscriptionPlan};
