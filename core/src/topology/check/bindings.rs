//! What exchanges take as a binding: the broker refuses any other with 406.

use std::collections::BTreeMap;

use super::{Finding, Problem, Subject};
use crate::text::ShortString;
use crate::topology::{Binding, BindingDestination, DelayedRouting, ExchangeKind, Topology};

const X_MATCH: ShortString = ShortString::from_static("x-match");

/// Looks at every binding by the kind of its exchange, where that is known.
pub(super) fn check(topology: &Topology, found: &mut Vec<Finding>) {
    let declared = topology.exchanges.iter().filter(|exchange| !exchange.passive);
    let kinds: BTreeMap<&str, &ExchangeKind> =
        declared.map(|exchange| (exchange.name.as_str(), &exchange.kind)).collect();
    let of_server_named = topology.server_named.iter().flat_map(|(_, bindings)| bindings);
    for binding in topology.bindings.iter().chain(of_server_named) {
        let kind = match binding.source.as_str() {
            "amq.headers" | "amq.match" => Some(&ExchangeKind::Headers),
            name => kinds.get(name).copied(),
        };
        let problem = match kind {
            Some(ExchangeKind::Headers | ExchangeKind::Delayed { routes: DelayedRouting::Headers }) => {
                check_match(binding)
            }
            Some(ExchangeKind::ConsistentHash) => check_weight(binding),
            _ => None,
        };
        if let Some(problem) = problem {
            let destination = match &binding.destination {
                BindingDestination::Queue(name) => name.clone(),
                BindingDestination::Exchange(name) => name.as_short().clone(),
            };
            let subject = Subject::Binding { source: binding.source.clone(), destination };
            found.push(Finding { subject, problem });
        }
    }
}

fn check_match(binding: &Binding) -> Option<Problem> {
    let value = binding.arguments.get(&X_MATCH)?;
    match value.as_str() {
        Some("all" | "any" | "all-with-x" | "any-with-x") => None,
        _ => Some(Problem::BadValue {
            argument: X_MATCH,
            value: value.clone(),
            allowed: "\"all\", \"any\", \"all-with-x\" or \"any-with-x\"",
        }),
    }
}

fn check_weight(binding: &Binding) -> Option<Problem> {
    let weight = binding.routing_key.as_short();
    let is_number = weight.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && weight.bytes().any(|digit| digit != b'0') {
        return None;
    }
    Some(Problem::NotAWeight { routing_key: weight.clone() })
}
