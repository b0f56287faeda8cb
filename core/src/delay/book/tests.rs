use std::time::Duration;

use super::*;
use crate::delay::{ExactDelays, Granularity};

const NOW: Instant = Instant::ORIGIN;

fn ttl(millis: u32) -> HoldTtl {
    HoldTtl::from_millis(millis).unwrap()
}

fn expiring() -> HoldBook {
    HoldBook::new(HoldKind::Expiring, Granularity::default())
}

fn replicated() -> HoldBook {
    HoldBook::new(HoldKind::Replicated, Grid::wide(Granularity::default(), ExactDelays::default()))
}

#[test]
fn a_replicated_hold_is_declared_once_and_its_confirm_makes_a_message_safe() {
    let mut book = replicated();
    assert_eq!(book.before_publish(NOW, ttl(1_000)), Lease::Declare);
    book.declare_sent(NOW, ttl(1_000));
    let cover = book.publish_sent(NOW, ttl(1_000));
    let days_later = NOW + Duration::from_secs(1_000_000);
    assert_eq!(book.after_confirm(days_later, cover), Confirmed::Safe);
    assert_eq!(book.before_publish(days_later, ttl(1_000)), Lease::Covered);
    assert_eq!(book.before_publish(days_later, ttl(2_000)), Lease::Declare);
}

#[test]
fn a_message_that_a_replicated_hold_returned_goes_to_it_again_behind_a_declare() {
    let mut book = replicated();
    book.declare_sent(NOW, ttl(1_000));
    book.declare_sent(NOW, ttl(2_000));
    assert_eq!(book.after_return(ttl(1_000), None), ttl(1_000));
    assert_eq!(book.before_publish(NOW, ttl(1_000)), Lease::Declare);
    assert_eq!(book.before_publish(NOW, ttl(2_000)), Lease::Covered);
    book.after_refusal(ttl(1_000));
    assert_eq!(book.before_publish(NOW, ttl(2_000)), Lease::Declare);
}

#[test]
fn an_expiring_hold_has_a_lease() {
    let mut book = expiring();
    book.declare_sent(NOW, ttl(1_000));
    let cover = book.publish_sent(NOW, ttl(1_000));
    assert!(cover.is_some(), "a lease");
    book.declare_ok(NOW, ttl(1_000));
    assert_eq!(book.before_publish(NOW + Duration::from_secs(3), ttl(1_000)), Lease::Declare);
    assert_eq!(book.after_confirm(NOW, cover), Confirmed::Safe);
}

#[test]
fn what_ends_a_lease_ends_it_in_either_book() {
    let after = |mut book: HoldBook, ends: fn(&mut HoldBook)| {
        book.declare_sent(NOW, ttl(5_000));
        book.declare_ok(NOW, ttl(5_000));
        assert_eq!(book.before_publish(NOW, ttl(5_000)), Lease::Covered);
        ends(&mut book);
        book.before_publish(NOW, ttl(5_000))
    };
    assert_eq!(after(expiring(), HoldBook::clear), Lease::Declare);
    assert_eq!(after(replicated(), HoldBook::clear), Lease::Declare);
    assert_eq!(after(expiring(), |book| book.after_refusal(ttl(5_000))), Lease::Declare);
    assert_eq!(after(replicated(), |book| book.after_refusal(ttl(5_000))), Lease::Declare);
    assert_eq!(after(expiring(), HoldBook::void), Lease::Declare);
    assert_eq!(after(replicated(), HoldBook::void), Lease::Covered, "they do not expire in a sleep");
}
