//! The description of a job queue, and the plan that is parsed from it.

use std::fmt;
use std::num::NonZeroU16;

use super::declaration::QueueDeclaration;
use super::name::{NameError, QueueName};
use crate::delay::{DelayTooLong, Granularity, HoldTtl};
use crate::retry::RetryPolicy;
use crate::table::Table;
use crate::text::ShortString;

/// A job queue as a user describes it: a durable classic queue with priorities, a dead-letter queue, and hold
/// queues for what is delayed.
///
/// A delayed job waits in a hold queue from which RabbitMQ moves it to the work queue without flushing it to
/// disk. So a *crash of the broker* can lose jobs that have just been released and not yet run; a restart does
/// not, and neither does a crash lose those still held.
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
    prefetch: u16,
    max_priority: u8,
    retry: RetryPolicy,
    granularity: Granularity,
    deferral_granularity: Granularity,
    max_deferrals: Option<u32>,
    dead_letters: bool,
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
            prefetch: 32,
            max_priority: 10,
            retry: RetryPolicy::default(),
            granularity: Granularity::default(),
            deferral_granularity: Granularity::default(),
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

    /// The highest priority, 1 to 255, or 0 for a queue without priorities. Default 10. The broker keeps
    /// separate lists for every priority, so 10 is plenty. It cannot be changed on an existing queue.
    ///
    /// Without priorities a deferred job comes back in turn, not ahead of the backlog.
    #[must_use]
    pub fn max_priority(self, max_priority: u8) -> Self {
        Self { max_priority, ..self }
    }

    /// How often a job runs and how long it waits after a failure. Default [`RetryPolicy::default`].
    #[must_use]
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// The step in which retries and delayed enqueues are kept. Default 1 s.
    #[must_use]
    pub fn granularity(self, granularity: Granularity) -> Self {
        Self { granularity, ..self }
    }

    /// The step in which deferrals are kept. Default 1 s.
    #[must_use]
    pub fn deferral_granularity(self, granularity: Granularity) -> Self {
        Self { deferral_granularity: granularity, ..self }
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
        let settings = [
            ("name", self.name == other.name),
            ("prefetch", self.prefetch == other.prefetch),
            ("max_priority", self.max_priority == other.max_priority),
            ("retry", self.retry == other.retry),
            ("granularity", self.granularity == other.granularity),
            ("deferral_granularity", self.deferral_granularity == other.deferral_granularity),
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
        let prefetch = NonZeroU16::new(self.prefetch)
            .ok_or_else(|| QueueError::PrefetchZero { queue: self.name.clone() })?;
        // Found here, and not when the job that would need it has failed.
        self.granularity
            .round_up(self.retry.longest_delay())
            .map_err(|cause| QueueError::RetryTooLong { queue: self.name.clone(), cause })?;
        Ok(QueuePlan { queue: self.clone(), prefetch })
    }
}

/// A job queue whose description has been checked: what a session works with.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuePlan {
    queue: Queue,
    prefetch: NonZeroU16,
}

impl QueuePlan {
    /// The description that was checked.
    #[must_use]
    pub const fn description(&self) -> &Queue {
        &self.queue
    }

    /// The work queue's name.
    #[must_use]
    pub const fn name(&self) -> &QueueName {
        &self.queue.name
    }

    /// How many deliveries a worker holds at once.
    #[must_use]
    pub const fn prefetch(&self) -> NonZeroU16 {
        self.prefetch
    }

    /// How often a job runs, and how long it waits after a failure.
    #[must_use]
    pub const fn retry(&self) -> &RetryPolicy {
        &self.queue.retry
    }

    /// The step in which retries and delayed enqueues are kept.
    #[must_use]
    pub const fn granularity(&self) -> Granularity {
        self.queue.granularity
    }

    /// The step in which deferrals are kept.
    #[must_use]
    pub const fn deferral_granularity(&self) -> Granularity {
        self.queue.deferral_granularity
    }

