use proptest::prelude::*;

use super::*;
use SuccessorVerdict::{LinkLost, PublishAgain, Refused, Safe, Unhealable};

const PUBLISH: Step = Step::Publish { redeclare: false };

/// A delivery whose successor is on its way.
fn written() -> (SettleLedger, DeliveryId) {
    let mut ledger = SettleLedger::new();
    let id = ledger.accept();
    assert_eq!(ledger.settle(id, Settlement::Publish), Ok(PUBLISH));
    assert!(ledger.write(id));
    (ledger, id)
}

#[test]
fn the_original_is_acknowledged_after_the_confirm_of_its_successor() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Safe), Step::Acknowledge);
    assert!(ledger.is_empty());
}

#[test]
fn without_a_successor_a_delivery_ends_at_once() {
    for (settlement, step) in [
        (Settlement::Acknowledge, Step::Acknowledge),
        (Settlement::Reject, Step::Reject),
        (Settlement::HandBack, Step::HandBack),
    ] {
        let mut ledger = SettleLedger::new();
        let id = ledger.accept();
        assert_eq!(ledger.settle(id, settlement), Ok(step));
        assert!(ledger.is_empty());
    }
}

#[test]
fn a_second_settle_is_an_error_before_and_after_the_end() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.settle(id, Settlement::Acknowledge), Err(SettleError::AlreadySettled));
    assert_eq!(ledger.verdict(id, Safe), Step::Acknowledge);
    assert_eq!(ledger.settle(id, Settlement::Acknowledge), Err(SettleError::AlreadySettled));
}

#[test]
fn a_handler_that_outlives_its_link_is_told_and_sends_nothing() {
    let mut ledger = SettleLedger::new();
    let id = ledger.accept();
    ledger.stale(id);
    assert_eq!(ledger.settle(id, Settlement::Acknowledge), Err(SettleError::Stale));
    assert!(ledger.is_empty());
}

#[test]
fn a_stale_delivery_drops_an_unsent_successor_and_never_resends_one() {
    let mut ledger = SettleLedger::new();
    let unsent = ledger.accept();
    assert_eq!(ledger.settle(unsent, Settlement::Publish), Ok(PUBLISH));
    ledger.stale(unsent);
    assert!(!ledger.write(unsent));

    let (mut ledger, sent) = written();
    ledger.stale(sent);
    assert_eq!(ledger.verdict(sent, LinkLost), Step::Nothing);
    assert!(!ledger.write(sent));
}

#[test]
fn a_lost_link_keeps_the_delivery_in_hand_however_often() {
    let (mut ledger, id) = written();
    for _ in 0..100 {
        assert_eq!(ledger.verdict(id, LinkLost), PUBLISH);
        assert_eq!(ledger.verdict(id, LinkLost), Step::Nothing, "it is not written");
        assert!(ledger.write(id));
    }
    assert_eq!(ledger.verdict(id, Safe), Step::Acknowledge);
}

#[test]
fn a_hold_that_may_not_outlive_its_message_gets_it_published_again_before_the_acknowledgement() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, PublishAgain), PUBLISH);
    assert_eq!(ledger.verdict(id, Safe), Step::Nothing, "a verdict of the first copy, come late");
    assert!(ledger.write(id));
    assert_eq!(ledger.verdict(id, Safe), Step::Acknowledge);
}

#[test]
fn a_target_that_refuses_is_tried_once_more_and_then_the_delivery_goes_back_after_a_pause() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Refused), Step::Publish { redeclare: true });
    assert!(ledger.write(id));
    assert_eq!(ledger.verdict(id, Refused), Step::Pause);
    assert_eq!(ledger.settle(id, Settlement::Acknowledge), Err(SettleError::AlreadySettled));
    assert_eq!(ledger.pause_over(id), Step::HandBack);
    assert_eq!(ledger.pause_over(id), Step::Nothing);
}

