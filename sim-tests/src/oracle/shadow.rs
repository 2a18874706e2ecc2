use super::log::Log;
use kafka_model::{Cluster, LogEvent};
use kafka_types::{Partition, TopicId, TopicName};
use std::collections::{BTreeMap, BTreeSet};

/// What one of the two clusters ever held, as the cluster itself tells it to nobody but an oracle.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    logs: BTreeMap<(TopicId, Partition), Log>,
    names: BTreeMap<TopicId, TopicName>,
    /// The topic ids that a name has had, the present one last.
    ids: BTreeMap<TopicName, Vec<TopicId>>,
    deleted: BTreeSet<TopicId>,
}

impl Shadow {
    pub fn name_topic(&mut self, topic: &TopicName, id: TopicId) {
        if self.names.insert(id, topic.clone()).is_none() {
            self.ids.entry(topic.clone()).or_default().push(id);
        }
    }

    /// Topics that the cluster has and that are not known yet.
    pub fn new_names(&self, cluster: &Cluster) -> Vec<(TopicName, TopicId)> {
        let topics = cluster.topic_names();
        if self.names.len() - self.deleted.len() == topics.size_hint().0 {
            return Vec::new();
        }
        let is_new = |(_, id, _): &(_, TopicId, _)| !self.names.contains_key(id);
        topics.filter(is_new).map(|(topic, id, _)| (topic.clone(), id)).collect()
    }

    /// Takes in what happened to a log.
    pub fn apply(&mut self, id: TopicId, partition: Partition, event: &LogEvent) {
        self.log_mut(id, partition).apply(event);
        if *event == LogEvent::Deleted {
            self.deleted.insert(id);
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
