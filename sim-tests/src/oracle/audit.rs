//! The whole question again when all is over, asked of what readers see: the recorded history, cut into
//! committed and aborted by the markers in the logs, and the ledger as its last records tell it.
//!
//! The online check looks at one decision at a time; a decision whose markers never came, or came to only some
//! partitions, or a record that appeared outside any of the mirror's transactions, shows only here.

use super::alignment::{Expected, align};
use super::history::{Recorded, Side};
use super::ledger::{Entry, LedgerRecord, decode};
use super::log::{Fate, Lineage, Log};
use super::progress::Standing;
use super::settlement::Copy;
use super::shadow::Shadow;
use super::{FlowNames, Invariant, Oracle, Violation};
use kafka_model::{Cluster, Millis, Offset};
use kafka_types::{Partition, SourcePartition, TopicId, TopicName};
use std::collections::BTreeMap;

impl Oracle {
    /// Compares the two clusters as readers see them at the end.
    pub fn audit(&mut self, now: Millis, target: &Cluster) {
        let logs = replay(self.history.records(), Side::Target);
        let entries = last_entries(&self.flow, &logs);
        let mut broken = Vec::new();
        for ((topic, id, partition), log) in &logs {
            if topic.as_str() == self.flow.ledger || target.topic_id(topic) != Some(*id) {
                continue;
            }
            let place = SourcePartition { topic: self.flow.source_topic(topic), partition: *partition };
            let entry = entries.get(&place).filter(|entry| entry.target_id == *id);
            let mut copies = visible(log);
            copies.retain(|copy| !self.standing.late.contains(&(*id, *partition, copy.offset)));
            broken.extend(check(&self.source, &self.standing, now, &place, copies, entry));
        }
        for place in entries.keys() {
            let copied = logs.keys().any(|(topic, _, partition)| {
                self.flow.source_topic(topic) == place.topic && *partition == place.partition
            });
            if !copied {
                let none = Vec::new();
                broken.extend(check(&self.source, &self.standing, now, place, none, entries.get(place)));
            }
        }
        broken.sort_by_key(|violation| violation.invariant);
        self.violations.extend(broken);
    }
}

type Logs = BTreeMap<(TopicName, TopicId, Partition), Log>;

fn replay(history: &[Recorded], side: Side) -> Logs {
    let mut logs = Logs::new();
    for recorded in history.iter().filter(|recorded| recorded.side == side) {
        let place = (recorded.topic.clone(), recorded.topic_id, recorded.partition);
        logs.entry(place).or_default().apply(&recorded.event);
    }
    logs
}

fn last_entries(flow: &FlowNames, logs: &Logs) -> BTreeMap<SourcePartition, Entry> {
    let mut entries = BTreeMap::new();
    for (_, log) in logs.iter().filter(|((topic, _, _), _)| topic.as_str() == flow.ledger) {
        for copy in visible(log) {
            if let Ok(LedgerRecord::Entry(topic, partition, entry)) =
                decode(copy.content.key(), copy.content.value())
            {
                entries.insert(SourcePartition { topic, partition: Partition(partition) }, *entry);
            }
        }
    }
    entries
}

/// What a reader of committed records sees, by the markers.
fn visible(log: &Log) -> Vec<Copy> {
    let record = |offset| log.held(offset).map(|held| (offset, held));
    (0..log.end())
        .filter_map(record)
        .filter(|(_, held)| matches!(held.fate, Fate::Plain | Fate::Committed))
        .map(|(offset, held)| Copy { offset, producer: held.producer, content: held.content.clone() })
        .collect()
}

fn check(
    source: &Shadow,
    standing: &Standing,
    now: Millis,
    place: &SourcePartition,
    copies: Vec<Copy>,
    entry: Option<&Entry>,
) -> Vec<Violation> {
    let Some(entry) = entry else {
        return match copies.first() {
            None => Vec::new(),
            Some(copy) => {
                let text = "in the end the target holds records of a partition without a ledger entry";
                let violation = Violation::new(Invariant::LedgerTrue, now, text);
                vec![violation.in_partition(place).at_target(copy.offset)]
            }
        };
    };
    let copies: Vec<Copy> = copies.into_iter().filter(|copy| entry.target_start <= copy.offset).collect();
    let empty = Log::default();
    let source_log = source.log(entry.source_id, place.partition).unwrap_or(&empty);
    // An unclean election can undo what was committed when it was copied, so each stretch is held against the log as it
    // stood then, if the whole fits no state of it.
    let as_it_stood = standing.partitions.get(place).map(|progress| progress.stretches.as_slice());
    let whole = (0..=source_log.lineage()).rev().map(|lineage| vec![(entry.start, entry.next, lineage)]);
    let mut judged = None;
    for stretches in whole.chain(as_it_stood.map(<[_]>::to_vec)) {
        let committed =
            |(from, to, lineage): (Offset, Offset, Lineage)| source_log.committed(lineage, from, to);
        let expected = Expected {
            partition: place,
            topic_id: entry.source_id,
            to: entry.next,
            records: stretches.iter().flat_map(|stretch| committed(*stretch).records).collect(),
        };
        let excused = |offset: Offset| {
            let holds = |(from, to, _): &&(Offset, Offset, Lineage)| (*from..*to).contains(&offset);
            let mut states = stretches.iter().filter(holds).map(|(_, _, lineage)| *lineage);
            states.any(|lineage| source_log.is_compacted_away(lineage, offset))
        };
        let alignment = align(source, &expected, &copies, excused);
        if alignment.is_clean() {
            return Vec::new();
        }
        judged = judged.or(Some(alignment));
    }
    judged.map_or(Vec::new(), |alignment| {
        super::invariants::of_alignment(now, place, &alignment, "in the end: ")
    })
}
