use std::collections::VecDeque;
use std::num::NonZeroU16;

use allocation_counter::measure;
use leveret_core::lane::{LaneCount, LanePlan, Lanes, PARTITION_KEY, PartitionKey};
use leveret_core::table::{Table, Value};

#[test]
fn lanes_take_their_memory_once_and_a_delivery_takes_none() {
    let plan = LanePlan::new(LaneCount::new(64).unwrap(), NonZeroU16::new(256).unwrap()).unwrap();
    let headers: Vec<Table> = (0..1_000_i64)
        .map(|n| match n % 3 {
            0 => Table::new(),
            1 => Table::new().with(PARTITION_KEY, n),
            _ => Table::new().with(PARTITION_KEY, Value::from(format!("customer-{}", n / 10))),
        })
        .collect();
    let mut lanes = Lanes::new(plan);
    let mut turns = VecDeque::with_capacity(64);
    let (mut started, mut waited) = (0_u32, 0_u32);
    let counted = measure(|| {
        for headers in headers.iter().cycle().take(10_000) {
            let key = PartitionKey::of(headers);
            match lanes.offer(key.as_ref().map(PartitionKey::as_bytes), 1_u64).unwrap() {
                Some(run) => {
                    turns.push_back(run.turn);
                    started += 1;
                }
                None => waited += 1,
            }
            if lanes.running() + lanes.waiting() == 256 {
                let next = turns.pop_front().and_then(|turn| lanes.finish(turn));
                turns.extend(next.map(|run| run.turn));
            }
        }
    });
    assert!(started > 64 && waited > 1_000, "both ways were taken: {started}, {waited}");
    assert_eq!(counted.count_total, 0);

    let built = measure(|| drop(Lanes::<u64>::new(plan)));
    assert_eq!(built.count_total, 3, "lists, slots, idle lanes");
    let formula = 256 * (8 + 24) + 64 * 8 + 64 / 8;
    assert!(built.bytes_total <= formula, "{} bytes", built.bytes_total);
}
