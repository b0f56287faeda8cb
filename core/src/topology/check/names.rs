//! Names that stand for more than one thing: two descriptions, or a queue that belongs to another by its name.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Problem};
use crate::delay::{ExactDelays, Granularity, HoldKind};
use crate::table::{Table, Value};
use crate::text::ShortString;
use crate::topology::argument_list::equivalent;
use crate::topology::arguments::QUEUE_TYPE;
use crate::topology::{
    ExchangeDeclaration, FamilyMember, HoldPlan, QueueDeclaration, QueueName, Role, Suffixes,
};

static DEFAULT: Suffixes = Suffixes::DEFAULT;

/// A queue with dead letters or delays: what its description says belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::topology) struct Family {
    pub(in crate::topology) queue: QueueName,
    pub(in crate::topology) suffixes: Suffixes,
    /// Whether it is a job queue, whose name nobody else may have.
    pub(in crate::topology) is_job_queue: bool,
    pub(in crate::topology) dead: bool,
    pub(in crate::topology) holds: bool,
}

/// A property and what each of two declarations says of it; `None` where they are the same to the broker.
pub(in crate::topology) type Difference = (ShortString, Option<Value>, Option<Value>);

/// The first property in which two declarations of a queue differ.
pub(in crate::topology) fn queues_differ(
    one: &QueueDeclaration,
    other: &QueueDeclaration,
) -> Option<Difference> {
    let flags = [
        ("durable", one.durable, other.durable),
        ("exclusive", one.exclusive, other.exclusive),
        ("auto_delete", one.auto_delete, other.auto_delete),
    ];
    flags_differ(&flags).or_else(|| tables_differ(&one.arguments, &other.arguments))
}

/// The first property in which two declarations of an exchange differ.
pub(in crate::topology) fn exchanges_differ(
    one: &ExchangeDeclaration,
    other: &ExchangeDeclaration,
) -> Option<Difference> {
    if one.kind.as_short() != other.kind.as_short() {
        let (first, second) = (Value::from(&one.kind.as_short()), Value::from(&other.kind.as_short()));
        return Some((ShortString::from_static("type"), Some(first), Some(second)));
    }
    let flags = [
        ("durable", one.durable, other.durable),
        ("auto_delete", one.auto_delete, other.auto_delete),
        ("internal", one.internal, other.internal),
    ];
    flags_differ(&flags).or_else(|| tables_differ(&one.arguments, &other.arguments))
}

fn flags_differ(flags: &[(&'static str, bool, bool)]) -> Option<Difference> {
    let (flag, one, other) = flags.iter().find(|(_, one, other)| one != other)?;
    Some((ShortString::from_static(flag), Some(Value::Bool(*one)), Some(Value::Bool(*other))))
}

fn tables_differ(one: &Table, other: &Table) -> Option<Difference> {
    let values: BTreeMap<&ShortString, &Value> = other.iter().collect();
    for (name, value) in one.iter() {
        match values.get(name) {
            Some(second) if equivalent(value, second) => {}
            second => {
                return Some((name.clone(), Some(value.clone()), second.map(|second| (*second).clone())));
            }
        }
    }
    let known: BTreeSet<&ShortString> = one.iter().map(|(name, _)| name).collect();
    let (name, value) = other.iter().find(|(name, _)| !known.contains(name))?;
    Some((name.clone(), None, Some(value.clone())))
}

/// Looks for queues that are a hold by their name and not by their properties, and for job queues that belong to
/// another one by their name.
pub(super) fn check(queues: &[QueueDeclaration], families: &[Family], found: &mut Vec<Finding>) {
    let by_suffixes = owners(families);
    for queue in queues.iter().filter(|queue| !queue.passive) {
        // With other suffixes than the default ones a name means a hold only where its owner is described.
        for (suffixes, owners) in &by_suffixes {
            let Some(member) = FamilyMember::read(&queue.name, suffixes) else { continue };
            let described = owners.get(&member.queue).is_some_and(|owner| owner.holds);
            if let Role::Hold { kind, .. } = member.role
                && (described || **suffixes == DEFAULT)
                && let Some((property, wanted, value)) = hold_differs(&member, suffixes, kind, queue)
            {
                let owner = member.queue;
                let problem = Problem::NotTheHoldOfItsName { owner, property, value, wanted };
                found.push(Finding::of_queue(queue.name.clone(), problem));
                break;
            }
        }
    }
    for family in families.iter().filter(|family| family.is_job_queue) {
        let owned = by_suffixes.iter().find_map(|(suffixes, owners)| {
            let member = FamilyMember::read(family.queue.as_str(), suffixes)?;
            let owner = owners.get(&member.queue)?;
            let has_it = match member.role {
                Role::Dead => owner.dead,
                Role::Hold { .. } => owner.holds,
                _ => false,
            };
            has_it.then_some(member)
        });
        if let Some(FamilyMember { queue: owner, role }) = owned {
            let name = family.queue.as_short().clone();
            found.push(Finding::of_queue(name, Problem::BelongsToAnother { owner, role }));
        }
    }
}

/// The families by the suffixes with which their names are derived, of which there are few.
fn owners(families: &[Family]) -> Vec<(&Suffixes, BTreeMap<&QueueName, &Family>)> {
    let mut by_suffixes: Vec<(&Suffixes, BTreeMap<&QueueName, &Family>)> = vec![(&DEFAULT, BTreeMap::new())];
    for family in families {
        let at = match by_suffixes.iter().position(|(suffixes, _)| **suffixes == family.suffixes) {
            Some(at) => at,
            None => {
                by_suffixes.push((&family.suffixes, BTreeMap::new()));
                by_suffixes.len() - 1
            }
        };
        by_suffixes[at].1.entry(&family.queue).or_insert(family);
    }
    by_suffixes
}

fn hold_differs(
    member: &FamilyMember,
    suffixes: &Suffixes,
    kind: HoldKind,
    queue: &QueueDeclaration,
) -> Option<Difference> {
    let Role::Hold { ttl, .. } = member.role else { return None };
    let plan = HoldPlan::new(member.queue.clone(), suffixes.clone(), Granularity::default());
    let plan = match kind {
        HoldKind::Expiring => plan,
        HoldKind::Replicated => plan.replicated(ExactDelays::default()),
    };
    let hold = plan.declaration(ttl);
    // The type first: a hold of another type loses messages.
    let types = (hold.arguments.get(&QUEUE_TYPE), queue.arguments.get(&QUEUE_TYPE));
    if types.0 != types.1 {
        return Some((QUEUE_TYPE, types.0.cloned(), types.1.cloned()));
    }
    queues_differ(&hold, queue)
}
