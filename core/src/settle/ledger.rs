//! Publish, confirm, acknowledge: the order that loses nothing.
//!
//! The ledger holds one entry for every delivery in hand, and is told what happens to it. Each answer is the
//! one next [`Step`]. It acknowledges a delivery that has a successor only after [`SuccessorVerdict::Safe`] of
//! that successor; whatever else happens, the delivery stays with the broker, which delivers it again.
//!
//! ```text
//!  accept                              link lost, publish again,
//!    |                                  first refusal: Publish
//!    v       settle         write       +------------------+
//! Running --------------> Queued ----> Written ------------+
//!  |  |  |   Publish        ^             | |  |
//!  |  |  |                  |  cannot heal| |  | second refusal, or a dead letter that cannot heal: Pause
//!  |  |  |       dead_letter|             | |  +-----> Pausing --pause_over--> HandBack, end
//!  |  |  |          Publish | DeadLetter  | |
//!  |  |  |               Replacing <------+ +- safe -> Acknowledge, end
//!  |  |  |                   +- nothing kept -------> Reject, end
//!  |  |  +- settle, without a successor -> Acknowledge, Reject or HandBack, end
//!  |  +- stale -> Stale -- settle -> SettleError::Stale, end
//!  |
//!  (stale in any later state ends the delivery: nothing more is sent for it)
//! ```
//!
//! A successor that was written is waited for until its verdict, and never timed out into a second run.

use std::collections::BTreeMap;
use std::fmt;

use super::decide::Decision;

#[cfg(test)]
mod tests;

/// A delivery in hand. Ids grow and are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(u64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delivery {}", self.0)
    }
}

/// How a delivery is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// With an acknowledgement: there is nothing to publish.
    Acknowledge,
    /// With a rejection for good.
    Reject,
    /// Back at the broker.
    HandBack,
    /// With an acknowledgement once its successor is safe.
    Publish,
}

impl From<&Decision> for Settlement {
    fn from(decision: &Decision) -> Self {
        match decision {
            Decision::Acknowledge => Self::Acknowledge,
            Decision::HandBack => Self::HandBack,
            Decision::Reject { .. } => Self::Reject,
            Decision::Publish(_) => Self::Publish,
        }
    }
}

/// What became of a successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessorVerdict {
    /// It was confirmed, and its hold outlives it.
    Safe,
    /// It was confirmed, and its hold may not outlive it: it goes into a larger one.
    PublishAgain,
    /// Its target did not take it: returned, nacked, or the declare of the target was refused.
    Refused,
    /// It can never be published as it is, such as with headers that fit no frame.
    Unhealable,
    /// The link ended first. Whether it arrived is not known.
    LinkLost,
}

/// What to do for a delivery now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Nothing.
    Nothing,
    /// Queue the successor, and ask [`SettleLedger::write`] when its turn comes.
    Publish {
        /// Whether to declare what is ours on the way to the target first: it may be gone.
        redeclare: bool,
    },
    /// Decide on a dead letter instead of the successor, and report it to [`SettleLedger::dead_letter`].
    DeadLetter,
    /// Wait a little, then call [`SettleLedger::pause_over`]. Without the pause a target that refuses everything
    /// would make broker and worker spin.
    Pause,
    /// Acknowledge the delivery, which ends it.
    Acknowledge,
    /// Reject the delivery for good, which ends it.
    Reject,
    /// Hand the delivery back to the broker, which ends it.
    HandBack,
}

/// Why a delivery cannot be settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleError {
    /// It was settled before.
    AlreadySettled,
    /// The link it came from has ended, so the broker delivers it again. What was done for it runs twice.
    Stale,
}

impl fmt::Display for SettleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadySettled => "the delivery was settled before: settle it once",
            Self::Stale => {
                "the link that the delivery came from has ended, so it will be delivered again: recognise the \
                 second run by its job id"
            }
        })
    }
}

impl std::error::Error for SettleError {}

/// The deliveries in hand, and how far each of them is settled.
///
/// Its size is bounded by the prefetches of the consumers, and by the handlers that still run for deliveries of
/// links that have ended.
#[derive(Clone, Debug, Default)]
pub struct SettleLedger {
    deliveries: BTreeMap<DeliveryId, State>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The handler runs.
    Running,
    /// The handler runs, and its delivery is no longer this client's.
    Stale,
    /// The successor waits for its turn on the publishing link.
    Queued(Tries),
    /// The successor is on its way.
    Written(Tries),
    /// The successor is being replaced by a dead letter.
    Replacing,
    /// The successor was given up, and the delivery goes back after a pause.
    Pausing,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tries {
    /// Whether the target has refused the successor once.
    refused: bool,
    /// Whether the successor is the dead letter that replaced another.
    replaced: bool,
}

impl SettleLedger {
    /// A ledger without deliveries.
    #[must_use]
    pub const fn new() -> Self {
        Self { deliveries: BTreeMap::new(), next: 0 }
    }

