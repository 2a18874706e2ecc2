//! Every committed record below the position is on the target. Records that the source itself deleted first may
//! be missing only behind a halt, so never below a position.

use super::Found;
use crate::oracle::case::Case;
use crate::oracle::progress::Advance;
use crate::oracle::violation::{Invariant, Violation};
use kafka_model::Offset;

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
    let leaves_out = case.flow.starts_at_end || case.flow.starts_at.is_some();
    let first = case.standing.first_topics.get(&place.topic).filter(|_| leaves_out);
    let first = first.filter(|topic| topic.source_id == entry.source_id);
    let left_out =
        first.and_then(|topic| topic.starts.get(place.partition.index()).map(|it| it.offset)).unwrap_or(0);
    let tell = |text: String, offset: Offset| {
        let violation = Violation::new(Invariant::NothingLost, case.settlement.at, text);
        Some(violation.in_partition(place).at_source(offset))
    };
    if log_start.max(left_out) < entry.start {
        let text =
            format!("copying starts at {}, but the source holds records from {log_start} on", entry.start);
        return tell(text, log_start);
    }
    let (time, log) = (case.flow.starts_at?, case.source.log(entry.source_id, place.partition)?);
    // Of what compaction or an election took away nobody can say whether it was there when the start was looked for.
    let was_cut = |offset: Offset| log.cuts_since(0).iter().any(|cut| cut.at <= offset);
    let late = |offset: &Offset| {
        let is_late = log.held(*offset).is_some_and(|held| time <= held.content.timestamp);
        is_late && !log.is_compacted_away(log.lineage(), *offset) && !was_cut(*offset)
    };
    let passed = (log_start..entry.start).find(late)?;
    let text =
        format!("copying starts at {}, but a record before has a timestamp of {time} or later", entry.start);
    tell(text, passed)
}
