use super::log::Log;
use kafka_model::{Cluster, LogEvent};
use kafka_types::{Partition, TopicId, TopicName, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};

/// What one of the two clusters ever held, as the cluster itself tells it to nobody but an oracle.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    logs: BTreeMap<(TopicId, Partition), Log>,
    names: BTreeMap<TopicId, TopicName>,
    /// The topic ids that a name has had, the present one last.
    ids: BTreeMap<TopicName, Vec<TopicId>>,
    deleted: BTreeSet<TopicId>,
    /// How many topics there are.
    topics: usize,
}

/// Events of one call, by partition.
pub type Events = BTreeMap<(TopicId, Partition), Vec<LogEvent>>;

impl Shadow {
    /// Takes in what happened to logs since the last call.
    pub fn apply(&mut self, cluster: &Cluster, events: &Events) {
        for (place, events) in events {
            let log = self.logs.entry(*place).or_default();
            events.iter().for_each(|event| log.apply(event));
            if events.contains(&LogEvent::Deleted) {
                self.deleted.insert(place.0);
            }
            if events.contains(&LogEvent::Compacted)
                && let Some(topic) = self.names.get(&place.0)
            {
                let tp = TopicPartition { topic: topic.clone(), partition: place.1 };
                log.keep_only(log.start, &offsets_left(cluster, &tp));
            }
        }
    }

    /// To be called after every request: none both deletes and creates a topic.
    pub fn learn_new_names(&mut self, cluster: &Cluster) {
        let topics = cluster.topic_names().size_hint().0;
        if self.topics == topics {
            return;
        }
        self.topics = topics;
        for (name, id, _) in cluster.topic_names() {
            if self.names.insert(id, name.clone()).is_none() {
                self.ids.entry(name.clone()).or_default().push(id);
            }
        }
    }

    pub fn log(&self, id: TopicId, partition: Partition) -> Option<&Log> {
        self.logs.get(&(id, partition))
    }

    pub fn log_mut(&mut self, id: TopicId, partition: Partition) -> &mut Log {
        self.logs.entry((id, partition)).or_default()
    }

    pub fn id(&self, topic: &TopicName) -> Option<TopicId> {
        self.ids.get(topic)?.last().copied()
    }

    pub fn has_deleted(&self) -> bool {
        !self.deleted.is_empty()
    }

    /// All ids that a name has had, the first one first.
    pub fn ids(&self, topic: &TopicName) -> Vec<TopicId> {
        self.ids.get(topic).cloned().unwrap_or_default()
    }

    pub fn is_deleted(&self, id: TopicId) -> bool {
        self.deleted.contains(&id)
    }

    pub fn name(&self, id: TopicId) -> Option<&TopicName> {
        self.names.get(&id)
    }

    pub fn logs(&self) -> impl Iterator<Item = (TopicId, Partition, &Log)> {
        self.logs.iter().map(|((id, partition), log)| (*id, *partition, log))
    }
}

fn offsets_left(cluster: &Cluster, tp: &TopicPartition) -> BTreeSet<kafka_model::Offset> {
    let batches = cluster.fates(tp, 0);
    let offsets = |(batch, _): &(std::sync::Arc<kafka_types::RecordBatch>, _)| {
        batch.records.iter().map(|record| batch.offset_of(record)).collect::<Vec<_>>()
    };
    batches.iter().flat_map(offsets).collect()
}
