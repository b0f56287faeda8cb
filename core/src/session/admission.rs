//! How many enqueued jobs may be without a verdict, and for how long.

use std::collections::BTreeMap;
use std::time::Duration;

use super::config::SessionConfig;
use super::error::EnqueueError;
use super::ids::PublishId;
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct Admission {
    max_messages: usize,
    max_bytes: usize,
    max_wait: Duration,
    /// The moment at which each job without a verdict is given up. Jobs accepted later are given up later.
    deadlines: BTreeMap<PublishId, Instant>,
    /// Bytes of their bodies.
    bytes: usize,
    /// Somebody was answered `Full` and waits to hear that there is room.
    refused: bool,
}

impl Admission {
    pub(super) fn new(config: &SessionConfig) -> Self {
        Self {
            max_messages: config.max_waiting.max(1),
            max_bytes: config.max_waiting_bytes,
            max_wait: config.max_wait,
            deadlines: BTreeMap::new(),
            bytes: 0,
            refused: false,
        }
    }

    pub(super) const fn max_wait(&self) -> Duration {
        self.max_wait
    }

    /// Whether one more job of so many bytes may be accepted. One is always.
    pub(super) fn check(&mut self, bytes: usize) -> Result<(), EnqueueError> {
        let too_many = self.deadlines.len() >= self.max_messages;
        let too_large = self.bytes.saturating_add(bytes) > self.max_bytes && !self.deadlines.is_empty();
        if too_many || too_large {
            self.refused = true;
            return Err(EnqueueError::Full);
        }
        Ok(())
    }

    pub(super) fn accept(&mut self, now: Instant, publish: PublishId, bytes: usize) {
        self.bytes += bytes;
        self.deadlines.insert(publish, now + self.max_wait);
    }

    /// A job has its answer. `true` when somebody is to hear that there is room again.
    pub(super) fn answered(&mut self, publish: PublishId, bytes: usize) -> bool {
        if self.deadlines.remove(&publish).is_some() {
            self.bytes -= bytes;
        }
        let room = self.deadlines.len() <= self.max_messages / 2 && self.bytes <= self.max_bytes / 2;
        room && std::mem::take(&mut self.refused)
    }

    /// The oldest job without a verdict, if it is to be given up.
    pub(super) fn overdue(&self, now: Instant) -> Option<PublishId> {
        let (publish, deadline) = self.deadlines.first_key_value()?;
        (*deadline <= now).then_some(*publish)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first_key_value().map(|(_, deadline)| *deadline)
    }
}
