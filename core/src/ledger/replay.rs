//! The only place where durable progress changes: by replaying records of the ledger, at a take from what was
//! read there, and after a commit from what was written there.

use super::{BadLedgerRecord, Claim, Entry, FlowStart, Record, TopicRecord, decode};
use crate::event::LedgerRecord;
use kafka_types::{SourcePartition, TopicName};
use std::collections::BTreeMap;

/// What the ledger says of one lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaneLedger {
    /// Each claim but the last was superseded; their order shows who fenced whom.
    pub claim: Option<Claim>,
    /// The claim before `claim`, where compaction has left it.
    pub claim_before: Option<Claim>,
    pub entries: BTreeMap<SourcePartition, Entry>,
    /// Of lane 0 only.
    pub flow_start: Option<FlowStart>,
    /// Of lane 0 only.
    pub topics: BTreeMap<TopicName, TopicRecord>,
}

impl LaneLedger {
    /// Replays what was read from the lane's partition, in order.
    pub fn replay(records: &[LedgerRecord]) -> Result<LaneLedger, BadLedgerRecord> {
        let mut ledger = LaneLedger::default();
        for record in records {
            ledger.apply(decode(record)?);
        }
        Ok(ledger)
    }

    /// Takes in one committed record.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Claim(claim) => self.claim_before = self.claim.replace(claim),
            Record::FlowStart(start) => self.flow_start = Some(start),
            Record::Topic(topic, record) => {
                self.topics.insert(topic, record);
            }
            Record::Entry(source, entry) => {
                self.entries.insert(source, entry);
            }
        }
    }
}

/// What ledger partition 0 says of all topics, as far as this instance has read it. It may be behind: a lane
/// that misses a topic here only waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TopicTable {
    topics: BTreeMap<TopicName, TopicRecord>,
}

impl TopicTable {
    /// Takes in committed records of partition 0, in order; entries and claims there concern lane 0 alone.
    pub fn apply(&mut self, records: &[LedgerRecord]) -> Result<(), BadLedgerRecord> {
        for record in records {
            if let Record::Topic(topic, record) = decode(record)? {
                self.topics.insert(topic, record);
            }
        }
        Ok(())
    }

    pub fn get(&self, topic: &TopicName) -> Option<&TopicRecord> {
        self.topics.get(topic)
    }
}
