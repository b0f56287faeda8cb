//! A ledger that has seen its busiest moment allocates nothing more, and a copy asks for one table.

use allocation_counter::measure;
use leveret_core::message::Properties;
use leveret_core::settle::{
    DeliveryId, SettleLedger, Settlement, Settling, SuccessorVerdict, Write, copied_properties,
};
use leveret_core::table::Table;
use leveret_core::text::ShortString;

const IN_HAND: usize = 32;

/// One delivery from its arrival to its end, over a refusal and a lost link.
fn cycle(ledger: &mut SettleLedger, settling: Settling) {
    let id = ledger.accept(settling);
    let _ = ledger.settle(id, Settlement::Publish).expect("it has just been accepted");
    for verdict in [SuccessorVerdict::LinkLost, SuccessorVerdict::Returned, SuccessorVerdict::Safe] {
        assert_ne!(ledger.write(id), Write::Nothing);
        let _ = ledger.verdict(id, verdict);
    }
}

#[test]
fn a_step_of_the_ledger_allocates_nothing_whatever_the_handlers_that_run_for_hours() {
    let mut ledger = SettleLedger::new();
    let long: Vec<DeliveryId> = (0..IN_HAND).map(|_| ledger.accept(Settling::Confirmed)).collect();
    cycle(&mut ledger, Settling::Confirmed);
    let steady = measure(|| {
        for _ in 0..10_000 {
            cycle(&mut ledger, Settling::Confirmed);
            cycle(&mut ledger, Settling::Ordered);
        }
    });
    assert_eq!(steady.count_total, 0);
    assert_eq!(ledger.len(), long.len());
}

#[test]
fn the_properties_of_a_copy_take_one_allocation() {
    let short = ShortString::from_static;
    let headers = Table::new()
        .with(short("traceparent"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .with(short("amqp-partition-key"), "ada")
        .with(short("x-death"), "stamped");
    let original = Properties { headers, reply_to: Some(short("replies")), ..Properties::default() };
    let mut copy = Properties::default();
    let info = measure(|| copy = copied_properties(&original));
    assert_eq!((copy.headers.len(), info.count_total), (2, 1));
}
