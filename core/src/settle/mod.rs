//! How a delivery ends.
//!
//! A handler's [`Outcome`] becomes a [`Decision`]: acknowledge, requeue, reject, drop, or publish a [`Successor`] —
//! the next attempt, the deferred job, the dead letter — and acknowledge the original once the successor is safe.
//! [`decide()`] and [`aside()`] make that decision for jobs, [`decide_plain`] makes it for messages that need not be
//! jobs, [`copied_properties`] says what a successor keeps of its original, [`TakenAside`] is what becomes of a message
//! that nobody can read, and [`SettleLedger`] keeps the order: publish, confirm, acknowledge.
//!
//! # A delivery from end to end
//!
//! A [`session`](crate::session) does all of this. Without one, four values work together: the plan of the queue, the
//! decision, the [`HoldBook`](crate::delay::HoldBook) and the ledger. Here a job fails, and its retry waits in a hold;
//! what goes over the wire is in `sent`.
//!
//! ```
//! use std::time::Duration;
//! use leveret_core::delay::{Confirmed, Lease};
//! use leveret_core::envelope::{Envelope, JobId, JobType, RawPayload};
//! use leveret_core::retry::RetryPolicy;
//! use leveret_core::settle::{
//!     Decision, Outcome, SettleLedger, Settlement, Settling, Step, SuccessorVerdict, Target, Write, decide,
//! };
//! use leveret_core::time::{Instant, UnixMillis};
//! use leveret_core::topology::Queue;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let at = |ms| Instant::from_origin(Duration::from_millis(ms));
//! let plan = Queue::new("shop.emails")?.retry(RetryPolicy::exponential(5).jitter(false)).plan()?;
//! let (mut ledger, mut book, mut sent) = (SettleLedger::new(), plan.holds().book(), Vec::new());
//!
//! // basic.deliver. The job comes from `Envelope::decode`.
//! let delivery = ledger.accept(Settling::Confirmed);
//! let payload = RawPayload::from_serialize("ada@example.org")?;
//! let name = plan.name().as_short().clone();
//! let job = Envelope::new(JobId::from_random(1), JobType::new("email")?, name, UnixMillis(0), payload);
//!
//! // The handler has failed.
//! let outcome = Outcome::Retry { delay: None, error: "smtp is down".to_owned() };
//! let decision = decide(&plan, &job, None, &outcome, 7);
//! assert_eq!(ledger.settle(delivery, Settlement::from(&decision))?, Step::Publish { redeclare: false });
//! let Decision::Publish(mut successor) = decision else { panic!("a retry is published") };
//!
//! // The link has room for the successor: its hold first, where it needs one.
//! let mut hold = None;
//! if let Target::Hold(wanted) = successor.target {
//!     let ttl = book.choose(wanted);
//!     successor.aim_at_hold(plan.holds(), ttl);
//!     if book.before_publish(at(0), ttl) == Lease::Declare {
//!         sent.push(format!("declare {}", plan.holds().declaration(ttl).name));
//!         book.declare_sent(at(0), ttl);
//!     }
//!     hold = Some(ttl);
//! }
//! assert_eq!(ledger.write(delivery), Write::Publish);
//! sent.push(format!("publish {}", successor.message.routing_key));
//! let cover = hold.and_then(|ttl| book.publish_sent(at(0), ttl));
//!
//! // queue.declare-ok, then the confirm.
//! if let Some(ttl) = hold {
//!     book.declare_ok(at(20), ttl);
//! }
//! let verdict = match book.after_confirm(at(21), cover) {
//!     Confirmed::Safe => Some(SuccessorVerdict::Safe),
//!     Confirmed::PublishAgain(larger) => {
//!         successor.aim_at_hold(plan.holds(), larger);
//!         Some(SuccessorVerdict::PublishAgain)
//!     }
//!     Confirmed::Renew(_) | Confirmed::Wait(_) => None,
//! };
//! assert_eq!(verdict.map(|verdict| ledger.verdict(delivery, verdict)), Some(Step::Acknowledge));
//! assert_eq!(sent, ["declare shop.emails.deferred.1000", "publish shop.emails.deferred.1000"]);
//! # Ok(())
//! # }
//! ```
//!
//! What the book says of a confirm becomes a verdict for the ledger:
//!
//! | [`Confirmed`](crate::delay::Confirmed) | do | then tell the ledger |
//! |---|---|---|
//! | `Safe` | nothing | [`Safe`](SuccessorVerdict::Safe) |
//! | `PublishAgain(ttl)` | [aim](Successor::aim_at_hold) the successor at `ttl` | [`PublishAgain`](SuccessorVerdict::PublishAgain) |
//! | `Renew(late)` | declare the hold again, note it with `declare_sent`, keep `late` | nothing yet |
//! | `Wait(late)` | keep `late` | nothing yet |
//!
//! A `late` is judged by [`after_declare_ok`](crate::delay::HoldBook::after_declare_ok) when the next declare of its
//! hold is answered, with the same four answers.
//!
//! * **A return** concerns both. The book learns by [`after_return`](crate::delay::HoldBook::after_return) that the
//!   hold is gone, and says which hold to aim at; the ledger learns of
//!   [`Returned`](SuccessorVerdict::Returned), and says whether to publish again or to pause. The broker confirms a
//!   returned message as well, right after the return: that confirm is not for `after_confirm`.
//! * **A refused declare** too: [`after_refusal`](crate::delay::HoldBook::after_refusal), and
//!   [`Refused`](SuccessorVerdict::Refused) for the successors that were to go there. It closed the channel, so those in
//!   flight to other holds are told as [`PublishAgain`](SuccessorVerdict::PublishAgain).
//! * **`Step::Publish { redeclare: true }`** asks for what lies behind the hold or in place of it, which somebody may
//!   have deleted: the declarations of the plan, that is the work queue and its dead-letter queue. They go first. The
//!   hold itself is never part of it: `before_publish` is asked before every publish into a hold, and says `Declare`
//!   after a return, unless the hold was declared since.
//! * **A lost link** ends the book's knowledge, [`clear`](crate::delay::HoldBook::clear). The ledger hears
//!   [`stale`](SettleLedger::stale) of every delivery that came over it, and
//!   [`LinkLost`](SuccessorVerdict::LinkLost) of every successor that was written to it.

pub mod aside;
pub mod death;
pub mod decide;
pub mod ledger;
pub mod outcome;
pub mod plain;
pub mod retry_count;

pub use crate::message::copied_properties;
pub use aside::TakenAside;
pub use decide::{Decision, Successor, SuccessorKind, Target, aside, dead_letter, decide};
pub use ledger::{
    DeliveryId, Remains, SettleError, SettleLedger, Settlement, Settling, Step, SuccessorVerdict, Write,
};
pub use outcome::Outcome;
pub use plain::{PlainDelivery, decide_plain, give_up};
