//! Every committed record below the position is on the target. Records that the source itself deleted first may
//! be missing only behind a halt, so never below a position.

use super::Found;
use crate::oracle::case::Case;
use crate::oracle::ledger::{LedgerRecord, TopicRecord};
use crate::oracle::log::Log;
use crate::oracle::progress::Advance;
use crate::oracle::violation::{Invariant, Violation};
use kafka_model::{Millis, Offset};
use kafka_types::{Partition, SourcePartition, TopicName};

pub fn check(found: &Found<'_>) -> Option<Violation> {
    let missing = &found.alignment.missing;
    let first = *missing.first()?;
    let text = format!("{} committed records below the position were not copied", missing.len());
    Some(
        Violation::new(Invariant::NothingLost, found.at, text).in_partition(found.partition).at_source(first),
    )
}

/// What lies below a pinned start is not copied, so it lies where the source's log begins; where it ends only if the
/// flow is to begin there, for the topics that were there when the flow did. Once pinned, a start stays.
pub fn check_pins(case: &Case<'_>, broken: &mut Vec<Violation>) {
    let ledger = || case.settlement.ledger.iter().filter_map(|noted| noted.record.as_ref().ok());
    let is_start = !case.standing.has_started && ledger().any(|record| *record == LedgerRecord::FlowStart);
    for record in ledger() {
        if let LedgerRecord::Topic(topic, pinned) = record {
            broken.extend(check_pin(case, topic, pinned, is_start));
        }
    }
}

fn check_pin(case: &Case<'_>, topic: &TopicName, pinned: &TopicRecord, is_start: bool) -> Option<Violation> {
    // Nothing of it is copied any more: its id is asked for first.
    if case.source.is_deleted(pinned.source_id) {
        return None;
    }
    let known = case.standing.topics.get(topic).filter(|known| known.source_id == pinned.source_id);
    let count = pinned.starts.len().max(known.map_or(0, |known| known.starts.len()));
    Partition::all(u32::try_from(count).unwrap_or(u32::MAX)).find_map(|partition| {
        let start = pinned.starts.get(partition.index()).map(|start| start.offset);
        let before = known.map(|known| known.starts.get(partition.index()).map(|start| start.offset));
        let log = case.source.log(pinned.source_id, partition);
        let log_start = log.map_or(0, |log| log.furthest_start);
        let furthest = match case.flow.starts_at {
            Some(_) if is_start => log.map_or(0, Log::longest),
            None if is_start && case.flow.starts_at_end => log.map_or(0, Log::readable),
            _ => 0,
        };
        let last = furthest.max(log_start);
        let text = match (before, start) {
            (Some(before), _) if before != start => {
                format!("the pinned start changed from {before:?} to {start:?}")
            }
            (None, Some(start)) if last < start => {
                format!("copying is to start at {start}, but the source holds records from {log_start} on")
            }
            (None, Some(start)) => {
                let (time, log) = (case.flow.starts_at?, log?);
                let passed = passed_in_time(log, log_start, start, time)?;
                format!("copying is to start at {start}, but {passed} has a timestamp of {time} or later")
            }
            _ => return None,
        };
        let place = SourcePartition { topic: topic.clone(), partition };
        let violation = Violation::new(Invariant::NothingLost, case.settlement.at, text);
        Some(violation.in_partition(&place).at_source(last))
    })
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
    let passed = passed_in_time(log, log_start, entry.start, time)?;
    let text =
        format!("copying starts at {}, but a record before has a timestamp of {time} or later", entry.start);
    tell(text, passed)
}

/// A record between two offsets that is of this time or later. Of what compaction or an election took away nobody can say
/// whether it was there when the start was looked for.
fn passed_in_time(log: &Log, from: Offset, to: Offset, time: Millis) -> Option<Offset> {
    let was_cut = |offset: Offset| log.cuts_since(0).iter().any(|cut| cut.at <= offset);
    let late = |offset: &Offset| {
        let is_late = log.held(*offset).is_some_and(|held| time <= held.content.timestamp);
        is_late && !log.is_compacted_away(log.lineage(), *offset) && !was_cut(*offset)
    };
    (from..to).find(late)
}
