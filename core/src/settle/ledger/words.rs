//! What the ledger is told, and what it answers.

use std::fmt;

use crate::settle::decide::Decision;

/// When a delivery that has a successor is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Settling {
    /// After the confirm of its successor. Nothing is lost, whatever happens to this process.
    #[default]
    Confirmed,
    /// Right behind its successor, on the channel that it was delivered on: the broker handles both in that order,
    /// and the delivery makes room for the next without waiting for a confirm.
    ///
    /// Until its verdict the successor is *owed*: its message is kept, and published again after a return, a nack or
    /// a lost link. It is lost if this process ends before the broker has it: the end of a process is the one thing
    /// that this form does not survive.
    Ordered,
}

/// How a delivery is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// With an acknowledgement: there is nothing to publish.
    Acknowledge,
    /// With a rejection for good.
    Reject,
    /// Back at the broker.
    Requeue,
    /// With a successor in its place.
    Publish,
}

impl From<&Decision> for Settlement {
    fn from(decision: &Decision) -> Self {
        match decision {
            Decision::Acknowledge | Decision::Drop { .. } => Self::Acknowledge,
            Decision::Requeue => Self::Requeue,
            Decision::Reject { .. } => Self::Reject,
            Decision::Publish(_) => Self::Publish,
        }
    }
}

/// What became of a successor, as it was last written.
///
/// What keeps it waiting is no verdict, and nothing is said then: a blocked link, or a confirm that came so late that
/// the lease of its hold is being renewed. The answer to the renewal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessorVerdict {
    /// It was confirmed, and its hold outlives it.
    Safe,
    /// It was confirmed too late: its hold may not outlive it, and it goes into a larger one.
    PublishAgain,
    /// It was returned: no queue took it.
    Returned,
    /// It was nacked.
    Nacked,
    /// The declare of its target was refused. This may be known before it is written.
    Refused,
    /// Its channel was closed over something that was sent on it. Whether it arrived is not known.
    ChannelClosed,
    /// It can never be published as it is, such as with headers that fit no frame. This may be known before it is
    /// written.
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
    /// Queue the successor, and ask [`SettleLedger::write`](super::SettleLedger::write) when its turn comes.
    Publish {
        /// Whether to declare what is ours on the way to the target first: it may be gone.
        redeclare: bool,
    },
    /// Decide on a dead letter instead of the successor, and report it to
    /// [`SettleLedger::dead_letter`](super::SettleLedger::dead_letter).
    DeadLetter,
    /// Wait a little, then call [`SettleLedger::pause_over`](super::SettleLedger::pause_over). Without the pause a
    /// target that refuses everything would make broker and worker spin.
    Pause,
    /// Acknowledge the delivery, which ends it.
    Acknowledge,
    /// Reject the delivery for good, which ends it.
    Reject,
    /// Requeue the delivery at the broker, which ends it.
    Requeue,
    /// Let go of the successor: it is safe, and its delivery was acknowledged before. Ends the delivery.
    Release,
    /// Report the successor as lost, with all that is known of it: its delivery was acknowledged before, and neither
    /// the successor nor a dead letter can be published. Ends the delivery.
    ReportLost,
}

impl Step {
    /// Whether the delivery has ended with this.
    #[must_use]
    pub const fn ends(self) -> bool {
        match self {
            Self::Acknowledge | Self::Reject | Self::Requeue | Self::Release | Self::ReportLost => true,
            Self::Nothing | Self::Publish { .. } | Self::DeadLetter | Self::Pause => false,
        }
    }
}

/// What to do with a successor whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Write {
    /// Drop it: nobody wants it any more.
    Nothing,
    /// Write it. Its verdict will follow.
    Publish,
    /// Write it, and right behind it on the same channel the acknowledgement of its delivery. Its verdict will
    /// follow, and its message is to be kept until the ledger ends the delivery.
    PublishThenAcknowledge,
}

/// What remains of a delivery whose channel or link has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a successor that remains is the only copy of its message"]
pub enum Remains {
    /// Nothing: let go of the delivery, and of its successor where one waits to be written.
    Nothing,
    /// Its handler, which hears of it when it settles. Everything else of the delivery can be let go of.
    Handler,
    /// Its successor, which is owed: keep its message and what is known of it. Steps for it go on until one
    /// [ends](Step::ends) it.
    Successor,
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
