//! Compaction (core/.../log/LogCleaner.scala).
//!
//! Modelled: the last record of each key stays, holes where others were, batches that stay although empty
//! (a producer's last one), aborted records dropped at once, markers and tombstones that outlive their data by
//! `delete.retention.ms`, the active segment and everything above the first unstable offset left alone.
//! Not modelled: throttling, the bound of the offset map, merging of small segments.

use super::{AbortedTransaction, PartitionLog};
use crate::{Millis, Offset, TopicConfig};
use bytes::Bytes;
use kafka_types::{ProducerId, Record, RecordBatch, TransactionResult};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What the cleaner knows of transactions while it walks up the log.
struct TransactionsSeen {
    aborted_ahead: VecDeque<AbortedTransaction>,
    /// With whether data of the aborted transaction was met in this walk.
    open_aborted: BTreeMap<ProducerId, (AbortedTransaction, bool)>,
    /// Aborted transactions of which there was data. A reader need not know the others any more, and must not:
    /// it would leave out the records of the producer's next transaction once the marker is gone too.
    still_aborted: VecDeque<AbortedTransaction>,
    open_committed: BTreeSet<ProducerId>,
}

impl TransactionsSeen {
    fn advance_to(&mut self, offset: Offset) {
        while self.aborted_ahead.front().is_some_and(|aborted| aborted.first_offset <= offset) {
            if let Some(aborted) = self.aborted_ahead.pop_front() {
                self.open_aborted.entry(aborted.producer_id).or_insert((aborted, false));
            }
        }
    }

    /// Whether the batch belongs to an aborted transaction, or is a marker with no data left before it.
    fn is_discarded(&mut self, batch: &RecordBatch) -> bool {
        self.advance_to(batch.last_offset());
        match batch.marker.map(|marker| marker.result) {
            Some(TransactionResult::Abort) => match self.open_aborted.remove(&batch.producer_id) {
                Some((aborted, true)) => {
                    self.still_aborted.push_back(aborted);
                    false
                }
                Some((_, false)) | None => true,
            },
            Some(TransactionResult::Commit) => !self.open_committed.remove(&batch.producer_id),
            None if batch.is_transactional => match self.open_aborted.get_mut(&batch.producer_id) {
                Some((_, has_data)) => {
                    *has_data = true;
                    true
                }
                None => {
                    self.open_committed.insert(batch.producer_id);
                    false
                }
            },
            None => false,
        }
    }
}

impl PartitionLog {
    /// How much of what could be compacted is not: in percent of its bytes.
    pub fn dirty_percent(&self, high_watermark: Offset) -> u64 {
        let until = self.first_uncleanable_offset(high_watermark);
        let (mut clean, mut dirty) = (0, 0);
        for batch in self.batches.iter().take_while(|batch| batch.last_offset() < until) {
            let size = batch.size_bytes as u64;
            if batch.base_offset < self.clean_until { clean += size } else { dirty += size }
        }
        if dirty == 0 { 0 } else { dirty * 100 / (clean + dirty) }
    }

    /// Neither the active segment is cleaned nor what lies beyond the last stable offset
    /// (LogCleanerManager.cleanableOffsets).
    fn first_uncleanable_offset(&self, high_watermark: Offset) -> Offset {
        self.segments.active().base_offset.min(self.last_stable_offset(high_watermark))
    }

    /// One round of compaction. Answers whether it changed anything.
    pub fn compact(&mut self, now: Millis, high_watermark: Offset, config: &TopicConfig) -> bool {
        let until = self.first_uncleanable_offset(high_watermark);
        let latest = self.latest_offsets_by_key(until);
        let mut seen = self.transactions_seen();
        let mut kept = VecDeque::with_capacity(self.batches.len());
        let mut changed = false;
        for batch in std::mem::take(&mut self.batches) {
            if until <= batch.last_offset() {
                kept.push_back(batch);
                continue;
            }
            let discarded = seen.is_discarded(&batch);
            let is_last = batch.next_offset() == until || self.is_last_of_producer(&batch);
            let rewritten = clean_batch(now, &batch, discarded, is_last, &latest, config);
            changed |= rewritten.as_ref().is_none_or(|rewritten| !Arc::ptr_eq(rewritten, &batch));
            let left = rewritten.as_ref().map_or(0, |rewritten| rewritten.size_bytes);
            self.segments.shrink(batch.base_offset, batch.size_bytes.saturating_sub(left));
            kept.extend(rewritten);
        }
        self.batches = kept;
        let above = self.aborted.iter().copied().filter(|aborted| until <= aborted.last_offset);
        self.aborted = seen.still_aborted.into_iter().chain(above).collect();
        self.clean_until = self.clean_until.max(until);
        changed
    }

