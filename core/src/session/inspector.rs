//! Questions about queues: how much is in one, and deleting one.
//!
//! One at a time, each on a channel of its own, because the broker answers a question about a queue that does not
//! exist by closing the channel.

use std::collections::VecDeque;
use std::time::Duration;

use super::error::RequestError;
use super::event::{QueueCounts, SessionEvent};
use super::ids::RequestId;
use super::outbox::Outbox;
use super::refusal::Refusal;
use crate::connection::{ChannelId, CloseReason, CommandError, Connection, DeleteIf};
use crate::text::ShortString;
use crate::time::Instant;
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
    deadline: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Inspect,
    Delete,
}

impl Inspector {
    pub(super) fn inspect(
        &mut self,
        queue: &ShortString,
        deadline: Instant,
    ) -> Result<RequestId, RequestError> {
        self.ask(Kind::Inspect, queue, deadline)
    }

    pub(super) fn delete(
        &mut self,
        queue: &ShortString,
        deadline: Instant,
    ) -> Result<RequestId, RequestError> {
        self.ask(Kind::Delete, queue, deadline)
    }

    pub(super) fn owns(&self, channel: ChannelId) -> bool {
        self.closing == Some(channel) || self.asked.as_ref().is_some_and(|(asked, _)| *asked == channel)
    }

    /// Asks the next question, if its turn has come.
    pub(super) fn pump(&mut self, connection: &mut Connection, outbox: &mut Outbox) {
        while self.asked.is_none()
            && self.closing.is_none()
            && let Some(request) = self.waiting.pop_front()
        {
            match request.send(connection) {
                Ok(channel) => self.asked = Some((channel, request)),
                Err(error) => request.answer(Err(RequestError::NoChannel(error)), outbox),
            }
        }
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

    /// Answers the questions that have waited too long: the broker says nothing, as on a link that it blocks.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        after: Duration,
        connection: Option<&mut Connection>,
        outbox: &mut Outbox,
    ) -> Result<(), CommandError> {
        while let Some(request) = self.waiting.front()
            && request.deadline <= now
        {
            // It is the one that was looked at.
            let Some(request) = self.waiting.pop_front() else { break };
            request.answer(Err(RequestError::TimedOut { after }), outbox);
        }
        match (&self.asked, connection) {
            (Some((_, request)), Some(connection)) if request.deadline <= now => {
                self.answered(Err(RequestError::TimedOut { after }), outbox);
                self.close(connection)
            }
            _ => Ok(()),
        }
    }

    /// The deadline of the oldest question.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let oldest = self.asked.as_ref().map(|(_, request)| request).or(self.waiting.front());
        oldest.map(|request| request.deadline)
    }

    /// The link is down: nobody knows when it will be back, so nothing waits for that.
    pub(super) fn link_down(&mut self, outbox: &mut Outbox) {
        self.end_all(&RequestError::Disconnected, outbox);
    }

    pub(super) fn abandon(&mut self, outbox: &mut Outbox) {
        self.end_all(&RequestError::Closed, outbox);
    }

    fn end_all(&mut self, error: &RequestError, outbox: &mut Outbox) {
        self.closing = None;
        let asked = self.asked.take().map(|(_, request)| request);
        for request in asked.into_iter().chain(std::mem::take(&mut self.waiting)) {
            request.answer(Err(error.clone()), outbox);
        }
    }

    fn ask(&mut self, kind: Kind, queue: &ShortString, deadline: Instant) -> Result<RequestId, RequestError> {
        if self.waiting.len() >= MAX_WAITING {
            return Err(RequestError::TooMany { limit: MAX_WAITING });
        }
        let id = RequestId(self.next);
        self.next += 1;
        self.waiting.push_back(Request { id, kind, queue: queue.clone(), deadline });
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
    fn send(&self, connection: &mut Connection) -> Result<ChannelId, CommandError> {
        let channel = connection.open_channel()?;
        match self.kind {
            Kind::Inspect => {
                connection.declare_queue(channel, &QueueDeclaration::passive(self.queue.clone()))?;
            }
            Kind::Delete => connection.delete_queue(channel, &self.queue, DeleteIf::ALWAYS)?,
        }
        Ok(channel)
    }

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
