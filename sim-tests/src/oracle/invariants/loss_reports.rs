//! A halt names a loss that happened, and a loss that happened is never passed over.

use super::Found;
use crate::oracle::alignment::Misfit;
use crate::oracle::case::Case;
use crate::oracle::content::Content;
use crate::oracle::ledger::{Entry, Halt, HaltReason};
use crate::oracle::log::{Fate, Log};
use crate::oracle::progress::{Advance, Progress};
use crate::oracle::violation::{Invariant, Violation};
use crate::plan::OddCopy;
use kafka_model::{Millis, Offset};
use kafka_types::{NO_TIMESTAMP, SourcePartition, TopicId, TopicName};

/// A topic that was made anew is not silently continued.
pub fn check_topic_id(found: &Found<'_>) -> Option<Violation> {
    found.alignment.misfits.iter().find_map(|(target, misfit)| {
        let Misfit::OtherTopicId { source } = misfit else { return None };
        let text = "the source topic was made anew, and copying went on without a word";
        let violation = Violation::new(Invariant::LossReports, found.at, text).in_partition(found.partition);
        Some(violation.at_source(*source).at_target(*target))
    })
}

/// The copy of a partition is gone with its target topic, and the ledger never says so.
pub fn untold(place: &SourcePartition, at: Millis) -> Violation {
    let text = "the target topic was deleted with all that was copied, and nobody is told";
    Violation::new(Invariant::LossReports, at, text).in_partition(place)
}

pub fn check(case: &Case<'_>, advance: &Advance, broken: &mut Vec<Violation>) {
    let Some(entry) = &advance.entry else { return };
    let empty = Log::default();
    let source = case.source.log(entry.source_id, advance.partition.partition).unwrap_or(&empty);
    let mut tell = |text: String, offset: Offset| {
        let violation = Violation::new(Invariant::LossReports, case.settlement.at, text);
        broken.push(violation.in_partition(&advance.partition).at_source(offset));
    };
    if let Some(before) = &advance.before {
        check_target(advance, entry, before, &mut tell);
        if before.source_id != entry.source_id {
            tell(
                "the source topic is another one, and copying went on without a word".to_owned(),
                entry.next,
            );
        } else if advance.from < advance.to {
            let passed = source.cuts_since(before.lineage).iter().take(advance.lineage - before.lineage);
            // Nothing is lost where the same records stand now: a cut of markers alone, or a log that a later
            // leader brought back, whether compaction has been there before or not.
            let mut matters = passed.filter_map(|cut| {
                let then = source.committed(before.lineage, cut.at, advance.from).records;
                let now = source.committed(advance.lineage, cut.at, advance.from).records;
                let states = [before.lineage, advance.lineage];
                let is_gone = |offset| states.iter().any(|state| source.is_compacted_away(*state, offset));
                let matters = cut.at < advance.from && !is_same(is_gone, &then, &now);
                matters.then_some((cut.at, then.len(), now.len()))
            });
            if let Some((cut, then, now)) = matters.next() {
                let from = advance.from;
                let text = format!(
                    "the source was cut back to {cut}, and copying went on from {from}; {then} records were \
                     between, {now} are"
                );
                tell(text, cut);
            }
        }
    }
    if let Some(damaged) = source.damaged_between(advance.from, advance.to) {
        tell("a batch that nobody can read was passed over without a word".to_owned(), damaged);
    }
    if let Some(halt) = &entry.halted {
        let target = case.target.log(entry.target_id, advance.partition.partition).unwrap_or(&empty);
        if let Err(why) = is_true(case, advance, entry, halt, source, target) {
            let text = format!("false halt {}: {}; but {why}", name(halt.reason), halt.detail);
            tell(text, entry.next);
        }
    }
}

