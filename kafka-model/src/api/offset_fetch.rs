//! OffsetFetch.
//!
//! Modelled: some partitions or all, UNSTABLE_OFFSET_COMMIT where stable offsets are asked for and a
//! transaction holds newer ones (KIP-447).
//! Not modelled: several groups in one request (KIP-709).

use crate::{Cluster, GroupId, Offset, RequestHeader};
use kafka_types::{ErrorCode, LeaderEpoch, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetFetchRequest {
    pub group_id: GroupId,
    /// None for every partition that has one.
    pub partitions: Option<Vec<TopicPartition>>,
    pub require_stable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetFetchResponse {
    pub error_code: ErrorCode,
    pub partitions: Vec<FetchedOffset>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchedOffset {
    pub topic_partition: TopicPartition,
    pub error_code: ErrorCode,
    /// Minus one where none is committed.
    pub committed_offset: Offset,
    pub committed_leader_epoch: Option<LeaderEpoch>,
    pub metadata: String,
}

impl Cluster {
    pub(crate) fn offset_fetch(
        &self,
        header: &RequestHeader,
        request: OffsetFetchRequest,
    ) -> OffsetFetchResponse {
        if let Err(error_code) = self.check_group_coordinator(&request.group_id, header.broker) {
            return OffsetFetchResponse { error_code, partitions: Vec::new() };
        }
        let group = self.groups.by_id.get(&request.group_id);
        let asked = request
            .partitions
            .unwrap_or_else(|| group.map_or_else(Vec::new, |group| group.offsets.keys().cloned().collect()));
        let require_stable = request.require_stable && !self.faults.offset_fetch_ignores_pending;
        let fetch = |tp: TopicPartition| {
            let is_unstable = require_stable && group.is_some_and(|group| group.has_pending_offset(&tp));
            let committed = group
                .and_then(|group| group.offsets.get(&tp))
                .filter(|_| !is_unstable && !self.faults.offset_fetch_answers_nothing);
            FetchedOffset {
                topic_partition: tp,
                error_code: if is_unstable { ErrorCode::UnstableOffsetCommit } else { ErrorCode::None },
                committed_offset: committed.map_or(-1, |it| it.offset),
                committed_leader_epoch: committed.and_then(|it| it.leader_epoch),
                metadata: committed.map_or_else(String::new, |it| it.metadata.clone()),
            }
        };
        OffsetFetchResponse {
            error_code: ErrorCode::None,
            partitions: asked.into_iter().map(fetch).collect(),
        }
    }
}
