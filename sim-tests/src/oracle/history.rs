use super::shadow::{Events, Shadow};
use kafka_model::{LogEvent, Millis};
use kafka_types::{Partition, TopicId, TopicName};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Source,
    Target,
}

/// One thing that happened to one partition's log.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub at: Millis,
    pub side: Side,
    pub topic: TopicName,
    pub topic_id: TopicId,
    pub partition: Partition,
    pub event: LogEvent,
}

/// All that happened to both clusters' logs, in order: data, to be judged again when all is over.
#[derive(Clone, Debug, Default)]
pub struct History {
    records: Vec<Recorded>,
}

impl History {
    pub(super) fn keep(&mut self, at: Millis, side: Side, shadow: &Shadow, events: Events) {
        for ((topic_id, partition), events) in events {
            // A topic that came and went without a record has no name here, and nothing to judge.
            let Some(topic) = shadow.name(topic_id) else { continue };
            let recorded = |event| Recorded { at, side, topic: topic.clone(), topic_id, partition, event };
            self.records.extend(events.into_iter().map(recorded));
        }
    }

    pub fn records(&self) -> &[Recorded] {
        &self.records
    }
}
