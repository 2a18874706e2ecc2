//! Topics and their ids.
//!
//! Modelled: ids that differ between two topics of one name (KIP-516), creation, growth, deletion, settings,
//! access that is withdrawn while in use.
//! Not modelled: reassignment, aliases.

use crate::history::LogEvent;
use crate::partition::Partition;
use crate::timer::Timer;
use crate::{BrokerId, Cluster, ErrorCode, Millis, TopicConfig};
use kafka_types::{Partition as PartitionNumber, TopicId, TopicName, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Topic {
    pub(crate) id: TopicId,
    pub(crate) config: TopicConfig,
    pub(crate) replication_factor: usize,
    pub(crate) partitions: Vec<Partition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Topics {
    topics: BTreeMap<TopicName, Topic>,
    names: BTreeMap<TopicId, TopicName>,
    /// Topics that clients may not touch, existing or not.
    pub(crate) denied: BTreeSet<TopicName>,
    created: u64,
}

impl Topics {
    pub(crate) fn get(&self, name: &TopicName) -> Option<&Topic> {
        self.topics.get(name)
    }

    pub(crate) fn get_mut(&mut self, name: &TopicName) -> Option<&mut Topic> {
        self.topics.get_mut(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TopicName, &Topic)> {
        self.topics.iter()
    }

    pub(crate) fn name_of(&self, id: TopicId) -> Option<&TopicName> {
        self.names.get(&id)
    }

    pub(crate) fn partition(&self, tp: &TopicPartition) -> Option<&Partition> {
        self.topics.get(&tp.topic)?.partitions.get(usize::try_from(tp.partition.0).ok()?)
    }

    pub(crate) fn partition_mut(&mut self, tp: &TopicPartition) -> Option<&mut Partition> {
        self.topics.get_mut(&tp.topic)?.partitions.get_mut(usize::try_from(tp.partition.0).ok()?)
    }

    pub(crate) fn config_and_partition(&self, tp: &TopicPartition) -> Option<(&TopicConfig, &Partition)> {
        let topic = self.topics.get(&tp.topic)?;
        Some((&topic.config, topic.partitions.get(usize::try_from(tp.partition.0).ok()?)?))
    }

    pub(crate) fn config_and_partition_mut(
        &mut self,
        tp: &TopicPartition,
    ) -> Option<(&TopicConfig, &mut Partition)> {
        let topic = self.topics.get_mut(&tp.topic)?;
        Some((&topic.config, topic.partitions.get_mut(usize::try_from(tp.partition.0).ok()?)?))
    }

    pub(crate) fn partitions_mut(&mut self) -> impl Iterator<Item = (&TopicName, &mut Partition)> {
        self.topics
            .iter_mut()
            .flat_map(|(name, topic)| topic.partitions.iter_mut().map(move |partition| (name, partition)))
    }

    pub(crate) fn all_partitions(&self) -> Vec<TopicPartition> {
        let partitions_of = |(name, topic): (&TopicName, &Topic)| {
            let name = name.clone();
            (0..)
                .take(topic.partitions.len())
                .map(move |number| TopicPartition { topic: name.clone(), partition: PartitionNumber(number) })
        };
        self.topics.iter().flat_map(partitions_of).collect()
    }
}

/// The same for the same cluster and the same number of topics made before, and never the zero id.
fn make_topic_id(cluster_id: &str, ordinal: u64) -> TopicId {
    let cluster = cluster_id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    TopicId((u128::from(cluster | 1) << 64) | u128::from(ordinal))
}

impl Cluster {
    /// Replicas go round the living brokers, each partition starting one further.
    fn assign_replicas(&self, partition: usize, count: usize) -> Vec<BrokerId> {
        let alive = self.brokers.alive();
        (0..count.min(alive.len())).map(|replica| alive[(partition + replica) % alive.len()]).collect()
    }

    /// Makes a topic. The caller has checked name, partition count and settings.
    pub(crate) fn make_topic(
        &mut self,
        name: &TopicName,
        partitions: u32,
        replication_factor: usize,
        config: TopicConfig,
    ) -> TopicId {
        self.topics.created += 1;
        let id = make_topic_id(&self.config.cluster_id, self.topics.created);
        let replicas: Vec<Vec<BrokerId>> = (0..usize::try_from(partitions).unwrap_or(0))
            .map(|partition| self.assign_replicas(partition, replication_factor))
            .collect();
        if config.cleanup_policy.compacts() {
            self.timers.set_no_later(Timer::Cleaner, self.now + self.config.log_cleaner_interval_ms);
        }
        let partitions = replicas.iter().map(|brokers| Partition::new(brokers, self.now)).collect();
        self.topics.names.insert(id, name.clone());
        self.topics.topics.insert(name.clone(), Topic { id, config, replication_factor, partitions });
        id
    }

    pub(crate) fn grow_topic(&mut self, name: &TopicName, count: usize) {
        let Some(topic) = self.topics.get(name) else { return };
        let added: Vec<Partition> = (topic.partitions.len()..count)
            .map(|index| Partition::new(&self.assign_replicas(index, topic.replication_factor), self.now))
            .collect();
        if let Some(topic) = self.topics.get_mut(name) {
            topic.partitions.extend(added);
        }
    }

    /// Requests that wait for one of its partitions are answered, its committed offsets are forgotten
    /// (OffsetMetadataManager.onPartitionsDeleted).
    pub(crate) fn delete_topic(&mut self, name: &TopicName) -> Result<(), ErrorCode> {
        let Some(topic) = self.topics.topics.remove(name) else {
            return Err(ErrorCode::UnknownTopicOrPartition);
        };
        self.topics.names.remove(&topic.id);
        for (number, partition) in (0..).zip(&topic.partitions) {
            let tp = TopicPartition { topic: name.clone(), partition: PartitionNumber(number) };
            self.history.record(topic.id, tp.partition, LogEvent::Deleted);
            self.timers.cancel(Timer::Replication(tp.clone()));
            self.timers.cancel(Timer::ReplicaLag(tp.clone()));
            let ids: Vec<_> = partition.waiting_markers.keys().cloned().collect();
            self.markers_lost_their_log(&tp, ids);
            self.orphaned.extend(partition.waiting_requests.iter().copied());
        }
        self.groups.forget_topic(name);
        Ok(())
    }

    pub(crate) fn record_event(&mut self, tp: &TopicPartition, event: LogEvent) {
        if let Some(topic) = self.topics.get(&tp.topic) {
            self.history.record(topic.id, tp.partition, event);
        }
    }

    pub(crate) fn retention_due(&mut self) {
        for tp in self.topics.all_partitions() {
            self.retain(&tp);
        }
        self.timers.set(Timer::Retention, self.now + self.config.log_retention_check_ms);
    }

    pub(crate) fn retain(&mut self, tp: &TopicPartition) {
        let now = self.now;
        let Some((config, partition)) = self.topics.config_and_partition_mut(tp) else { return };
        if partition.log.apply_retention(now, partition.high_watermark, config) {
            self.log_start_moved(tp);
        }
    }

    pub(crate) fn log_start_moved(&mut self, tp: &TopicPartition) {
        let Some(partition) = self.topics.partition(tp) else { return };
        let to = partition.log.start_offset();
        self.record_event(tp, LogEvent::StartMoved { to });
        self.touch(tp);
    }

    pub(crate) fn cleaner_due(&mut self) {
        let mut is_needed = false;
        for tp in self.topics.all_partitions() {
            let Some((config, partition)) = self.topics.config_and_partition(&tp) else { continue };
            if config.cleanup_policy.compacts() {
                is_needed = true;
                if config.min_cleanable_dirty_percent.max(1)
                    <= partition.log.dirty_percent(partition.high_watermark)
                {
                    self.compact(&tp);
                }
            }
        }
        if is_needed {
            self.timers.set(Timer::Cleaner, self.now + self.config.log_cleaner_interval_ms);
        }
    }

    /// Each replica compacts its own log, by the records that it has itself. Here all have one: so it is compacted as far as
    /// every replica has it.
    pub(crate) fn compact(&mut self, tp: &TopicPartition) {
        let now = self.now;
        let Some((config, partition)) = self.topics.config_and_partition_mut(tp) else { return };
        let everywhere = partition.replicas.iter().map(|replica| partition.end_offset_of(replica)).min();
        let until = partition.high_watermark.min(everywhere.unwrap_or(0));
        if partition.log.compact(now, until, config) {
            self.record_event(tp, LogEvent::Compacted);
            self.touch(tp);
        }
    }

    pub(crate) fn producer_expiry_due(&mut self) {
        let (now, expiration_ms): (Millis, Millis) = (self.now, self.config.producer_id_expiration_ms);
        for (_, partition) in self.topics.partitions_mut() {
            partition.log.producers.expire(now, expiration_ms);
        }
        self.timers.set(Timer::ProducerExpiry, now + self.config.producer_id_expiration_check_ms);
    }
}
