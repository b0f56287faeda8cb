//! The ordered list of what must exist.

use std::collections::{BTreeMap, BTreeSet};

use super::argument_list::ArgumentList;
use super::binding::{Binding, BindingDestination};
use super::check::names::{Family, exchanges_differ, queues_differ};
use super::check::{Finding, Problem, Subject};
use super::declaration::{Declaration, QueueDeclaration};
use super::delay_plan::DelayPlan;
use super::description::{DeadLetter, Exchange, PlainQueue};
use super::exchange::ExchangeDeclaration;
use super::name::{ExchangeName, QueueName};
use super::queue::{Queue, QueuePlan};
use super::subscription::Subscription;
use crate::text::ShortString;

/// What a set of queues and subscriptions needs on the broker: exchanges first, then queues, then bindings, each
/// once. Hold queues are not among it; they are declared on demand.
///
/// What others declare can be part of it as a passive [declaration](Self::declaration): it is asked for and not made, and
/// nothing that leads to it counts as missing.
///
/// [`Topology::check`] finds what is wrong with the whole before anything is sent.
///
/// ```
/// use leveret_core::topology::{PlainQueue, Queue, Severity, Topology};
///
/// let emails = Queue::new("shop.emails")?.plan()?;
/// let audit = PlainQueue::new("shop.audit")?.max_length(10_000);
/// let topology = Topology::new().job_queue(&emails).queue(&audit);
/// assert_eq!(topology.declarations().count(), 3, "shop.emails, shop.emails.dead, shop.audit");
/// assert_eq!(topology.check(), []);
///
/// let topology = topology.queue(&PlainQueue::new("shop.emails.dead")?.max_length(10));
/// let findings = topology.check();
/// assert_eq!(findings[0].severity(), Severity::Refused);
/// assert!(findings[0].to_string().contains("two descriptions differ: x-max-length"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Topology {
    pub(super) exchanges: Vec<ExchangeDeclaration>,
    pub(super) queues: Vec<QueueDeclaration>,
    pub(super) bindings: Vec<Binding>,
    /// Queues that the server names, with their bindings: these can only say "the queue declared last".
    pub(super) server_named: Vec<(QueueDeclaration, Vec<Binding>)>,
    pub(super) families: Vec<Family>,
    /// Queues whose messages carry their own expiration.
    pub(super) waiting: BTreeSet<ShortString>,
    /// Exchanges that somebody else declares, by what a subscription says.
    pub(super) existing: BTreeSet<ExchangeName>,
    /// Where clients publish dead letters themselves.
    pub(super) published: Vec<(ShortString, DeadLetter)>,
    /// What was found while descriptions were taken in.
    pub(super) found: Vec<Finding>,
    job_queues: BTreeMap<QueueName, Queue>,
    exchange_at: BTreeMap<ExchangeName, usize>,
    queue_at: BTreeMap<ShortString, usize>,
    /// Bindings by what is cheap to compare.
    bindings_at: BTreeMap<(ExchangeName, String, String), Vec<usize>>,
}

impl Topology {
    /// A topology of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With a job queue and its dead-letter queue.
    #[must_use]
    pub fn job_queue(mut self, queue: &QueuePlan) -> Self {
        for declaration in queue.declarations() {
            self.add_queue(declaration);
        }
        let description = queue.description();
        match self.job_queues.get(queue.name()) {
            None => {
                self.job_queues.insert(queue.name().clone(), description.clone());
                self.families.push(Family {
                    queue: queue.name().clone(),
                    suffixes: queue.suffixes().clone(),
                    is_job_queue: true,
                    dead: queue.dead_letters(),
                    holds: true,
                });
            }
            Some(first) => {
                if let Some(setting) = first.differs_in(description) {
                    let name = queue.name().as_short().clone();
                    self.found.push(Finding::of_queue(name, Problem::JobQueuesDiffer { setting }));
                }
            }
        }
        self
    }

    /// With what a subscription of a client that declares its topology needs. A description with a fault is taken in
    /// as it is: [`check`](Self::check) says what is wrong with it.
    #[must_use]
    pub fn subscription(mut self, subscription: &Subscription) -> Self {
        let draft = subscription.draft(true);
        for declaration in draft.declarations {
            self = self.declaration(declaration);
        }
        self.found.extend(draft.found);
        self.existing.extend(subscription.existing_exchanges().cloned());
        if let Some(queue) = subscription.queue().name() {
            let name = queue.as_short();
            if let Some(DelayPlan::WaitingQueue(plan)) = &draft.delay {
                self.waiting.insert(plan.name().clone());
            }
            if let Some(delay) = &draft.delay {
                self.families.push(Family {
                    queue: queue.clone(),
                    suffixes: subscription.used_suffixes().clone(),
                    is_job_queue: false,
                    dead: false,
                    holds: matches!(delay, DelayPlan::Holds(_)),
                });
            }
            if let Some(target) = draft.published_dead_letter {
                self.published.push((name.clone(), target));
            }
        }
        self
    }

