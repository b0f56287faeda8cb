//! Publish, confirm, acknowledge: the order that loses nothing.
//!
//! The ledger holds one entry for every delivery in hand, and is told what happens to it. Each answer is the one next
//! [`Step`]. It holds no messages: whoever carries the steps out keeps the successor of a delivery until the step
//! that ends the delivery.
//!
//! # Confirmed
//!
//! A delivery that has a successor is acknowledged only after [`SuccessorVerdict::Safe`] of that successor. Whatever
//! else happens, the delivery stays with the broker, which delivers it again.
//!
//! ```text
//!  accept                              link lost, publish again,
//!    |                                  first refusal: Publish
//!    v       settle         write       +------------------+
//! Running --------------> Queued ----> Written ------------+
//!  |  |  |   Publish        ^             | |  |
//!  |  |  |                  |  cannot heal| |  | second refusal, or a dead letter that cannot heal: Pause
//!  |  |  |       dead_letter|             | |  +-----> Pausing --pause_over--> Requeue, end
//!  |  |  |          Publish | DeadLetter  | |
//!  |  |  |               Replacing <------+ +- safe -> Acknowledge, end
//!  |  |  |                   +- nothing kept -------> Reject, end
//!  |  |  +- settle, without a successor -> Acknowledge, Reject or Requeue, end
//!  |  +- stale -> Stale -- settle -> SettleError::Stale, end
//!  |
//!  (stale in any later state ends the delivery: nothing more is sent for it)
//! ```
//!
//! A refusal is any of [`Returned`](SuccessorVerdict::Returned), [`Nacked`](SuccessorVerdict::Nacked),
//! [`Refused`](SuccessorVerdict::Refused) and [`ChannelClosed`](SuccessorVerdict::ChannelClosed). A successor that was
//! written is waited for until its verdict, and never timed out into a second run. That a target refuses, or that the
//! successor cannot heal, may be known while it is still queued, and is answered as if it had been written.
//!
//! # Ordered
//!
//! The successor is written and its delivery acknowledged right behind it ([`Write::PublishThenAcknowledge`]), on one
//! channel, which the broker handles in order. From then on the original is gone and the successor is *owed*: it can
//! no longer be requeued, so it is published until a target takes it.
//!
//! ```text
//!  accept
//!    |
//!    v       settle           write: PublishThenAcknowledge          safe
//! Running ----------> Queued ------------------------------> Owed ---------> Release, end
//!            Publish    +- stale: end
//!
//! Owed ---+-- link lost, publish again, first refusal ---------------------> Publish
//!         |
//!         +-- refused again: Pause -----> Pausing ---- pause_over ---------> Publish
//!         |
//!         +-- cannot heal: DeadLetter --> Replacing -+- dead_letter -------> Publish
//!         |                                          +- nothing kept ------> ReportLost, end
//!         +-- a dead letter that cannot heal ------------------------------> ReportLost, end
//!
//!  (after each Publish: write, and it is owed as before)
//!  (stale while owed changes nothing: the broker may deliver the original again, and the successor is owed as well)
//! ```
//!
//! How many successors may be owed at once is bounded. At the bound, and for a successor that was refused before,
//! a delivery is settled in the confirmed order.

mod slots;
mod words;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod model;

#[cfg(test)]
mod tests;

pub use slots::DeliveryId;
use slots::Slots;
pub use words::{Remains, SettleError, Settlement, Settling, Step, SuccessorVerdict, Write};

/// How many successors are owed at once unless [`SettleLedger::with_max_owed`] says otherwise.
pub const DEFAULT_MAX_OWED: usize = 1_000;

