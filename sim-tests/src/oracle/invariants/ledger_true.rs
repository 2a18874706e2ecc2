//! The ledger says P exactly when the target holds the decided records below P, and what else it says of them
//! is so.

use super::Found;
use crate::oracle::alignment::Misfit;
use crate::oracle::case::Case;
use crate::oracle::ledger::{Entry, Run};
use crate::oracle::progress::{Advance, Standing};
use crate::oracle::settlement::{Copies, Copy};
use crate::oracle::violation::{Invariant, Violation};
use kafka_model::Millis;
use kafka_types::SourcePartition;
use std::collections::{BTreeMap, BTreeSet};

/// The last entry of each partition.
pub type LastWords = BTreeMap<SourcePartition, Entry>;

/// No copy lies at or beyond its partition's position.
pub fn check_position(found: &Found<'_>) -> Option<Violation> {
    found.alignment.misfits.iter().find_map(|(target, misfit)| {
        let Misfit::Beyond { source } = misfit else { return None };
        let text = "the target holds a record that the ledger's position does not cover";
        let violation = Violation::new(Invariant::LedgerTrue, found.at, text).in_partition(found.partition);
        Some(violation.at_source(*source).at_target(*target))
    })
}

/// Every ledger record can be read.
pub fn check_readable(case: &Case<'_>, broken: &mut Vec<Violation>) {
    for noted in &case.settlement.ledger {
        if let Err(why) = &noted.record {
            let text = format!("a record in lane {} cannot be read: {why}", noted.lane);
            let violation = Violation::new(Invariant::LedgerTrue, case.settlement.at, text);
            broken.push(violation.at_target(noted.offset));
        }
    }
}

/// What readers of the ledger find of a partition in the end is what was decided last.
pub fn check_last_words(standing: &Standing, last: &LastWords, at: Millis) -> Vec<Violation> {
    let decided =
        standing.partitions.iter().map(|(place, it)| (place, (it.next, it.records, it.halted.as_ref())));
    let decided: BTreeMap<_, _> = decided.collect();
    let found = last.iter().map(|(place, it)| (place, (it.next, it.records, it.halted.as_ref())));
    let found: BTreeMap<_, _> = found.collect();
    let places: BTreeSet<&SourcePartition> = decided.keys().chain(found.keys()).copied().collect();
    let differs = places.into_iter().filter(|place| decided.get(place) != found.get(place));
    let tell = |place: &SourcePartition| {
        let text = format!("the ledger shows {:?}, decided was {:?}", found.get(place), decided.get(place));
        Violation::new(Invariant::LedgerTrue, at, text).in_partition(place)
    };
    differs.map(tell).collect()
}

pub fn check(case: &Case<'_>, advance: &Advance, broken: &mut Vec<Violation>) {
    let mut tell = |text: String| {
        let violation = Violation::new(Invariant::LedgerTrue, case.settlement.at, text);
        broken.push(violation.in_partition(&advance.partition).at_source(advance.to));
    };
    let Some(entry) = &advance.entry else {
        tell(format!("{} records were committed without an entry in the ledger", advance.copies.len()));
        return;
    };
    if entry.next < advance.from {
        tell(format!("the position went back from {} to {}", advance.from, entry.next));
    }
    if let Some(open) = advance.first_open {
        tell(format!("the position passed offset {open}, whose transaction is open"));
    }
    let log = case.source.log(entry.source_id, advance.partition.partition);
    let ever = log.map_or(0, |log| log.longest());
    if ever < entry.next && entry.start < entry.next {
        tell(format!("the position {} is beyond the source's end {ever}", entry.next));
    }
    if let Some(before) = &advance.before {
        if advance.lane.is_some_and(|lane| lane != before.lane) {
            tell(format!("the partition moved from lane {} to another", before.lane));
        }
        if entry.start != before.start {
            tell(format!("its start changed from {} to {}", before.start, entry.start));
        }
    }
    let records = advance.before.as_ref().map_or(0, |before| before.records) + advance.copies.len() as u64;
    if entry.records != records {
        tell(format!("it counts {} records where there are {records}", entry.records));
    }
    if advance.copies_id.is_some_and(|id| id != entry.target_id) {
        tell("the records went to a target topic of another id".to_owned());
    }
    if let Some(copies) =
        advance.elsewhere.iter().find(|copies| !is_late_repeat(case, advance, entry, copies))
    {
        tell(format!("{} records went to a target topic of another id as well", copies.copies.len()));
    }
    check_offsets(advance, entry, &mut tell);
}

/// Nobody can keep a topic from being deleted between the last look at it and the commit. Requests that the client had
/// sent twice come to the one made anew then, as they were: a run of what stands in the topic that the ledger names.
fn is_late_repeat(case: &Case<'_>, advance: &Advance, entry: &Entry, late: &Copies) -> bool {
    let is_same = |(copy, late): (&Copy, &Copy)| copy.content.is_same(&late.content);
    let mut runs = advance.copies.windows(late.copies.len());
    advance.copies_id == Some(entry.target_id)
        && case.target.is_deleted(entry.target_id)
        && runs.any(|run| run.iter().zip(&late.copies).all(is_same))
}

/// The offset map: where the run stands on the target.
fn check_offsets(advance: &Advance, entry: &Entry, tell: &mut impl FnMut(String)) {
    let (Some(first), Some(last)) = (advance.copies.first(), advance.copies.last()) else { return };
    if let Some(Run { source_first, target_first, target_last }) = entry.run
        && advance.alignment.is_clean()
        && (Some(source_first), target_first, target_last)
            != (advance.alignment.first, first.offset, last.offset)
    {
        tell(format!(
            "it says that the run from {source_first} stands at {target_first} to {target_last}, but it stands \
             at {} to {}",
            first.offset, last.offset
        ));
    }
    if let Some(end) = entry.target_end
        && end != last.offset + 1
    {
        tell(format!("it says that the target ends at {end}, but the last copy stands at {}", last.offset));
    }
}
