//! CreatePartitions: a topic grows, it never shrinks.
//!
//! Modelled: counts that are refused, `validate_only`.
//! Not modelled: assignments by hand.

use crate::Cluster;
use kafka_types::{ErrorCode, TopicName};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreatePartitionsRequest {
    /// Topics with the number of partitions that they are to have.
    pub topics: Vec<(TopicName, i32)>,
    pub validate_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreatePartitionsResponse {
    pub topics: Vec<(TopicName, ErrorCode)>,
}

impl Cluster {
    pub(crate) fn create_partitions(&mut self, request: CreatePartitionsRequest) -> CreatePartitionsResponse {
        let grown = request.topics.into_iter().map(|(name, count)| {
            let result = self.grow(&name, count, request.validate_only);
            (name, result.err().unwrap_or(ErrorCode::None))
        });
        CreatePartitionsResponse { topics: grown.collect() }
    }

    fn grow(&mut self, name: &TopicName, count: i32, validate_only: bool) -> Result<(), ErrorCode> {
        if self.topics.denied.contains(name) {
            return Err(ErrorCode::TopicAuthorizationFailed);
        }
        let topic = self.topics.get(name).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let count = usize::try_from(count).map_err(|_| ErrorCode::InvalidPartitions)?;
        if count <= topic.partitions.len() {
            return Err(ErrorCode::InvalidPartitions);
        }
        if !validate_only {
            self.grow_topic(name, count);
        }
        Ok(())
    }
}