/// The deliveries in hand, and how far each of them is settled.
///
/// Its size is bounded by the prefetches of the consumers, by the handlers that still run for deliveries of links
/// that have ended, and by the successors that are owed. It takes 24 bytes for each, keeps the room of the largest
/// number that was in hand at once, and allocates nothing as long as that number does not grow.
///
/// ```
/// use leveret_core::settle::{SettleLedger, Settlement, Settling, Step, SuccessorVerdict, Write};
///
/// let mut ledger = SettleLedger::new();
/// let delivery = ledger.accept(Settling::Confirmed);
/// // The handler has failed, and a retry takes the place of the job.
/// assert_eq!(ledger.settle(delivery, Settlement::Publish)?, Step::Publish { redeclare: false });
/// assert_eq!(ledger.write(delivery), Write::Publish);
/// assert_eq!(ledger.verdict(delivery, SuccessorVerdict::Safe), Step::Acknowledge);
/// assert!(ledger.is_empty());
/// # Ok::<(), leveret_core::settle::SettleError>(())
/// ```
///
/// In the ordered form the delivery is acknowledged with the publish, and the successor is owed until its verdict:
///
/// ```
/// # use leveret_core::settle::{SettleLedger, Settlement, Settling, Step, SuccessorVerdict, Write};
/// let mut ledger = SettleLedger::new();
/// let delivery = ledger.accept(Settling::Ordered);
/// assert_eq!(ledger.settle(delivery, Settlement::Publish)?, Step::Publish { redeclare: false });
/// // Both on the channel of the delivery: basic.publish, basic.ack. The message is kept.
/// assert_eq!(ledger.write(delivery), Write::PublishThenAcknowledge);
/// assert_eq!(ledger.owed(), 1);
/// // No queue took it. Nothing can bring the original back, so it is published again, in the confirmed order.
/// let again = ledger.verdict(delivery, SuccessorVerdict::Returned);
/// assert_eq!(again, Step::Publish { redeclare: true });
/// assert_eq!(ledger.write(delivery), Write::Publish);
/// assert_eq!(ledger.verdict(delivery, SuccessorVerdict::Safe), Step::Release);
/// assert_eq!(ledger.owed(), 0);
/// # Ok::<(), leveret_core::settle::SettleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SettleLedger {
    deliveries: Slots,
    /// At most `max_owed`.
    owed: usize,
    max_owed: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The handler runs.
    Running(Settling),
    /// The handler runs, and its delivery is no longer this client's.
    Stale,
    /// The successor waits for its turn on the publishing link.
    Queued(Course),
    /// The successor is on its way.
    Written(Course),
    /// The successor is being replaced by a dead letter.
    Replacing(Course),
    /// The successor was given up for now: its delivery goes back after a pause, or it is published again if owed.
    Pausing(Course),
}

/// What has happened to a successor.
#[derive(Clone, Copy, Debug)]
struct Course {
    settling: Settling,
    /// Whether its delivery was acknowledged already.
    owed: bool,
    /// Whether the target has refused it once.
    refused: bool,
    /// Whether it is the dead letter that replaced another.
    replaced: bool,
}

impl State {
    const fn is_owed(self) -> bool {
        match self {
            Self::Running(_) | Self::Stale => false,
            Self::Queued(course)
            | Self::Written(course)
            | Self::Replacing(course)
            | Self::Pausing(course) => course.owed,
        }
    }
}

impl Default for SettleLedger {
    fn default() -> Self {
        Self::new()
    }
}

impl SettleLedger {
    /// A ledger without deliveries, in which at most [`DEFAULT_MAX_OWED`] successors are owed at once.
    #[must_use]
    pub const fn new() -> Self {
        Self { deliveries: Slots::new(), owed: 0, max_owed: DEFAULT_MAX_OWED }
    }

    /// The same ledger with another bound on how many successors are owed at once. Each keeps its message in memory.
    /// With 0 every delivery is settled in the confirmed order.
    #[must_use]
    pub fn with_max_owed(self, max_owed: usize) -> Self {
        Self { max_owed: max_owed.max(self.owed), ..self }
    }

    /// Takes a delivery in hand, whose handler is going to run.
    pub fn accept(&mut self, settling: Settling) -> DeliveryId {
        self.deliveries.insert(State::Running(settling))
    }

    /// The handler has spoken.
    ///
    /// # Errors
    ///
    /// [`SettleError`] when the delivery was settled before or is stale. Nothing is to be sent then.
    pub fn settle(&mut self, id: DeliveryId, settlement: Settlement) -> Result<Step, SettleError> {
        match self.deliveries.get(id) {
            Some(State::Running(settling)) => Ok(match settlement {
                Settlement::Publish => {
                    self.queue(id, Course { settling, owed: false, refused: false, replaced: false }, false)
                }
                Settlement::Acknowledge => self.end(id, Step::Acknowledge),
                Settlement::Reject => self.end(id, Step::Reject),
                Settlement::Requeue => self.end(id, Step::Requeue),
            }),
            Some(State::Stale) => {
                self.deliveries.remove(id);
                Err(SettleError::Stale)
            }
            Some(_) | None => Err(SettleError::AlreadySettled),
        }
    }

    /// The successor's turn has come: says whether it is still wanted, and what goes with it. To be asked when the
    /// link takes it, so not while the link is blocked or down.
    pub fn write(&mut self, id: DeliveryId) -> Write {
        let Some(State::Queued(course)) = self.deliveries.get(id) else { return Write::Nothing };
        let trusted = course.settling == Settling::Ordered && !course.refused && !course.replaced;
        if trusted && !course.owed && self.owed < self.max_owed {
            self.owed += 1;
            self.deliveries.set(id, State::Written(Course { owed: true, ..course }));
            return Write::PublishThenAcknowledge;
        }
        self.deliveries.set(id, State::Written(course));
        Write::Publish
    }

