//! Within a partition, copies come in the order of the source.

use super::Found;
use crate::oracle::alignment::Misfit;
use crate::oracle::case::Case;
use crate::oracle::progress::Advance;
use crate::oracle::violation::{Invariant, Violation};

/// What was settled later stands later.
pub fn check_after(case: &Case<'_>, advance: &Advance) -> Option<Violation> {
    let (topic_id, last) = advance.before.as_ref()?.last_copy?;
    let first = advance.copies.first().filter(|_| advance.copies_id == Some(topic_id))?.offset;
    if last < first {
        return None;
    }
    let text = format!("records stand before target offset {last}, which was settled before them");
    let violation = Violation::new(Invariant::OrderKept, case.settlement.at, text);
    Some(violation.in_partition(&advance.partition).at_target(first))
}

pub fn check(found: &Found<'_>) -> Option<Violation> {
    found.alignment.misfits.iter().find_map(|(target, misfit)| {
        let Misfit::Misordered { source } = misfit else { return None };
        let text = "a record was copied after one that follows it at the source";
        let violation = Violation::new(Invariant::OrderKept, found.at, text).in_partition(found.partition);
        Some(violation.at_source(*source).at_target(*target))
    })
}