/// A topic can be deleted, with all that was copied to it, in the moment before a commit: then that commit is the last,
/// and the next word on the partition is a halt.
fn check_target(advance: &Advance, entry: &Entry, before: &Progress, tell: &mut impl FnMut(String, Offset)) {
    if before.target_id != entry.target_id || before.target_topic != entry.target_topic {
        tell("the target topic is another one, and copying went on without a word".to_owned(), entry.next);
    }
    let stands = advance.from == advance.to && advance.copies.is_empty() && advance.elsewhere.is_empty();
    if before.copy_is_gone && (!stands || entry.halted.is_none()) {
        let text = "the target topic was deleted before, and copying went on without a word";
        tell(text.to_owned(), entry.next);
    }
}

fn is_same(
    is_gone: impl Fn(Offset) -> bool,
    some: &[(Offset, &Content)],
    others: &[(Offset, &Content)],
) -> bool {
    let stands_in = |there: &[(Offset, &Content)], (offset, content): &(Offset, &Content)| {
        let found = there.iter().find(|it| it.0 == *offset);
        found.map_or_else(|| is_gone(*offset), |it| it.1.is_same(content))
    };
    some.iter().all(|record| stands_in(others, record)) && others.iter().all(|record| stands_in(some, record))
}

/// Whether what a halt says is so, or what is so instead.
fn is_true(
    case: &Case<'_>,
    advance: &Advance,
    entry: &Entry,
    halt: &Halt,
    source: &Log,
    target: &Log,
) -> Result<(), String> {
    let held = halt.offset.and_then(|offset| source.held(offset));
    let demand = |is_so: bool, otherwise: String| if is_so { Ok(()) } else { Err(otherwise) };
    match halt.reason {
        HaltReason::Gap => {
            demand(entry.next < source.start, format!("the log starts at {}", source.start))?;
            exact_range(entry, halt, source)
        }
        HaltReason::Truncated => is_cut_back(case, advance, entry, halt, source),
        HaltReason::Recreated | HaltReason::Deleted => is_gone(case, advance, entry, halt),
        HaltReason::Oversized => {
            let topic = &advance.partition.topic;
            // An election can have put another in its place since.
            let sizes = halt.offset.into_iter().flat_map(|offset| source.ever_held(offset));
            let size = sizes.map(|held| held.content.size_alone()).max().unwrap_or(0);
            demand(case.flow.target_bytes_max(topic) < size, format!("the record has {size} bytes"))
        }
        HaltReason::Unsendable => {
            let timestamp = held.map(|held| held.content.timestamp);
            demand(timestamp == Some(0), format!("its timestamp is {timestamp:?}"))
        }
        HaltReason::NotAuthorized => {
            let is_denied = case.denied.contains(&advance.partition.topic);
            demand(is_denied, "nobody denied anything".to_owned())
        }
        HaltReason::Torn => {
            let known_below = entry.target_end.unwrap_or(0);
            let foreign = (known_below..target.end()).filter_map(|offset| target.held(offset));
            let is_foreign = foreign.into_iter().any(|held| held.fate == Fate::Plain);
            demand(is_foreign, "every record there was written with an entry".to_owned())
        }
        HaltReason::RolledBack => {
            demand(target.lost_decided().is_some(), "the target lost nothing".to_owned())
        }
        HaltReason::Refused => {
            let topic = &advance.partition.topic;
            let records = halt.offset.into_iter().flat_map(|offset| source.ever_held(offset));
            let mut contents = records.map(|held| &held.content);
            let now = case.settlement.at + case.flow.target_clock_ms;
            let is_refused = contents.any(|content| refuses(case.flow.odd_copies.get(topic), content, now));
            demand(is_refused, "the target takes it".to_owned())
        }
        HaltReason::Unreadable => {
            let is_damaged = halt.offset.is_some_and(|offset| source.was_damaged(offset));
            demand(is_damaged, "it is not damaged".to_owned())
        }
        HaltReason::Unfit => {
            let odd = case.flow.odd_copies.get(&advance.partition.topic);
            demand(odd == Some(&OddCopy::LogAppendTime), "the target topic alters no records".to_owned())
        }
    }
}

