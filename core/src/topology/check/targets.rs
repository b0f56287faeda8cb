//! What declarations refer to: sources and destinations of bindings, alternate exchanges, targets of dead letters;
//! and what queues must not have because delayed messages are released into them.

use std::collections::{BTreeMap, BTreeSet};

use super::routes::Graph;
use super::{Finding, Problem, Subject};
use crate::text::ShortString;
use crate::topology::argument_list::text;
use crate::topology::arguments::{ALTERNATE_EXCHANGE, MAX_LENGTH, MAX_LENGTH_BYTES, MESSAGE_TTL};
use crate::topology::{Binding, BindingDestination, ExchangeName, QueueDeclaration, Topology};

/// Looks at everything but dead letters, which the graph answers for.
pub(super) fn check(topology: &Topology, found: &mut Vec<Finding>) {
    let queues: BTreeMap<&str, &QueueDeclaration> =
        topology.queues.iter().map(|queue| (queue.name.as_str(), queue)).collect();
    let existing = topology.existing.iter().map(ExchangeName::as_str);
    let exchanges: BTreeSet<&str> =
        topology.exchanges.iter().map(|exchange| exchange.name.as_str()).chain(existing).collect();
    let is_known =
        |exchange: &str| exchanges.contains(exchange) || exchange.is_empty() || exchange.starts_with("amq.");

    for exchange in &topology.exchanges {
        if let Some(alternate) = text(&exchange.arguments, &ALTERNATE_EXCHANGE).filter(|name| !is_known(name))
        {
            let problem = Problem::AlternateUnknown { exchange: ShortString::truncated(alternate) };
            found.push(Finding { subject: Subject::Exchange(exchange.name.clone()), problem });
        }
    }
    for binding in &topology.bindings {
        let (problem, destination) = match &binding.destination {
            BindingDestination::Queue(name) => (!queues.contains_key(name.as_str()), name),
            BindingDestination::Exchange(name) => (!is_known(name.as_str()), name.as_short()),
        };
        check_source(binding, destination, &is_known, found);
        if binding.destination == BindingDestination::Exchange(ExchangeName::DEFAULT) {
            found.push(of_binding(binding, destination, Problem::BindsDefaultExchange));
        } else if problem {
            found.push(of_binding(binding, destination, Problem::DestinationUnknown));
        }
    }
    for (queue, bindings) in &topology.server_named {
        for binding in bindings {
            check_source(binding, &queue.name, &is_known, found);
        }
    }
    for family in &topology.families {
        if let Some(queue) = queues.get(family.queue.as_str()) {
            check_limits(queue, found);
        }
    }
}

/// Looks for targets of dead letters where nothing takes them.
pub(super) fn check_dead_letters(graph: &Graph, found: &mut Vec<Finding>) {
    for (queue, (exchange, routing_key), node) in &graph.dead_letters {
        // Which queue the default exchange picks by the message's own key, nobody knows before.
        let anybody = exchange.is_empty() && routing_key.is_none();
        if graph.edges[*node].is_empty() && !anybody {
            let (exchange, routing_key) = (exchange.clone(), routing_key.clone());
            let problem = Problem::DeadLetterTargetUnknown { exchange, routing_key };
            found.push(Finding::of_queue(queue.clone(), problem));
        }
    }
}

fn check_source(
    binding: &Binding,
    destination: &ShortString,
    is_known: &impl Fn(&str) -> bool,
    found: &mut Vec<Finding>,
) {
    if binding.source.is_default() {
        found.push(of_binding(binding, destination, Problem::BindsDefaultExchange));
    } else if !is_known(binding.source.as_str()) {
        found.push(of_binding(binding, destination, Problem::SourceUnknown));
    }
}

fn of_binding(binding: &Binding, destination: &ShortString, problem: Problem) -> Finding {
    let (source, destination) = (binding.source.clone(), destination.clone());
    Finding { subject: Subject::Binding { source, destination }, problem }
}

/// What has waited is published by the broker, which asks nobody whether it was taken.
fn check_limits(queue: &QueueDeclaration, found: &mut Vec<Finding>) {
    for argument in [MAX_LENGTH, MAX_LENGTH_BYTES] {
        if let Some(value) = queue.arguments.get(&argument).cloned() {
            let problem = Problem::DelaysBesideLengthLimit { argument, value };
            found.push(Finding::of_queue(queue.name.clone(), problem));
        }
    }
    if let Some(ttl) = queue.arguments.get(&MESSAGE_TTL).cloned() {
        found.push(Finding::of_queue(queue.name.clone(), Problem::DelaysBesideTtl { ttl }));
    }
}
