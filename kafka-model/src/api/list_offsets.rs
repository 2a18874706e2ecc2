//! ListOffsets: the earliest offset, the latest, or the first at or after a time.
//!
//! Modelled: both isolation levels (the latest stable offset against the high watermark), leader epochs,
//! OFFSET_NOT_AVAILABLE while a new leader's high watermark lags behind the start of its epoch, look-up by
//! time and of the greatest timestamp (KIP-734).
//! Not modelled: tiered storage.

use crate::api::fetch::{IsolationLevel, check_leader_epoch};
use crate::log::TimestampAndOffset;
use crate::{Cluster, Millis, Offset, RequestHeader};
use kafka_types::{ErrorCode, LeaderEpoch, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListOffsetsRequest {
    pub isolation_level: IsolationLevel,
    pub partitions: Vec<ListOffsetsPartition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListOffsetsPartition {
    pub topic_partition: TopicPartition,
    pub current_leader_epoch: Option<LeaderEpoch>,
    pub position: OffsetSpec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OffsetSpec {
    /// Minus two on the wire.
    Earliest,
    /// Minus one on the wire.
    Latest,
    /// Minus three on the wire.
    MaxTimestamp,
    At(Millis),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListOffsetsResponse {
    pub partitions: Vec<ListOffsetsPartitionResponse>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListOffsetsPartitionResponse {
    pub topic_partition: TopicPartition,
    pub error_code: ErrorCode,
    /// Minus one where no record was looked up.
    pub timestamp: Millis,
    /// Minus one with an error, and when no record is that late.
    pub offset: Offset,
    pub leader_epoch: Option<LeaderEpoch>,
}

impl Cluster {
    pub(crate) fn list_offsets(
        &self,
        header: &RequestHeader,
        request: ListOffsetsRequest,
    ) -> ListOffsetsResponse {
        let isolation = request.isolation_level;
        let listed = request.partitions.into_iter().map(|asked| {
            let found = self.list_offset(header, isolation, &asked);
            let error_code = found.err().unwrap_or(ErrorCode::None);
            let found = found.ok().flatten();
            ListOffsetsPartitionResponse {
                topic_partition: asked.topic_partition,
                error_code,
                timestamp: found.map_or(-1, |found| found.timestamp),
                offset: found.map_or(-1, |found| found.offset),
                leader_epoch: found.and_then(|found| found.leader_epoch),
            }
        });
        ListOffsetsResponse { partitions: listed.collect() }
    }

    fn list_offset(
        &self,
        header: &RequestHeader,
        isolation: IsolationLevel,
        asked: &ListOffsetsPartition,
    ) -> Result<Option<TimestampAndOffset>, ErrorCode> {
        let tp = &asked.topic_partition;
        if self.topics.denied.contains(&tp.topic) {
            return Err(ErrorCode::TopicAuthorizationFailed);
        }
        let partition = self.topics.partition(tp).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        check_leader_epoch(asked.current_leader_epoch, partition.leader_epoch)?;
        self.check_leader(tp, header.broker)?;
        let log = &partition.log;
        let is_behind = partition.high_watermark < partition.epoch_start;
        let end = match isolation {
            IsolationLevel::ReadUncommitted => partition.high_watermark,
            IsolationLevel::ReadCommitted => partition.last_stable_offset(),
        };
        let by_time = |found: Option<TimestampAndOffset>| match found {
            Some(found) if found.offset < end => Ok(Some(found)),
            // The record may exist and yet not be known to be safe.
            Some(_) | None if is_behind => Err(ErrorCode::OffsetNotAvailable),
            Some(_) | None => Ok(None),
        };
        match asked.position {
            OffsetSpec::Earliest => Ok(Some(TimestampAndOffset {
                timestamp: -1,
                offset: log.start_offset(),
                leader_epoch: log.epochs.epoch_at(log.start_offset()),
            })),
            OffsetSpec::Latest if is_behind => Err(ErrorCode::OffsetNotAvailable),
            OffsetSpec::Latest => Ok(Some(TimestampAndOffset {
                timestamp: -1,
                offset: end,
                leader_epoch: Some(partition.leader_epoch),
            })),
            OffsetSpec::MaxTimestamp => by_time(log.offset_of_max_timestamp()),
            OffsetSpec::At(timestamp) => by_time(log.offset_for_timestamp(timestamp)),
        }
    }
}
