//! CreateTopics.
//!
//! Modelled: names, partition counts, replication factors and settings that Kafka refuses; `validate_only`;
//! defaults for what is not said.
//! Not modelled: replica assignments by hand, policies of a plugin.

use crate::{Cluster, TopicConfig};
use kafka_types::{ErrorCode, TopicId, TopicName};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateTopicsRequest {
    pub topics: Vec<NewTopic>,
    pub validate_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewTopic {
    pub name: TopicName,
    /// Minus one for the broker's default.
    pub num_partitions: i32,
    /// Minus one for the broker's default.
    pub replication_factor: i16,
    /// By Kafka's names and in Kafka's notation.
    pub configs: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateTopicsResponse {
    pub topics: Vec<CreatedTopic>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreatedTopic {
    pub name: TopicName,
    pub topic_id: Option<TopicId>,
    pub error_code: ErrorCode,
}

impl Cluster {
    pub(crate) fn create_topics(&mut self, request: CreateTopicsRequest) -> CreateTopicsResponse {
        let created = request.topics.into_iter().map(|topic| {
            let result = self.create_topic(&topic, request.validate_only);
            CreatedTopic {
                name: topic.name,
                topic_id: result.ok().flatten(),
                error_code: result.err().unwrap_or(ErrorCode::None),
            }
        });
        CreateTopicsResponse { topics: created.collect() }
    }

    fn create_topic(&mut self, topic: &NewTopic, validate_only: bool) -> Result<Option<TopicId>, ErrorCode> {
        if self.topics.denied.contains(&topic.name) {
            return Err(ErrorCode::TopicAuthorizationFailed);
        }
        if !topic.name.is_legal() || self.collides(&topic.name) {
            return Err(ErrorCode::InvalidTopicException);
        }
        if self.topics.get(&topic.name).is_some() {
            return Err(ErrorCode::TopicAlreadyExists);
        }
        let partitions = match topic.num_partitions {
            -1 => self.config.num_partitions,
            count => {
                u32::try_from(count).ok().filter(|count| 1 <= *count).ok_or(ErrorCode::InvalidPartitions)?
            }
        };
        let alive = self.brokers.alive().len();
        let replication_factor = match topic.replication_factor {
            -1 => self.config.default_replication_factor.min(alive),
            count => usize::try_from(count).map_err(|_| ErrorCode::InvalidReplicationFactor)?,
        };
        if !(1..=alive).contains(&replication_factor) {
            return Err(ErrorCode::InvalidReplicationFactor);
        }
        let config = with_settings(self.config.topic.clone(), &topic.configs)?;
        if validate_only {
            return Ok(None);
        }
        Ok(Some(self.make_topic(&topic.name, partitions, replication_factor, config)))
    }

    /// `a.b` and `a_b` would have metrics of one name (Topic.hasCollision).
    fn collides(&self, name: &TopicName) -> bool {
        let unified = name.as_str().replace('.', "_");
        self.topics.iter().any(|(known, _)| known != name && known.as_str().replace('.', "_") == unified)
    }
}

pub(crate) fn with_settings(
    mut config: TopicConfig,
    settings: &[(String, String)],
) -> Result<TopicConfig, ErrorCode> {
    for (name, value) in settings {
        config.set(name, value).map_err(|_| ErrorCode::InvalidConfig)?;
    }
    Ok(config)
}
