use crate::event::LedgerRecord;
use crate::ledger::{Entry, Record, TopicRecord, decode};
use kafka_types::{SourceOffset, SourcePartition, TopicId, TopicName};
use std::collections::BTreeMap;

/// How far a whole flow is, by its ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowProgress {
    pub entries: BTreeMap<SourcePartition, Entry>,
    pub topics: BTreeMap<TopicName, TopicRecord>,
}

impl FlowProgress {
    pub fn replay(&mut self, records: &[LedgerRecord]) {
        for record in records {
            match decode(record) {
                Ok(Record::Entry(partition, entry)) => {
                    self.entries.insert(partition, entry);
                }
                Ok(Record::Topic(topic, record)) => {
                    self.topics.insert(topic, record);
                }
                Ok(Record::Claim(_) | Record::FlowStart(_)) => {}
                Err(bad) => tracing::error!(%bad, "ledger record not understood"),
            }
        }
    }

    pub fn start(&self, partition: &SourcePartition) -> Option<SourceOffset> {
        let record =
            || self.topics.get(&partition.topic).map(|topic| topic.start(partition.partition).offset);
        self.entries.get(partition).map(|entry| entry.start).or_else(record)
    }

    pub fn position(&self, partition: &SourcePartition) -> Option<SourceOffset> {
        self.entries.get(partition).map(|entry| entry.next).or_else(|| self.start(partition))
    }

    pub fn source_id(&self, partition: &SourcePartition) -> Option<TopicId> {
        let record = || self.topics.get(&partition.topic).map(|topic| topic.source_id);
        self.entries.get(partition).map(|entry| entry.source_id).or_else(record)
    }

    pub fn has_reached(&self, partition: &SourcePartition, end: SourceOffset) -> bool {
        end == SourceOffset::ZERO || self.position(partition).is_some_and(|position| end <= position)
    }

    pub fn done(&self, partition: &SourcePartition, end: SourceOffset) -> u64 {
        let (Some(start), Some(position)) = (self.start(partition), self.position(partition)) else {
            return 0;
        };
        position.min(end).distance_from(start)
    }
}
