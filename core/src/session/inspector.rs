//! Questions about queues: how much is in one, and deleting one.
//!
//! One at a time, each on a channel of its own, because the broker answers a question about a queue that does not
//! exist by closing the channel.

use std::collections::VecDeque;

use super::error::RequestError;
use super::event::{QueueCounts, SessionEvent};
use super::ids::RequestId;
use super::outbox::Outbox;
use super::refusal::Refusal;
use crate::connection::{ChannelId, CloseReason, CommandError, Connection};
use crate::text::ShortString;
use crate::topology::QueueDeclaration;

/// Questions that may wait for an answer at once.
const MAX_WAITING: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Inspector {
    next: u64,
    waiting: VecDeque<Request>,
    asked: Option<(ChannelId, Request)>,
    /// The channel of an answered question, until the broker has closed it.
    closing: Option<ChannelId>,
}

#[derive(Debug)]
struct Request {
    id: RequestId,
    kind: Kind,
    queue: ShortString,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Inspect,
    Delete,
}

impl Inspector {
    pub(super) fn inspect(&mut self, queue: &ShortString) -> Result<RequestId, RequestError> {
        self.ask(Kind::Inspect, queue)
    }

    pub(super) fn delete(&mut self, queue: &ShortString) -> Result<RequestId, RequestError> {
        self.ask(Kind::Delete, queue)
    }

    pub(super) fn owns(&self, channel: ChannelId) -> bool {
        self.closing == Some(channel) || self.asked.as_ref().is_some_and(|(asked, _)| *asked == channel)
    }

    pub(super) fn pump(
        &mut self,
        connection: &mut Connection,
        outbox: &mut Outbox,
    ) -> Result<(), CommandError> {
        if self.asked.is_some() || self.closing.is_some() || self.waiting.is_empty() {
            return Ok(());
        }
        let channel = match connection.open_channel() {
            Ok(channel) => channel,
            Err(error) => {
                // None of ours is open, so none will become free.
                self.refuse_waiting(&RequestError::NoChannel(error), outbox);
                return Ok(());
            }
        };
        let Some(request) = self.waiting.pop_front() else { return Ok(()) };
        let sent = match request.kind {
            Kind::Inspect => {
                connection.declare_queue(channel, &QueueDeclaration::passive(request.queue.clone()))
            }
            Kind::Delete => connection.delete_queue(channel, &request.queue),
        };
        self.asked = Some((channel, request));
        sent
    }

    pub(super) fn declared(
        &mut self,
        counts: QueueCounts,
        connection: &mut Connection,
        outbox: &mut Outbox,
    ) -> Result<(), CommandError> {
        self.answered(Ok(Answer::Counts(counts)), outbox);
        self.close(connection)
    }

    pub(super) fn deleted(
        &mut self,
        messages: u32,
        connection: &mut Connection,
        outbox: &mut Outbox,
    ) -> Result<(), CommandError> {
        self.answered(Ok(Answer::Deleted(messages)), outbox);
        self.close(connection)
    }

    pub(super) fn channel_closed(&mut self, reason: Option<&CloseReason>, outbox: &mut Outbox) {
        self.closing = None;
        let Some((_, request)) = self.asked.take() else { return };
        let queue = request.queue.clone();
        let answer = match reason {
            Some(reason) if reason.code == 404 => Ok(Answer::Missing),
            Some(reason) => Err(RequestError::Refused(Refusal { queue, reason: reason.clone() })),
            None => Err(RequestError::Disconnected),
        };
        request.answer(answer, outbox);
    }

    pub(super) fn link_down(&mut self, outbox: &mut Outbox) {
        self.channel_closed(None, outbox);
        self.refuse_waiting(&RequestError::Disconnected, outbox);
    }

    pub(super) fn abandon(&mut self, outbox: &mut Outbox) {
        self.answered(Err(RequestError::Closed), outbox);
        self.refuse_waiting(&RequestError::Closed, outbox);
    }

    fn refuse_waiting(&mut self, error: &RequestError, outbox: &mut Outbox) {
        for request in std::mem::take(&mut self.waiting) {
            request.answer(Err(error.clone()), outbox);
        }
    }

    fn ask(&mut self, kind: Kind, queue: &ShortString) -> Result<RequestId, RequestError> {
        if self.waiting.len() >= MAX_WAITING {
            return Err(RequestError::TooMany { limit: MAX_WAITING });
        }
        let id = RequestId(self.next);
        self.next += 1;
        self.waiting.push_back(Request { id, kind, queue: queue.clone() });
        Ok(id)
    }

    fn answered(&mut self, answer: Result<Answer, RequestError>, outbox: &mut Outbox) {
        if let Some((channel, request)) = self.asked.take() {
            self.closing = Some(channel);
            request.answer(answer, outbox);
        }
    }

    fn close(&mut self, connection: &mut Connection) -> Result<(), CommandError> {
        match self.closing {
            Some(channel) => connection.close_channel(channel),
            None => Ok(()),
        }
    }
}

enum Answer {
    Counts(QueueCounts),
    Missing,
    Deleted(u32),
}

impl Request {
    fn answer(self, answer: Result<Answer, RequestError>, outbox: &mut Outbox) {
        let request = self.id;
        outbox.push(match self.kind {
            Kind::Inspect => SessionEvent::Inspected {
                request,
                result: answer.map(|answer| match answer {
                    Answer::Counts(counts) => Some(counts),
                    Answer::Missing | Answer::Deleted(_) => None,
                }),
            },
            Kind::Delete => SessionEvent::Deleted {
                request,
                result: answer.map(|answer| match answer {
                    Answer::Deleted(messages) => messages,
                    Answer::Missing | Answer::Counts(_) => 0,
                }),
            },
        });
    }
}
