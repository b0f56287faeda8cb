//! A server that takes a client at its word: what a strict one would close a connection over fails here.
//!
//! It sees both byte streams in the order in which a server sees them: what it sent counts from when it was sent,
//! what the client sent from when it was handed out. So it never forbids what only the distance between the two
//! makes look wrong.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::script;

/// The server's view of one connection.
#[derive(Debug, Default)]
pub(crate) struct StrictServer {
    channels: BTreeMap<u16, ServerChannel>,
    /// What a hostile server sent on channels that it does not know of, and that may be open when it arrives.
    early: BTreeMap<u16, ServerChannel>,
    /// What the client said last on channel 0, once that ends the connection.
    ended: Option<Ended>,
    /// Settlements that were read.
    pub(crate) settled: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Close,
    CloseOk,
}

/// A channel from its open on.
#[derive(Debug, Default)]
struct ServerChannel {
    /// The client closes it, and waits for the answer.
    close_sent: bool,
    /// The server closes it, and waits for the answer.
    close_awaited: bool,
    /// The client's close was answered, and only its own answer is missing.
    is_over: bool,
    /// What is still to come of a publish.
    content: Option<Awaited>,
    /// Tags that were delivered and have to be settled.
    outstanding: BTreeSet<u64>,
    /// On a channel with transactions: what waits for the commit.
    transaction: Option<BTreeSet<u64>>,
}

#[derive(Clone, Copy, Debug)]
enum Awaited {
    Header,
    Body(u64),
}

impl StrictServer {
    /// The server delivers a message that has to be settled.
    pub(crate) fn delivered(&mut self, channel: u16, tag: u64) {
        self.channel(channel).outstanding.insert(tag);
    }

    /// The server closes a channel.
    pub(crate) fn closes(&mut self, channel: u16) {
        self.channel(channel).close_awaited = true;
    }

    /// The server answers a close of a channel. Its number is free, unless closes cross: then after both answers.
    pub(crate) fn closed(&mut self, number: u16) {
        let Some(channel) = self.channels.get_mut(&number).filter(|channel| channel.close_sent) else {
            return;
        };
        if channel.close_awaited {
            (channel.close_sent, channel.is_over) = (false, true);
        } else {
            self.channels.remove(&number);
        }
    }

    /// Reads what the client sent: whole frames after the handshake. `may_ack` says whether the application
    /// acknowledged a delivery.
    ///
    /// # Panics
    ///
    /// Where a strict server would close the channel or the connection.
    pub(crate) fn read(&mut self, bytes: &[u8], may_ack: impl Fn(u16, u64) -> bool) {
        for line in script::describe(bytes) {
            let mut words = line.splitn(2, ' ');
            let channel = words.next().and_then(|number| number.parse().ok()).unwrap_or(u16::MAX);
            let method = words.next().unwrap_or_default();
            assert!(
                self.ended.is_none() || self.ended == Some(Ended::Close) && line == "0 close-ok",
                "{line} after {:?}",
                self.ended
            );
            if channel == 0 {
                self.read_connection(method);
            } else {
                self.read_channel(channel, method, &line, &may_ack);
            }
        }
    }

    /// Whether every publish that was begun was sent to its end, or something ended it.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.ended.is_some() || self.channels.values().all(|channel| channel.content.is_none())
    }

    fn channel(&mut self, number: u16) -> &mut ServerChannel {
        match self.channels.get_mut(&number) {
            Some(channel) => channel,
            None => self.early.entry(number).or_default(),
        }
    }

    fn read_connection(&mut self, method: &str) {
        match method.split(' ').next().unwrap_or_default() {
            "heartbeat" | "update-secret" => {}
            "close" => self.ended = Some(Ended::Close),
            "close-ok" => self.ended = Some(Ended::CloseOk),
            _ => unreachable!("{method} on channel 0 of an open connection"),
        }
    }

    fn read_channel(&mut self, number: u16, method: &str, line: &str, may_ack: &impl Fn(u16, u64) -> bool) {
        if method == "open" {
            let opened = self.early.remove(&number).unwrap_or_default();
            let before = self.channels.insert(number, opened);
            assert!(before.is_none(), "{line}, which is open");
            return;
        }
        let Some(channel) = self.channels.get_mut(&number) else {
            unreachable!("{line}, which is not open");
        };
        if method == "close-ok" {
            channel.close_awaited = false;
            // Where closes cross, the answer to the client's is still to come.
            if !channel.close_sent {
                self.channels.remove(&number);
            }
            return;
        }
        assert!(!channel.close_sent && !channel.is_over, "{line} after its close");
        let mut words = method.split(' ');
        let (name, argument) = (words.next().unwrap_or_default(), words.next_back());
        let bytes = || argument.and_then(|bytes| bytes.parse().ok()).unwrap_or(u64::MAX);
        channel.content = match (channel.content, name) {
            (Some(Awaited::Header), "header") => Some(bytes()).filter(|size| *size > 0).map(Awaited::Body),
            (Some(Awaited::Body(left)), "body") => {
                let piece = bytes();
                assert!(piece > 0 && piece <= left, "{line} where {left} bytes are left");
                Some(left - piece).filter(|left| *left > 0).map(Awaited::Body)
            }
            (None, "publish") => Some(Awaited::Header),
            (None, "header" | "body") | (Some(_), _) => unreachable!("{line} within {:?}", channel.content),
            (None, _) => None,
        };
        match name {
            "close" => channel.close_sent = true,
            "ack" | "nack" | "reject" => {
                self.settled += 1;
                let multiple = method.ends_with(" multiple");
                let tag: u64 = method.split(' ').nth(1).and_then(|tag| tag.parse().ok()).unwrap_or(0);
                let ack = name == "ack";
                channel.settle(tag, multiple, line, |tag| !ack || may_ack(number, tag));
            }
            // What a transaction has settled is not in hand, and may come back by its rollback.
            "recover" => channel.outstanding.clear(),
            "tx.select" => channel.transaction = Some(channel.transaction.take().unwrap_or_default()),
            "tx.commit" => channel.transaction.iter_mut().for_each(BTreeSet::clear),
            "tx.rollback" => {
                let pending = channel.transaction.as_mut().map(std::mem::take);
                channel.outstanding.extend(pending.unwrap_or_default());
            }
            _ => {}
        }
    }
}

impl ServerChannel {
    /// RabbitMQ answers 406 to a tag that is not outstanding, also where lower ones are.
    fn settle(&mut self, tag: u64, multiple: bool, line: &str, decided: impl Fn(u64) -> bool) {
        assert!(self.outstanding.contains(&tag), "{line}, which is not outstanding");
        let covered: BTreeSet<u64> = match multiple {
            true => self.outstanding.range(..=tag).copied().collect(),
            false => BTreeSet::from([tag]),
        };
        for tag in covered {
            assert!(decided(tag), "{line} covers {tag}, which the application did not acknowledge");
            self.outstanding.remove(&tag);
            if let Some(pending) = &mut self.transaction {
                pending.insert(tag);
            }
        }
    }
}
