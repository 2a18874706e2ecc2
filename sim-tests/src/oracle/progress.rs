//! How far each source partition has come, by what was decided so far.

use super::alignment::Alignment;
use super::ledger::{Entry, Halt, TopicRecord};
use super::log::Lineage;
use super::settlement::{Copy, Writer};
use kafka_model::{Millis, Offset};
use kafka_types::{SourcePartition, TopicId, TopicName};
use std::collections::BTreeMap;

/// Where a source partition stands.
#[derive(Clone, Debug)]
pub struct Progress {
    pub source_id: TopicId,
    pub target_topic: TopicName,
    /// Behind the mirror's last record on the target.
    pub target_end: Option<Offset>,
    pub lane: i32,
    pub start: Offset,
    pub next: Offset,
    pub records: u64,
    pub lineage: Lineage,
    pub halted: Option<Halt>,
}

/// Who wrote a lane's last claim.
#[derive(Clone, Debug)]
pub struct Owner {
    pub incarnation: String,
    pub producer: Writer,
    pub at: Millis,
}

/// What one settlement does to one source partition.
#[derive(Clone, Debug)]
pub struct Advance {
    pub partition: SourcePartition,
    pub source_id: TopicId,
    /// The lane in whose ledger partition the entry stands; none if records came without an entry.
    pub lane: Option<i32>,
    pub before: Option<Progress>,
    pub from: Offset,
    pub to: Offset,
    pub entry: Option<Entry>,
    pub copies: Vec<Copy>,
    pub copies_id: Option<TopicId>,
    pub alignment: Alignment,
    /// The state of the source's log that the copies fit.
    pub lineage: Lineage,
    /// The first record below the new position whose transaction is open.
    pub first_open: Option<Offset>,
}

/// All progress of the flow.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    pub partitions: BTreeMap<SourcePartition, Progress>,
    pub owners: BTreeMap<i32, Owner>,
    pub topics: BTreeMap<TopicName, TopicRecord>,
}

impl Standing {
    pub fn take_in(&mut self, advance: &Advance) {
        let Some(entry) = &advance.entry else { return };
        let progress = Progress {
            source_id: entry.source_id,
            target_topic: entry.target_topic.clone(),
            target_end: entry.target_end,
            lane: advance.lane.unwrap_or(-1),
            start: entry.start,
            next: entry.next,
            records: entry.records,
            lineage: advance.lineage,
            halted: entry.halted.clone(),
        };
        self.partitions.insert(advance.partition.clone(), progress);
    }
}
