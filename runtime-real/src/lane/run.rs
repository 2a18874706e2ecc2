//! Cutting what a lane reads into batches: runs of records of one partition.

use kafka_types::{LeaderEpoch, SourceOffset, SourcePartition};
use verbatim_core::batch::{Batch, BatchId};
use verbatim_core::digest::{Digest, RecordHash};
use verbatim_core::time::Timestamp;

/// What the core must know of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) offset: SourceOffset,
    pub(super) epoch: Option<LeaderEpoch>,
    /// Milliseconds since 1970; -1 where the record has none.
    pub(super) timestamp: i64,
    /// Key, value and headers.
    pub(super) bytes: u64,
    pub(super) hash: RecordHash,
}

/// Where a batch is cut, if the burst it came in does not end before: so that it fits one request to the target.
pub(super) const RECORDS_MAX: usize = 1_000;
pub(super) const BYTES_MAX: u64 = 900_000;

/// Records of one partition, in order, on their way to become a batch. `M` is what carries a record.
pub(super) struct Run<M> {
    pub(super) records: Vec<M>,
    first: Facts,
    last: Facts,
    bytes: u64,
    digest: Digest,
}

impl<M> Run<M> {
    pub(super) fn begin(record: M, facts: Facts) -> Run<M> {
        let digest = Digest::EMPTY.push(facts.hash);
        Run { records: vec![record], first: facts, last: facts, bytes: facts.bytes, digest }
    }

    pub(super) fn push(&mut self, record: M, facts: Facts) {
        assert!(self.last.offset < facts.offset, "records of a partition come in order");
        self.records.push(record);
        self.last = facts;
        self.bytes += facts.bytes;
        self.digest = self.digest.push(facts.hash);
    }

    /// Whether a record of so many bytes still fits. A run of one record has no limit.
    pub(super) fn has_room_for(&self, bytes: u64, records_max: usize) -> bool {
        self.records.len() < RECORDS_MAX.min(records_max) && self.bytes + bytes <= BYTES_MAX
    }

    pub(super) fn ticket(&self, id: BatchId, partition: SourcePartition) -> Batch {
        Batch {
            id,
            partition,
            first: self.first.offset,
            next: self.last.offset.next(),
            epoch: self.last.epoch,
            records: self.records.len() as u64,
            bytes: self.bytes,
            digest: self.digest,
            timestamp: Timestamp(self.last.timestamp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_core::digest::RecordParts;

    fn facts(offset: i64, bytes: u64) -> Facts {
        let value = offset.to_le_bytes();
        let parts = RecordParts { key: None, value: Some(&value), headers: std::iter::empty(), timestamp: 7 };
        Facts {
            offset: SourceOffset(offset),
            epoch: Some(LeaderEpoch(offset as i32)),
            timestamp: 1000 + offset,
            bytes,
            hash: RecordHash::of(parts),
        }
    }

    #[test]
    fn a_ticket_tells_of_first_and_last() {
        let mut run = Run::begin((), facts(10, 5));
        run.push((), facts(12, 6));
        let ticket = run.ticket(BatchId(1), SourcePartition::new("orders", 3));
        assert_eq!((ticket.first, ticket.next), (SourceOffset(10), SourceOffset(13)));
        assert_eq!((ticket.records, ticket.bytes), (2, 11));
        assert_eq!((ticket.epoch, ticket.timestamp), (Some(LeaderEpoch(12)), Timestamp(1012)));
        assert_eq!(ticket.digest, Digest::EMPTY.push(facts(10, 5).hash).push(facts(12, 6).hash));
    }

    #[test]
    fn cut_by_bytes_and_by_count() {
        let mut run = Run::begin((), facts(0, BYTES_MAX - 10));
        assert!(run.has_room_for(10, RECORDS_MAX));
        assert!(!run.has_room_for(11, RECORDS_MAX));
        run.push((), facts(1, 10));
        assert!(!run.has_room_for(1, RECORDS_MAX));

        let mut run = Run::begin((), facts(0, 1));
        for offset in 1..RECORDS_MAX as i64 {
            assert!(run.has_room_for(1, RECORDS_MAX));
            run.push((), facts(offset, 1));
        }
        assert!(!run.has_room_for(0, RECORDS_MAX));
    }

    #[test]
    #[should_panic = "in order"]
    fn order_is_held() {
        Run::begin((), facts(5, 1)).push((), facts(5, 1));
    }
}
