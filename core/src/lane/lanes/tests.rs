use std::num::NonZeroU16;

use proptest::prelude::*;

use super::super::model::{Operation, Run};
use super::super::{LANES_MAX, LaneCount, LanePlan};
use super::*;

fn plan(lanes: u16, prefetch: u16) -> LanePlan {
    LanePlan::new(LaneCount::new(lanes).unwrap(), NonZeroU16::new(prefetch).unwrap()).unwrap()
}

/// Offers a delivery that must run at once.
fn run<T>(lanes: &mut Lanes<T>, key: Option<&str>, item: T) -> Turn {
    lanes.offer(key.map(str::as_bytes), item).expect("there is room").expect("its lane is idle").turn
}

/// Offers a delivery that must wait.
fn wait<T: fmt::Debug>(lanes: &mut Lanes<T>, key: Option<&str>, item: T) {
    assert!(lanes.offer(key.map(str::as_bytes), item).expect("there is room").is_none());
}

/// Two keys with lanes of their own among `lanes`.
fn two_keys(lanes: u16) -> (String, String) {
    let lane_of = |key: &str| LaneCount::new(lanes).unwrap().lane_of(key.as_bytes());
    let first = "0".to_owned();
    let second = (1..).map(|n| n.to_string()).find(|key| lane_of(key) != lane_of(&first)).unwrap();
    (first, second)
}

#[test]
fn one_key_runs_in_order_while_others_run_beside_it() {
    let mut lanes = Lanes::new(plan(4, 16));
    let (ada, bob) = two_keys(4);
    let turn = run(&mut lanes, Some(&ada), "ada 1");
    wait(&mut lanes, Some(&ada), "ada 2");
    wait(&mut lanes, Some(&ada), "ada 3");
    let _bob = run(&mut lanes, Some(&bob), "bob 1");
    let second = lanes.finish(turn).unwrap();
    assert_eq!(second.item, "ada 2");
    let third = lanes.finish(second.turn).unwrap();
    assert_eq!(third.item, "ada 3");
    assert!(lanes.finish(third.turn).is_none());
    assert_eq!((lanes.running(), lanes.waiting()), (1, 0));
}

#[test]
fn deliveries_without_a_key_take_the_idle_lanes_in_rotation() {
    let mut lanes = Lanes::new(plan(3, 8));
    let turns: Vec<Turn> = (0..3).map(|n| run(&mut lanes, None, n)).collect();
    assert_eq!(turns.iter().map(|turn| turn.lane().get()).collect::<Vec<_>>(), [0, 1, 2]);
    for turn in turns {
        assert!(lanes.finish(turn).is_none());
    }
    // One that is done at once does not make the first lane do everything.
    let lane_of_each: Vec<u16> = (0..4)
        .map(|n| {
            let turn = run(&mut lanes, None, n);
            let lane = turn.lane().get();
            assert!(lanes.finish(turn).is_none());
            lane
        })
        .collect();
    assert_eq!(lane_of_each, [0, 1, 2, 0]);
}

#[test]
fn a_slow_handler_holds_up_its_own_key_and_no_delivery_without_one() {
    let mut lanes = Lanes::new(plan(2, 8));
    let (slow, quick) = two_keys(2);
    let _for_ever = run(&mut lanes, Some(&slow), "slow");
    let mut turn = run(&mut lanes, Some(&quick), "quick");
    wait(&mut lanes, Some(&slow), "behind the slow one");
    for item in ["no key 1", "no key 2", "no key 3"] {
        wait(&mut lanes, None, item);
    }
    for item in ["no key 1", "no key 2", "no key 3"] {
        let next = lanes.finish(turn).unwrap();
        assert_eq!(next.item, item);
        turn = next.turn;
    }
    assert!(lanes.finish(turn).is_none());
    assert_eq!(lanes.waiting(), 1, "only the one that must");
}

#[test]
fn a_lane_that_becomes_free_takes_the_oldest_with_or_without_a_key() {
    let mut lanes = Lanes::new(plan(1, 8));
    let mut turn = run(&mut lanes, Some("a"), 0);
    for (item, key) in [(1, Some("a")), (2, None), (3, Some("b")), (4, None)] {
        wait(&mut lanes, key, item);
    }
    for item in 1..=4 {
        let next = lanes.finish(turn).unwrap();
        assert_eq!(next.item, item);
        turn = next.turn;
    }
    assert!(lanes.finish(turn).is_none());
}

#[test]
fn after_a_reconnect_a_key_waits_for_the_handler_that_began_before() {
    let mut lanes = Lanes::new(plan(2, 2));
    let (ada, bob) = two_keys(2);
    let old_ada = run(&mut lanes, Some(&ada), "ada, first link");
    let old_bob = run(&mut lanes, Some(&bob), "bob, first link");
    wait(&mut lanes, Some(&ada), "ada 2, first link");
    assert_eq!(lanes.take_waiting(), ["ada 2, first link"]);

    // The whole prefetch of the second link fits, though both handlers still run.
    wait(&mut lanes, Some(&ada), "ada, second link");
    wait(&mut lanes, Some(&bob), "bob, second link");
    assert_eq!(lanes.finish(old_ada).unwrap().item, "ada, second link");
    assert_eq!(lanes.finish(old_bob).unwrap().item, "bob, second link");
}

