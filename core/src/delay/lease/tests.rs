mod network;

use proptest::prelude::*;

use super::*;
use crate::delay::Granularity;

fn at(millis: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(millis))
}

fn ttl(millis: u32) -> HoldTtl {
    HoldTtl::from_millis(millis).unwrap()
}

fn tenths() -> Granularity {
    Granularity::new(Duration::from_millis(100)).unwrap()
}

/// Declares, publishes and has the declare answered, all at one moment.
fn publish(leases: &mut HoldLeases, now: Instant, ttl: HoldTtl) -> Cover {
    leases.declare_sent(now, ttl);
    let cover = leases.publish_sent(now, ttl);
    leases.declare_ok(now, ttl);
    cover
}

#[test]
fn a_busy_hold_is_declared_again_before_its_lease_is_too_short_for_one_more_message() {
    let mut leases = HoldLeases::new(Granularity::default());
    let hold = ttl(3_000);
    let mut declares = Vec::new();
    for now in (0..9_000).step_by(300) {
        if leases.before_publish(at(now), hold) == Lease::Declare {
            declares.push(now);
            leases.declare_sent(at(now), hold);
            leases.declare_ok(at(now), hold);
        }
    }
    // 3,000 ms of TTL less a quarter: publishing alone never renews anything.
    assert_eq!(declares, [0, 2_400, 4_800, 7_200]);
}

#[test]
fn a_confirm_in_time_is_safe_and_one_without_a_declare_never_is() {
    let mut leases = HoldLeases::new(Granularity::default());
    let stray = leases.publish_sent(at(0), ttl(1_000));
    assert!(matches!(leases.after_confirm(at(0), stray), Confirmed::PublishAgain(_)));
    let cover = publish(&mut leases, at(0), ttl(1_000));
    assert_eq!(leases.after_confirm(at(749), cover), Confirmed::Safe);
}

#[test]
fn a_late_confirm_is_saved_by_a_declare_that_is_answered_in_time() {
    let mut leases = HoldLeases::new(Granularity::default());
    let cover = publish(&mut leases, at(0), ttl(1_000));
    let Confirmed::Renew(late) = leases.after_confirm(at(800), cover) else {
        panic!("there is time to renew")
    };
    leases.declare_sent(at(800), ttl(1_000));
    assert_eq!(leases.after_declare_ok(at(801), late), Confirmed::Wait(late));

    let mut in_time = leases.clone();
    in_time.declare_ok(at(1_700), ttl(1_000));
    assert_eq!(in_time.after_declare_ok(at(1_700), late), Confirmed::Safe);
    // At 2,200 ms the answer may come from a new, empty queue.
    leases.declare_ok(at(2_200), ttl(1_000));
    assert!(matches!(leases.after_declare_ok(at(2_200), late), Confirmed::PublishAgain(_)));
}

#[test]
fn a_declare_between_publish_and_late_confirm_counts_as_the_renewal() {
    let mut leases = HoldLeases::new(Granularity::default());
    let cover = publish(&mut leases, at(0), ttl(1_000));
    publish(&mut leases, at(800), ttl(1_000));
    assert_eq!(leases.after_confirm(at(1_200), cover), Confirmed::Safe);
}

#[test]
fn a_confirm_that_takes_longer_than_the_delay_moves_to_a_hold_that_outlasts_it() {
    let mut leases = HoldLeases::new(tenths());
    let cover = publish(&mut leases, at(0), ttl(100));
    let again = leases.after_confirm(at(150), cover);
    // 200 ms would leave 150 ms for the confirm: not twice the time that it just took.
    assert_eq!(again, Confirmed::PublishAgain(ttl(400)));
    assert_eq!(leases.choose(ttl(100)), ttl(400), "the next one does not even try the smaller hold");
    let cover = publish(&mut leases, at(1_000), ttl(400));
    assert_eq!(leases.after_confirm(at(1_150), cover), Confirmed::Safe);
}

#[test]
fn a_slow_confirm_is_forgotten_after_many_fast_ones() {
    let mut leases = HoldLeases::new(tenths());
    let cover = publish(&mut leases, at(0), ttl(100));
    assert_ne!(leases.after_confirm(at(150), cover), Confirmed::Safe);
    for now in (1_000..9_000).step_by(100) {
        let cover = publish(&mut leases, at(now), ttl(400));
        assert_eq!(leases.after_confirm(at(now + 2), cover), Confirmed::Safe);
    }
    assert_eq!(leases.choose(ttl(100)), ttl(100));
}

