use crate::Offset;
use kafka_types::{Partition, RecordBatch, TopicId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What happened to a partition's log, in order. A topic that was deleted and made anew has two histories.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogEvent {
    /// The leader appended it. Duplicates that it recognised do not appear.
    Appended(Arc<RecordBatch>),
    /// A new leader had nothing at or above this offset; what it appends from here on is other records.
    Truncated {
        to: Offset,
    },
    /// Retention or DeleteRecords.
    StartMoved {
        to: Offset,
    },
    Compacted,
    Deleted,
}

/// Everything that was ever in the partitions' logs, for an oracle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct History {
    is_kept: bool,
    partitions: BTreeMap<(TopicId, Partition), Vec<LogEvent>>,
}

impl History {
    pub(crate) fn new(is_kept: bool) -> History {
        History { is_kept, partitions: BTreeMap::new() }
    }

    pub(crate) fn record(&mut self, topic: TopicId, partition: Partition, event: LogEvent) {
        if self.is_kept {
            self.partitions.entry((topic, partition)).or_default().push(event);
        }
    }

    /// The events of a partition so far, or since the last [`History::take`].
    pub fn events(&self, topic: TopicId, partition: Partition) -> &[LogEvent] {
        self.partitions.get(&(topic, partition)).map_or(&[], Vec::as_slice)
    }

    pub fn partitions(&self) -> impl Iterator<Item = (TopicId, Partition, &[LogEvent])> {
        self.partitions.iter().map(|((topic, partition), events)| (*topic, *partition, events.as_slice()))
    }

    /// The same, and forgets them, so that a long run's memory stays flat.
    pub fn take(&mut self) -> BTreeMap<(TopicId, Partition), Vec<LogEvent>> {
        std::mem::take(&mut self.partitions)
    }
}
