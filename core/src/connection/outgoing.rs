//! What is queued to be sent, and in which order it leaves.
//!
//! Unsent work stays structured: one queue per channel, so that a channel's work can be dropped as a whole and
//! an acknowledgement does not wait for other channels' publishes. The order is
//!
//! 1. channel 0: handshake, close, close-ok of channels;
//! 2. channels whose next item is no publish;
//! 3. channels whose next item is a publish, in turn, one frame of body each.
//!
//! Within a channel nothing overtakes but the answer to `channel.flow`, and nothing comes between the frames of
//! one publish (AMQP 0-9-1, 4.2.6). Acknowledgements that follow one another are one item, and become as few
//! frames as the channel's outstanding deliveries allow when their turn comes.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use super::ChannelId;
use super::channel::Channels;
use crate::wire::method::{self, SETTLEMENT_FRAME, Settlement};
use crate::wire::{SendBuf, frame};

/// So many acknowledgements are handed out before it is asked whether the buffer is full.
const ACKS_AT_ONCE: usize = 4_096;

/// Something to send on a channel.
pub(super) enum Item {
    /// `channel.open`, always the first of its channel.
    Open(Bytes),
    /// A whole method frame that is answered.
    Request(Bytes),
    /// Any other whole method frame.
    Method(Bytes),
    /// So many acknowledgements, which the channel has noted.
    Acks { count: usize },
    /// `basic.ack`, `basic.nack` or `basic.reject` as it is.
    Settle { delivery_tag: u64, settlement: Settlement },
    /// `basic.recover`.
    Recover(Bytes),
    /// The answer to `channel.flow`.
    FlowOk { active: bool },
    /// A publish: its number, 0 where no verdict comes, its method and header frames, and its body.
    Publish { sequence: u64, head: Bytes, body: Bytes },
}

impl Item {
    fn bytes(&self, frame_max: usize) -> usize {
        match self {
            Self::Open(frame) | Self::Request(frame) | Self::Method(frame) | Self::Recover(frame) => {
                frame.len()
            }
            Self::Acks { count } => acks_bytes(*count),
            Self::Settle { .. } => SETTLEMENT_FRAME,
            Self::FlowOk { .. } => method::FLOW_OK_FRAME,
            Self::Publish { head, body, .. } => publish_bytes(head.len(), body.len(), frame_max),
        }
    }
}

/// Bytes of acknowledgements on the wire, at most.
const fn acks_bytes(count: usize) -> usize {
    count.saturating_mul(SETTLEMENT_FRAME)
}

/// Bytes of a publish on the wire.
pub(super) const fn publish_bytes(head: usize, body: usize, frame_max: usize) -> usize {
    let frames = body.div_ceil(frame_max - frame::OVERHEAD);
    head.saturating_add(body).saturating_add(frames * frame::OVERHEAD)
}

/// Without `Debug`, like its parts: the queue may hold the password, and bodies.
pub(super) struct Outgoing {
    /// Frames of channel 0, and those that end a channel.
    control: VecDeque<Bytes>,
    /// By channel number, from 1 on.
    lines: Vec<Line>,
    /// Channels whose next item is no publish.
    prompt: VecDeque<ChannelId>,
    /// Channels that are within a publish, or whose next item is one.
    bulk: VecDeque<ChannelId>,
    frame_max: usize,
    /// Whether no publish may be begun on any channel.
    blocked: bool,
    /// Bytes of everything queued, acknowledgements counted as if each had a frame.
    unsent: usize,
}

/// The queue of one channel. It is listed in `prompt` or `bulk` exactly while it has something to send.
struct Line {
    items: VecDeque<Item>,
    /// What is left of the body of a publish that was begun. Not empty.
    body: Option<Bytes>,
    /// Whether the server takes publishes on this channel (`channel.flow`).
    flowing: bool,
}

impl Line {
    const fn new() -> Self {
        Self { items: VecDeque::new(), body: None, flowing: true }
    }

    fn is_idle(&self) -> bool {
        self.body.is_none() && self.items.is_empty()
    }

    fn is_bulk(&self) -> bool {
        self.body.is_some() || matches!(self.items.front(), Some(Item::Publish { .. }))
    }
}

impl Outgoing {
    pub(super) const fn new() -> Self {
        Self {
            control: VecDeque::new(),
            lines: Vec::new(),
            prompt: VecDeque::new(),
            bulk: VecDeque::new(),
            frame_max: frame::MIN_FRAME_MAX as usize,
            blocked: false,
            unsent: 0,
        }
    }

    /// Sets what was agreed on. Nothing may be queued on a channel before.
    pub(super) fn set_frame_max(&mut self, frame_max: u32) {
        debug_assert!(self.lines.is_empty(), "frame_max changed under queued publishes");
        self.frame_max = frame_max as usize;
    }

