use super::{BadLedgerRecord, Claim, Entry, LaneLedger, TopicRecord};
use crate::event::LedgerRecord;
use crate::failure::Side;
use crate::lane::LaneId;
use kafka_types::{SourcePartition, TopicName};
use std::collections::{BTreeMap, BTreeSet};

/// What the whole ledger says, all lanes of a flow, to whoever only looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowLedger {
    lanes: BTreeMap<LaneId, LaneLedger>,
}

impl FlowLedger {
    /// Replays what was read from the ledger's partitions, of each in order.
    pub fn replay(records: Vec<LedgerRecord>) -> Result<FlowLedger, BadLedgerRecord> {
        let mut by_lane: BTreeMap<LaneId, Vec<LedgerRecord>> = BTreeMap::new();
        for record in records {
            by_lane.entry(record.lane).or_default().push(record);
        }
        let mut lanes = BTreeMap::new();
        for (lane, records) in by_lane {
            lanes.insert(lane, LaneLedger::replay(&records)?);
        }
        Ok(FlowLedger { lanes })
    }

    pub fn entry(&self, partition: &SourcePartition) -> Option<&Entry> {
        self.lanes.values().find_map(|lane| lane.entries.get(partition))
    }

    pub fn entries(&self) -> impl Iterator<Item = (&SourcePartition, &Entry)> {
        self.lanes.values().flat_map(|lane| &lane.entries)
    }

    pub fn topics(&self) -> impl Iterator<Item = (&TopicName, &TopicRecord)> {
        self.lanes.get(&LaneId::FIRST).into_iter().flat_map(|lane| &lane.topics)
    }

    pub fn topic(&self, topic: &TopicName) -> Option<&TopicRecord> {
        self.lanes.get(&LaneId::FIRST)?.topics.get(topic)
    }

    /// The topics of one side that it speaks of.
    pub fn names(&self, side: Side) -> BTreeSet<TopicName> {
        let copied = self.entries().map(|(partition, entry)| match side {
            Side::Source => partition.topic.clone(),
            Side::Target => entry.target_topic.clone(),
        });
        let pinned = self.topics().filter_map(|(topic, record)| match side {
            Side::Source => Some(topic.clone()),
            Side::Target => record.target.as_ref().map(|pin| pin.topic.clone()),
        });
        copied.chain(pinned).collect()
    }

    /// Who took the lane last.
    pub fn claim(&self, lane: LaneId) -> Option<&Claim> {
        self.lanes.get(&lane)?.claim.as_ref()
    }

    pub fn claims(&self) -> impl Iterator<Item = (LaneId, &Claim)> {
        self.lanes.iter().filter_map(|(lane, ledger)| Some((*lane, ledger.claim.as_ref()?)))
    }
}
