//! The description of a job queue, and the plan that is parsed from it.

mod error;
mod plan;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use error::QueueError;
pub use plan::QueuePlan;

use super::family::Suffixes;
use super::name::{NameError, QueueName};
use crate::delay::Granularity;
use crate::retry::RetryPolicy;

/// How often RabbitMQ 4 delivers one message of a quorum queue again by itself, and a quorum queue here unless told
/// otherwise.
pub const DELIVERY_LIMIT: u32 = 20;

/// A job queue as a user describes it: a durable queue with priorities, a dead-letter queue, and hold queues for what
/// is delayed.
///
/// **Classic or quorum** is a choice about crashes of the broker:
///
/// | | a node is lost | SIGKILL of the broker | jobs of other systems |
/// |---|---|---|---|
/// | default: classic, expiring holds | waits for the node | a third of what holds just released | shared |
/// | classic, [`replicated_holds`](Self::replicated_holds) | waits for the node | nothing | shared |
/// | [`quorum`](Self::quorum) | goes on | nothing | not shared |
///
/// That is measured, on RabbitMQ 3.10 and 4.0, with jobs in motion: an expiring hold moves a job to the work queue
/// without flushing it to disk. A restart of the broker loses nothing in any of them, and neither does a crash lose
/// what is still held.
///
/// Setters take anything; [`Queue::plan`] says what is wrong with the whole. Two descriptions of one name
/// must be equal.
///
/// ```
/// # use leveret_core::retry::RetryPolicy;
/// # use leveret_core::topology::Queue;
/// let emails = Queue::new("shop.emails")?.prefetch(10).retry(RetryPolicy::exponential(8));
/// assert_eq!(emails.plan()?.prefetch().get(), 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    name: QueueName,
    suffixes: Suffixes,
    prefetch: u16,
    quorum: bool,
    delivery_limit: Option<u32>,
    max_priority: Option<u8>,
    message_ttl: Option<Duration>,
    retry: RetryPolicy,
    granularity: Granularity,
    deferral_granularity: Granularity,
    coarse_delays: bool,
    holds: Option<Holds>,
    max_deferrals: Option<u32>,
    dead_letters: bool,
}

/// Which holds were asked for.
#[derive(Clone, Debug, PartialEq)]
enum Holds {
    Expiring,
    Replicated { exact: Vec<Duration> },
}