    /// How often a job may be deferred; `None` for no limit.
    #[must_use]
    pub const fn max_deferrals(&self) -> Option<u32> {
        self.queue.max_deferrals
    }

    /// The highest priority, at which deferred jobs come back; `None` for a queue without priorities.
    #[must_use]
    pub const fn top_priority(&self) -> Option<u8> {
        match self.queue.max_priority {
            0 => None,
            top => Some(top),
        }
    }

    /// Whether dead letters are kept in `q.dead`.
    #[must_use]
    pub const fn dead_letters(&self) -> bool {
        self.queue.dead_letters
    }

    /// What must exist before anything is published or consumed: the work queue, then its dead-letter queue.
    pub fn declarations(&self) -> impl Iterator<Item = QueueDeclaration> {
        std::iter::once(self.work()).chain(self.dead())
    }

    /// The work queue `q`.
    #[must_use]
    pub fn work(&self) -> QueueDeclaration {
        let mut arguments = classic();
        if let Some(top) = self.top_priority() {
            arguments.insert(MAX_PRIORITY, i64::from(top));
        }
        QueueDeclaration::durable(self.name().as_short().clone(), arguments)
    }

    /// The dead-letter queue `q.dead`, if dead letters are kept. They never expire and are never routed on.
    #[must_use]
    pub fn dead(&self) -> Option<QueueDeclaration> {
        self.dead_letters().then(|| QueueDeclaration::durable(self.name().dead(), classic()))
    }

    /// The hold queue `q.deferred.{ttl}`, whose arguments are a function of its name alone, so that services
    /// of any version agree on them. It is as durable as the work queue, and has no priorities: they would
    /// not release anything sooner.
    #[must_use]
    pub fn hold(&self, ttl: HoldTtl) -> QueueDeclaration {
        let work = self.name().as_short();
        let arguments = classic()
            .with(MESSAGE_TTL, i64::from(ttl.as_millis()))
            .with(DEAD_LETTER_EXCHANGE, "")
            .with(DEAD_LETTER_ROUTING_KEY, work)
            .with(EXPIRES, ttl.expires_ms());
        QueueDeclaration::durable(self.name().hold(ttl), arguments)
    }
}

/// A description of a queue that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueError {
    /// A prefetch of 0.
    PrefetchZero {
        /// The queue described.
        queue: QueueName,
    },
    /// The retry policy waits longer than a hold queue can.
    RetryTooLong {
        /// The queue described.
        queue: QueueName,
        /// The wait that is too long.
        cause: DelayTooLong,
    },
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // AMQP 0-9-1, 1.8.3.1: zero means "no specific limit".
            Self::PrefetchZero { queue } => write!(
                f,
                "the prefetch of queue {queue} is 0, which AMQP takes as unlimited: set it from 1 to 65535"
            ),
            Self::RetryTooLong { queue, cause } => {
                write!(f, "the retry policy of queue {queue} waits too long: {cause}")
            }
        }
    }
}

impl std::error::Error for QueueError {}

const QUEUE_TYPE: ShortString = ShortString::from_static("x-queue-type");
const MAX_PRIORITY: ShortString = ShortString::from_static("x-max-priority");
const MESSAGE_TTL: ShortString = ShortString::from_static("x-message-ttl");
const DEAD_LETTER_EXCHANGE: ShortString = ShortString::from_static("x-dead-letter-exchange");
const DEAD_LETTER_ROUTING_KEY: ShortString = ShortString::from_static("x-dead-letter-routing-key");
const EXPIRES: ShortString = ShortString::from_static("x-expires");

