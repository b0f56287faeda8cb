//! The channels of a connection: which numbers are in use, and what each channel waits for.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::num::NonZeroU16;

use super::CloseReason;
use super::confirms::Confirms;
use super::content::Assembly;
use super::unacked::Unacked;
use crate::text::ShortString;

/// The number of a channel, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(NonZeroU16);

impl ChannelId {
    /// The channel of this number. `None` for 0, which is the connection itself.
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        match NonZeroU16::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.get()) - 1
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A channel that was opened and not closed.
#[derive(Debug)]
pub(super) struct Channel {
    /// Whether the server can know of it. Nothing can come on it before.
    pub(super) open_sent: bool,
    /// What the server has to answer, in the order of the commands.
    pub(super) replies: VecDeque<Reply>,
    /// How many of these commands have left. Nobody can answer the others.
    pub(super) asked: usize,
    pub(super) confirms: Option<Confirms>,
    /// Whether publishes and settlements wait for a commit.
    pub(super) transactional: bool,
    /// Consumers that the server has or will have, by tag.
    pub(super) consumers: BTreeMap<ShortString, Consumer>,
    /// Consumers for which a tag was chosen here.
    pub(super) named: u64,
    pub(super) unacked: Unacked,
    pub(super) assembly: Assembly,
    pub(super) closing: Option<Closing>,
}

/// A consumer of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Consumer {
    /// Its deliveries are settled when they are sent.
    pub(super) no_ack: bool,
}

/// An answer that a channel waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Open,
    Flow,
    ConfirmSelect,
    ExchangeDeclare,
    ExchangeDelete,
    ExchangeBind,
    ExchangeUnbind,
    QueueDeclare,
    QueueBind,
    QueueUnbind,
    QueuePurge,
    QueueDelete,
    Qos,
    Consume,
    Cancel,
    Get { no_ack: bool },
    Recover,
    TxSelect,
    TxCommit,
    TxRollback,
}

impl Reply {
    /// Methods of a channel are processed in order (AMQP 0-9-1, 4.3), but the process of a classic queue gives
    /// these answers in RabbitMQ, and answers to later commands, which the channel gives itself, come first.
    const fn comes_from_the_queue(self) -> bool {
        matches!(self, Self::Consume | Self::Cancel)
    }
}

/// A channel that we are closing: whatever comes on it is discarded, except the close-ok.
#[derive(Debug)]
pub(super) struct Closing {
    /// Why the server closed it at the same time.
    pub(super) crossed: Option<CloseReason>,
}

impl Channel {
    pub(super) fn new(id: ChannelId) -> Self {
        Self {
            open_sent: false,
            replies: VecDeque::from([Reply::Open]),
            asked: 0,
            confirms: None,
            transactional: false,
            consumers: BTreeMap::new(),
            named: 0,
            unacked: Unacked::default(),
            assembly: Assembly::new(id),
            closing: None,
        }
    }

    /// Takes note of an answer, and gives what was noted for it. `None` if another one is due, or none.
    pub(super) fn answered(&mut self, is_it: impl Fn(Reply) -> bool) -> Option<Reply> {
        let waits = |due: &&Reply| due.comes_from_the_queue() && !is_it(**due);
        debug_assert!(self.asked <= self.replies.len(), "a command left that nobody waits for");
        let asked = || self.replies.iter().take(self.asked);
        let overtaken = asked().take_while(waits).count();
        let due = asked().nth(overtaken).copied().filter(|due| is_it(*due))?;
        self.replies.remove(overtaken);
        self.asked -= 1;
        Some(due)
    }
}

/// The channels by number.
#[derive(Debug, Default)]
pub(super) struct Channels(Vec<Slot>);

#[derive(Debug)]
enum Slot {
    Free,
    Live(Box<Channel>),
    /// The channel has ended, and its owner was not told yet. The number is held back, so that nobody takes the
    /// end of the old channel for one of a new channel.
    Ended,
}

impl Channels {
    /// Opens a channel with the lowest free number, up to `limit`.
    pub(super) fn open(&mut self, limit: u16) -> Option<ChannelId> {
        let free = self.0.iter().position(|slot| matches!(slot, Slot::Free)).unwrap_or(self.0.len());
        let number = u16::try_from(free + 1).ok().filter(|number| *number <= limit)?;
        let id = ChannelId::new(number)?;
        if free == self.0.len() {
            self.0.push(Slot::Free);
        }
        self.0[free] = Slot::Live(Box::new(Channel::new(id)));
        Some(id)
    }

    /// A channel that was opened and has not ended.
    pub(super) fn get(&mut self, id: ChannelId) -> Option<&mut Channel> {
        match self.0.get_mut(id.index()) {
            Some(Slot::Live(channel)) => Some(channel),
            _ => None,
        }
    }

    /// Ends a channel; its number stays in use until [`Channels::free`].
    pub(super) fn end(&mut self, id: ChannelId) -> Option<Box<Channel>> {
        let slot = self.0.get_mut(id.index())?;
        match std::mem::replace(slot, Slot::Ended) {
            Slot::Live(channel) => Some(channel),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Gives back the number of a channel that ended.
    pub(super) fn free(&mut self, id: ChannelId) {
        if let Some(slot @ Slot::Ended) = self.0.get_mut(id.index()) {
            *slot = Slot::Free;
        }
    }

    /// The numbers of the channels that have not ended, the lowest first.
    pub(super) fn live(&self) -> impl Iterator<Item = ChannelId> {
        let live = |(index, slot): (usize, &Slot)| match slot {
            Slot::Live(_) => ChannelId::new(u16::try_from(index + 1).ok()?),
            Slot::Free | Slot::Ended => None,
        };
        self.0.iter().enumerate().filter_map(live)
    }
}
