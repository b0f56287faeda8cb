//! Names: what is accepted is kept, what is derived fits and is read back.

use super::input::Lines;
use crate::delay::{HoldKind, HoldTtl};
use crate::text::{SHORT_STRING_MAX, ShortString};
use crate::topology::{
    ConsumerTag, ExchangeName, FamilyMember, HeaderKey, NameError, QueueName, Role, RoutingKey, SuffixError,
    Suffixes,
};

/// Line by line: a name, a TTL, and five suffixes: of dead letters, of expiring and replicated holds, of the waiting
/// queue, of the delayed exchange.
///
/// A name that is accepted is kept as it is, whatever it names, and fits into a short string. Whatever the suffixes, if
/// they are accepted: every name that is derived from a job queue's fits and is read back as what it is, and every name
/// that is read is the one that would be derived. No hold has the name of a job queue.
///
/// # Panics
///
/// Where that does not hold.
pub fn body(bytes: &[u8]) {
    let mut lines = Lines::new(bytes);
    let name = lines.text();
    let ttl = u32::try_from(lines.number()).ok().and_then(HoldTtl::from_millis).unwrap_or(HoldTtl::MAX);
    every_kind(&name);
    family(&name, ttl, &Suffixes::DEFAULT);
    if let Ok(suffixes) = suffixes(&mut lines) {
        family(&name, ttl, &suffixes);
    }
}

fn every_kind(name: &str) {
    let kept = |checked: Result<ShortString, NameError>| match checked {
        Ok(kept) => assert!(kept == *name && kept.len() <= SHORT_STRING_MAX, "{name:?} became {kept:?}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    };
    kept(QueueName::new(name).map(ShortString::from));
    kept(ExchangeName::new(name).map(ShortString::from));
    kept(RoutingKey::new(name).map(ShortString::from));
    kept(HeaderKey::new(name).map(ShortString::from));
    kept(ConsumerTag::new(name).map(ShortString::from));
}

fn suffixes(lines: &mut Lines<'_>) -> Result<Suffixes, SuffixError> {
    Suffixes::DEFAULT
        .with_dead(lines.text())?
        .with_hold(HoldKind::Expiring, lines.text())?
        .with_hold(HoldKind::Replicated, lines.text())?
        .with_waiting(lines.text())?
        .with_delayed_exchange(lines.text())
}

fn family(name: &str, ttl: HoldTtl, suffixes: &Suffixes) {
    if let Some(member) = FamilyMember::read(name, suffixes) {
        assert_eq!(member.name(suffixes), name, "read as {member:?}");
    }
    let Ok(queue) = QueueName::new(name) else { return };
    let hold = |kind| Role::Hold { kind, ttl };
    let roles = [
        Role::Dead,
        hold(HoldKind::Expiring),
        hold(HoldKind::Replicated),
        Role::Waiting,
        Role::DelayedExchange,
    ];
    for role in roles {
        let member = FamilyMember { queue: queue.clone(), role };
        let derived = member.name(suffixes);
        assert!(derived.starts_with(name) && derived.len() > name.len(), "{member:?} is called {derived:?}");
        assert_eq!(FamilyMember::read(&derived, suffixes), Some(member), "{derived:?}");
        let is_hold = matches!(role, Role::Hold { .. });
        assert_eq!(is_hold, suffixes.looks_like_hold(&derived), "{derived:?}");
    }
}
