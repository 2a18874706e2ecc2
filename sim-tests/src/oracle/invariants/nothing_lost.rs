//! Every committed record below the position is on the target. Records that the source itself deleted first may
//! be missing only behind a halt, so never below a position.

use super::Found;
use crate::oracle::case::Case;
use crate::oracle::progress::Advance;
use crate::oracle::violation::{Invariant, Violation};

pub fn check(found: &Found<'_>) -> Option<Violation> {
    let missing = &found.alignment.missing;
    let first = *missing.first()?;
    let text =
        format!("{}{} committed records below the position were not copied", found.when, missing.len());
    Some(
        Violation::new(Invariant::NothingLost, found.at, text).in_partition(found.partition).at_source(first),
    )
}

/// Copying begins where the source's log did, or before: what lies below the start is never copied. A flow that is to
/// leave out what was there at first does so once, where it said, and in nothing that came later.
pub fn check_start(case: &Case<'_>, advance: &Advance) -> Option<Violation> {
    let entry = advance.entry.as_ref().filter(|_| advance.before.is_none())?;
    let place = &advance.partition;
    let log_start = case.source.log(entry.source_id, place.partition).map_or(0, |log| log.start);
    let first = case.standing.first_topics.get(&place.topic).filter(|_| case.flow.starts_at_end);
    let first = first.filter(|topic| topic.source_id == entry.source_id);
    let left_out =
        first.and_then(|topic| topic.starts.get(place.partition.index()).map(|it| it.offset)).unwrap_or(0);
    if entry.start <= log_start.max(left_out) {
        return None;
    }
    let text = format!("copying starts at {}, but the source holds records from {log_start} on", entry.start);
    let violation = Violation::new(Invariant::NothingLost, case.settlement.at, text).in_partition(place);
    Some(violation.at_source(log_start))
}
