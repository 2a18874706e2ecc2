use super::{AbortedTransaction, PartitionLog};
use crate::{Millis, Offset};
use kafka_types::{ErrorCode, LeaderEpoch, RecordBatch};
use std::sync::Arc;

/// Where a look-up by time ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimestampAndOffset {
    pub timestamp: Millis,
    pub offset: Offset,
    pub leader_epoch: Option<LeaderEpoch>,
}

impl PartitionLog {
    /// The batches from the one that holds `offset` up to `upper`, at most `max_bytes` of them.
    ///
    /// Batches come whole: the first may begin below `offset`, and a reader skips those records. With
    /// `at_least_one` the first comes even if it is larger than `max_bytes` (KIP-74).
    pub fn read(
        &self,
        offset: Offset,
        upper: Offset,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Vec<Arc<RecordBatch>>, ErrorCode> {
        if offset < self.start_offset || self.end_offset < offset {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        let mut batches = Vec::new();
        if upper <= offset {
            return Ok(batches);
        }
        let mut bytes = 0;
        for batch in self.batches_from(offset) {
            if upper < batch.next_offset() {
                break;
            }
            bytes += batch.size_bytes;
            if max_bytes < bytes && !(at_least_one && batches.is_empty()) {
                break;
            }
            batches.push(Arc::clone(batch));
        }
        Ok(batches)
    }

    /// The aborted transactions that a reader of `from..upper` has to know (TransactionIndex.java).
    pub fn aborted_transactions(&self, from: Offset, upper: Offset) -> Vec<AbortedTransaction> {
        let mut found = Vec::new();
        let first = self.aborted.partition_point(|aborted| aborted.last_offset < from);
        for aborted in self.aborted.range(first..) {
            if aborted.first_offset < upper {
                found.push(*aborted);
            }
            if upper <= aborted.last_stable_offset {
                break;
            }
        }
        found
    }

    /// The first record at or after `timestamp`.
    pub fn offset_for_timestamp(&self, timestamp: Millis) -> Option<TimestampAndOffset> {
        self.batches_from(self.start_offset)
            .filter(|batch| timestamp <= batch.max_timestamp)
            .find_map(|batch| self.first_at_or_after(batch, timestamp))
    }

    fn first_at_or_after(&self, batch: &RecordBatch, timestamp: Millis) -> Option<TimestampAndOffset> {
        if batch.is_control() || batch.records.is_empty() {
            return self.found(batch, batch.max_timestamp, batch.base_offset);
        }
        batch.records.iter().find_map(|record| {
            let (time, offset) = (batch.timestamp_of(record), batch.offset_of(record));
            if timestamp <= time { self.found(batch, time, offset) } else { None }
        })
    }

    /// The record with the greatest timestamp, the first of them (KIP-734).
    pub fn offset_of_max_timestamp(&self) -> Option<TimestampAndOffset> {
        let max = self.batches_from(self.start_offset).map(|batch| batch.max_timestamp).max()?;
        self.offset_for_timestamp(max)
    }

    fn found(&self, batch: &RecordBatch, timestamp: Millis, offset: Offset) -> Option<TimestampAndOffset> {
        (self.start_offset <= offset).then_some(TimestampAndOffset {
            timestamp,
            offset,
            leader_epoch: batch.leader_epoch,
        })
    }
}