impl Queue {
    /// A queue of this name with the defaults that the setters state.
    ///
    /// # Errors
    ///
    /// [`NameError`] when the name is none for a job queue.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        Ok(Self {
            name: QueueName::new(name)?,
            suffixes: Suffixes::DEFAULT,
            prefetch: 32,
            quorum: false,
            delivery_limit: None,
            max_priority: None,
            message_ttl: None,
            retry: RetryPolicy::default(),
            granularity: Granularity::default(),
            deferral_granularity: Granularity::default(),
            coarse_delays: false,
            holds: None,
            max_deferrals: None,
            dead_letters: true,
        })
    }

    /// How many deliveries a worker holds at once, 1 to 65,535. Default 32. More hides the network's latency;
    /// fewer lets priorities take effect sooner, as what is in hand is no longer sorted.
    #[must_use]
    pub fn prefetch(self, prefetch: u16) -> Self {
        Self { prefetch, ..self }
    }

    /// A quorum queue: replicated over the nodes of a cluster, with a replicated dead-letter queue, and with
    /// [`replicated_holds`](Self::replicated_holds) unless [`expiring_holds`](Self::expiring_holds) are asked for. No
    /// crash of one node or of all loses a job. Each of its queues costs the broker a Raft group. The type of an
    /// existing queue cannot be changed.
    ///
    /// Its `q.dead` has an `x-delivery-limit` of 2,147,483,647: RabbitMQ 4 would drop a dead letter that was looked at
    /// and put back more than 20 times. Whoever else declares that queue must say the same, or is answered with 406.
    ///
    /// Deferred jobs carry priority 9 and come back ahead of the backlog from RabbitMQ 4 on (4.0 to 4.2: two of them
    /// for each other job); before, quorum queues ignore priorities, and they come back in turn.
    #[must_use]
    pub fn quorum(self) -> Self {
        Self { quorum: true, ..self }
    }

    /// Quorum queues: how often the broker delivers one job again after its first delivery was not settled, 0 and
    /// more. Default 20, which is what RabbitMQ 4 does by itself. Cut connections, crashes of a worker and jobs handed
    /// back count; retries and deferrals do not, since each is a new message. A classic queue knows no such limit.
    ///
    /// Past the limit the broker moves the job to `q.dead`, at most once: a crash in that moment can lose it. Where dead
    /// letters are not kept the job is dropped.
    #[must_use]
    pub fn delivery_limit(self, deliveries: u32) -> Self {
        Self { delivery_limit: Some(deliveries), ..self }
    }

    /// Classic queues: the highest priority, 1 to 255, or 0 for a queue without priorities. Default 10. The broker
    /// keeps separate lists for every priority, so 10 is plenty. It cannot be changed on an existing queue.
    ///
    /// Without priorities a deferred job comes back in turn, not ahead of the backlog. A quorum queue has its
    /// priorities without a declaration; 0 keeps leveret from using them, and more is refused.
    #[must_use]
    pub fn max_priority(self, max_priority: u8) -> Self {
        Self { max_priority: Some(max_priority), ..self }
    }

    /// How long a job may wait in the work queue before the broker takes it off: whole milliseconds from 1 to
    /// 4,294,967,295 (49.7 days). Default: for ever. An expired job is dropped from a classic queue, and
    /// dead-lettered into `q.dead` from a quorum queue that keeps dead letters. Time in a hold does not count.
    ///
    /// **This loses jobs, as asked**: leveret's promise that none is lost does not reach past it.
    #[must_use]
    pub fn message_ttl(self, ttl: Duration) -> Self {
        Self { message_ttl: Some(ttl), ..self }
    }

    /// How often a job runs and how long it waits after a failure. Default [`RetryPolicy::default`].
    #[must_use]
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// The step in which retries and delayed enqueues are kept. Default 1 s. With replicated holds it has no effect:
    /// they have a grid of their own.
    #[must_use]
    pub fn granularity(self, granularity: Granularity) -> Self {
        Self { granularity, ..self }
    }

    /// The step in which deferrals are kept, and the least that one waits. Default 1 s. With replicated holds it is
    /// only the latter.
    #[must_use]
    pub fn deferral_granularity(self, granularity: Granularity) -> Self {
        Self { deferral_granularity: granularity, ..self }
    }

    /// Whether delays are rounded up to the coarse grid of [`Grid::coarse`](crate::delay::Grid::coarse): at most 10 %
    /// or one step longer, and at most 150 hold queues between 1 s and 24 h. Default off: every step has its own. For
    /// expiring holds; replicated ones have a wider grid anyway.
    #[must_use]
    pub fn coarse_delays(self, coarse: bool) -> Self {
        Self { coarse_delays: coarse, ..self }
    }

    /// Replicated holds, `q.held.{ttl}`: quorum queues that hand over at least once. A SIGKILL of the broker loses
    /// none of the jobs in them or on their way out of them. Default for quorum queues, and possible in front of a
    /// classic one.
    ///
    /// They never expire, and each costs the broker a Raft group. So a delay is rounded up to the wide grid of
    /// [`Grid::wide`](crate::delay::Grid::wide): 30 delays from 1 s to 24 h, up to twice as long as asked for (a factor
    /// of about 1.5 from 3 s on). Delays in `exact` are kept as they are: at most 32 of them, each 100 ms up to
    /// 24.8 days in whole milliseconds.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use leveret_core::topology::Queue;
    /// let queue = Queue::new("shop.emails")?.replicated_holds([Duration::from_secs(7)]);
    /// assert_eq!(queue.plan()?.holds().place(Duration::from_secs(7))?.routing_key(), "shop.emails.held.7000");
    /// assert_eq!(queue.plan()?.holds().place(Duration::from_secs(70))?.routing_key(), "shop.emails.held.90000");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn replicated_holds(self, exact: impl IntoIterator<Item = Duration>) -> Self {
        let exact = exact.into_iter().collect();
        Self { holds: Some(Holds::Replicated { exact }), ..self }
    }

    /// Expiring holds, `q.deferred.{ttl}`: classic queues that go away when they are not used any more, and that other
    /// systems share. Default for classic queues.
    ///
    /// A SIGKILL of the broker, or a loss of power, loses jobs that were just released from them and not yet flushed
    /// to disk: measured, a third of those in motion.
    #[must_use]
    pub fn expiring_holds(self) -> Self {
        Self { holds: Some(Holds::Expiring), ..self }
    }

    /// What stands between the queue's name and the names of its dead-letter and hold queues. Default
    /// [`Suffixes::DEFAULT`]. Services that share the queue must agree.
    #[must_use]
    pub fn suffixes(self, suffixes: Suffixes) -> Self {
        Self { suffixes, ..self }
    }

    /// How often a job may be deferred before it becomes a dead letter. Default: no limit. Deferred jobs run
    /// ahead of the backlog, so many that defer themselves for ever keep the others waiting.
    #[must_use]
    pub fn max_deferrals(self, deferrals: u32) -> Self {
        Self { max_deferrals: Some(deferrals), ..self }
    }

    /// Whether dead letters are kept in `q.dead`. Default on. Otherwise they are rejected, which discards
    /// them unless a policy of the broker says where they go.
    #[must_use]
    pub fn dead_letters(self, keep: bool) -> Self {
        Self { dead_letters: keep, ..self }
    }

    /// The queue's name.
    #[must_use]
    pub const fn name(&self) -> &QueueName {
        &self.name
    }

    /// The first setting in which two descriptions differ, by the name of its setter; `None` where they are equal.
    #[must_use]
    pub fn differs_in(&self, other: &Self) -> Option<&'static str> {
        let holds = match (&self.holds, &other.holds) {
            (Some(Holds::Expiring), _) | (None, Some(Holds::Expiring)) => "expiring_holds",
            _ => "replicated_holds",
        };
        let settings = [
            ("name", self.name == other.name),
            ("suffixes", self.suffixes == other.suffixes),
            ("prefetch", self.prefetch == other.prefetch),
            ("quorum", self.quorum == other.quorum),
            ("delivery_limit", self.delivery_limit == other.delivery_limit),
            ("max_priority", self.max_priority == other.max_priority),
            ("message_ttl", self.message_ttl == other.message_ttl),
            ("retry", self.retry == other.retry),
            ("granularity", self.granularity == other.granularity),
            ("deferral_granularity", self.deferral_granularity == other.deferral_granularity),
            ("coarse_delays", self.coarse_delays == other.coarse_delays),
            (holds, self.holds == other.holds),
            ("max_deferrals", self.max_deferrals == other.max_deferrals),
            ("dead_letters", self.dead_letters == other.dead_letters),
        ];
        debug_assert_eq!(settings.iter().all(|(_, same)| *same), self == other, "every setting is named");
        settings.into_iter().find_map(|(setting, same)| (!same).then_some(setting))
    }

    /// Checks the description as a whole.
    ///
    /// # Errors
    ///
    /// [`QueueError`] says which setting cannot be kept.
    pub fn plan(&self) -> Result<QueuePlan, QueueError> {
        QueuePlan::of(self)
    }
}
