//! What is wrong with a topology, found before anything is sent.
//!
//! | file | looks at |
//! |---|---|
//! | `arguments` | one declaration: flags, values, values together |
//! | `bindings` | what an exchange takes as a binding |
//! | `names` | names that stand for two things |
//! | `targets` | what is referred to and not declared; holds beside limits |
//! | `routes`, `topic` | where dead letters go |
//! | `cycles` | dead letters that come around |
//! | `finding`, `wording` | the result |

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
