//! Names: checked, cloned, derived, read back.

use std::hint::black_box;

use allocation_counter::measure;
use leveret_core::delay::{HoldKind, HoldTtl};
use leveret_core::topology::{ExchangeName, FamilyMember, HeaderKey, QueueName, RoutingKey, Suffixes};

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

#[test]
fn a_name_is_one_allocation_and_its_clones_are_none() {
    assert_eq!(allocations(|| drop(black_box(ExchangeName::new("a-shop-in-town.events.published")))), 1);
    assert_eq!(allocations(|| drop(black_box(RoutingKey::new("a-shop-in-town.order.created")))), 1);
    assert_eq!(allocations(|| drop(black_box(QueueName::new("a-shop-in-town.emails.outgoing")))), 1);
    let name = QueueName::new("a-shop-in-town.emails.outgoing").expect("a good name");
    assert_eq!(allocations(|| drop(black_box(name.clone()))), 0);
    assert_eq!(allocations(|| drop(black_box(HeaderKey::RETRY_COUNT))), 0);
    assert_eq!(allocations(|| drop(black_box(Suffixes::DEFAULT))), 0);
}

#[test]
fn every_derived_name_is_one_allocation_and_so_is_reading_it_back() {
    let (suffixes, name) =
        (Suffixes::DEFAULT, QueueName::new("a-shop-in-town.emails.outgoing").expect("a good name"));
    let longest = HoldTtl::MAX;
    assert_eq!(allocations(|| drop(black_box(suffixes.dead(&name)))), 1);
    assert_eq!(allocations(|| drop(black_box(suffixes.waiting(&name)))), 1);
    assert_eq!(allocations(|| drop(black_box(suffixes.delayed_exchange(&name)))), 1);
    for kind in [HoldKind::Expiring, HoldKind::Replicated] {
        assert_eq!(allocations(|| drop(black_box(suffixes.hold(&name, kind, longest)))), 1);
        let hold = suffixes.hold(&name, kind, longest);
        assert_eq!(allocations(|| drop(black_box(FamilyMember::read(&hold, &suffixes)))), 1);
    }
}
