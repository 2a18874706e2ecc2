use super::clusters::{Clusters, Record, State};
use kafka_types::{Partition, SourcePartition, TargetOffset, TargetPartition};
use std::collections::BTreeMap;
use verbatim_core::digest::Digest;
use verbatim_core::ledger::{Entry, LaneLedger, Record as LedgerKind, decode};

/// Compares both clusters and the ledger, by content.
pub struct Judge<'a> {
    clusters: &'a Clusters,
    pub entries: BTreeMap<SourcePartition, Entry>,
}

impl<'a> Judge<'a> {
    pub fn new(clusters: &'a Clusters) -> Judge<'a> {
        let mut entries = BTreeMap::new();
        for records in clusters.ledger.values() {
            entries.extend(LaneLedger::replay(records).expect("a sound ledger").entries);
        }
        Judge { clusters, entries }
    }

    pub fn entry(&self, topic: &str, partition: i32) -> &Entry {
        &self.entries[&SourcePartition::new(topic, partition)]
    }

    /// What readers of the target see of a partition, with its offsets.
    pub fn copies(&self, topic: &str, partition: i32) -> Vec<(i64, Record)> {
        let target = TargetPartition::new(topic, partition);
        let log = self.clusters.target.get(&target.topic).and_then(|it| it.logs.get(partition as usize));
        let slots = log.into_iter().flatten().enumerate();
        slots
            .filter(|(_, slot)| slot.state == State::Committed)
            .filter_map(|(at, slot)| Some((at as i64, slot.record?)))
            .collect()
    }

    /// Every entry is true: the target holds just what lies between its start and its position.
    #[track_caller]
    pub fn sound(&self) {
        for (place, entry) in &self.entries {
            let Some(topic) = self.clusters.source.get(&place.topic).filter(|it| it.id == entry.source_id)
            else {
                continue;
            };
            let log = &topic.logs[place.partition.index()];
            let range = entry.start.0 as usize..entry.next.0 as usize;
            let wanted: Vec<Record> = log.slots[range].iter().flatten().copied().collect();
            let copies = self.copies(place.topic.as_str(), place.partition.0);
            let found: Vec<Record> = copies.iter().map(|(_, record)| *record).collect();
            assert_eq!(found, wanted, "{place} up to {}", entry.next);
            assert_eq!(entry.records, wanted.len() as u64, "{place}");
            let digest = wanted.iter().fold(Digest::EMPTY, |digest, record| digest.push(record.hash()));
            assert_eq!(entry.digest, digest, "{place}");
            if let (Some(end), Some((last, _))) = (entry.target_end, copies.last()) {
                assert_eq!(end, TargetOffset(last + 1), "{place}");
            }
        }
        self.nothing_unknown();
    }

    /// No partition without an entry has a visible record of ours.
    fn nothing_unknown(&self) {
        for (topic, target) in &self.clusters.target {
            for partition in 0..target.logs.len() as i32 {
                let place = SourcePartition::new(topic.clone(), partition);
                let ours = target.logs[partition as usize].iter().any(|slot| {
                    slot.lane.is_some() && slot.record.is_some() && slot.state == State::Committed
                });
                assert!(!ours || self.entries.contains_key(&place), "{place} has copies but no entry");
            }
        }
    }

    /// All that the source has is on the target, and the ledger says so.
    #[track_caller]
    pub fn all_copied(&self) {
        self.sound();
        for (topic, source) in &self.clusters.source {
            for partition in Partition::all(source.logs.len() as u32) {
                let log = &source.logs[partition.index()];
                let place = SourcePartition { topic: topic.clone(), partition };
                let position = self.entries.get(&place).map_or(0, |entry| entry.next.0);
                let left = log.slots[(position as usize).min(log.slots.len())..].iter().flatten().count();
                assert_eq!(left, 0, "{place} from {position} on");
            }
        }
    }

    /// The starts that the ledger pins, in the order they were written.
    pub fn pins(&self, topic: &str) -> Vec<Vec<i64>> {
        let records = self.clusters.ledger.values().flatten();
        let of = |record| match decode(record).expect("a sound ledger") {
            LedgerKind::Topic(name, record) if name.as_str() == topic && record.target.is_none() => {
                Some(record.starts.iter().map(|start| start.offset.0).collect())
            }
            _ => None,
        };
        records.filter_map(of).collect()
    }
}
