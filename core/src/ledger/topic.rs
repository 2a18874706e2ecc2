use crate::time::Timestamp;
use kafka_types::{OffsetAndEpoch, Partition, SourceOffset, TargetOffset, TopicId, TopicName};
use serde::{Deserialize, Serialize};

/// The flow has started: topics without a record from now on are later ones, and start at their beginning.
///
/// Written once, in one transaction with the records of all topics that existed then (H5).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FlowStart {
    pub at: Timestamp,
}

/// What all lanes must agree on about one source topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TopicRecord {
    pub source_id: TopicId,
    /// The pinned start of each partition that existed when the topic was first seen. A later partition
    /// starts at its beginning. With its epoch a start that was cut away can be told from one that was not, also
    /// before any record was copied.
    pub starts: Vec<OffsetAndEpoch>,
    /// Present once the target topic exists; no lane copies anything before.
    pub target: Option<TargetPin>,
}

/// The target topic as it was when the mirror began to write to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TargetPin {
    pub topic: TopicName,
    pub id: TopicId,
    /// The end of each partition at that moment: what lies below is not the mirror's.
    pub ends: Vec<TargetOffset>,
    /// Why the topic cannot hold copies, if it cannot: all its partitions halt.
    pub unfit: Option<String>,
}

impl TopicRecord {
    /// Where copying `partition` starts when it has no entry yet.
    pub fn start(&self, partition: Partition) -> OffsetAndEpoch {
        let beginning = OffsetAndEpoch { offset: SourceOffset::ZERO, epoch: None };
        self.starts.get(partition.index()).copied().unwrap_or(beginning)
    }
}

impl TargetPin {
    /// Where the mirror's records in `partition` begin.
    pub fn end(&self, partition: Partition) -> TargetOffset {
        self.ends.get(partition.index()).copied().unwrap_or(TargetOffset::ZERO)
    }
}
