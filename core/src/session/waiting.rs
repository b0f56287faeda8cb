//! What waits to be published to one queue.

use std::collections::BTreeSet;

use super::ids::PublishId;

/// Successors of deliveries go before enqueued jobs: a delivery in hand takes room at the broker and in the
/// prefetch window. Within each of the two rooms the oldest goes first, also if it has been sent before.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    successors: BTreeSet<PublishId>,
    enqueues: BTreeSet<PublishId>,
}

/// Which of the two waiting rooms a publish belongs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Successors,
    Enqueues,
}

impl Room {
    /// In the order in which they are served.
    pub(super) const ALL: [Self; 2] = [Self::Successors, Self::Enqueues];
}

impl Waiting {
    pub(super) fn insert(&mut self, publish: PublishId, room: Room) {
        self.room(room).insert(publish);
    }

    pub(super) fn pop(&mut self, room: Room) -> Option<PublishId> {
        self.room(room).pop_first()
    }

    pub(super) fn remove(&mut self, publish: PublishId, room: Room) {
        self.room(room).remove(&publish);
    }

    pub(super) fn retain(&mut self, wanted: impl Fn(PublishId) -> bool) {
        for room in Room::ALL {
            self.room(room).retain(|publish| wanted(*publish));
        }
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = PublishId> {
        std::mem::take(&mut self.successors).into_iter().chain(std::mem::take(&mut self.enqueues))
    }

    fn room(&mut self, room: Room) -> &mut BTreeSet<PublishId> {
        match room {
            Room::Successors => &mut self.successors,
            Room::Enqueues => &mut self.enqueues,
        }
    }
}
