//! What an invariant is given: one settlement, laid beside the truth.

use super::FlowNames;
use super::alignment::{Alignment, Expected, align};
use super::ledger::{Entry, LedgerRecord};
use super::log::{Lineage, Log};
use super::progress::{Advance, Standing};
use super::settlement::{Copies, Settlement};
use super::shadow::Shadow;
use kafka_model::Offset;
use kafka_types::{Partition, SourcePartition, TargetPartition, TopicId, TopicName};
use std::collections::BTreeMap;

pub struct Case<'a> {
    pub flow: &'a FlowNames,
    pub settlement: &'a Settlement,
    pub advances: &'a [Advance],
    /// Before the settlement.
    pub standing: &'a Standing,
    pub source: &'a Shadow,
    pub target: &'a Shadow,
    /// Source topics that clients were denied at some time.
    pub denied: &'a [TopicName],
}

/// What the settlement does to each source partition that it touches.
pub fn advances(
    flow: &FlowNames,
    settlement: &Settlement,
    standing: &Standing,
    source: &Shadow,
) -> Vec<Advance> {
    let mut entries: BTreeMap<SourcePartition, (i32, Entry)> = BTreeMap::new();
    for noted in &settlement.ledger {
        if let Ok(LedgerRecord::Entry(topic, partition, entry)) = &noted.record {
            let place = SourcePartition { topic: topic.clone(), partition: Partition(*partition) };
            entries.insert(place, (noted.lane, (**entry).clone()));
        }
    }
    let mut copied: BTreeMap<SourcePartition, &TargetPartition> = BTreeMap::new();
    for target in settlement.copies.keys() {
        let topic = flow.source_topic(&target.topic);
        copied.insert(SourcePartition { topic, partition: target.partition }, target);
    }
    let mut touched: Vec<SourcePartition> = entries.keys().chain(copied.keys()).cloned().collect();
    touched.sort();
    touched.dedup();
    let advance = |partition: SourcePartition| {
        let found = copied.get(&partition).and_then(|target| settlement.copies.get(*target));
        let (lane, entry) = entries.remove(&partition).unzip();
        let before = standing.partitions.get(&partition).cloned();
        let target_id = entry.as_ref().map(|entry: &Entry| entry.target_id);
        let target_id = target_id.or(before.as_ref().map(|before| before.target_id));
        let (copies, elsewhere) = split(found.cloned().unwrap_or_default(), target_id);
        let source_id = entry.as_ref().map(|entry: &Entry| entry.source_id);
        let source_id = source_id.or(before.as_ref().map(|before| before.source_id));
        let source_id = source_id.or(source.id(&partition.topic)).unwrap_or(TopicId(0));
        let start = entry.as_ref().map_or(0, |entry| entry.start);
        let from = before.as_ref().map_or(start, |before| before.next);
        let mut advance = Advance {
            to: entry.as_ref().map_or(from, |entry| entry.next),
            partition,
            source_id,
            lane,
            before,
            from,
            entry,
            copies_id: copies.as_ref().map(|it| it.topic_id),
            copies: copies.map(|it| it.copies).unwrap_or_default(),
            elsewhere,
            alignment: Alignment::default(),
            lineage: 0,
            read_since: 0,
            first_open: None,
        };
        lay_beside(standing, source, &mut advance);
        advance
    };
    touched.into_iter().map(advance).collect()
}

/// The copies in the topic that the ledger names, and those in others of its name. Where that topic has none, the
/// present one's count as what was copied.
fn split(mut found: Vec<Copies>, target_id: Option<TopicId>) -> (Option<Copies>, Vec<Copies>) {
    let named = found.iter().position(|copies| Some(copies.topic_id) == target_id);
    let place = named.or(found.len().checked_sub(1));
    (place.map(|place| found.remove(place)), found)
}

/// Finds the state of the source's log that the copies fit, the latest first. A mere position, past markers or what was
/// aborted, fits many and speaks for no cut: so the earliest.
fn lay_beside(standing: &Standing, source: &Shadow, advance: &mut Advance) {
    let empty = Log::default();
    let log = source.log(advance.source_id, advance.partition.partition).unwrap_or(&empty);
    let pinned = standing.pins.get(&(advance.source_id, advance.partition.partition)).copied();
    let before = advance.before.as_ref().map(|before| before.lineage);
    let earliest: Lineage = before.or(pinned).unwrap_or(0);
    let mut now = None;
    let mut lineages: Vec<Lineage> = (earliest..=log.lineage()).rev().collect();
    if advance.copies.is_empty() {
        lineages.reverse();
    }
    advance.lineage = log.lineage();
    for lineage in lineages {
        let fit = fit(source, log, advance, lineage);
        if fit.is_good() {
            advance.lineage = log.earliest_like(lineage, earliest, advance.to);
            now = Some(fit);
            break;
        }
        now = now.or(Some(fit));
    }
    (advance.alignment, advance.first_open) = now.map(|it| (it.alignment, it.first_open)).unwrap_or_default();
    // A later leader may have brought back what was read before a cut.
    let since = advance.before.as_ref().map(|before| before.read_since).or(pinned).unwrap_or(0);
    let mut before = (since..advance.lineage).filter(|it| fit(source, log, advance, *it).is_good());
    advance.read_since = before.next().unwrap_or(advance.lineage);
}

/// How copies look beside one state of the source's log.
struct Fit {
    alignment: Alignment,
    first_open: Option<Offset>,
}

impl Fit {
    /// A marker that a cut took away had ended the transaction for whoever read before.
    fn is_good(&self) -> bool {
        self.alignment.is_clean() && self.first_open.is_none()
    }
}

fn fit(source: &Shadow, log: &Log, advance: &Advance, lineage: Lineage) -> Fit {
    let stretch = log.committed(lineage, advance.from, advance.to);
    let expected = Expected {
        partition: &advance.partition,
        topic_id: advance.source_id,
        to: advance.to,
        records: stretch.records,
    };
    let excused = |offset: Offset| log.is_compacted_away(lineage, offset);
    let alignment = align(source, &expected, &advance.copies, excused);
    Fit { alignment, first_open: stretch.first_open }
}
