//! Every committed record below the position is on the target. Records that the source itself deleted first may
//! be missing only behind a halt, so never below a position.

use super::Found;
use crate::oracle::progress::Advance;
use crate::oracle::shadow::Shadow;
use crate::oracle::violation::{Invariant, Violation};
use kafka_model::Millis;

pub fn check(found: &Found<'_>) -> Option<Violation> {
    let missing = &found.alignment.missing;
    let first = *missing.first()?;
    let text =
        format!("{}{} committed records below the position were not copied", found.when, missing.len());
    Some(
        Violation::new(Invariant::NothingLost, found.at, text).in_partition(found.partition).at_source(first),
    )
}

/// Copying begins where the source's log did, or before: what lies below the start is never copied.
pub fn check_start(at: Millis, source: &Shadow, advance: &Advance) -> Option<Violation> {
    let entry = advance.entry.as_ref().filter(|_| advance.before.is_none())?;
    let log_start = source.log(entry.source_id, advance.partition.partition).map_or(0, |log| log.start);
    if entry.start <= log_start {
        return None;
    }
    let text = format!("copying starts at {}, but the source holds records from {log_start} on", entry.start);
    let violation = Violation::new(Invariant::NothingLost, at, text).in_partition(&advance.partition);
    Some(violation.at_source(log_start))
}