#[test]
fn what_a_cancelled_consumer_was_sent_is_taken_out_and_the_rest_keeps_its_order() {
    let mut lanes = Lanes::new(plan(1, 8));
    let mut turn = run(&mut lanes, Some("a"), 0);
    for item in 1..=6 {
        wait(&mut lanes, Some("a").filter(|_| item % 3 != 0), item);
    }
    assert_eq!(lanes.take_waiting_if(|item| item % 2 == 0), [2, 4, 6]);
    for item in [1, 3, 5] {
        let next = lanes.finish(turn).unwrap();
        assert_eq!(next.item, item);
        turn = next.turn;
    }
}

#[test]
fn more_than_the_prefetch_count_is_given_back_and_changes_nothing() {
    let mut lanes = Lanes::new(plan(1, 2));
    let turn = run(&mut lanes, Some("a"), "runs");
    wait(&mut lanes, Some("a"), "waits 1");
    wait(&mut lanes, None, "waits 2");
    let full = lanes.offer(Some(b"a"), "too much").unwrap_err();
    assert_eq!(full, Full { item: "too much", waiting: 2 });
    assert_eq!(
        full.to_string(),
        "2 deliveries wait for their lanes, as many as the prefetch count allows: hand this one back to the broker"
    );
    assert_eq!(format!("{full:?}"), "Full { waiting: 2, .. }");
    assert_eq!(lanes.finish(turn).unwrap().item, "waits 1");
    wait(&mut lanes, Some("a"), "fits again");
}

#[test]
fn a_turn_of_other_lanes_changes_nothing() {
    let mut wide = Lanes::new(plan(4, 4));
    let turns: Vec<Turn> = (0..4).map(|n| run(&mut wide, None, n)).collect();
    let mut narrow = Lanes::new(plan(2, 2));
    for turn in turns {
        assert!(narrow.finish(turn).is_none());
    }
    assert!(narrow.is_idle());
    let _turn = run(&mut narrow, None, 0);
}

#[test]
fn the_largest_plan_works_to_its_last_lane() {
    let mut lanes = Lanes::new(plan(LANES_MAX, u16::MAX));
    let turns: Vec<Turn> = (0..usize::from(LANES_MAX)).map(|n| run(&mut lanes, None, n)).collect();
    (0..usize::from(u16::MAX)).for_each(|n| wait(&mut lanes, None, n));
    assert!(lanes.offer(None, 0).is_err());
    assert_eq!(lanes.take_waiting().len(), usize::from(u16::MAX));
    for turn in turns.into_iter().rev() {
        assert!(lanes.finish(turn).is_none());
    }
    assert!(lanes.is_idle());
}

#[test]
fn an_empty_key_and_one_of_64_kibibytes_are_keys() {
    let mut lanes = Lanes::new(plan(8, 8));
    for key in ["", &"k".repeat(65_536)] {
        let turn = run(&mut lanes, Some(key), 1);
        wait(&mut lanes, Some(key), 2);
        let second = lanes.finish(turn).unwrap();
        assert!(lanes.finish(second.turn).is_none());
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => prop_oneof![Just(None), (0..6_u8).prop_map(Some), any::<u8>().prop_map(Some)]
            .prop_map(Operation::Offer),
        8 => any::<usize>().prop_map(Operation::Finish),
        1 => Just(Operation::LinkLost),
        1 => Just(Operation::Cancelled),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever arrives and ends in whatever order: per key in order and one at a time, no lane idle beside its work,
    /// nothing lost, nothing twice, bounded, and the same again for the same calls.
    #[test]
    fn lanes_keep_the_order_and_lose_nothing(
        count in prop_oneof![1..9_u16, Just(64), Just(65), Just(130)],
        more in 0..20_u16,
        operations in prop::collection::vec(operation(), 0..300),
    ) {
        let play = || {
            let mut run = Run::new(plan(count, count + more));
            operations.iter().for_each(|operation| run.step(*operation));
            run.end()
        };
        prop_assert_eq!(play(), play());
    }
}

#[test]
fn nothing_is_lost_where_the_choice_of_what_to_take_out_panics() {
    let mut lanes = Lanes::new(plan(1, 10));
    let mut running = lanes.offer(None, 0).unwrap();
    for item in 1..6 {
        assert!(lanes.offer(Some(b"k").filter(|_| item % 2 == 0).map(|k| &k[..]), item).unwrap().is_none());
    }
    let choose = || lanes.take_waiting_if(|item| if *item == 3 { panic!("no choice") } else { *item < 3 });
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(choose)).is_err());
    assert_eq!(lanes.waiting(), 5);
    let mut ran = Vec::new();
    while let Some(Started { turn, item }) = running {
        ran.push(item);
        running = lanes.finish(turn);
    }
    assert_eq!(ran, [0, 1, 2, 3, 4, 5]);
}
