//! DeleteRecords: moves the log start up.
//!
//! Modelled: offsets up to the high watermark, minus one for all of them, refusal on a compact-only topic, the
//! wait for the followers.
//! Not modelled: followers whose log start lags while alive.

use crate::waiting::Waiting;
use crate::{Cluster, Millis, Offset, RequestHeader, Response};
use kafka_types::{ErrorCode, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeleteRecordsRequest {
    pub timeout_ms: Millis,
    /// With the offset below which everything goes, minus one for the high watermark.
    pub partitions: Vec<(TopicPartition, Offset)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeleteRecordsResponse {
    pub partitions: Vec<DeleteRecordsPartitionResponse>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeleteRecordsPartitionResponse {
    pub topic_partition: TopicPartition,
    pub error_code: ErrorCode,
    /// The log start now, minus one with an error.
    pub low_watermark: Offset,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WaitingDeleteRecords {
    partitions: Vec<DeleteRecordsPartitionResponse>,
}

impl Cluster {
    pub(crate) fn delete_records(&mut self, header: RequestHeader, request: DeleteRecordsRequest) {
        let partitions: Vec<_> = request
            .partitions
            .into_iter()
            .map(|(tp, offset)| {
                let result = self.delete_records_of(&header, &tp, offset);
                DeleteRecordsPartitionResponse {
                    topic_partition: tp,
                    error_code: result.err().unwrap_or(ErrorCode::None),
                    low_watermark: result.unwrap_or(-1),
                }
            })
            .collect();
        let mut waiting = WaitingDeleteRecords { partitions };
        match self.complete_delete_records(&header, &mut waiting, false) {
            Some(response) => self.respond(header, Response::DeleteRecords(response)),
            None => {
                let tps = waiting.partitions.iter().map(|answer| answer.topic_partition.clone()).collect();
                let deadline = self.now.saturating_add(request.timeout_ms.max(0));
                self.wait(header, tps, deadline, Waiting::DeleteRecords(waiting));
            }
        }
    }

    fn delete_records_of(
        &mut self,
        header: &RequestHeader,
        tp: &TopicPartition,
        offset: Offset,
    ) -> Result<Offset, ErrorCode> {
        if self.topics.denied.contains(&tp.topic) {
            return Err(ErrorCode::TopicAuthorizationFailed);
        }
        self.check_leader(tp, header.broker)?;
        let (config, partition) =
            self.topics.config_and_partition_mut(tp).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if !config.cleanup_policy.deletes() {
            return Err(ErrorCode::PolicyViolation);
        }
        let offset = if offset == -1 { partition.high_watermark } else { offset };
        if offset < 0 || partition.high_watermark < offset {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        let moved = partition.log.advance_start(offset);
        let low_watermark = partition.log.start_offset();
        if moved {
            self.log_start_moved(tp);
            self.schedule_replication(tp);
        }
        Ok(low_watermark)
    }

    /// Followers learn of the new log start with their next fetch, which a leader awaits.
    pub(crate) fn complete_delete_records(
        &self,
        header: &RequestHeader,
        waiting: &mut WaitingDeleteRecords,
        is_over: bool,
    ) -> Option<DeleteRecordsResponse> {
        for answer in waiting.partitions.iter_mut().filter(|answer| !answer.error_code.is_error()) {
            let tp = &answer.topic_partition;
            let reached = match self.topics.partition(tp) {
                Some(partition) => partition.replicas.iter().all(|replica| {
                    let end = partition.end_offset_of(replica);
                    !self.brokers.is_alive(replica.broker) || answer.low_watermark <= end
                }),
                None => true,
            };
            if let Err(error) = self.check_leader(tp, header.broker) {
                (answer.error_code, answer.low_watermark) = (error, -1);
            } else if !reached && is_over {
                (answer.error_code, answer.low_watermark) = (ErrorCode::RequestTimedOut, -1);
            } else if !reached {
                return None;
            }
        }
        Some(DeleteRecordsResponse { partitions: std::mem::take(&mut waiting.partitions) })
    }
}
