use proptest::prelude::*;

use super::*;

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn read(name: &str) -> Option<(String, Role)> {
    FamilyMember::read(name, &Suffixes::DEFAULT).map(|member| (member.queue.to_string(), member.role))
}

fn hold(kind: HoldKind, millis: u32) -> Role {
    Role::Hold { kind, ttl: HoldTtl::from_millis(millis).unwrap() }
}

#[test]
fn the_name_of_a_family_member_tells_what_it_is() {
    let of_q = |role| Some(("q".to_owned(), role));
    assert_eq!(read("q"), of_q(Role::Work));
    assert_eq!(read("q.dead"), of_q(Role::Dead));
    assert_eq!(read("q.deferred.30000"), of_q(hold(HoldKind::Expiring, 30_000)));
    assert_eq!(read("q.held.30000"), of_q(hold(HoldKind::Replicated, 30_000)));
    assert_eq!(read("q.retry"), of_q(Role::Waiting));
    assert_eq!(read("q.delay"), of_q(Role::DelayedExchange));
}

#[test]
fn a_name_that_no_family_derives_is_read_as_nothing() {
    for name in [
        "",
        "amq.gen-1",
        "q.deferred.0",
        "q.deferred.030",
        "q.deferred.2147483648",
        "q.held.99999999999999999999",
    ] {
        assert_eq!(read(name), None, "{name}");
    }
    assert_eq!(read(".deferred.5"), None, "a hold of no queue");
    assert_eq!(read(".dead"), Some((".dead".to_owned(), Role::Work)), "the dead letters of no queue");
}

#[test]
fn other_suffixes_give_other_names_and_read_them_back() {
    let suffixes = Suffixes::DEFAULT
        .with_dead("-dead")
        .and_then(|suffixes| suffixes.with_hold(HoldKind::Expiring, "-wait"))
        .and_then(|suffixes| suffixes.with_hold(HoldKind::Replicated, "-keep"))
        .and_then(|suffixes| suffixes.with_waiting("-later"))
        .and_then(|suffixes| suffixes.with_delayed_exchange("-exchange"))
        .unwrap();
    let roles = [
        (Role::Work, "q"),
        (Role::Dead, "q-dead"),
        (hold(HoldKind::Expiring, 5), "q-wait.5"),
        (hold(HoldKind::Replicated, 5), "q-keep.5"),
        (Role::Waiting, "q-later"),
        (Role::DelayedExchange, "q-exchange"),
    ];
    for (role, name) in roles {
        let member = FamilyMember { queue: queue("q"), role };
        assert_eq!(member.name(&suffixes), name);
        assert_eq!(FamilyMember::read(name, &suffixes), Some(member));
    }
}

#[test]
fn suffixes_that_make_one_name_mean_two_things_are_refused() {
    let default = || Suffixes::DEFAULT;
    for refused in [
        default().with_dead(".retry"),
        default().with_dead(".very.retry"),
        default().with_waiting(".deferred.5"),
        default().with_delayed_exchange(".held"),
        default().with_hold(HoldKind::Expiring, ".held"),
        default().with_dead(".5"),
        default().with_dead("5"),
        default().with_waiting("d.5"),
    ] {
        assert!(matches!(refused, Err(SuffixError::Ambiguous { .. })), "{refused:?}");
    }
    assert!(default().with_dead(".v5").and_then(|suffixes| suffixes.with_waiting(".later.5")).is_ok());
    let too_long = default().with_hold(HoldKind::Replicated, ".deferreds");
    assert!(matches!(too_long, Err(SuffixError::HoldTooLong { .. })));
    for bad in ["", "\n", "123456789012345678901"] {
        assert!(matches!(default().with_dead(bad), Err(SuffixError::Name(_))), "{bad:?}");
    }
}

prop_compose! {
    fn any_role()(which in 0..5, millis in 1..=HoldTtl::MAX.as_millis()) -> Role {
        match which {
            0 => Role::Dead,
            1 => hold(HoldKind::Expiring, millis),
            2 => hold(HoldKind::Replicated, millis),
            3 => Role::Waiting,
            _ => Role::DelayedExchange,
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_derived_is_read_back(name in "\\PC{1,60}", role in any_role()) {
        let Ok(queue) = QueueName::new(&name) else { return Ok(()) };
        let member = FamilyMember { queue, role };
        let derived = member.name(&Suffixes::DEFAULT);
        prop_assert_eq!(FamilyMember::read(&derived, &Suffixes::DEFAULT), Some(member));
    }

    #[test]
    fn whatever_is_derived_with_accepted_suffixes_is_read_back(
        name in "[.ab5]{1,6}", role in any_role(), suffixes in proptest::collection::vec("[.ab5]{1,4}", 5)
    ) {
        let suffixes = Suffixes::DEFAULT
            .with_dead(&suffixes[0])
            .and_then(|all| all.with_hold(HoldKind::Expiring, &suffixes[1]))
            .and_then(|all| all.with_hold(HoldKind::Replicated, &suffixes[2]))
            .and_then(|all| all.with_waiting(&suffixes[3]))
            .and_then(|all| all.with_delayed_exchange(&suffixes[4]));
        let (Ok(suffixes), Ok(queue)) = (suffixes, QueueName::new(&name)) else { return Ok(()) };
        let member = FamilyMember { queue, role };
        let derived = member.name(&suffixes);
        prop_assert_eq!(FamilyMember::read(&derived, &suffixes), Some(member));
    }

    #[test]
    fn whatever_is_read_is_derived_again(name in "(\\PC{0,9}|q)(\\.(dead|deferred|held|retry|delay))?(\\.[0-9]{1,12})?") {
        if let Some(member) = FamilyMember::read(&name, &Suffixes::DEFAULT) {
            prop_assert_eq!(member.name(&Suffixes::DEFAULT), name.as_str());
        }
    }
}
