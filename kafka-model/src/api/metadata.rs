//! Metadata and DescribeCluster: brokers, topics with their ids, leaders and replicas.
//!
//! Modelled: all topics or some, by name or by id, auto creation if client and broker both allow it,
//! LEADER_NOT_AVAILABLE, topics that a client may not describe. Every broker knows the truth at once.
//! Not modelled: metadata that lags on one broker (whoever delays requests can deliver a late answer), racks,
//! offline log directories.

use crate::{BrokerId, Cluster};
use kafka_types::{ErrorCode, LeaderEpoch, Partition, TopicId, TopicName};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetadataRequest {
    pub topics: MetadataTopics,
    pub allow_auto_topic_creation: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MetadataTopics {
    All,
    Named(Vec<TopicName>),
    Ids(Vec<TopicId>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetadataResponse {
    pub cluster_id: String,
    pub controller: Option<BrokerId>,
    /// Those that are alive.
    pub brokers: Vec<BrokerId>,
    pub topics: Vec<MetadataTopic>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetadataTopic {
    pub error_code: ErrorCode,
    /// None for an unknown id.
    pub name: Option<TopicName>,
    pub topic_id: Option<TopicId>,
    pub partitions: Vec<MetadataPartition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetadataPartition {
    pub error_code: ErrorCode,
    pub partition: Partition,
    pub leader: Option<BrokerId>,
    pub leader_epoch: LeaderEpoch,
    pub replicas: Vec<BrokerId>,
    pub in_sync_replicas: Vec<BrokerId>,
}

impl Cluster {
    pub(crate) fn metadata(&mut self, request: MetadataRequest) -> MetadataResponse {
        let topics = match request.topics {
            MetadataTopics::All => {
                let visible = self.topics.iter().map(|(name, _)| name);
                let visible: Vec<_> =
                    visible.filter(|name| !self.topics.denied.contains(name)).cloned().collect();
                visible.iter().map(|name| self.describe_topic(name)).collect()
            }
            MetadataTopics::Named(names) => names
                .iter()
                .map(|name| {
                    if request.allow_auto_topic_creation {
                        self.create_automatically(name);
                    }
                    self.describe_topic(name)
                })
                .collect(),
            MetadataTopics::Ids(ids) => ids
                .iter()
                .map(|id| match self.topics.name_of(*id) {
                    Some(name) => self.describe_topic(name),
                    None => MetadataTopic {
                        error_code: ErrorCode::UnknownTopicId,
                        name: None,
                        topic_id: Some(*id),
                        partitions: Vec::new(),
                    },
                })
                .collect(),
        };
        MetadataResponse {
            cluster_id: self.config.cluster_id.clone(),
            controller: self.brokers.controller(),
            brokers: self.brokers.alive(),
            topics,
        }
    }

    fn create_automatically(&mut self, name: &TopicName) {
        let may = self.config.auto_create_topics && name.is_legal() && !self.topics.denied.contains(name);
        if may && self.topics.get(name).is_none() {
            let config = self.config.topic.clone();
            self.make_topic(name, self.config.num_partitions, self.config.default_replication_factor, config);
        }
    }

    fn describe_topic(&self, name: &TopicName) -> MetadataTopic {
        let failed = |error_code| MetadataTopic {
            error_code,
            name: Some(name.clone()),
            topic_id: None,
            partitions: Vec::new(),
        };
        if self.topics.denied.contains(name) {
            return failed(ErrorCode::TopicAuthorizationFailed);
        }
        if !name.is_legal() {
            return failed(ErrorCode::InvalidTopicException);
        }
        let Some(topic) = self.topics.get(name) else {
            return failed(ErrorCode::UnknownTopicOrPartition);
        };
        let partitions = (0..).zip(&topic.partitions).map(|(number, partition)| MetadataPartition {
            error_code: match partition.leader {
                Some(_) => ErrorCode::None,
                None => ErrorCode::LeaderNotAvailable,
            },
            partition: Partition(number),
            leader: partition.leader,
            leader_epoch: partition.leader_epoch,
            replicas: partition.replicas.iter().map(|replica| replica.broker).collect(),
            in_sync_replicas: partition.in_sync.iter().copied().collect(),
        });
        MetadataTopic {
            error_code: ErrorCode::None,
            name: Some(name.clone()),
            topic_id: Some(topic.id),
            partitions: partitions.collect(),
        }
    }
}
