//! The log of one partition: batches in offset order, cut into segments.
//!
//! Modelled: offsets that never go back, the log start, leader epochs, the index of aborted transactions,
//! segments as far as retention and compaction need them.
//! Not modelled: files, indexes, corruption, tiered storage. The high watermark belongs to
//! [`crate::partition::Partition`]: it is a fact about replicas, not about a log.

mod append;
mod compaction;
mod epochs;
mod read;
mod retention;
mod segments;

pub(crate) use append::{Appended, Refusal};
pub(crate) use epochs::EpochCache;
pub(crate) use read::TimestampAndOffset;
use segments::Segments;

use crate::Offset;
use crate::producer_state::ProducerStates;
use kafka_types::{ProducerId, RecordBatch};
use std::collections::VecDeque;
use std::sync::Arc;

/// A transaction that a reader of committed records has to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AbortedTransaction {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    /// The marker's offset.
    pub last_offset: Offset,
    pub last_stable_offset: Offset,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionLog {
    batches: VecDeque<Arc<RecordBatch>>,
    segments: Segments,
    start_offset: Offset,
    end_offset: Offset,
    pub(crate) epochs: EpochCache,
    pub(crate) producers: ProducerStates,
    /// In the order of their markers.
    aborted: VecDeque<AbortedTransaction>,
    /// Compaction has been over everything below.
    clean_until: Offset,
}

impl Default for PartitionLog {
    fn default() -> PartitionLog {
        PartitionLog::new()
    }
}

impl PartitionLog {
    pub fn new() -> PartitionLog {
        PartitionLog {
            batches: VecDeque::new(),
            segments: Segments::new(),
            start_offset: 0,
            end_offset: 0,
            epochs: EpochCache::default(),
            producers: ProducerStates::default(),
            aborted: VecDeque::new(),
            clean_until: 0,
        }
    }

    /// The first offset that may still be read.
    pub fn start_offset(&self) -> Offset {
        self.start_offset
    }

    /// The offset that the next record will get.
    pub fn end_offset(&self) -> Offset {
        self.end_offset
    }

    pub fn size_bytes(&self) -> u64 {
        self.segments.size_bytes()
    }

    /// All batches, also those that lie partly below the log start.
    pub fn batches(&self) -> impl DoubleEndedIterator<Item = &Arc<RecordBatch>> {
        self.batches.iter()
    }

    /// The batches that hold `from` or anything after it.
    pub fn batches_from(&self, from: Offset) -> impl Iterator<Item = &Arc<RecordBatch>> {
        self.batches.range(self.place_of(from)..)
    }

    /// The place of the first batch that ends at or after `offset`. Most readers are close behind the end, so
    /// the search begins there and doubles its steps.
    fn place_of(&self, offset: Offset) -> usize {
        let is_below = |place: usize| self.batches[place].last_offset() < offset;
        let (mut low, mut high) = (self.batches.len(), self.batches.len());
        let mut step = 1;
        while 0 < low {
            low = high.saturating_sub(step);
            if is_below(low) {
                low += 1;
                break;
            }
            high = low;
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if is_below(middle) { low = middle + 1 } else { high = middle }
        }
        high
    }

    /// Whether the record at `offset` is a marker of this producer.
    pub fn has_marker_at(&self, offset: Offset, producer_id: ProducerId) -> bool {
        let batch = self.batches_from(offset).next();
        batch.is_some_and(|it| it.base_offset == offset && it.is_control() && it.producer_id == producer_id)
    }

    /// The end of what may be read as stable: the first offset of an open transaction, or the high watermark
    /// (UnifiedLog.fetchLastStableOffsetMetadata).
    pub fn last_stable_offset(&self, high_watermark: Offset) -> Offset {
        match self.producers.first_unstable_offset() {
            Some(unstable) => unstable.max(self.start_offset).min(high_watermark),
            None => high_watermark,
        }
    }

    /// Cuts everything at and above `offset` away. Producer state is rebuilt from what is left.
    pub fn truncate_to(&mut self, offset: Offset) -> Vec<Arc<RecordBatch>> {
        if self.end_offset <= offset {
            return Vec::new();
        }
        let keep = self.batches.partition_point(|batch| batch.last_offset() < offset);
        let cut = self.batches.split_off(keep).into();
        self.end_offset = offset;
        self.start_offset = self.start_offset.min(offset);
        self.clean_until = self.clean_until.min(offset);
        self.segments.truncate_to(offset);
        self.epochs.truncate_from_end(offset);
        self.aborted.retain(|aborted| aborted.last_offset < offset);
        self.producers = ProducerStates::default();
        for batch in &self.batches {
            self.producers.apply(batch);
        }
        cut
    }
}
