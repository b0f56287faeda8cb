use proptest::prelude::*;

use super::*;
use SuccessorVerdict::{ChannelClosed, LinkLost, Nacked, PublishAgain, Refused, Returned, Safe, Unhealable};

const PUBLISH: Step = Step::Publish { redeclare: false };

/// A delivery whose successor is on its way.
fn written() -> (SettleLedger, DeliveryId) {
    let mut ledger = SettleLedger::new();
    let id = ledger.accept(Settling::Confirmed);
    assert_eq!(ledger.settle(id, Settlement::Publish), Ok(PUBLISH));
    assert_eq!(ledger.write(id), Write::Publish);
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
        (Settlement::Requeue, Step::Requeue),
    ] {
        let mut ledger = SettleLedger::new();
        let id = ledger.accept(Settling::Confirmed);
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
    let id = ledger.accept(Settling::Confirmed);
    assert_eq!(ledger.stale(id), Remains::Handler);
    assert_eq!(ledger.stale(id), Remains::Handler, "it still runs");
    assert_eq!(ledger.settle(id, Settlement::Acknowledge), Err(SettleError::Stale));
    assert!(ledger.is_empty());
}

#[test]
fn a_stale_delivery_drops_an_unsent_successor_and_never_resends_one() {
    let mut ledger = SettleLedger::new();
    let unsent = ledger.accept(Settling::Confirmed);
    assert_eq!(ledger.settle(unsent, Settlement::Publish), Ok(PUBLISH));
    assert_eq!(ledger.stale(unsent), Remains::Nothing);
    assert_eq!(ledger.write(unsent), Write::Nothing);

    let (mut ledger, sent) = written();
    assert_eq!(ledger.stale(sent), Remains::Nothing);
    assert_eq!(ledger.verdict(sent, LinkLost), Step::Nothing);
    assert_eq!(ledger.write(sent), Write::Nothing);
}

#[test]
fn a_lost_link_keeps_the_delivery_in_hand_however_often() {
    let (mut ledger, id) = written();
    for _ in 0..100 {
        assert_eq!(ledger.verdict(id, LinkLost), PUBLISH);
        assert_eq!(ledger.verdict(id, LinkLost), Step::Nothing, "it is not written");
        assert_eq!(ledger.write(id), Write::Publish);
    }
    assert_eq!(ledger.verdict(id, Safe), Step::Acknowledge);
}

#[test]
fn a_hold_that_may_not_outlive_its_message_gets_it_published_again_before_the_acknowledgement() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, PublishAgain), PUBLISH);
    assert_eq!(ledger.verdict(id, Safe), Step::Nothing, "a verdict of the first copy, come late");
    assert_eq!(ledger.write(id), Write::Publish);
    assert_eq!(ledger.verdict(id, Safe), Step::Acknowledge);
}

#[test]
fn a_target_that_refuses_is_tried_once_more_and_then_the_delivery_goes_back_after_a_pause() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Refused), Step::Publish { redeclare: true });
    assert_eq!(ledger.write(id), Write::Publish);
    assert_eq!(ledger.verdict(id, Refused), Step::Pause);
    assert_eq!(ledger.settle(id, Settlement::Acknowledge), Err(SettleError::AlreadySettled));
    assert_eq!(ledger.pause_over(id), Step::Requeue);
    assert_eq!(ledger.pause_over(id), Step::Nothing);
}

#[test]
fn a_delivery_that_turns_stale_in_its_pause_is_not_requeued() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Refused), Step::Publish { redeclare: true });
    assert_eq!(ledger.verdict(id, Refused), Step::Pause, "refused before it was written");
    assert_eq!(ledger.stale(id), Remains::Nothing);
    assert_eq!(ledger.pause_over(id), Step::Nothing);
}

#[test]
fn what_cannot_heal_becomes_a_dead_letter_and_goes_back_if_that_cannot_be_published_either() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Unhealable), Step::DeadLetter);
    assert_eq!(ledger.dead_letter(id, true), PUBLISH);
    assert_eq!(ledger.verdict(id, Unhealable), Step::Pause);
    assert_eq!(ledger.pause_over(id), Step::Requeue);

    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Unhealable), Step::DeadLetter);
    assert_eq!(ledger.dead_letter(id, false), Step::Reject);
    assert!(ledger.is_empty());
}