#[test]
fn a_new_connection_trusts_no_earlier_lease() {
    let mut leases = HoldLeases::new(Granularity::default());
    let cover = publish(&mut leases, at(0), ttl(1_000));
    leases.clear();
    assert_eq!(leases.before_publish(at(1), ttl(1_000)), Lease::Declare);
    let _ = publish(&mut leases, at(2), ttl(1_000));
    assert!(matches!(leases.after_confirm(at(3), cover), Confirmed::PublishAgain(_)));
}

#[test]
fn a_refused_declare_leaves_the_leases_of_other_holds_that_were_answered() {
    let mut leases = HoldLeases::new(Granularity::default());
    let (answered, unanswered, refused) = (ttl(10_000), ttl(20_000), ttl(30_000));
    let sent_before = publish(&mut leases, at(0), answered);
    leases.declare_sent(at(0), unanswered);
    let _ = publish(&mut leases, at(0), refused);
    leases.declare_sent(at(0), refused);
    leases.after_refusal(refused);
    assert_eq!(leases.before_publish(at(1), answered), Lease::Covered);
    assert_eq!(leases.before_publish(at(1), unanswered), Lease::Declare);
    assert_eq!(leases.before_publish(at(1), refused), Lease::Declare);
    // Its verdict can only have been lost with the channel.
    assert!(matches!(leases.after_confirm(at(1), sent_before), Confirmed::PublishAgain(_)));
    let sent_after = leases.publish_sent(at(1), answered);
    assert_eq!(leases.after_confirm(at(2), sent_after), Confirmed::Safe);
    // The lease counts from its own declare and not from the refusal.
    assert_eq!(leases.before_publish(at(8_000), answered), Lease::Declare);
}

#[test]
fn an_answer_from_before_a_sleep_is_not_taken_for_that_of_a_later_declare() {
    let mut leases = HoldLeases::new(Granularity::default());
    leases.declare_sent(at(0), ttl(1_000));
    leases.void();
    leases.declare_sent(at(100), ttl(1_000));
    let cover = leases.publish_sent(at(100), ttl(1_000));
    leases.declare_ok(at(900), ttl(1_000)); // of the first
    leases.declare_sent(at(1_000), ttl(1_000));
    leases.declare_ok(at(1_800), ttl(1_000)); // of the second
    let Confirmed::Renew(late) = leases.after_confirm(at(1_800), cover) else {
        panic!("there is time to renew");
    };
    leases.declare_sent(at(1_800), ttl(1_000));
    // The third came to a new, empty queue, if it was handled after 2,100 ms.
    leases.declare_ok(at(2_200), ttl(1_000));
    assert!(matches!(leases.after_declare_ok(at(2_200), late), Confirmed::PublishAgain(_)));
}

#[test]
fn a_sleep_ends_every_lease_whatever_is_answered_or_refused_afterwards() {
    let mut leases = HoldLeases::new(Granularity::default());
    let (answered, unanswered, refused) = (ttl(10_000), ttl(20_000), ttl(30_000));
    let cover = publish(&mut leases, at(0), answered);
    leases.declare_sent(at(0), answered);
    leases.declare_sent(at(0), unanswered);
    leases.void();
    assert_eq!(leases.before_publish(at(1), answered), Lease::Declare);
    assert_eq!(leases.before_publish(at(1), unanswered), Lease::Declare);
    assert!(matches!(leases.after_confirm(at(1), cover), Confirmed::PublishAgain(_)));
    leases.declare_ok(at(1), unanswered);
    leases.declare_sent(at(1), refused);
    leases.after_refusal(refused);
    assert_eq!(leases.before_publish(at(2), answered), Lease::Declare);
    assert_eq!(leases.before_publish(at(2), unanswered), Lease::Declare);
}

#[test]
fn a_lease_that_outlives_a_refusal_ends_with_the_connection_and_in_a_sleep() {
    for ends in [HoldLeases::clear, HoldLeases::void] {
        let mut leases = HoldLeases::new(Granularity::default());
        let _ = publish(&mut leases, at(0), ttl(10_000));
        leases.after_refusal(ttl(30_000));
        let cover = leases.publish_sent(at(1), ttl(10_000));
        ends(&mut leases);
        assert_eq!(leases.before_publish(at(2), ttl(10_000)), Lease::Declare);
        assert!(matches!(leases.after_confirm(at(2), cover), Confirmed::PublishAgain(_)));
    }
}

