//! The promises, one a file. Most are a question about one settlement beside the truth; the others are asked when a
//! process has ended, or when all is over.

mod equal_bytes;
pub mod exits_true;
pub mod ledger_true;
mod livelock;
mod loss_reports;
mod nothing_aborted;
mod nothing_doubled;
mod nothing_lost;
pub mod nothing_pinned;
mod one_writer;
mod order_kept;
mod partition_kept;
mod standstill;
pub mod status_true;
mod stuck;

pub use standstill::{Standstill, unhealed};

use super::alignment::Alignment;
use super::case::Case;
use super::violation::Violation;
use kafka_model::Millis;
use kafka_types::SourcePartition;

pub fn check_all(case: &Case<'_>) -> Vec<Violation> {
    let mut broken = Vec::new();
    for advance in case.advances {
        broken.extend(of_alignment(case.settlement.at, &advance.partition, &advance.alignment));
        broken.extend(order_kept::check_after(case, advance));
        broken.extend(nothing_lost::check_start(case, advance));
        loss_reports::check(case, advance, &mut broken);
        ledger_true::check(case, advance, &mut broken);
    }
    nothing_lost::check_pins(case, &mut broken);
    ledger_true::check_readable(case, &mut broken);
    one_writer::check(case, &mut broken);
    broken
}

/// The promises about records alone.
fn of_alignment(at: Millis, partition: &SourcePartition, alignment: &Alignment) -> Vec<Violation> {
    let found = Found { at, partition, alignment };
    [
        equal_bytes::check(&found),
        nothing_aborted::check(&found),
        partition_kept::check(&found),
        nothing_doubled::check(&found),
        order_kept::check(&found),
        nothing_lost::check(&found),
        loss_reports::check_topic_id(&found),
        ledger_true::check_position(&found),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Copies of one partition beside what they should be.
pub struct Found<'a> {
    at: Millis,
    partition: &'a SourcePartition,
    alignment: &'a Alignment,
}
