//! A description that has been checked.

use std::collections::BTreeSet;
use std::num::{NonZeroU16, NonZeroU32};

use super::{Subscription, SubscriptionError};
use crate::delay::ExactDelaysError;
use crate::envelope::properties::DEFERRALS_HEADER;
use crate::lane::{LaneCount, LanePlan, PARTITION_KEY};
use crate::message::is_dropped;
use crate::text::ShortString;
use crate::topology::argument_list::ArgumentList;
use crate::topology::arguments::DELIVERY_LIMIT;
use crate::topology::check::{Finding, Problem, Severity, ShortLived, Subject};
use crate::topology::{
    DeadLetter, Declaration, DelayPlan, ExchangeDeclaration, HeaderKey, QueueDeclaration, QueueName,
    QueueType, RoutingKey, Topology,
};

/// A subscription whose description has been checked: what a session works with.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriptionPlan {
    subscription: Subscription,
    declares: bool,
    declarations: Vec<Declaration>,
    delay: Option<DelayPlan>,
    lanes: LanePlan,
}

/// What a description comes to, right or wrong.
pub(in crate::topology) struct Draft {
    pub(in crate::topology) declarations: Vec<Declaration>,
    pub(in crate::topology) delay: Option<DelayPlan>,
    /// Where the client publishes what is given up.
    pub(in crate::topology) published_dead_letter: Option<DeadLetter>,
    pub(in crate::topology) found: Vec<Finding>,
    exact_delays: Option<ExactDelaysError>,
}

impl Subscription {
    /// What the description comes to, with what is wrong in its settings. What is wrong in the declarations is for
    /// [`Topology::check`] to find.
    pub(in crate::topology) fn draft(&self, declares: bool) -> Draft {
        let mut found = Vec::new();
        let name = self.queue.name().map_or(ShortString::EMPTY, |name| name.as_short().clone());
        let mut report = |problem| found.push(Finding::of_queue(name.clone(), problem));

        let mut list = ArgumentList::default();
        if let Some(problem) = self.attempts(declares, &mut list) {
            report(problem);
        }
        if let Some(target) = self.dead_letter.as_ref().filter(|target| self.takes_back(target)) {
            report(Problem::DeadLetterIntoItself { target: target.clone() });
        }
        if is_taken(&self.retry_count_header) {
            report(Problem::RetryCountHeaderTaken { header: self.retry_count_header.clone() });
        }
        let (queue, conflicts) = self.queue.draft(list);
        for problem in conflicts {
            report(problem);
        }
        let (delay, exact_delays) = match self.plan_delay(declares, &mut report) {
            Ok(delay) => (delay, None),
            Err(error) => (None, Some(error)),
        };

        let (mut declarations, mut names) = (Vec::new(), BTreeSet::new());
        if declares {
            for exchange in self.routes.iter().filter_map(super::Route::declared) {
                let (declaration, conflicts) = exchange.draft();
                let subject = Subject::Exchange(exchange.name().clone());
                found.extend(
                    conflicts.into_iter().map(|problem| Finding { subject: subject.clone(), problem }),
                );
                let declaration = Declaration::Exchange(declaration);
                // Two descriptions of one exchange that differ both stay, so that the difference is found.
                if names.insert(exchange.name()) || !declarations.contains(&declaration) {
                    declarations.push(declaration);
                }
            }
            declarations.push(Declaration::Queue(queue));
            let bindings = self.routes.iter().map(|route| Declaration::Binding(route.binding(name.clone())));
            declarations.extend(bindings);
            declarations.extend(delay.iter().flat_map(DelayPlan::declarations));
        }
        let published_dead_letter =
            self.dead_letter.clone().filter(|_| self.queue.queue_type() == QueueType::Classic);
        Draft { declarations, delay, published_dead_letter, found, exact_delays }
    }

    /// Whether a message that is published to the target is for this queue: by its name, or by a route of the
    /// subscription. With the message's own key it is, too: every copy comes with the queue's name.
    fn takes_back(&self, target: &DeadLetter) -> bool {
        let Some(queue) = self.queue.name() else { return false };
        let key = target.key().map_or(queue.as_str(), RoutingKey::as_str);
        if target.exchange().is_default() {
            return key == queue.as_str();
        }
        self.routes.iter().any(|route| route.source() == target.exchange() && route.takes(key))
    }

    /// Hands the counting of attempts to a quorum queue.
    fn attempts(&self, declares: bool, list: &mut ArgumentList) -> Option<Problem> {
        if self.queue.queue_type() != QueueType::Quorum {
            return None;
        }
        match (self.max_attempts, &self.dead_letter) {
            (None, None) => return None,
            _ if !declares => return Some(Problem::AttemptsOfUndeclaredQuorumQueue),
            (Some(max_attempts), None) => {
                return Some(Problem::MaxAttemptsWithoutDeadLetter { max_attempts });
            }
            (None, Some(target)) => {
                return Some(Problem::DeadLetterWithoutMaxAttempts { target: target.clone() });
            }
            (Some(max_attempts), Some(target)) => {
                // RabbitMQ: a limit of n allows n + 1 deliveries.
                list.set(DELIVERY_LIMIT, "max_attempts", max_attempts.saturating_sub(1));
                target.write(list, "Subscription::dead_letter");
            }
        }
        None
    }