    /// Takes a delivery in hand, whose handler is going to run.
    pub fn accept(&mut self) -> DeliveryId {
        let id = DeliveryId(self.next);
        self.next += 1;
        self.deliveries.insert(id, State::Running);
        id
    }

    /// The handler has spoken.
    ///
    /// # Errors
    ///
    /// [`SettleError`] when the delivery was settled before or is stale. Nothing is to be sent then.
    pub fn settle(&mut self, id: DeliveryId, settlement: Settlement) -> Result<Step, SettleError> {
        match self.deliveries.get(&id) {
            Some(State::Running) => Ok(match settlement {
                Settlement::Publish => self.queue(id, Tries::default(), false),
                Settlement::Acknowledge => self.end(id, Step::Acknowledge),
                Settlement::Reject => self.end(id, Step::Reject),
                Settlement::HandBack => self.end(id, Step::HandBack),
            }),
            Some(State::Stale) => {
                self.deliveries.remove(&id);
                Err(SettleError::Stale)
            }
            Some(_) | None => Err(SettleError::AlreadySettled),
        }
    }

    /// The successor's turn has come. `true`: write it, its verdict will follow. `false`: drop it, nobody wants
    /// it any more.
    #[must_use]
    pub fn write(&mut self, id: DeliveryId) -> bool {
        let Some(State::Queued(tries)) = self.deliveries.get(&id).copied() else { return false };
        self.deliveries.insert(id, State::Written(tries));
        true
    }

    /// What became of the successor. A refusal, and that it can never be published, may also be known before it
    /// is written.
    pub fn verdict(&mut self, id: DeliveryId, verdict: SuccessorVerdict) -> Step {
        let (tries, written) = match self.deliveries.get(&id) {
            Some(State::Written(tries)) => (*tries, true),
            Some(State::Queued(tries)) => (*tries, false),
            _ => return Step::Nothing,
        };
        match verdict {
            SuccessorVerdict::Safe if written => self.end(id, Step::Acknowledge),
            SuccessorVerdict::PublishAgain | SuccessorVerdict::LinkLost if written => {
                self.queue(id, tries, false)
            }
            SuccessorVerdict::Refused if !tries.refused => {
                self.queue(id, Tries { refused: true, ..tries }, true)
            }
            SuccessorVerdict::Unhealable if !tries.replaced => {
                self.deliveries.insert(id, State::Replacing);
                Step::DeadLetter
            }
            SuccessorVerdict::Refused | SuccessorVerdict::Unhealable => {
                self.deliveries.insert(id, State::Pausing);
                Step::Pause
            }
            // Not written, so nothing that was written can have had a verdict.
            SuccessorVerdict::Safe | SuccessorVerdict::PublishAgain | SuccessorVerdict::LinkLost => {
                Step::Nothing
            }
        }
    }

    /// The answer to [`Step::DeadLetter`]: whether there is a dead letter to publish, or the queue keeps none.
    pub fn dead_letter(&mut self, id: DeliveryId, kept: bool) -> Step {
        match self.deliveries.get(&id) {
            Some(State::Replacing) if kept => self.queue(id, Tries { refused: false, replaced: true }, false),
            Some(State::Replacing) => self.end(id, Step::Reject),
            _ => Step::Nothing,
        }
    }

    /// The pause that [`Step::Pause`] asked for is over.
    pub fn pause_over(&mut self, id: DeliveryId) -> Step {
        match self.deliveries.get(&id) {
            Some(State::Pausing) => self.end(id, Step::HandBack),
            _ => Step::Nothing,
        }
    }

    /// The link that the delivery came from has ended: the broker delivers it again, and nothing more may be
    /// sent for it. A handler that still runs hears of it when it settles.
    pub fn stale(&mut self, id: DeliveryId) {
        match self.deliveries.get_mut(&id) {
            Some(state @ State::Running) => *state = State::Stale,
            Some(State::Stale) | None => {}
            Some(_) => drop(self.deliveries.remove(&id)),
        }
    }

    /// The number of deliveries that have not ended, those of ended links included whose handlers run.
    #[must_use]
    pub fn len(&self) -> usize {
        self.deliveries.len()
    }

    /// Whether every delivery has ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    fn queue(&mut self, id: DeliveryId, tries: Tries, redeclare: bool) -> Step {
        self.deliveries.insert(id, State::Queued(tries));
        Step::Publish { redeclare }
    }

    fn end(&mut self, id: DeliveryId, step: Step) -> Step {
        self.deliveries.remove(&id);
        step
    }
}
