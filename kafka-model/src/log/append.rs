use super::{AbortedTransaction, PartitionLog};
use crate::producer_state::SkippedChecks;
use crate::{Millis, Offset, TopicConfig};
use kafka_types::{ErrorCode, LeaderEpoch, NO_TIMESTAMP, RecordBatch, TimestampType, TransactionResult};
use std::sync::Arc;

/// Where a batch is in the log now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Appended {
    pub base_offset: Offset,
    pub last_offset: Offset,
    /// Present where the topic's timestamps are the broker's.
    pub log_append_time: Option<Millis>,
    /// The batch was there already and nothing was appended.
    pub is_duplicate: bool,
}

/// Why a batch was not appended, and on account of which of its records (KIP-467).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    pub error: ErrorCode,
    pub record_indexes: Vec<i32>,
}

impl From<ErrorCode> for Refusal {
    fn from(error: ErrorCode) -> Refusal {
        Refusal { error, record_indexes: Vec::new() }
    }
}

impl PartitionLog {
    /// Appends what a client sent, or says which earlier append it repeats.
    pub fn append_from_client(
        &mut self,
        now: Millis,
        mut batch: RecordBatch,
        leader_epoch: LeaderEpoch,
        config: &TopicConfig,
        skipped: SkippedChecks,
    ) -> Result<Appended, Refusal> {
        validate_size(&batch, config)?;
        validate_records(now, &batch, config)?;
        let mut log_append_time = None;
        if config.timestamp_type == TimestampType::LogAppendTime {
            batch.timestamp_type = TimestampType::LogAppendTime;
            batch.max_timestamp = now;
            log_append_time = Some(now);
        }
        if batch.has_producer_id()
            && let Some(known) = self.producers.check(&batch, skipped)?
        {
            return Ok(Appended {
                base_offset: known.first_offset,
                last_offset: known.last_offset,
                log_append_time: log_append_time.map(|_| known.timestamp),
                is_duplicate: true,
            });
        }
        let appended = self.append(batch, leader_epoch, config);
        Ok(Appended {
            base_offset: appended.base_offset,
            last_offset: appended.last_offset(),
            log_append_time,
            is_duplicate: false,
        })
    }

    /// Appends a batch that needs no check: a marker, or what a leader has that this log lacks.
    pub fn append(
        &mut self,
        mut batch: RecordBatch,
        leader_epoch: LeaderEpoch,
        config: &TopicConfig,
    ) -> Arc<RecordBatch> {
        batch.base_offset = self.end_offset;
        batch.leader_epoch = Some(leader_epoch);
        let batch = Arc::new(batch);
        self.push(Arc::clone(&batch), config);
        batch
    }

    /// Puts a batch that has its offsets at the end.
    pub fn push(&mut self, batch: Arc<RecordBatch>, config: &TopicConfig) {
        self.roll_if_due(&batch, config);
        if let Some(epoch) = batch.leader_epoch {
            self.epochs.assign(epoch, batch.base_offset);
        }
        if let Some(completed) = self.producers.apply(&batch)
            && completed.result == TransactionResult::Abort
        {
            self.aborted.push_back(AbortedTransaction {
                producer_id: completed.producer_id,
                first_offset: completed.first_offset,
                last_offset: completed.last_offset,
                last_stable_offset: completed.last_stable_offset,
            });
        }
        self.segments.count(batch.size_bytes, batch.max_timestamp);
        self.end_offset = batch.next_offset();
        self.batches.push_back(batch);
    }

    fn roll_if_due(&mut self, batch: &RecordBatch, config: &TopicConfig) {
        let active = self.segments.active();
        let Some(first_timestamp) = active.first_timestamp else { return };
        let is_full = config.segment_bytes < active.size_bytes + batch.size_bytes as u64;
        let is_old = config.segment_ms < batch.max_timestamp.saturating_sub(first_timestamp);
        if is_full || is_old {
            self.segments.roll(self.end_offset);
        }
    }
}

/// `max.message.bytes` bounds a batch, not a record (UnifiedLog.analyzeAndValidateRecords), and no batch may
/// exceed a segment.
fn validate_size(batch: &RecordBatch, config: &TopicConfig) -> Result<(), Refusal> {
    if config.max_message_bytes < batch.size_bytes {
        return Err(ErrorCode::MessageTooLarge.into());
    }
    if config.segment_bytes < batch.size_bytes as u64 {
        return Err(ErrorCode::RecordListTooLarge.into());
    }
    Ok(())
}

/// What storage/.../log/LogValidator.java asks of a client's batch.
fn validate_records(now: Millis, batch: &RecordBatch, config: &TopicConfig) -> Result<(), Refusal> {
    let is_empty = batch.records.is_empty() && batch.encoded.is_none();
    let is_unnumbered = batch.has_producer_id() && batch.base_sequence < 0;
    let count = i64::try_from(batch.records.len()).unwrap_or(i64::MAX);
    let is_miscounted = !batch.records.is_empty() && count != i64::from(batch.last_offset_delta) + 1;
    if batch.is_control() || is_empty || is_unnumbered || is_miscounted || batch.last_offset_delta < 0 {
        return Err(ErrorCode::InvalidRecord.into());
    }
    if batch.timestamp_type == TimestampType::LogAppendTime {
        return Err(ErrorCode::InvalidTimestamp.into());
    }
    let indexes_where = |is_bad: &dyn Fn(&kafka_types::Record) -> bool| -> Vec<i32> {
        (0..).zip(batch.records.iter()).filter(|(_, record)| is_bad(record)).map(|(index, _)| index).collect()
    };
    if config.timestamp_type == TimestampType::CreateTime && config.bounds_timestamps() {
        let record_indexes = indexes_where(&|record| {
            record.timestamp != NO_TIMESTAMP
                && (config.timestamp_before_max_ms < now.saturating_sub(record.timestamp)
                    || config.timestamp_after_max_ms < record.timestamp.saturating_sub(now))
        });
        if !record_indexes.is_empty() {
            return Err(Refusal { error: ErrorCode::InvalidTimestamp, record_indexes });
        }
    }
    if config.cleanup_policy.compacts() {
        let record_indexes = indexes_where(&|record| record.key.is_none());
        if !record_indexes.is_empty() {
            return Err(Refusal { error: ErrorCode::InvalidRecord, record_indexes });
        }
    }
    Ok(())
}
