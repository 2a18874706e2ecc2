//! What a reader of committed records may see of a fetched partition.

use kafka_model::api::fetch::{AbortedRange, FetchPartitionResponse};
use kafka_types::{LeaderEpoch, OffsetAndEpoch, ProducerId, Record, SourceOffset, TransactionResult};
use std::collections::BTreeSet;

/// A record as a consumer hands it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::client) struct ReadRecord {
    pub(in crate::client) offset: i64,
    pub(in crate::client) epoch: Option<LeaderEpoch>,
    pub(in crate::client) timestamp: i64,
    pub(in crate::client) record: Record,
}

impl ReadRecord {
    pub(in crate::client) fn place(&self) -> OffsetAndEpoch {
        OffsetAndEpoch { offset: SourceOffset(self.offset), epoch: self.epoch }
    }
}

/// What a fetched partition holds for a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Committed {
    pub(super) records: Vec<ReadRecord>,
    /// The position after all that can be read.
    pub(super) next: i64,
    /// Where a batch begins that is damaged, so that nothing behind it is read.
    pub(super) damaged: Option<i64>,
}

/// The records of `response` from `from` on that belong to no aborted transaction. Markers take offsets and are
/// never shown.
pub(super) fn committed(response: &FetchPartitionResponse, from: i64, shows_aborted: bool) -> Committed {
    let mut to_come: Vec<AbortedRange> = response.aborted_transactions.clone();
    to_come.sort_unstable_by_key(|range| std::cmp::Reverse((range.first_offset, range.producer_id)));
    let mut aborting: BTreeSet<ProducerId> = BTreeSet::new();
    let (mut records, mut next) = (Vec::new(), from);
    for batch in &response.records {
        while let Some(range) = to_come.pop_if(|range| range.first_offset <= batch.last_offset()) {
            aborting.insert(range.producer_id);
        }
        if batch.is_damaged() {
            return Committed { records, next, damaged: Some(batch.base_offset.max(from)) };
        }
        next = next.max(batch.next_offset());
        if let Some(marker) = batch.marker {
            if marker.result == TransactionResult::Abort {
                aborting.remove(&batch.producer_id);
            }
            continue;
        }
        if batch.is_transactional && aborting.contains(&batch.producer_id) && !shows_aborted {
            continue;
        }
        let wanted = batch.records.iter().filter(|record| from <= batch.offset_of(record));
        records.extend(wanted.map(|record| ReadRecord {
            offset: batch.offset_of(record),
            epoch: batch.leader_epoch,
            timestamp: batch.timestamp_of(record),
            record: record.clone(),
        }));
    }
    Committed { records, next, damaged: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_types::{EndMarker, ErrorCode, RecordBatch, TopicPartition};
    use std::sync::Arc;

    fn batch(base_offset: i64, producer: ProducerId, records: usize) -> RecordBatch {
        let batch = RecordBatch::new(vec![Record::new(1, None, None); records]).from_producer(producer, 0, 0);
        RecordBatch { base_offset, ..batch.transactional() }
    }

    fn marker(base_offset: i64, producer: ProducerId, result: TransactionResult) -> RecordBatch {
        let marker = EndMarker { result, coordinator_epoch: 0 };
        RecordBatch { base_offset, ..RecordBatch::end_marker(producer, 0, marker, 1) }
    }

    fn response(records: Vec<RecordBatch>, aborted: &[(ProducerId, i64)]) -> FetchPartitionResponse {
        let range = |&(producer_id, first_offset)| AbortedRange { producer_id, first_offset };
        FetchPartitionResponse {
            topic_partition: TopicPartition::new("t", 0),
            error_code: ErrorCode::None,
            high_watermark: 100,
            last_stable_offset: 100,
            log_start_offset: 0,
            diverging_epoch: None,
            current_leader: None,
            aborted_transactions: aborted.iter().map(range).collect(),
            records: records.into_iter().map(Arc::new).collect(),
        }
    }

    /// Offsets 0, 1 aborted by 1; 2 committed by 2; 3 the abort; 4 by 1 again, committed; 5, 6 the commits.
    fn mixed() -> FetchPartitionResponse {
        let records = vec![
            batch(0, 1, 2),
            batch(2, 2, 1),
            marker(3, 1, TransactionResult::Abort),
            batch(4, 1, 1),
            marker(5, 1, TransactionResult::Commit),
            marker(6, 2, TransactionResult::Commit),
        ];
        response(records, &[(1, 0)])
    }

    fn offsets(read: &[ReadRecord]) -> Vec<i64> {
        read.iter().map(|record| record.offset).collect()
    }

    #[test]
    fn aborted_records_and_markers_are_passed_over() {
        let Committed { records, next, .. } = committed(&mixed(), 0, false);
        assert_eq!((offsets(&records), next), (vec![2, 4], 7));
        assert_eq!(offsets(&committed(&mixed(), 0, true).records), [0, 1, 2, 4]);
    }

    #[test]
    fn a_batch_may_begin_below_the_position() {
        let Committed { records, next, .. } = committed(&response(vec![batch(10, 2, 5)], &[]), 13, false);
        assert_eq!((offsets(&records), next), (vec![13, 14], 15));
    }

    #[test]
    fn the_position_passes_what_holds_no_records() {
        let only = response(vec![marker(7, 1, TransactionResult::Abort)], &[]);
        let nothing = |next| Committed { records: vec![], next, damaged: None };
        assert_eq!(committed(&only, 7, false), nothing(8));
        assert_eq!(committed(&response(vec![], &[]), 7, false), nothing(7));
    }

    #[test]
    fn nothing_behind_a_damaged_batch_is_read() {
        let batches = vec![batch(0, 2, 2), RecordBatch { base_offset: 2, ..damaged() }, batch(3, 2, 1)];
        let Committed { records, next, damaged } = committed(&response(batches, &[]), 1, false);
        assert_eq!((offsets(&records), next, damaged), (vec![1], 2, Some(2)));
    }

    fn damaged() -> RecordBatch {
        RecordBatch { encoded: Some(bytes::Bytes::from_static(b"?")), ..RecordBatch::new(vec![]) }
    }
}