    pub(super) const fn set_blocked(&mut self, blocked: bool) {
        self.blocked = blocked;
    }

    /// Holds the publishes of a channel, or lets them go, and queues the answer to `channel.flow`: at the front,
    /// since it must not wait for what it holds.
    pub(super) fn set_flowing(&mut self, channel: ChannelId, flowing: bool) {
        let line = self.line(channel);
        line.flowing = flowing;
        if let Some(Item::FlowOk { active }) = line.items.front_mut() {
            // Two answers in a row are one, so that a server that asks without end queues nothing without end.
            *active = flowing;
            return;
        }
        line.items.push_front(Item::FlowOk { active: flowing });
        self.unsent = self.unsent.saturating_add(method::FLOW_OK_FRAME);
        self.unlist(channel);
        self.list(channel);
    }

    /// Bytes queued.
    pub(super) const fn unsent(&self) -> usize {
        self.unsent
    }

    /// Queues a frame of channel 0, or one that ends a channel.
    pub(super) fn push_control(&mut self, frame: Bytes) {
        self.unsent += frame.len();
        self.control.push_back(frame);
    }

    /// Whether everything of channel 0 has been handed out.
    pub(super) fn is_control_sent(&self) -> bool {
        self.control.is_empty()
    }

    /// Queues something at the end of a channel.
    pub(super) fn push(&mut self, channel: ChannelId, item: Item) {
        let bytes = item.bytes(self.frame_max);
        let line = self.line(channel);
        let was_idle = line.is_idle();
        line.items.push_back(item);
        if was_idle {
            self.list(channel);
        }
        self.unsent = self.unsent.saturating_add(bytes);
    }

    /// Queues acknowledgements at the end of a channel.
    pub(super) fn push_acks(&mut self, channel: ChannelId, count: usize) {
        if let Some(Item::Acks { count: before }) = self.line(channel).items.back_mut() {
            *before += count;
            self.unsent = self.unsent.saturating_add(acks_bytes(count));
        } else {
            self.push(channel, Item::Acks { count });
        }
    }

    /// Whether everything of a channel has been handed out.
    pub(super) fn is_idle(&self, channel: ChannelId) -> bool {
        self.lines.get(channel.index()).is_none_or(Line::is_idle)
    }

    /// Drops everything of a channel, also the rest of a publish that was begun, and starts it anew.
    pub(super) fn drop_channel(&mut self, channel: ChannelId) {
        let frame_max = self.frame_max;
        let line = std::mem::replace(self.line(channel), Line::new());
        let body = line.body.map_or(0, |body| publish_bytes(0, body.len(), frame_max));
        let items: usize = line.items.iter().map(|item| item.bytes(frame_max)).sum();
        self.unsent -= body + items;
        self.unlist(channel);
    }

    /// Drops everything of all channels. What is queued on channel 0 stays.
    pub(super) fn drop_channels(&mut self) {
        self.lines.clear();
        self.prompt.clear();
        self.bulk.clear();
        self.unsent = self.control.iter().map(Bytes::len).sum();
    }

    /// Drops everything of all channels but the settlements, which leave next. One that stands behind a publish
    /// whose body was begun is dropped, since nothing may come between the frames of that.
    pub(super) fn keep_settlements(&mut self, channels: &mut Channels) {
        for (number, line) in (1..).zip(&self.lines) {
            let channel = ChannelId::new(number).and_then(|id| channels.get(id));
            let Some(channel) = channel.filter(|_| line.body.is_none()) else { continue };
            let mut frames = BytesMut::new();
            for item in &line.items {
                match *item {
                    Item::Acks { count } => channel.unacked.take_acks(count, |tag, multiple| {
                        method::put_settlement(&mut frames, number, tag, Settlement::Ack { multiple });
                    }),
                    Item::Settle { delivery_tag, settlement } => {
                        channel.unacked.sent(delivery_tag, settlement);
                        method::put_settlement(&mut frames, number, delivery_tag, settlement);
                    }
                    Item::Open(_)
                    | Item::Request(_)
                    | Item::Method(_)
                    | Item::Recover(_)
                    | Item::FlowOk { .. }
                    | Item::Publish { .. } => {}
                }
            }
            if !frames.is_empty() {
                self.control.push_back(frames.freeze());
            }
        }
        self.drop_channels();
    }

    /// Drops everything.
    pub(super) fn drop_all(&mut self) {
        self.control.clear();
        self.drop_channels();
    }

