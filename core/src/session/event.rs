//! What a session tells its driver and its application.

use std::time::Duration;

use super::config::Endpoint;
use super::error::{ConnectError, EnqueueError, LinkError, RequestError, SubscriptionError};
use super::ids::{Attempt, LinkId, PublishId, RequestId, SubscriptionId};
use super::refusal::Refusal;
use crate::envelope::{Envelope, JobId, JobType};
use crate::settle::DeliveryId;
use crate::text::ShortString;

/// One thing that happened, or one thing that the driver must do. Failures come here, once.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// For the driver: connect a socket, then call `handle_connected` or `handle_connect_failed`.
    Connect {
        /// Which link.
        link: LinkId,
        /// To be given back with every input of this socket.
        attempt: Attempt,
        /// Where to connect.
        endpoint: Endpoint,
    },
    /// For the driver: end this socket, or stop connecting it.
    Drop {
        /// Which link.
        link: LinkId,
        /// Which socket.
        attempt: Attempt,
        /// Whether to write first what `poll_transmit` gave, for a short time.
        flush: bool,
    },
    /// The publishing link is up for the first time and the queues are declared.
    Ready,
    /// The session did not start and has ended.
    ConnectFailed(ConnectError),
    /// The verdict on an enqueued job.
    Enqueued {
        /// Which publish.
        publish: PublishId,
        /// `Ok` only if the job was routed to its queue and the broker confirmed it.
        result: Result<(), EnqueueError>,
    },
    /// After [`EnqueueError::Full`]: there is room again.
    Writable,
    /// The broker accepted the consumer, for the first time or after a reconnect.
    SubscriptionStarted {
        /// Which subscription.
        subscription: SubscriptionId,
    },
    /// Nothing more comes from this subscription.
    SubscriptionEnded {
        /// Which subscription.
        subscription: SubscriptionId,
        /// `Ok` after it was asked to end.
        result: Result<Left, SubscriptionError>,
    },
    /// A job to run. It stays the application's until it is settled.
    Job(JobDelivery),
    /// What became of a delivery, also of one that never was a job.
    Settled(Settled),
    /// A link is up.
    Connected {
        /// Which link.
        link: LinkId,
    },
    /// A link was lost; the session connects it again unless the cause is permanent.
    Disconnected {
        /// Which link.
        link: LinkId,
        /// Why.
        cause: LinkError,
    },
    /// The broker stopped taking publishes on this link because of a resource alarm.
    Blocked {
        /// Which link.
        link: LinkId,
        /// The broker's words.
        reason: ShortString,
    },
    /// The alarm is over.
    Unblocked {
        /// Which link.
        link: LinkId,
    },
    /// The broker refused a queue that it had accepted before. Its publishes fail, others go on; where the reason is
    /// that the queue's node is down (404), they wait instead, and the queue is declared again every second.
    QueueRefused(Refusal),
    /// The answer to `inspect`: `None` where there is no such queue.
    Inspected {
        /// Which question.
        request: RequestId,
        /// The answer.
        result: Result<Option<QueueCounts>, RequestError>,
    },
    /// The answer to `delete_queue`.
    Deleted {
        /// Which question.
        request: RequestId,
        /// How many ready messages went with the queue; 0 also where there was none.
        result: Result<u32, RequestError>,
    },
    /// The session has ended. Always the last event.
    Closed(Closed),
}

/// A job that was delivered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobDelivery {
    /// To be settled once, with `settle`.
    pub delivery: DeliveryId,
    /// Where it came from.
    pub subscription: SubscriptionId,
    /// The job.
    pub envelope: Envelope,
    /// Whether the broker delivered this message before: a run may have begun and not been settled.
    pub redelivered: bool,
}

/// What became of one delivery.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settled {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// Where it came from.
    pub subscription: SubscriptionId,
    /// The job; `None` for a body that is no envelope.
    pub job: Option<JobSummary>,
    /// What was done.
    pub settlement: Settlement,
}

/// A job in a few words, as it was delivered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobSummary {
    /// Its id, the same over all attempts.
    pub id: JobId,
    /// Its type.
    pub job_type: JobType,
    /// The attempt that was delivered, from 1.
    pub attempt: u32,
    /// How often it had been deferred.
    pub deferrals: u32,
}

/// What was done with a delivery. Except for the last two, the original is acknowledged or rejected.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Settlement {
    /// It is done.
    Done,
    /// Its next attempt is confirmed.
    Retried {
        /// The number of the next attempt.
        attempt: u32,
        /// The delay asked for, before rounding up.
        delay: Duration,
        /// The queue where it waits: a hold queue, or the work queue where there is no delay.
        waits_in: ShortString,
    },
    /// The same attempt will run later, ahead of what waits.
    Deferred {
        /// How often it has been deferred now.
        deferrals: u32,
        /// The delay asked for, before rounding up.
        delay: Duration,
        /// The queue where it waits.
        waits_in: ShortString,
    },
    /// It is confirmed in the dead-letter queue.
    DeadLettered {
        /// Why.
        reason: String,
        /// The dead-letter queue.
        into: ShortString,
    },
    /// Dead-letter queues are switched off: it was rejected and is gone, unless the queue has a dead-letter
    /// exchange.
    Rejected {
        /// Why.
        reason: String,
    },
    /// It was discarded on purpose: acknowledged, with nothing in its place.
    Dropped {
        /// Why.
        reason: String,
    },
    /// It was given back to the broker, which delivers it again.
    Requeued {
        /// Why, where it was not asked for.
        cause: Option<EnqueueError>,
    },
    /// The link or the subscription that delivered it has ended, so that it cannot be settled: the broker delivers
    /// it again.
    Stale,
}

/// What a subscription left unsettled when it ended; the broker delivers it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left {
    /// Deliveries whose handlers were still running, or whose successor was not confirmed in time.
    pub unsettled: usize,
}

/// How much is in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueCounts {
    /// Messages ready to be delivered; those in flight do not count.
    pub ready: u32,
    /// Consumers.
    pub consumers: u32,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Closed {
    /// The link that publishes.
    pub publish: LinkEnd,
    /// The link that consumes.
    pub consume: LinkEnd,
    /// Enqueued jobs without a verdict; each was answered with an error.
    pub unconfirmed: usize,
    /// Deliveries that were not settled; the broker delivers them again.
    pub unsettled: usize,
    /// Why it ended without having been asked to: a publishing link that cannot come back. Workers are told the same.
    pub cause: Option<LinkError>,
}

/// How one link ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LinkEnd {
    /// It was never opened.
    NeverOpened,
    /// Both sides agreed to close.
    Handshake,
    /// It was closed without the broker's answer.
    Cut,
}
