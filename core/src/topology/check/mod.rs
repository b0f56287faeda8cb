//! What is wrong with a topology, found before anything is sent.
//!
//! [`Topology::check`] answers with findings, each of which says in words what was found, what that does, and what to
//! do. What is [`Refused`](Severity::Refused) is an error of a plan; what is [`Warned`](Severity::Warned) of is for a
//! person to judge, who may know what exists on the broker already.
//!
//! | problem | severity | what to do |
//! |---|---|---|
//! | an argument, value or flag that the broker refuses, or takes for something else | refused | leave it out, or set what the finding allows |
//! | a raw argument or setting that says something else than another setting | refused | leave one out |
//! | two descriptions of one name that differ; a name that is another queue's hold or dead-letter queue | refused | describe it once; choose another name |
//! | a name or binding that the broker keeps for itself | refused | choose another name, leave the binding out |
//! | dead-lettering at least once that would be at most once, or has no target | refused | set `x-overflow` to `reject-publish`, add the exchange |
//! | attempts of a quorum queue without a dead-letter target, or the reverse | refused | set both, where the queue is declared |
//! | dead letters that come back to their own queue at once | refused | choose a target that leads elsewhere |
//! | messages that die by themselves and come around | refused; warned of where it depends on the message | end the way in a queue without dead-lettering |
//! | delays on a queue that may be gone, or may be full, when the message comes back | refused | use a named queue that lasts, without a length limit |
//! | delays in the queue itself, or in holds that nobody declares | refused | name another queue, let the client declare |
//! | a time to live on a queue with delays | warned of | leave it out if no message may die |
//! | a transient shared queue; an expiring quorum queue | warned of | make it durable or exclusive; leave `x-expires` out |
//! | an exchange or queue that is referred to and not declared here | warned of | declare it, or make sure that it exists |
//!
//! [`Problem`] has every one, with its severity. **Not checked** are the names of raw arguments: a misspelt one has no
//! effect, neither here nor at the broker.

mod arguments;
mod bindings;
mod cycles;
mod finding;
pub(super) mod names;
mod routes;
mod targets;
pub(super) mod topic;
mod wording;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;

pub use finding::{Finding, Problem, Severity, ShortLived, Subject};

use super::Topology;
use crate::text::ShortString;

impl Topology {
    /// What is wrong with it: the refused first, each kind in the order of what was described. Without a finding that
    /// is [`Severity::Refused`], RabbitMQ takes all of it on an empty virtual host, as far as exchange types need no
    /// plugin, raw arguments that are not modelled are right, and what findings warn of is there; and nothing of it
    /// loses messages without a word, but for what findings warn of, and what limits of age, length and deliveries
    /// without a dead-letter target are for.
    ///
    /// It answers for every input, and takes time in proportion to the size of the topology, apart from sorting.
    #[must_use]
    pub fn check(&self) -> Vec<Finding> {
        let mut found = self.found.clone();
        for exchange in &self.exchanges {
            arguments::check_exchange(exchange, &mut found);
        }
        for queue in self.all_queues() {
            arguments::check_queue(queue, &mut found);
        }
        bindings::check(self, &mut found);
        names::check(&self.queues, &self.families, &mut found);
        targets::check(self, &mut found);
        let graph = routes::Graph::new(self);
        targets::check_dead_letters(&graph, &mut found);
        let queue_names: Vec<ShortString> = self.all_queues().map(|queue| queue.name.clone()).collect();
        cycles::check(&graph, &queue_names, &mut found);
        settle(found)
    }
}

/// Takes out what another finding says better, and what is said twice, and puts the refused first.
fn settle(found: Vec<Finding>) -> Vec<Finding> {
    let belongs_to_another = |finding: &Finding| match &finding.problem {
        Problem::BelongsToAnother { .. } => Some(finding.subject.clone()),
        _ => None,
    };
    let explained: BTreeSet<Subject> = found.iter().filter_map(belongs_to_another).collect();
    // By its words: one thing may have as many problems as it has descriptions.
    let mut said = BTreeSet::<(Subject, String)>::new();
    let mut kept = Vec::with_capacity(found.len());
    for finding in found {
        let differs = matches!(finding.problem, Problem::DescriptionsDiffer { .. });
        if differs && explained.contains(&finding.subject) {
            continue;
        }
        if said.insert((finding.subject.clone(), finding.problem.to_string())) {
            kept.push(finding);
        }
    }
    kept.sort_by_key(|finding| Reverse(finding.severity()));
    kept
}
