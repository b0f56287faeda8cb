//! Names that stand for more than one thing: two descriptions, or a queue that belongs to another by its name.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Problem};
use crate::delay::{ExactDelays, Granularity, HoldKind, HoldTtl};
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
    let owners = Owners::of(families);
    for queue in queues.iter().filter(|queue| !queue.passive) {
        // With other suffixes than the default ones a name means a hold only where its owner is described.
        let by_default = || Some((FamilyMember::read(&queue.name, &DEFAULT)?, &DEFAULT));
        let Some((member, suffixes)) = owners.of_hold(&queue.name).or_else(by_default) else { continue };
        if let Role::Hold { kind, .. } = member.role
            && let Some((property, wanted, value)) = hold_differs(&member, suffixes, kind, queue)
        {
            let owner = member.queue;
            let problem = Problem::NotTheHoldOfItsName { owner, property, value, wanted };
            found.push(Finding::of_queue(queue.name.clone(), problem));
        }
    }
    for family in families.iter().filter(|family| family.is_job_queue) {
        let name = family.queue.as_short();
        let hold = || owners.of_hold(name).map(|(member, _)| member);
        if let Some(FamilyMember { queue: owner, role }) = owners.of_dead(name).or_else(hold) {
            found.push(Finding::of_queue(name.clone(), Problem::BelongsToAnother { owner, role }));
        }
    }
}

/// The described families by the names that belong to them.
struct Owners<'a> {
    dead: BTreeMap<ShortString, &'a Family>,
    /// By the names of their holds, up to the dot before the TTL.
    holds: BTreeMap<String, &'a Family>,
}

impl<'a> Owners<'a> {
    fn of(families: &'a [Family]) -> Self {
        let (mut dead, mut holds) = (BTreeMap::new(), BTreeMap::new());
        for family in families {
            if family.dead {
                dead.entry(family.suffixes.dead(&family.queue)).or_insert(family);
            }
            if family.holds {
                for kind in [HoldKind::Expiring, HoldKind::Replicated] {
                    let hold = family.suffixes.hold(&family.queue, kind, HoldTtl::MAX);
                    if let Some((front, _)) = hold.rsplit_once('.') {
                        holds.entry(front.to_owned()).or_insert(family);
                    }
                }
            }
        }
        Self { dead, holds }
    }

    fn of_dead(&self, name: &str) -> Option<FamilyMember> {
        let owner = self.dead.get(name)?;
        Some(FamilyMember { queue: owner.queue.clone(), role: Role::Dead })
    }

    fn of_hold(&self, name: &str) -> Option<(FamilyMember, &'a Suffixes)> {
        let (front, _) = name.rsplit_once('.')?;
        let owner = self.holds.get(front)?;
        let member = FamilyMember::read(name, &owner.suffixes)?;
        matches!(member.role, Role::Hold { .. }).then_some((member, &owner.suffixes))
    }
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