#[test]
fn a_delivery_that_turns_stale_in_its_pause_is_not_handed_back() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Refused), Step::Publish { redeclare: true });
    assert_eq!(ledger.verdict(id, Refused), Step::Pause, "refused before it was written");
    ledger.stale(id);
    assert_eq!(ledger.pause_over(id), Step::Nothing);
}

#[test]
fn what_cannot_heal_becomes_a_dead_letter_and_goes_back_if_that_cannot_be_published_either() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Unhealable), Step::DeadLetter);
    assert_eq!(ledger.dead_letter(id, true), PUBLISH);
    assert_eq!(ledger.verdict(id, Unhealable), Step::Pause);
    assert_eq!(ledger.pause_over(id), Step::HandBack);

    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Unhealable), Step::DeadLetter);
    assert_eq!(ledger.dead_letter(id, false), Step::Reject);
    assert!(ledger.is_empty());
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Settle(Settlement),
    Write,
    Verdict(SuccessorVerdict),
    DeadLetter(bool),
    PauseOver,
    Stale,
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        prop_oneof![
            4 => Just(Settlement::Publish),
            1 => Just(Settlement::Acknowledge),
            1 => Just(Settlement::Reject),
            1 => Just(Settlement::HandBack),
        ]
        .prop_map(Event::Settle),
        Just(Event::Write),
        prop_oneof![Just(Safe), Just(PublishAgain), Just(Refused), Just(Unhealable), Just(LinkLost)]
            .prop_map(Event::Verdict),
        any::<bool>().prop_map(Event::DeadLetter),
        prop_oneof![9 => Just(Event::PauseOver), 1 => Just(Event::Stale)],
    ]
}

/// What an observer who sees only events and steps knows of a delivery.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// A copy is on its way, and has had no verdict.
    under_way: bool,
    ended: bool,
    stale: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    #[test]
    fn nothing_is_acknowledged_before_the_confirm_of_its_successor_and_everything_ends_once(
        script in proptest::collection::vec((0..3_usize, events()), 0..60)
    ) {
        let mut ledger = SettleLedger::new();
        let ids = [ledger.accept(), ledger.accept(), ledger.accept()];
        let mut seen = [Seen::default(); 3];
        // Then everything heals: handlers finish, links come back, targets take what is published.
        let healing = [
            Event::PauseOver, Event::Settle(Settlement::Publish), Event::DeadLetter(true), Event::Write,
            Event::Verdict(Safe),
        ];
        let healing = (0..3).flat_map(|of| healing.map(|event| (of, event)));
        for (of, event) in script.into_iter().chain(healing) {
            let id = ids[of];
            let mut was = seen[of];
            let step = match event {
                Event::Settle(settlement) => ledger.settle(id, settlement).unwrap_or(Step::Nothing),
                Event::Verdict(verdict) => ledger.verdict(id, verdict),
                Event::DeadLetter(kept) => ledger.dead_letter(id, kept),
                Event::PauseOver => ledger.pause_over(id),
                Event::Write => {
                    was.under_way |= ledger.write(id);
                    prop_assert!(!(was.under_way && (was.ended || was.stale)), "published after the end");
                    Step::Nothing
                }
                Event::Stale => {
                    ledger.stale(id);
                    Step::Nothing
                }
            };
            if matches!(step, Step::Acknowledge) {
                let confirmed = matches!(event, Event::Verdict(Safe)) && was.under_way;
                let done = matches!(event, Event::Settle(Settlement::Acknowledge));
                prop_assert!(confirmed || done, "{event:?} acknowledged {was:?}");
            }
            if was.ended || was.stale {
                prop_assert_eq!(step, Step::Nothing);
            }
            was.under_way &= matches!(step, Step::Nothing) && !matches!(event, Event::Stale);
            was.ended |= matches!(step, Step::Acknowledge | Step::Reject | Step::HandBack);
            was.stale |= matches!(event, Event::Stale);
            seen[of] = was;
        }
        prop_assert!(seen.iter().all(|seen| seen.ended || seen.stale), "{seen:?}");
        prop_assert!(ledger.is_empty(), "{ledger:?}");
    }
}