/// The type is always said. A broker may be set up to make a quorum queue of a declaration without one, and
/// RabbitMQ does not renew the lease of a quorum queue at a declare: a hold would drop its messages.
fn classic() -> Table {
    Table::new().with(QUEUE_TYPE, "classic")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::table::Value;

    fn plan(queue: &Queue) -> QueuePlan {
        queue.plan().unwrap()
    }

    fn text(declaration: &QueueDeclaration) -> String {
        assert!(declaration.durable && !declaration.passive);
        assert!(!declaration.exclusive && !declaration.auto_delete);
        format!("{} {:?}", declaration.name, declaration.arguments)
    }

    #[test]
    fn the_queues_of_a_family_are_declared_with_the_arguments_of_the_wire_format() {
        let plan = plan(&Queue::new("q").unwrap());
        assert_eq!(text(&plan.work()), r#"q {"x-queue-type": "classic", "x-max-priority": 10}"#);
        assert_eq!(text(&plan.dead().unwrap()), r#"q.dead {"x-queue-type": "classic"}"#);
        assert_eq!(
            text(&plan.hold(HoldTtl::from_millis(5_000).unwrap())),
            r#"q.deferred.5000 {"x-queue-type": "classic", "x-message-ttl": 5000, "#.to_owned()
                + r#""x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-expires": 10000}"#
        );
    }

    #[test]
    fn every_integer_is_sent_as_64_bits_also_the_largest() {
        let hold = plan(&Queue::new("q").unwrap()).hold(HoldTtl::MAX);
        assert_eq!(hold.arguments.get("x-message-ttl"), Some(&Value::I64(2_147_483_647)));
        assert_eq!(hold.arguments.get("x-expires"), Some(&Value::I64(4_294_967_294)));
    }

    #[test]
    fn what_a_hold_looks_like_depends_on_its_name_alone() {
        let ttl = HoldTtl::from_millis(1_000).unwrap();
        let plain = plan(&Queue::new("q").unwrap());
        let other = plan(&Queue::new("q").unwrap().max_priority(0).prefetch(1).dead_letters(false));
        assert_ne!(plain, other);
        assert_eq!(plain.hold(ttl), other.hold(ttl));
    }

    #[test]
    fn a_queue_without_priorities_declares_none_and_one_without_dead_letters_has_no_queue_for_them() {
        let plan = plan(&Queue::new("q").unwrap().max_priority(0).dead_letters(false));
        assert_eq!(text(&plan.work()), r#"q {"x-queue-type": "classic"}"#);
        assert_eq!(plan.top_priority(), None);
        assert_eq!(plan.dead(), None);
    }

    #[test]
    fn two_descriptions_differ_in_a_setting_that_has_a_name() {
        let queue = || Queue::new("q").unwrap();
        let step = Granularity::new(Duration::from_millis(100)).unwrap();
        let others = [
            (Queue::new("p").unwrap(), "name"),
            (queue().prefetch(7), "prefetch"),
            (queue().max_priority(7), "max_priority"),
            (queue().retry(RetryPolicy::none()), "retry"),
            (queue().granularity(step), "granularity"),
            (queue().deferral_granularity(step), "deferral_granularity"),
            (queue().max_deferrals(7), "max_deferrals"),
            (queue().dead_letters(false), "dead_letters"),
        ];
        assert_eq!(queue().differs_in(&queue()), None);
        for (other, setting) in others {
            assert_eq!(queue().differs_in(&other), Some(setting));
        }
    }

    #[test]
    fn a_prefetch_of_zero_is_refused_because_it_would_mean_unlimited() {
        let error = Queue::new("q").unwrap().prefetch(0).plan().unwrap_err();
        assert!(error.to_string().contains("unlimited"), "{error}");
    }

    #[test]
    fn a_retry_that_no_hold_can_keep_is_found_before_any_job_fails() {
        let days = |days: u64| Duration::from_secs(days * 86_400);
        let queue = |retry| Queue::new("q").unwrap().retry(retry).plan();
        assert!(matches!(queue(RetryPolicy::fixed(2, days(25))), Err(QueueError::RetryTooLong { .. })));
        assert!(queue(RetryPolicy::fixed(1, days(25))).is_ok());
        let growing = RetryPolicy::exponential(30).max(Duration::MAX);
        assert!(matches!(queue(growing), Err(QueueError::RetryTooLong { .. })));
        assert!(queue(growing.max(days(24))).is_ok());
    }
}
