//! A channel in confirm mode and what waits to be published on it.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::PublishId;
use crate::connection::{ChannelId, CommandError, Connection};
use crate::delay::Cover;

/// Successors of deliveries go before enqueued jobs: a delivery in hand takes room at the broker and in the
/// prefetch window. Within each of the two rooms the oldest goes first, also if it has been sent before.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    channel: Option<ChannelId>,
    /// By the sequence number on the channel.
    in_flight: BTreeMap<u64, InFlight>,
    successors: BTreeSet<PublishId>,
    enqueues: BTreeSet<PublishId>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) publish: PublishId,
    /// The lease that it rests on, where it went into a hold queue.
    pub(super) cover: Option<Cover>,
}

/// Which of the two waiting rooms a publish belongs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Successors,
    Enqueues,
}

impl Outlet {
    pub(super) fn open(&mut self, connection: &mut Connection) -> Result<ChannelId, CommandError> {
        let channel = connection.open_channel()?;
        connection.confirm_select(channel)?;
        self.channel = Some(channel);
        Ok(channel)
    }

    pub(super) const fn channel(&self) -> Option<ChannelId> {
        self.channel
    }

    pub(super) fn wait(&mut self, publish: PublishId, room: Room) {
        match room {
            Room::Successors => self.successors.insert(publish),
            Room::Enqueues => self.enqueues.insert(publish),
        };
    }

    /// The next to be published, if fewer than `max_in_flight` are.
    pub(super) fn next(&mut self, max_in_flight: usize) -> Option<(PublishId, Room)> {
        if self.channel.is_none() || self.in_flight.len() >= max_in_flight {
            return None;
        }
        match self.successors.pop_first() {
            Some(publish) => Some((publish, Room::Successors)),
            None => self.enqueues.pop_first().map(|publish| (publish, Room::Enqueues)),
        }
    }

    pub(super) fn sent(&mut self, sequence: u64, publish: PublishId, cover: Option<Cover>) {
        self.in_flight.insert(sequence, InFlight { publish, cover });
    }

    pub(super) fn answered(&mut self, sequence: u64) -> Option<InFlight> {
        self.in_flight.remove(&sequence)
    }

    /// The oldest enqueued job that waits: none of the others has an earlier deadline.
    pub(super) fn oldest_enqueue(&self) -> Option<PublishId> {
        self.enqueues.first().copied()
    }

    pub(super) fn drop_oldest_enqueue(&mut self) {
        self.enqueues.pop_first();
    }

    /// The channel is gone: what was in flight on it.
    pub(super) fn closed(&mut self) -> impl Iterator<Item = PublishId> {
        self.channel = None;
        std::mem::take(&mut self.in_flight).into_values().map(|sent| sent.publish)
    }

    /// Takes out everything that waits.
    pub(super) fn drain_waiting(&mut self) -> impl Iterator<Item = PublishId> {
        std::mem::take(&mut self.successors).into_iter().chain(std::mem::take(&mut self.enqueues))
    }

    /// Takes out what waits and fits `wanted`.
    pub(super) fn extract(&mut self, mut wanted: impl FnMut(PublishId) -> bool) -> Vec<PublishId> {
        let mut taken = Vec::new();
        for room in [&mut self.successors, &mut self.enqueues] {
            room.retain(|publish| {
                let take = wanted(*publish);
                if take {
                    taken.push(*publish);
                }
                !take
            });
        }
        taken
    }
}
