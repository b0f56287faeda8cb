//! One message on its way, from the command to the verdict.

use super::waiting::Room;
use crate::delay::HoldTtl;
use crate::message::Message;
use crate::settle::DeliveryId;

/// Who waits for the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The application.
    Enqueue,
    /// A delivery that this message succeeds.
    Successor(DeliveryId),
}

#[derive(Debug)]
pub(super) struct Publish {
    pub(super) queue: usize,
    pub(super) origin: Origin,
    pub(super) message: Message,
    pub(super) hold: Option<HoldTtl>,
    /// Sent at least once: if it is given up now, nobody knows whether the broker has it.
    pub(super) was_sent: bool,
    /// The queue was declared anew for it after it was returned or nacked.
    pub(super) second_try: bool,
}

impl Publish {
    pub(super) const fn room(&self) -> Room {
        match self.origin {
            Origin::Enqueue => Room::Enqueues,
            Origin::Successor(_) => Room::Successors,
        }
    }

    /// The second try shares a channel with the declare that precedes it.
    pub(super) const fn leaves_on_queue_channel(&self) -> bool {
        self.hold.is_some() || self.second_try
    }
}