    fn transactions_seen(&self) -> TransactionsSeen {
        let mut aborted_ahead: Vec<_> = self.aborted.iter().copied().collect();
        aborted_ahead.sort_by_key(|aborted| aborted.first_offset);
        TransactionsSeen {
            aborted_ahead: aborted_ahead.into(),
            open_aborted: BTreeMap::new(),
            still_aborted: VecDeque::new(),
            open_committed: BTreeSet::new(),
        }
    }

    /// Records of aborted transactions do not count: they must not hide older committed ones.
    fn latest_offsets_by_key(&self, until: Offset) -> BTreeMap<Bytes, Offset> {
        let mut seen = self.transactions_seen();
        let mut latest = BTreeMap::new();
        for batch in self.batches.iter().take_while(|batch| batch.last_offset() < until) {
            if seen.is_discarded(batch) || batch.is_control() {
                continue;
            }
            for record in batch.records.iter() {
                if let Some(key) = &record.key {
                    latest.insert(key.clone(), batch.offset_of(record));
                }
            }
        }
        latest
    }

    /// Such a batch stays, if need be without records, so that the producer's next sequence number is known.
    fn is_last_of_producer(&self, batch: &RecordBatch) -> bool {
        let Some(state) = self.producers.get(batch.producer_id) else { return false };
        match self.producers.last_data_offset(batch.producer_id) {
            Some(last_offset) => batch.last_offset() == last_offset,
            None => batch.is_control() && batch.producer_epoch == state.epoch,
        }
    }
}

/// What is left of a batch, the same allocation when nothing changed.
fn clean_batch(
    now: Millis,
    batch: &Arc<RecordBatch>,
    discarded: bool,
    is_last: bool,
    latest: &BTreeMap<Bytes, Offset>,
    config: &TopicConfig,
) -> Option<Arc<RecordBatch>> {
    let horizon_passed = batch.delete_horizon.is_some_and(|horizon| horizon <= now);
    if batch.is_control() {
        if discarded && horizon_passed && !is_last {
            return None;
        }
        if discarded && batch.delete_horizon.is_none() {
            let delete_horizon = Some(now + config.delete_retention_ms);
            return Some(Arc::new(RecordBatch { delete_horizon, ..RecordBatch::clone(batch) }));
        }
        return Some(Arc::clone(batch));
    }
    // Nobody decoded its records, so nothing can be said about their keys.
    if batch.records.is_empty() && batch.encoded.is_some() && !discarded {
        return Some(Arc::clone(batch));
    }
    let is_kept = |record: &&Record| {
        let Some(key) = record.key.as_ref().filter(|_| !discarded) else { return false };
        let is_latest = latest.get(key).is_none_or(|latest| *latest <= batch.offset_of(record));
        is_latest && !(record.value.is_none() && horizon_passed)
    };
    let records: Arc<[Record]> = batch.records.iter().filter(is_kept).cloned().collect();
    let has_tombstone = records.iter().any(|record| record.value.is_none());
    let needs_horizon = has_tombstone && batch.delete_horizon.is_none();
    if records.is_empty() && !is_last {
        return None;
    }
    if records.len() == batch.records.len() && !needs_horizon {
        return Some(Arc::clone(batch));
    }
    let delete_horizon =
        if needs_horizon { Some(now + config.delete_retention_ms) } else { batch.delete_horizon };
    let removed: usize = batch.records.iter().map(|record| record.size_bytes(batch.base_timestamp)).sum();
    let left: usize = records.iter().map(|record| record.size_bytes(batch.base_timestamp)).sum();
    let size_bytes = batch.size_bytes.saturating_sub(removed - left).max(kafka_types::BATCH_HEADER_BYTES);
    let encoded = batch.encoded.clone().filter(|_| records.len() == batch.records.len());
    Some(Arc::new(RecordBatch { records, encoded, delete_horizon, size_bytes, ..RecordBatch::clone(batch) }))
}
