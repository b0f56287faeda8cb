//! A channel in confirm mode and what is in flight on it.

use std::collections::BTreeMap;

use super::ids::PublishId;
use crate::connection::{ChannelId, CommandError, Connection};
use crate::delay::Cover;

#[derive(Debug, Default)]
pub(super) struct Outlet {
    channel: Option<ChannelId>,
    /// By the sequence number on the channel.
    in_flight: BTreeMap<u64, InFlight>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) publish: PublishId,
    /// The lease that it rests on, where it went into a hold queue.
    pub(super) cover: Option<Cover>,
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

    /// Whether one more may be published, if no more than `max_in_flight` are to be in flight.
    pub(super) fn has_room(&self, max_in_flight: usize) -> bool {
        self.channel.is_some() && self.in_flight.len() < max_in_flight
    }

    pub(super) fn sent(&mut self, sequence: u64, publish: PublishId, cover: Option<Cover>) {
        self.in_flight.insert(sequence, InFlight { publish, cover });
    }

    pub(super) fn answered(&mut self, sequence: u64) -> Option<InFlight> {
        self.in_flight.remove(&sequence)
    }

    /// The channel is gone: what was in flight on it.
    pub(super) fn closed(&mut self) -> impl Iterator<Item = PublishId> {
        self.channel = None;
        std::mem::take(&mut self.in_flight).into_values().map(|sent| sent.publish)
    }
}