    /// Hands out frames until nothing may go or `out` is full, and lets `channels` know what was sent.
    pub(super) fn transmit(&mut self, out: &mut SendBuf, channels: &mut Channels) {
        while !out.is_full() {
            let sent = if let Some(frame) = self.control.pop_front() {
                let bytes = frame.len();
                out.put_bytes(frame);
                bytes
            } else if let Some(channel) = self.prompt.pop_front() {
                let bytes = self.send_prompt(channel, out, channels);
                self.list(channel);
                bytes
            } else if let Some(channel) = self.next_bulk() {
                let before = out.remaining();
                self.send_bulk(channel, out, channels);
                self.list(channel);
                out.remaining() - before
            } else {
                return;
            };
            self.unsent -= sent;
        }
    }

    /// Sends an item that is no publish, and returns what it counted for in `unsent`.
    fn send_prompt(&mut self, id: ChannelId, out: &mut SendBuf, channels: &mut Channels) -> usize {
        let frame_max = self.frame_max;
        let items = &mut self.line(id).items;
        let Some(item) = items.pop_front() else { return 0 };
        let mut bytes = item.bytes(frame_max);
        let channel = channels.get(id);
        let number = id.get();
        match item {
            Item::Open(frame) => {
                if let Some(channel) = channel {
                    channel.open_sent = true;
                    channel.asked += 1;
                }
                out.put_bytes(frame);
            }
            Item::Request(frame) => {
                if let Some(channel) = channel {
                    channel.asked += 1;
                }
                out.put_bytes(frame);
            }
            Item::Method(frame) => out.put_bytes(frame),
            Item::Acks { count } => {
                let now = count.min(ACKS_AT_ONCE);
                if now < count {
                    items.push_front(Item::Acks { count: count - now });
                    bytes = acks_bytes(now);
                }
                if let Some(channel) = channel {
                    channel.unacked.take_acks(now, |tag, multiple| {
                        let ack = Settlement::Ack { multiple };
                        out.put_with(|out| method::put_settlement(out, number, tag, ack));
                    });
                }
            }
            Item::Settle { delivery_tag, settlement } => {
                if let Some(channel) = channel {
                    channel.unacked.sent(delivery_tag, settlement);
                }
                out.put_with(|out| method::put_settlement(out, number, delivery_tag, settlement));
            }
            Item::Recover(frame) => {
                if let Some(channel) = channel {
                    channel.asked += 1;
                    channel.unacked.recover_sent();
                }
                out.put_bytes(frame);
            }
            Item::FlowOk { active } => out.put_bytes(method::channel_flow_ok(number, active)),
            Item::Publish { .. } => debug_assert!(false, "a channel is listed wrongly"),
        }
        bytes
    }

    /// Begins a publish, unless one was begun, and sends one frame of body.
    fn send_bulk(&mut self, channel: ChannelId, out: &mut SendBuf, channels: &mut Channels) {
        let room = self.frame_max - frame::OVERHEAD;
        let line = self.line(channel);
        if line.body.is_none() {
            let Some(Item::Publish { sequence, head, body }) = line.items.pop_front() else {
                debug_assert!(false, "a channel is listed wrongly");
                return;
            };
            // Without a number no verdict comes.
            if sequence > 0
                && let Some(confirms) = channels.get(channel).and_then(|channel| channel.confirms.as_mut())
            {
                confirms.mark_sent(sequence);
            }
            out.put_bytes(head);
            line.body = Some(body);
        }
        let Some(mut body) = line.body.take() else { return };
        if body.is_empty() {
            return;
        }
        let piece = body.split_to(body.len().min(room));
        out.put_with(|out| frame::put_body_head(out, channel.get(), piece.len()));
        out.put_bytes(piece);
        out.put_with(frame::put_end);
        if !body.is_empty() {
            line.body = Some(body);
        }
    }

    /// The next channel in turn that may send, taken off the list.
    fn next_bulk(&mut self) -> Option<ChannelId> {
        let may_send = |channel: &ChannelId| {
            let line = &self.lines[channel.index()];
            line.body.is_some() || line.flowing && !self.blocked
        };
        let position = self.bulk.iter().position(may_send)?;
        self.bulk.remove(position)
    }

    /// Puts a channel that is not listed at the end of the list where it belongs.
    fn list(&mut self, channel: ChannelId) {
        let line = self.line(channel);
        if line.is_bulk() {
            self.bulk.push_back(channel);
        } else if !line.is_idle() {
            self.prompt.push_back(channel);
        }
    }

    /// Takes a channel off the list where it is, if it is listed.
    fn unlist(&mut self, channel: ChannelId) {
        self.prompt.retain(|listed| *listed != channel);
        self.bulk.retain(|listed| *listed != channel);
    }

    fn line(&mut self, channel: ChannelId) -> &mut Line {
        let index = channel.index();
        if index >= self.lines.len() {
            self.lines.resize_with(index + 1, Line::new);
        }
        &mut self.lines[index]
    }
}
