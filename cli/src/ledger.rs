//! The whole ledger as the commands that only look read it.

use crate::clusters::Clusters;
use crate::exit_code::Code;
use crate::failed::Failed;
use kafka_types::{SourcePartition, TopicName};
use std::collections::{BTreeMap, BTreeSet};
use verbatim_core::LaneId;
use verbatim_core::config::FlowName;
use verbatim_core::event::{LedgerRecord, Listing};
use verbatim_core::failure::Side;
use verbatim_core::ledger::{Claim, Entry, LaneLedger, TopicRecord};

/// All lanes of a flow.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    lanes: BTreeMap<LaneId, LaneLedger>,
}

impl Ledger {
    /// Reads the ledger, if the target has one.
    pub(crate) fn read(
        clusters: &impl Clusters,
        flow: &FlowName,
        target: &Listing,
    ) -> Result<Option<Ledger>, Failed> {
        if let Some(trouble) = target.trouble.get(&flow.ledger()) {
            return Err(Failed::trouble(Side::Target, trouble));
        }
        if !target.topics.contains_key(&flow.ledger()) {
            return Ok(None);
        }
        let records = clusters.survey().map_err(|trouble| Failed::trouble(Side::Target, &trouble))?;
        Ledger::replay(records).map(Some)
    }

    pub(crate) fn replay(records: Vec<LedgerRecord>) -> Result<Ledger, Failed> {
        let mut by_lane: BTreeMap<LaneId, Vec<LedgerRecord>> = BTreeMap::new();
        for record in records {
            by_lane.entry(record.lane).or_default().push(record);
        }
        let mut lanes = BTreeMap::new();
        for (lane, records) in by_lane {
            let ledger = LaneLedger::replay(&records)
                .map_err(|error| Failed::new(Code::Configuration, error.to_string()))?;
            lanes.insert(lane, ledger);
        }
        Ok(Ledger { lanes })
    }

    pub(crate) fn entry(&self, partition: &SourcePartition) -> Option<&Entry> {
        self.lanes.values().find_map(|lane| lane.entries.get(partition))
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&SourcePartition, &Entry)> {
        self.lanes.values().flat_map(|lane| &lane.entries)
    }

    pub(crate) fn topics(&self) -> impl Iterator<Item = (&TopicName, &TopicRecord)> {
        self.lanes.get(&LaneId::FIRST).into_iter().flat_map(|lane| &lane.topics)
    }

    pub(crate) fn topic(&self, topic: &TopicName) -> Option<&TopicRecord> {
        self.lanes.get(&LaneId::FIRST)?.topics.get(topic)
    }

    /// The topics of one side that it speaks of.
    pub(crate) fn names(&self, side: Side) -> BTreeSet<TopicName> {
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
    pub(crate) fn claim(&self, lane: LaneId) -> Option<&Claim> {
        self.lanes.get(&lane)?.claim.as_ref()
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = (LaneId, &Claim)> {
        self.lanes.iter().filter_map(|(lane, ledger)| Some((*lane, ledger.claim.as_ref()?)))
    }
}