#[test]
fn every_way_in_which_a_target_does_not_take_a_successor_is_a_refusal() {
    for refusal in [Returned, Nacked, Refused, ChannelClosed] {
        let (mut ledger, id) = written();
        assert_eq!(ledger.verdict(id, refusal), Step::Publish { redeclare: true }, "{refusal:?}");
        assert_eq!(ledger.write(id), Write::Publish);
        assert_eq!(ledger.verdict(id, refusal), Step::Pause, "{refusal:?}");
        assert_eq!(ledger.pause_over(id), Step::Requeue);
    }
}

#[test]
fn a_successor_that_a_blocked_link_keeps_back_stays_in_hand_without_a_verdict_of_what_was_not_sent() {
    let mut ledger = SettleLedger::new();
    let id = ledger.accept(Settling::Confirmed);
    assert_eq!(ledger.settle(id, Settlement::Publish), Ok(PUBLISH));
    for late in [Safe, PublishAgain, LinkLost, Returned, Nacked, ChannelClosed] {
        assert_eq!(ledger.verdict(id, late), Step::Nothing, "{late:?}");
    }
    assert_eq!(ledger.write(id), Write::Publish);
    assert_eq!(ledger.verdict(id, Safe), Step::Acknowledge);
}

#[test]
fn a_link_that_is_lost_while_a_lease_is_renewed_gets_the_successor_published_again() {
    // The confirm that came too late was no verdict: the successor is still on its way.
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, LinkLost), PUBLISH);
    assert_eq!(ledger.write(id), Write::Publish);
    assert_eq!(ledger.verdict(id, Safe), Step::Acknowledge);
}

#[test]
fn what_is_told_of_a_delivery_that_has_ended_changes_nothing() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Safe), Step::Acknowledge);
    let next = ledger.accept(Settling::Confirmed);
    for late in [Safe, PublishAgain, Returned, Nacked, Refused, ChannelClosed, Unhealable, LinkLost] {
        assert_eq!(ledger.verdict(id, late), Step::Nothing, "{late:?}");
    }
    assert_eq!(ledger.pause_over(id), Step::Nothing);
    assert_eq!(ledger.dead_letter(id, true), Step::Nothing);
    assert_eq!(ledger.write(id), Write::Nothing);
    assert_eq!(ledger.stale(id), Remains::Nothing);
    assert_eq!(ledger.settle(next, Settlement::Acknowledge), Ok(Step::Acknowledge));
}

#[test]
fn a_dead_letter_whose_target_is_missing_is_tried_once_a_pause() {
    let (mut ledger, id) = written();
    assert_eq!(ledger.verdict(id, Unhealable), Step::DeadLetter);
    assert_eq!(ledger.dead_letter(id, true), PUBLISH);
    assert_eq!(ledger.write(id), Write::Publish);
    assert_eq!(ledger.verdict(id, Returned), Step::Publish { redeclare: true });
    assert_eq!(ledger.write(id), Write::Publish);
    assert_eq!(ledger.verdict(id, Returned), Step::Pause);
    assert_eq!(ledger.pause_over(id), Step::Requeue);
}

/// A delivery that was acknowledged right behind its successor.
fn owed() -> (SettleLedger, DeliveryId) {
    let mut ledger = SettleLedger::new();
    let id = ledger.accept(Settling::Ordered);
    assert_eq!(ledger.settle(id, Settlement::Publish), Ok(PUBLISH));
    assert_eq!(ledger.write(id), Write::PublishThenAcknowledge);
    assert!(ledger.is_owed(id));
    (ledger, id)
}

#[test]
fn an_ordered_successor_is_written_with_its_acknowledgement_and_let_go_once_it_is_safe() {
    let (mut ledger, id) = owed();
    assert_eq!((ledger.len(), ledger.owed()), (1, 1));
    assert_eq!(ledger.settle(id, Settlement::Acknowledge), Err(SettleError::AlreadySettled));
    assert_eq!(ledger.verdict(id, Safe), Step::Release);
    assert_eq!((ledger.len(), ledger.owed()), (0, 0));
    assert_eq!(ledger.settle(id, Settlement::Acknowledge), Err(SettleError::AlreadySettled));
}

#[test]
fn an_owed_successor_that_is_refused_is_published_once_a_pause_and_never_requeued() {
    for refusal in [Returned, Nacked, Refused, ChannelClosed] {
        let (mut ledger, id) = owed();
        assert_eq!(ledger.verdict(id, refusal), Step::Publish { redeclare: true });
        for _ in 0..100 {
            assert_eq!(ledger.write(id), Write::Publish, "the original is acknowledged once");
            assert_eq!(ledger.verdict(id, refusal), Step::Pause);
            assert_eq!(ledger.pause_over(id), Step::Publish { redeclare: true });
        }
        assert_eq!(ledger.write(id), Write::Publish);
        assert_eq!(ledger.verdict(id, Safe), Step::Release);
    }
}

