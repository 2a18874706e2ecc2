//! OffsetCommit, outside transactions.
//!
//! Modelled: who may commit (members of the generation, or anybody while the group is empty), partitions that
//! do not exist, metadata that is too long.
//! Not modelled: retention given by the request.

use crate::group::{CommittedOffset, Committer};
use crate::{Cluster, GroupId, Offset, RequestHeader};
use kafka_types::{ErrorCode, LeaderEpoch, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetCommitRequest {
    pub group_id: GroupId,
    pub committer: Committer,
    pub offsets: Vec<OffsetToCommit>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetToCommit {
    pub topic_partition: TopicPartition,
    /// The next offset to read.
    pub offset: Offset,
    pub leader_epoch: Option<LeaderEpoch>,
    pub metadata: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetCommitResponse {
    pub partitions: Vec<(TopicPartition, ErrorCode)>,
}

impl Cluster {
    pub(crate) fn offset_commit(
        &mut self,
        header: &RequestHeader,
        request: OffsetCommitRequest,
    ) -> OffsetCommitResponse {
        let group_id = request.group_id;
        let checked = self
            .check_group_coordinator(&group_id, header.broker)
            .and_then(|()| self.check_commit(&group_id, &request.committer, false));
        let mut partitions = Vec::with_capacity(request.offsets.len());
        for offset in request.offsets {
            let error = match checked {
                Ok(()) => self.check_committed_partition(&offset.topic_partition, &offset.metadata),
                Err(error) => error,
            };
            partitions.push((offset.topic_partition.clone(), error));
            if error.is_error() {
                continue;
            }
            if let Some(group) = self.groups.by_id.get_mut(&group_id) {
                let (tp, committed) = offset.committed_at(self.now);
                group.offsets.insert(tp, committed);
            }
        }
        OffsetCommitResponse { partitions }
    }
}

impl OffsetToCommit {
    pub(crate) fn committed_at(self, now: crate::Millis) -> (TopicPartition, CommittedOffset) {
        let OffsetToCommit { topic_partition, offset, leader_epoch, metadata } = self;
        (topic_partition, CommittedOffset { offset, leader_epoch, metadata, committed_at: now })
    }
}