    /// What became of the successor. One that is for no delivery, or for one that waits for none, is ignored.
    pub fn verdict(&mut self, id: DeliveryId, verdict: SuccessorVerdict) -> Step {
        let (course, written) = match self.deliveries.get(id) {
            Some(State::Written(course)) => (course, true),
            Some(State::Queued(course)) => (course, false),
            _ => return Step::Nothing,
        };
        match verdict {
            SuccessorVerdict::Refused => self.refused(id, course),
            SuccessorVerdict::Unhealable => self.unhealable(id, course),
            // What was not written can have no other verdict: it is one of an earlier copy, come late.
            _ if !written => Step::Nothing,
            SuccessorVerdict::Safe => {
                self.end(id, if course.owed { Step::Release } else { Step::Acknowledge })
            }
            SuccessorVerdict::PublishAgain | SuccessorVerdict::LinkLost => self.queue(id, course, false),
            SuccessorVerdict::Returned | SuccessorVerdict::Nacked | SuccessorVerdict::ChannelClosed => {
                self.refused(id, course)
            }
        }
    }

    /// The answer to [`Step::DeadLetter`]: whether there is a dead letter to publish, or the queue keeps none.
    pub fn dead_letter(&mut self, id: DeliveryId, kept: bool) -> Step {
        match self.deliveries.get(id) {
            Some(State::Replacing(course)) if kept => {
                self.queue(id, Course { refused: false, replaced: true, ..course }, false)
            }
            Some(State::Replacing(course)) => {
                self.end(id, if course.owed { Step::ReportLost } else { Step::Reject })
            }
            _ => Step::Nothing,
        }
    }

    /// The pause that [`Step::Pause`] asked for is over.
    pub fn pause_over(&mut self, id: DeliveryId) -> Step {
        match self.deliveries.get(id) {
            Some(State::Pausing(course)) if course.owed => self.queue(id, course, true),
            Some(State::Pausing(_)) => self.end(id, Step::Requeue),
            _ => Step::Nothing,
        }
    }

    /// The channel or link that the delivery came from has ended: the broker delivers it again, and nothing more may
    /// be sent for it. Says what remains of it, and so what must be kept.
    ///
    /// A successor that [is owed](SettleLedger::is_owed) stays so: whether the broker has seen the acknowledgement is
    /// not known.
    pub fn stale(&mut self, id: DeliveryId) -> Remains {
        match self.deliveries.get(id) {
            Some(State::Running(_)) => {
                self.deliveries.set(id, State::Stale);
                Remains::Handler
            }
            Some(State::Stale) => Remains::Handler,
            Some(state) if state.is_owed() => Remains::Successor,
            Some(_) => {
                self.deliveries.remove(id);
                Remains::Nothing
            }
            None => Remains::Nothing,
        }
    }

    /// Whether the delivery was acknowledged before its successor is known to be safe. The message of the successor
    /// is the only one then.
    #[must_use]
    pub fn is_owed(&self, id: DeliveryId) -> bool {
        self.deliveries.get(id).is_some_and(State::is_owed)
    }

    /// How many successors are owed. When this process ends they are lost, so a shutdown waits for 0, or reports
    /// them.
    #[must_use]
    pub const fn owed(&self) -> usize {
        self.owed
    }

    /// The number of deliveries that have not ended: those of ended links included whose handlers run, and those whose
    /// successors are owed.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.deliveries.len()
    }

    /// Whether every delivery has ended.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The target did not take it: once more, and then no more for now.
    fn refused(&mut self, id: DeliveryId, course: Course) -> Step {
        if course.refused {
            self.pause(id, course)
        } else {
            self.queue(id, Course { refused: true, ..course }, true)
        }
    }

    /// It can never be published as it is.
    fn unhealable(&mut self, id: DeliveryId, course: Course) -> Step {
        if !course.replaced {
            self.deliveries.set(id, State::Replacing(course));
            Step::DeadLetter
        } else if course.owed {
            self.end(id, Step::ReportLost)
        } else {
            self.pause(id, course)
        }
    }

    fn queue(&mut self, id: DeliveryId, course: Course, redeclare: bool) -> Step {
        self.deliveries.set(id, State::Queued(course));
        Step::Publish { redeclare }
    }

    fn pause(&mut self, id: DeliveryId, course: Course) -> Step {
        self.deliveries.set(id, State::Pausing(course));
        Step::Pause
    }

    fn end(&mut self, id: DeliveryId, step: Step) -> Step {
        debug_assert!(step.ends(), "{step:?} leaves {id} in hand");
        let owed = self.is_owed(id);
        // An owed delivery was acknowledged, and no other may be forgotten.
        debug_assert_eq!(owed, matches!(step, Step::Release | Step::ReportLost), "{id}: {step:?}");
        self.owed -= usize::from(owed);
        self.deliveries.remove(id);
        debug_assert!(self.owed <= self.deliveries.len(), "what is owed is in hand");
        step
    }
}