    /// With an exchange.
    #[must_use]
    pub fn exchange(mut self, exchange: &Exchange) -> Self {
        let (declaration, conflicts) = exchange.draft();
        let subject = Subject::Exchange(exchange.name().clone());
        let found = conflicts.into_iter().map(|problem| Finding { subject: subject.clone(), problem });
        self.found.extend(found);
        self.add_exchange(declaration);
        self
    }

    /// With a queue.
    #[must_use]
    pub fn queue(mut self, queue: &PlainQueue) -> Self {
        let (declaration, conflicts) = queue.draft(ArgumentList::default());
        let name = declaration.name.clone();
        self.found.extend(conflicts.into_iter().map(|problem| Finding::of_queue(name.clone(), problem)));
        self.add_queue(declaration);
        self
    }

    /// With a binding.
    #[must_use]
    pub fn binding(mut self, binding: Binding) -> Self {
        self.add_binding(binding);
        self
    }

    /// With a declaration as it is sent. A passive one only asks whether the thing is there, and yields to one that
    /// declares it.
    #[must_use]
    pub fn declaration(mut self, declaration: Declaration) -> Self {
        match declaration {
            Declaration::Exchange(exchange) => self.add_exchange(exchange),
            Declaration::Queue(queue) => self.add_queue(queue),
            Declaration::Binding(binding) => self.add_binding(binding),
        }
        self
    }

    /// What must exist, in an order in which it can be declared: exchanges, queues, bindings; at last the queues that
    /// the server names, each followed by its bindings. They go over one channel, in this order.
    pub fn declarations(&self) -> impl Iterator<Item = Declaration> {
        let named = self.exchanges.iter().cloned().map(Declaration::Exchange);
        let named = named.chain(self.queues.iter().cloned().map(Declaration::Queue));
        let named = named.chain(self.bindings.iter().cloned().map(Declaration::Binding));
        let server_named = self.server_named.iter().flat_map(|(queue, bindings)| {
            let queue = std::iter::once(Declaration::Queue(queue.clone()));
            queue.chain(bindings.iter().cloned().map(Declaration::Binding))
        });
        named.chain(server_named)
    }

    /// The queues with a name, then those that the server names.
    pub(super) fn all_queues(&self) -> impl Iterator<Item = &QueueDeclaration> {
        self.queues.iter().chain(self.server_named.iter().map(|(queue, _)| queue))
    }

    fn add_exchange(&mut self, exchange: ExchangeDeclaration) {
        let Some(at) = self.exchange_at.get(&exchange.name) else {
            self.exchange_at.insert(exchange.name.clone(), self.exchanges.len());
            self.exchanges.push(exchange);
            return;
        };
        let first = &mut self.exchanges[*at];
        if first.passive {
            *first = exchange;
        } else if !exchange.passive
            && let Some((property, first, second)) = exchanges_differ(first, &exchange)
        {
            let problem = Problem::DescriptionsDiffer { property, first, second };
            self.found.push(Finding { subject: Subject::Exchange(exchange.name), problem });
        }
    }

    fn add_queue(&mut self, queue: QueueDeclaration) {
        if queue.name.is_empty() {
            self.server_named.push((queue, Vec::new()));
            return;
        }
        let Some(at) = self.queue_at.get(&queue.name) else {
            self.queue_at.insert(queue.name.clone(), self.queues.len());
            self.queues.push(queue);
            return;
        };
        let first = &mut self.queues[*at];
        if first.passive {
            *first = queue;
        } else if !queue.passive
            && let Some((property, first, second)) = queues_differ(first, &queue)
        {
            let problem = Problem::DescriptionsDiffer { property, first, second };
            self.found.push(Finding::of_queue(queue.name, problem));
        }
    }

    fn add_binding(&mut self, binding: Binding) {
        let to = match &binding.destination {
            BindingDestination::Queue(name) if name.is_empty() => {
                if let Some((_, bindings)) = self.server_named.last_mut() {
                    bindings.push(binding);
                    return;
                }
                "queue ".to_owned()
            }
            BindingDestination::Queue(name) => format!("queue {name}"),
            BindingDestination::Exchange(name) => format!("exchange {name}"),
        };
        let how = format!("{} {:?}", binding.routing_key, binding.arguments);
        let alike = self.bindings_at.entry((binding.source.clone(), to, how)).or_default();
        if alike.iter().any(|at| self.bindings[*at] == binding) {
            return;
        }
        alike.push(self.bindings.len());
        self.bindings.push(binding);
    }
}