    fn plan_delay(
        &self,
        declares: bool,
        report: &mut impl FnMut(Problem),
    ) -> Result<Option<DelayPlan>, ExactDelaysError> {
        let short_lived = match self.queue.name() {
            None => Some(ShortLived::ServerNamed),
            _ if self.queue.is_exclusive() => Some(ShortLived::Exclusive),
            _ if self.queue.is_auto_delete() => Some(ShortLived::AutoDelete),
            _ => None,
        };
        let holds = super::Delay::holds();
        let delay = match (&self.delay, short_lived) {
            (None, None) if declares && !self.queue.has_length_limit() => &holds,
            (None, _) => return Ok(None),
            (Some(_), Some(because)) => {
                report(Problem::DelayOnShortLived { because });
                return Ok(None);
            }
            (Some(delay), None) => delay,
        };
        if delay.is_holds() && !declares {
            report(Problem::HoldsWithoutDeclaring);
        }
        let Some(queue) = self.queue.name() else { return Ok(None) };
        let plan = delay.plan(queue, self.queue.queue_type(), &self.suffixes, self.granularity)?;
        if let DelayPlan::WaitingQueue(waiting) = &plan
            && waiting.name() == queue.as_short()
        {
            report(Problem::DelayIntoItself);
            // Declared as well, the waiting queue would be a second description of the queue.
            return Ok(None);
        }
        Ok(Some(plan))
    }
}

/// Whether a header has a meaning of its own, so that it cannot count retries.
fn is_taken(header: &HeaderKey) -> bool {
    is_dropped(header.as_str()) || [PARTITION_KEY, DEFERRALS_HEADER].contains(header.as_short())
}

impl SubscriptionPlan {
    pub(super) fn of(subscription: &Subscription, declares: bool) -> Result<Self, SubscriptionError> {
        let queue = || subscription.queue.name().map_or(ShortString::EMPTY, |name| name.as_short().clone());
        let prefetch = NonZeroU16::new(subscription.prefetch)
            .ok_or_else(|| SubscriptionError::PrefetchZero { queue: queue() })?;
        let lanes = LaneCount::new(subscription.lanes)
            .map_err(|cause| SubscriptionError::Lanes { queue: queue(), cause })?;
        let lanes = LanePlan::new(lanes, prefetch)
            .map_err(|cause| SubscriptionError::PrefetchBelowLanes { queue: queue(), cause })?;
        if !declares && subscription.queue.name().is_none() {
            return Err(SubscriptionError::ServerNamedUndeclared);
        }
        let draft = subscription.draft(declares);
        if let Some(cause) = draft.exact_delays {
            return Err(SubscriptionError::ExactDelays { queue: queue(), cause });
        }
        let found = if declares { Topology::new().subscription(subscription).check() } else { draft.found };
        match found.into_iter().find(|finding| finding.severity() == Severity::Refused) {
            Some(finding) => Err(SubscriptionError::Refused(Box::new(finding))),
            None => Ok(Self {
                subscription: subscription.clone(),
                declares,
                declarations: draft.declarations,
                delay: draft.delay,
                lanes,
            }),
        }
    }

    /// The description that was checked.
    #[must_use]
    pub const fn description(&self) -> &Subscription {
        &self.subscription
    }

    /// The queue's name; `None` for one that the server names.
    #[must_use]
    pub const fn queue_name(&self) -> Option<&QueueName> {
        self.subscription.queue.name()
    }

    /// What must exist before anything is consumed, in the order in which it is declared on one channel: exchanges,
    /// the queue, its bindings, the target of its delays. Empty for a client that declares nothing.
    #[must_use]
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// The passive declaration that asks at the start whether the target of delays exists, where this client does not
    /// declare it. The answer to a missing one is 404, which closes the channel.
    #[must_use]
    pub fn delay_check(&self) -> Option<Declaration> {
        match &self.delay {
            _ if self.declares => None,
            Some(DelayPlan::WaitingQueue(plan)) => {
                Some(Declaration::Queue(QueueDeclaration::passive(plan.name().clone())))
            }
            Some(DelayPlan::DelayedExchange(plan)) => {
                Some(Declaration::Exchange(ExchangeDeclaration::passive(plan.exchange().clone())))
            }
            Some(DelayPlan::Holds(_)) | None => None,
        }
    }

    /// How delayed messages wait; `None` where the subscription has no delays.
    #[must_use]
    pub const fn delay(&self) -> Option<&DelayPlan> {
        self.delay.as_ref()
    }

    /// How many deliveries are in hand at once, at least the number of lanes.
    #[must_use]
    pub const fn prefetch(&self) -> NonZeroU16 {
        self.lanes.prefetch()
    }

    /// How many deliveries run at once, and how many are in hand for that.
    #[must_use]
    pub const fn lanes(&self) -> LanePlan {
        self.lanes
    }

    /// How often a message is tried; `None` for no limit.
    #[must_use]
    pub fn max_attempts(&self) -> Option<NonZeroU32> {
        self.subscription.max_attempts.map(|attempts| NonZeroU32::new(attempts).unwrap_or(NonZeroU32::MIN))
    }

    /// Whether the broker counts attempts too and dead-letters past the limit: on a quorum queue.
    #[must_use]
    pub fn broker_counts_attempts(&self) -> bool {
        self.subscription.max_attempts.is_some() && self.subscription.queue.queue_type() == QueueType::Quorum
    }

    /// Where messages go that are given up; `None` where they are rejected.
    #[must_use]
    pub const fn dead_letter(&self) -> Option<&DeadLetter> {
        self.subscription.dead_letter.as_ref()
    }

    /// The header that counts the retries of a message.
    #[must_use]
    pub const fn retry_count_header(&self) -> &HeaderKey {
        &self.subscription.retry_count_header
    }
}