#[test]
fn a_returned_message_ends_the_lease_it_was_published_under_and_no_later_one() {
    let mut leases = HoldLeases::new(Granularity::default());
    let cover = publish(&mut leases, at(0), ttl(1_000));
    assert_eq!(leases.before_publish(at(1), ttl(1_000)), Lease::Covered);
    assert_eq!(leases.after_return(cover), ttl(1_000));
    assert_eq!(leases.before_publish(at(2), ttl(1_000)), Lease::Declare);
    let _ = publish(&mut leases, at(3), ttl(1_000));
    leases.after_return(cover);
    assert_eq!(leases.before_publish(at(4), ttl(1_000)), Lease::Covered);
}

#[test]
fn the_book_stays_bounded_and_forgets_what_expires_first() {
    let mut leases = HoldLeases::new(Granularity::default());
    for seconds in 1..=1_000 {
        let _ = publish(&mut leases, at(0), ttl(seconds * 1_000));
    }
    assert_eq!(leases.holds.len(), HOLDS_MAX);
    assert_eq!(leases.before_publish(at(1), ttl(1_000_000)), Lease::Covered);
    assert_eq!(leases.before_publish(at(1), ttl(100_000)), Lease::Declare);
}

#[test]
fn a_larger_hold_is_found_from_any_hold_however_slow_the_confirms() {
    let mut leases = HoldLeases::new(tenths());
    let longest = tenths().longest();
    let (mut now, mut hold, mut steps) = (0, ttl(1), 0);
    while hold < longest {
        let cover = publish(&mut leases, at(now), hold);
        now += 2 * u64::from(hold.as_millis());
        let Confirmed::PublishAgain(larger) = leases.after_confirm(at(now), cover) else {
            panic!("{hold} has expired");
        };
        assert!(larger.as_duration() >= (hold.as_duration() * 2).min(longest.as_duration()), "{larger}");
        (hold, steps) = (larger, steps + 1);
    }
    assert!(steps <= 25, "{steps}");
    assert_eq!(leases.choose(longest), longest);
}

#[test]
fn the_margin_leaves_part_of_every_ttl() {
    for millis in [1, 2, 99, 100, 199, 200, 1_000, HoldTtl::MAX.as_millis()] {
        let ttl = ttl(millis);
        assert!(margin(ttl) > Duration::ZERO && margin(ttl) < ttl.as_duration(), "{ttl}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_048))]

    /// Against a model of a classic queue: whatever the network does, a message that the book calls safe is
    /// released and not dropped, not before its delay, and every job gets such a message in the end.
    #[test]
    fn a_message_called_safe_is_never_dropped_and_never_early(
        seed in any::<u64>(),
        hold in prop_oneof![Just(100_u32), Just(300), Just(1_000), Just(5_000)],
        jobs in 1..30_u32,
        // In hundredths of the TTL.
        latency in 0..250_u64,
        gap in 1..150_u64,
        // When the broker stops for a while, and for how long.
        stall in (0..2_000_u64, prop_oneof![Just(0), 1..500_u64, any::<u32>().prop_map(u64::from)]),
        others in any::<bool>(),
        refusals in any::<bool>(),
        cuts in any::<bool>(),
        sleep in prop_oneof![Just(0_u64), 0..300_u64],
        looks_ahead in any::<bool>(),
    ) {
        let part = |hundredths: u64| Duration::from_millis(u64::from(hold) * hundredths / 100);
        let network = network::Network {
            latency: part(latency),
            gap: part(gap),
            stall: (part(stall.0), part(stall.1)),
            others,
            refusals,
            cuts,
            sleep: part(sleep),
            looks_ahead,
        };
        network::run(seed, ttl(hold), jobs, &network);
    }
}

#[test]
fn an_alarm_of_hours_does_not_put_the_next_jobs_off_for_hours() {
    let mut leases = HoldLeases::new(Granularity::default());
    let second = Granularity::default().step();
    leases.declare_sent(Instant::ORIGIN, second);
    let cover = leases.publish_sent(Instant::ORIGIN, second);
    leases.declare_ok(Instant::ORIGIN, second);
    let alarm_over = Instant::ORIGIN + Duration::from_secs(3 * 3_600);
    let Confirmed::PublishAgain(again) = leases.after_confirm(alarm_over, cover) else {
        panic!("the hold has expired");
    };
    let (again, next) = (again.as_duration(), leases.choose(second).as_duration());
    assert!(again.max(next) < Duration::from_secs(60), "{again:?}, {next:?}");
}