/// Whether a copy of that kind takes no such record, by the target's clock.
fn refuses(odd: Option<&OddCopy>, content: &Content, now: Millis) -> bool {
    match odd {
        Some(OddCopy::Compacted) => content.key().is_none(),
        Some(OddCopy::RefusesOld) => {
            content.timestamp != NO_TIMESTAMP && OddCopy::AGE_MAX_MS < now - content.timestamp
        }
        Some(OddCopy::LogAppendTime) | None => false,
    }
}

/// A log is cut back in sight of whoever copies from it: since what was copied last may have been read, or since
/// somebody may have asked where to start. What is told of the place is so of such a cut.
fn is_cut_back(
    case: &Case<'_>,
    advance: &Advance,
    entry: &Entry,
    halt: &Halt,
    source: &Log,
) -> Result<(), String> {
    let place = (entry.source_id, advance.partition.partition);
    let since = match &advance.before {
        Some(before) => before.read_since,
        None => case.standing.asked_since.get(&place).copied().unwrap_or(0),
    };
    let cuts = || source.cuts_since(since).iter().filter(|cut| cut.changes_below(entry.next));
    if cuts().next().is_none() {
        return Err("the source was not cut back below it since it was read".to_owned());
    }
    let Some(position) = halt.offset else { return Err("no position is told".to_owned()) };
    if position != entry.next {
        return Err(format!("the position is {}, not {position}", entry.next));
    }
    let fits = match numbers(halt).as_slice() {
        [] => true,
        [differs_from] => {
            *differs_from <= position && cuts().any(|cut| cut.shows_anew(source, *differs_from))
        }
        [end, told] => *told == position && *end < position && cuts().any(|cut| cut.at <= *end),
        _ => false,
    };
    let places: Vec<Offset> = cuts().map(|cut| cut.at).collect();
    if fits { Ok(()) } else { Err(format!("it was cut back to {places:?}")) }
}

/// Of the two topics, the one that is named is gone; and where another is said to be in its place, it is.
fn is_gone(case: &Case<'_>, advance: &Advance, entry: &Entry, halt: &Halt) -> Result<(), String> {
    let (source, target) = (&advance.partition.topic, &entry.target_topic);
    let named =
        [("source", case.source, source, entry.source_id), ("target", case.target, target, entry.target_id)];
    let is_named = |side: &str, topic: &TopicName| halt.detail.starts_with(&format!("{side} topic {topic} "));
    let Some((side, shadow, topic, id)) = named.into_iter().find(|it| is_named(it.0, it.2)) else {
        return Err("it names neither topic".to_owned());
    };
    if !shadow.is_deleted(id) {
        return Err(format!("the {side} topic is the one it was"));
    }
    let says = |now: &TopicId| halt.detail.ends_with(&format!("(topic id {id}, now {now})"));
    let is_later = shadow.ids(topic).iter().skip_while(|it| **it != id).skip(1).any(says);
    if halt.reason == HaltReason::Recreated && !is_later {
        return Err(format!("the {side} topics of that name were {:?}", shadow.ids(topic)));
    }
    Ok(())
}

fn numbers(halt: &Halt) -> Vec<Offset> {
    halt.detail.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

/// A gap is told with its range: from the position to where the log began when it was found.
fn exact_range(entry: &Entry, halt: &Halt, source: &Log) -> Result<(), String> {
    match numbers(halt).as_slice() {
        [first, last] if *first == entry.next && entry.next <= *last && *last < source.start => Ok(()),
        _ => Err(format!("offsets {} to {} were deleted", entry.next, source.start - 1)),
    }
}

fn name(reason: HaltReason) -> &'static str {
    match reason {
        HaltReason::Gap => "gap",
        HaltReason::Truncated => "truncated",
        HaltReason::Recreated => "recreated",
        HaltReason::Deleted => "deleted",
        HaltReason::Oversized => "oversized",
        HaltReason::Refused => "refused",
        HaltReason::Unsendable => "unsendable",
        HaltReason::Unreadable => "unreadable",
        HaltReason::NotAuthorized => "not-authorized",
        HaltReason::Torn => "torn",
        HaltReason::RolledBack => "rolled-back",
        HaltReason::Unfit => "unfit",
    }
}
