//! Fetch, as consumers send it.
//!
//! Modelled: both isolation levels, the list of aborted transactions, the high watermark, last stable offset
//! and log start, leader epochs and divergence (KIP-320), topic ids (KIP-516), size limits (KIP-74), long
//! polling, offsets out of range.
//! Not modelled: fetch sessions (KIP-227: every fetch is a full one, which brokers allow), fetching from
//! followers (KIP-392), batches cut in the middle.

use crate::waiting::Waiting;
use crate::{BrokerId, Cluster, Millis, Offset, RequestHeader, Response};
use kafka_types::{ErrorCode, LeaderEpoch, ProducerId, RecordBatch, TopicId, TopicPartition};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsolationLevel {
    #[default]
    ReadUncommitted,
    ReadCommitted,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchRequest {
    pub max_wait_ms: Millis,
    pub min_bytes: usize,
    pub max_bytes: usize,
    pub isolation_level: IsolationLevel,
    pub partitions: Vec<FetchPartition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchPartition {
    pub topic_partition: TopicPartition,
    /// Sent from version 13 on, in place of the name.
    pub topic_id: Option<TopicId>,
    pub current_leader_epoch: Option<LeaderEpoch>,
    pub fetch_offset: Offset,
    /// The epoch of the record before `fetch_offset`, by which the broker notices truncation.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    pub partition_max_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchResponse {
    pub partitions: Vec<FetchPartitionResponse>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchPartitionResponse {
    pub topic_partition: TopicPartition,
    pub error_code: ErrorCode,
    /// Minus one with an error, like the two offsets after it.
    pub high_watermark: Offset,
    pub last_stable_offset: Offset,
    pub log_start_offset: Offset,
    /// The largest epoch that the log has in common with the reader, and where it ends. The reader has to
    /// go back there.
    pub diverging_epoch: Option<(LeaderEpoch, Offset)>,
    /// With NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH, where to go (KIP-951).
    pub current_leader: Option<(BrokerId, LeaderEpoch)>,
    /// Of the offsets in `records`, for readers of committed records; others get none.
    pub aborted_transactions: Vec<AbortedRange>,
    /// Whole batches. The first may begin below the offset asked for.
    pub records: Vec<Arc<RecordBatch>>,
}

/// Records of the producer from the first offset up to its next marker are to be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AbortedRange {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
}

impl Cluster {
    pub(crate) fn fetch(&mut self, header: RequestHeader, request: FetchRequest) {
        let is_over = request.max_wait_ms <= 0 || request.partitions.is_empty();
        match self.complete_fetch(&header, &request, is_over) {
            Some(response) => self.respond(header, Response::Fetch(response)),
            None => {
                let partitions =
                    request.partitions.iter().map(|partition| partition.topic_partition.clone()).collect();
                let deadline = self.now.saturating_add(request.max_wait_ms);
                self.wait(header, partitions, deadline, Waiting::Fetch(request));
            }
        }
    }

    /// The response, once there are bytes enough or something to say at once.
    pub(crate) fn complete_fetch(
        &self,
        header: &RequestHeader,
        request: &FetchRequest,
        is_over: bool,
    ) -> Option<FetchResponse> {
        let mut bytes = 0;
        let mut is_urgent = is_over;
        let mut partitions = Vec::with_capacity(request.partitions.len());
        for asked in &request.partitions {
            let left = request.max_bytes.saturating_sub(bytes);
            let max_bytes = asked.partition_max_bytes.min(left);
            let answer = self.fetch_partition(header, request, asked, max_bytes, bytes == 0);
            is_urgent |= answer.error_code.is_error() || answer.diverging_epoch.is_some();
            bytes += answer.records.iter().map(|batch| batch.size_bytes).sum::<usize>();
            partitions.push(answer);
        }
        (is_urgent || request.min_bytes <= bytes).then_some(FetchResponse { partitions })
    }

    fn fetch_partition(
        &self,
        header: &RequestHeader,
        request: &FetchRequest,
        asked: &FetchPartition,
        max_bytes: usize,
        at_least_one: bool,
    ) -> FetchPartitionResponse {
        let mut answer = FetchPartitionResponse {
            topic_partition: asked.topic_partition.clone(),
            error_code: ErrorCode::None,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: None,
            current_leader: None,
            aborted_transactions: Vec::new(),
            records: Vec::new(),
        };
        let read = self.read_partition(header, request, asked, max_bytes, at_least_one, &mut answer);
        if let Err(error) = read {
            answer.error_code = error;
            if [ErrorCode::NotLeaderOrFollower, ErrorCode::FencedLeaderEpoch].contains(&error) {
                let partition = self.topics.partition(&asked.topic_partition);
                answer.current_leader =
                    partition.and_then(|partition| Some((partition.leader?, partition.leader_epoch)));
            }
        }
        answer
    }

    fn read_partition(
        &self,
        header: &RequestHeader,
        request: &FetchRequest,
        asked: &FetchPartition,
        max_bytes: usize,
        at_least_one: bool,
        answer: &mut FetchPartitionResponse,
    ) -> Result<(), ErrorCode> {
        let tp = &asked.topic_partition;
        if self.topics.denied.contains(&tp.topic) {
            return Err(ErrorCode::TopicAuthorizationFailed);
        }
        self.check_topic_id(tp, asked.topic_id)?;
        let Some(partition) = self.topics.partition(tp) else {
            return Err(ErrorCode::UnknownTopicOrPartition);
        };
        check_leader_epoch(asked.current_leader_epoch, partition.leader_epoch)?;
        self.check_leader(tp, header.broker)?;
        let log = &partition.log;
        if let Some(epoch) = asked.last_fetched_epoch {
            let Some((common, end)) = log.epochs.end_offset_for(epoch, log.end_offset()) else {
                return Err(ErrorCode::OffsetOutOfRange);
            };
            if asked.fetch_offset < log.start_offset() {
                return Err(ErrorCode::OffsetOutOfRange);
            }
            if common < epoch || end < asked.fetch_offset {
                answer.diverging_epoch = Some((common, end));
            }
        }
        let mut last_stable_offset = partition.last_stable_offset();
        if self.faults.last_stable_offset_ignores_open_transactions {
            last_stable_offset = partition.high_watermark;
        }
        let upper = match request.isolation_level {
            _ if self.faults.fetch_reads_past_high_watermark => log.end_offset(),
            IsolationLevel::ReadUncommitted => partition.high_watermark,
            IsolationLevel::ReadCommitted => last_stable_offset,
        };
        if answer.diverging_epoch.is_none() {
            answer.records = log.read(asked.fetch_offset, upper, max_bytes, at_least_one)?;
        }
        if request.isolation_level == IsolationLevel::ReadCommitted
            && let Some(last) = answer.records.last()
        {
            let aborted = log.aborted_transactions(asked.fetch_offset, last.next_offset());
            answer.aborted_transactions = aborted
                .iter()
                .map(|aborted| AbortedRange {
                    producer_id: aborted.producer_id,
                    first_offset: aborted.first_offset,
                })
                .collect();
        }
        answer.high_watermark = partition.high_watermark;
        answer.last_stable_offset = last_stable_offset;
        answer.log_start_offset = log.start_offset();
        Ok(())
    }
}

/// Whether the client knows the same leader (Partition.checkCurrentLeaderEpoch).
pub(crate) fn check_leader_epoch(known: Option<LeaderEpoch>, current: LeaderEpoch) -> Result<(), ErrorCode> {
    match known {
        Some(known) if known < current => Err(ErrorCode::FencedLeaderEpoch),
        Some(known) if current < known => Err(ErrorCode::UnknownLeaderEpoch),
        Some(_) | None => Ok(()),
    }
}
