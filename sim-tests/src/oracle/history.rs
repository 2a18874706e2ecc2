use super::settlement::Place;
use kafka_model::transaction::Decision;
use kafka_model::{LogEvent, Millis, Offset};
use kafka_types::{Partition, TopicId, TopicName};
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Source,
    Target,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub at: Millis,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// A topic was created.
    Named {
        side: Side,
        topic: TopicName,
        id: TopicId,
    },
    Log {
        side: Side,
        id: TopicId,
        partition: Partition,
        event: LogEvent,
    },
    /// Compaction left these records.
    Compacted {
        side: Side,
        id: TopicId,
        partition: Partition,
        left: BTreeSet<Offset>,
    },
    /// A transaction on the target cannot end otherwise any more.
    Decided(Box<Decision>),
    /// An election on the source is about to take away what readers could see below an offset.
    ElectionAhead {
        id: TopicId,
        partition: Partition,
        readable_below: Offset,
    },
    /// The coordinator forgot a lane's transactional id, as after a week without use.
    Forgotten {
        lane: i32,
    },
    /// Somebody who is no part of the flow wrote a record to a target partition.
    Foreign(Place),
    /// Clients may not use a source topic, or its copy.
    Denied(TopicName),
}

/// All that happened to both clusters, in order: data, to be judged again when all is over.
#[derive(Clone, Debug, Default)]
pub struct History {
    records: Vec<Recorded>,
}

impl History {
    pub(super) fn keep(&mut self, at: Millis, what: What) {
        self.records.push(Recorded { at, what });
    }

    pub fn records(&self) -> &[Recorded] {
        &self.records
    }
}