#[test]
fn an_owed_successor_outlives_its_link_and_its_channel() {
    for stale_first in [true, false] {
        let (mut ledger, id) = owed();
        if stale_first {
            assert_eq!(ledger.stale(id), Remains::Successor);
        }
        assert_eq!(ledger.verdict(id, LinkLost), PUBLISH);
        assert_eq!(ledger.stale(id), Remains::Successor);
        assert_eq!(ledger.write(id), Write::Publish);
        assert_eq!(ledger.verdict(id, PublishAgain), PUBLISH);
        assert_eq!(ledger.write(id), Write::Publish);
        assert_eq!(ledger.verdict(id, Safe), Step::Release);
    }
}

#[test]
fn an_ordered_successor_that_was_not_written_ends_with_its_link() {
    let mut ledger = SettleLedger::new();
    let id = ledger.accept(Settling::Ordered);
    assert_eq!(ledger.settle(id, Settlement::Publish), Ok(PUBLISH));
    assert_eq!(ledger.stale(id), Remains::Nothing);
    assert_eq!(ledger.write(id), Write::Nothing);
    assert!(ledger.is_empty());
}

#[test]
fn at_the_bound_further_deliveries_are_settled_in_the_confirmed_order() {
    let mut ledger = SettleLedger::new().with_max_owed(1);
    let [first, second, third] = [(); 3].map(|()| ledger.accept(Settling::Ordered));
    for id in [first, second, third] {
        assert_eq!(ledger.settle(id, Settlement::Publish), Ok(PUBLISH));
    }
    assert_eq!(ledger.write(first), Write::PublishThenAcknowledge);
    assert_eq!(ledger.write(second), Write::Publish);
    assert_eq!(ledger.verdict(second, Safe), Step::Acknowledge);
    assert_eq!(ledger.verdict(first, Safe), Step::Release);
    assert_eq!(ledger.write(third), Write::PublishThenAcknowledge, "there is room again");
}

#[test]
fn an_ordered_successor_that_was_refused_before_it_was_written_is_not_trusted() {
    let mut ledger = SettleLedger::new();
    let id = ledger.accept(Settling::Ordered);
    assert_eq!(ledger.settle(id, Settlement::Publish), Ok(PUBLISH));
    assert_eq!(ledger.verdict(id, Refused), Step::Publish { redeclare: true });
    assert_eq!(ledger.write(id), Write::Publish);
    assert_eq!(ledger.verdict(id, Returned), Step::Pause);
    assert_eq!(ledger.pause_over(id), Step::Requeue, "the original is still with the broker");
}

#[test]
fn an_owed_successor_that_cannot_heal_becomes_a_dead_letter_and_is_reported_if_that_cannot_be_published() {
    let (mut ledger, id) = owed();
    assert_eq!(ledger.verdict(id, Unhealable), Step::DeadLetter);
    assert_eq!(ledger.dead_letter(id, true), PUBLISH);
    assert_eq!(ledger.write(id), Write::Publish);
    assert_eq!(ledger.verdict(id, Safe), Step::Release);

    let (mut ledger, id) = owed();
    assert_eq!(ledger.verdict(id, Unhealable), Step::DeadLetter);
    assert_eq!(ledger.dead_letter(id, true), PUBLISH);
    assert_eq!(ledger.verdict(id, Unhealable), Step::ReportLost);
    assert_eq!((ledger.len(), ledger.owed()), (0, 0));

    let (mut ledger, id) = owed();
    assert_eq!(ledger.verdict(id, Unhealable), Step::DeadLetter);
    assert_eq!(ledger.dead_letter(id, false), Step::ReportLost);
    assert!(ledger.is_empty());
}

#[test]
fn ids_grow_and_are_never_used_again_although_slots_are() {
    let mut ledger = SettleLedger::new();
    let mut last = ledger.accept(Settling::Confirmed);
    for _ in 0..1_000 {
        assert_eq!(ledger.settle(last, Settlement::Acknowledge), Ok(Step::Acknowledge));
        let next = ledger.accept(Settling::Confirmed);
        assert!(last < next);
        assert_eq!(ledger.settle(last, Settlement::Acknowledge), Err(SettleError::AlreadySettled));
        last = next;
    }
    assert_eq!(ledger.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_048))]

    #[test]
    fn no_job_is_lost_in_any_interleaving_and_everything_ends_once_all_heals(
        max_owed in 0..4_usize, script in proptest::collection::vec(any::<u8>(), 0..400)
    ) {
        model::run(max_owed, &script);
    }
}
