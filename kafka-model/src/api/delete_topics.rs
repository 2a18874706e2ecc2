//! DeleteTopics, by name or by id.
//!
//! Modelled: requests under way are answered, committed offsets go too, a topic made anew has another id and
//! starts at offset 0. Open transactions that hold its partitions can still end.
//! Not modelled: deletion that takes time.

use crate::Cluster;
use kafka_types::{ErrorCode, TopicId, TopicName};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeleteTopicsRequest {
    pub topics: Vec<TopicToDelete>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TopicToDelete {
    Named(TopicName),
    Id(TopicId),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeleteTopicsResponse {
    pub topics: Vec<(TopicToDelete, ErrorCode)>,
}

impl Cluster {
    pub(crate) fn delete_topics(&mut self, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
        let deleted = request.topics.into_iter().map(|topic| {
            let name = match &topic {
                TopicToDelete::Named(name) => Ok(name.clone()),
                TopicToDelete::Id(id) => self.topics.name_of(*id).cloned().ok_or(ErrorCode::UnknownTopicId),
            };
            let result = name.and_then(|name| {
                if self.topics.denied.contains(&name) {
                    return Err(ErrorCode::TopicAuthorizationFailed);
                }
                self.delete_topic(&name)
            });
            (topic, result.err().unwrap_or(ErrorCode::None))
        });
        DeleteTopicsResponse { topics: deleted.collect() }
    }
}
