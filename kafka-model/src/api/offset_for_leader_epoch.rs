//! OffsetForLeaderEpoch (KIP-320): where a leader's records ended, by which a reader notices truncation.
//!
//! Modelled: the largest epoch up to the one asked for and its end; unknown epochs.
//! Not modelled: requests of followers.

use crate::api::fetch::check_leader_epoch;
use crate::{Cluster, Offset, RequestHeader};
use kafka_types::{ErrorCode, LeaderEpoch, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetForLeaderEpochRequest {
    pub partitions: Vec<OffsetForLeaderEpochPartition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetForLeaderEpochPartition {
    pub topic_partition: TopicPartition,
    pub current_leader_epoch: Option<LeaderEpoch>,
    /// The epoch asked about.
    pub leader_epoch: LeaderEpoch,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetForLeaderEpochResponse {
    pub partitions: Vec<EpochEndOffset>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EpochEndOffset {
    pub topic_partition: TopicPartition,
    pub error_code: ErrorCode,
    /// None when the broker knows of no such epoch.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Minus one along with it.
    pub end_offset: Offset,
}

impl Cluster {
    pub(crate) fn offset_for_leader_epoch(
        &self,
        header: &RequestHeader,
        request: OffsetForLeaderEpochRequest,
    ) -> OffsetForLeaderEpochResponse {
        let answered = request.partitions.into_iter().map(|asked| {
            let found = self.end_of_epoch(header, &asked);
            let end = found.ok().flatten();
            EpochEndOffset {
                topic_partition: asked.topic_partition,
                error_code: found.err().unwrap_or(ErrorCode::None),
                leader_epoch: end.map(|(epoch, _)| epoch),
                end_offset: end.map_or(-1, |(_, offset)| offset),
            }
        });
        OffsetForLeaderEpochResponse { partitions: answered.collect() }
    }

    fn end_of_epoch(
        &self,
        header: &RequestHeader,
        asked: &OffsetForLeaderEpochPartition,
    ) -> Result<Option<(LeaderEpoch, Offset)>, ErrorCode> {
        let tp = &asked.topic_partition;
        if self.topics.denied.contains(&tp.topic) {
            return Err(ErrorCode::TopicAuthorizationFailed);
        }
        let partition = self.topics.partition(tp).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        check_leader_epoch(asked.current_leader_epoch, partition.leader_epoch)?;
        self.check_leader(tp, header.broker)?;
        let log = &partition.log;
        Ok(log.epochs.end_offset_for(asked.leader_epoch, log.end_offset()))
    }
}
