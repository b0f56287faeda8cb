use std::time::Duration;

use super::*;
use crate::delay::Granularity;
use crate::topology::Queue;

const NOW: Instant = Instant::ORIGIN;

fn ttl(millis: u32) -> HoldTtl {
    HoldTtl::from_millis(millis).unwrap()
}

fn book(queue: &Queue) -> HoldBook {
    HoldBook::new(queue.plan().unwrap().holds())
}

#[test]
fn a_replicated_hold_is_declared_once_and_its_confirm_makes_a_message_safe() {
    let mut book = book(&Queue::new("q").unwrap().quorum());
    assert_eq!(book.before_publish(NOW, ttl(1_000)), Lease::Declare);
    book.declare_sent(NOW, ttl(1_000));
    assert_eq!(book.publish_sent(NOW, ttl(1_000)), None);
    let days_later = NOW + Duration::from_secs(1_000_000);
    assert_eq!(book.before_publish(days_later, ttl(1_000)), Lease::Covered);
    assert_eq!(book.before_publish(days_later, ttl(2_000)), Lease::Declare);
}

#[test]
fn a_message_that_a_replicated_hold_returned_goes_to_it_again_behind_a_declare() {
    let mut book = book(&Queue::new("q").unwrap().quorum());
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
    let mut book = book(&Queue::new("q").unwrap());
    book.declare_sent(NOW, ttl(1_000));
    let cover = book.publish_sent(NOW, ttl(1_000)).expect("a lease");
    book.declare_ok(NOW, ttl(1_000));
    assert_eq!(book.before_publish(NOW + Duration::from_secs(3), ttl(1_000)), Lease::Declare);
    assert_eq!(book.after_confirm(NOW, cover), Confirmed::Safe);
}

#[test]
fn a_confirm_that_is_late_moves_a_message_by_the_finer_of_the_steps() {
    let step = |millis| Granularity::new(Duration::from_millis(millis)).unwrap();
    let queue = || Queue::new("q").unwrap();
    for queue in [
        queue().granularity(step(3_600_000)).deferral_granularity(step(100)),
        queue().granularity(step(100)).deferral_granularity(step(3_600_000)),
    ] {
        let mut book = book(&queue);
        book.declare_sent(NOW, ttl(100));
        let cover = book.publish_sent(NOW, ttl(100)).expect("a lease");
        book.declare_ok(NOW, ttl(100));
        let late = NOW + Duration::from_millis(300);
        assert_eq!(book.after_confirm(late, cover), Confirmed::PublishAgain(ttl(800)), "not an hour");
    }
}

#[test]
fn what_ends_a_lease_ends_it_in_either_book() {
    let after = |queue: &Queue, ends: fn(&mut HoldBook)| {
        let mut book = book(queue);
        book.declare_sent(NOW, ttl(5_000));
        book.declare_ok(NOW, ttl(5_000));
        assert_eq!(book.before_publish(NOW, ttl(5_000)), Lease::Covered);
        ends(&mut book);
        book.before_publish(NOW, ttl(5_000))
    };
    let (expiring, replicated) = (Queue::new("q").unwrap(), Queue::new("q").unwrap().quorum());
    assert_eq!(after(&expiring, HoldBook::clear), Lease::Declare);
    assert_eq!(after(&replicated, HoldBook::clear), Lease::Declare);
    assert_eq!(after(&expiring, |book| book.after_refusal(ttl(5_000))), Lease::Declare);
    assert_eq!(after(&replicated, |book| book.after_refusal(ttl(5_000))), Lease::Declare);
    assert_eq!(after(&expiring, HoldBook::void), Lease::Declare);
    assert_eq!(after(&replicated, HoldBook::void), Lease::Covered, "they do not expire in a sleep");
}
