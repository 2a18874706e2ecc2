//! What a partition remembers of its producers.
//!
//! Modelled: epochs and fencing, sequence numbers, the last five batches of each producer and the answer to an
//! exact duplicate, open transactions and the offsets that hold the last stable offset back, expiry
//! (storage/.../log/ProducerStateManager.java, ProducerAppendInfo.java, ProducerStateEntry.java).
//! Not modelled: snapshots on disk. A truncation rebuilds the state from the batches still in the log, so a
//! producer whose batches were all deleted is forgotten then, as it is by Kafka when no snapshot covers it.

use crate::Offset;
use kafka_types::{
    ErrorCode, NO_PRODUCER_EPOCH, NO_SEQUENCE, ProducerEpoch, ProducerId, RecordBatch, TransactionResult,
};
use std::collections::{BTreeMap, VecDeque};

/// How many batches of one producer are remembered (ProducerStateEntry.NUM_BATCHES_TO_RETAIN).
pub const BATCHES_REMEMBERED: usize = 5;

/// A batch that was appended before: its original place is the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RememberedBatch {
    pub first_offset: Offset,
    pub last_offset: Offset,
    pub first_sequence: i32,
    pub last_sequence: i32,
    pub timestamp: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProducerState {
    pub epoch: ProducerEpoch,
    /// The coordinator's epoch in the last marker, minus one before the first.
    pub coordinator_epoch: i32,
    /// The greatest timestamp of the last batch, as its records say. Expiry counts from it, so records that
    /// are copied with timestamps of long ago leave a state that expires at once.
    pub last_timestamp: i64,
    pub transaction_first_offset: Option<Offset>,
    batches: VecDeque<RememberedBatch>,
}

impl ProducerState {
    fn new(epoch: ProducerEpoch) -> ProducerState {
        ProducerState {
            epoch,
            coordinator_epoch: -1,
            last_timestamp: -1,
            transaction_first_offset: None,
            batches: VecDeque::new(),
        }
    }

    pub fn last_sequence(&self) -> i32 {
        self.batches.back().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    fn enter_epoch(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }

    fn duplicate_of(&self, batch: &RecordBatch) -> Option<RememberedBatch> {
        let (first, last) = (batch.base_sequence, batch.last_sequence());
        self.batches
            .iter()
            .filter(|_| batch.producer_epoch == self.epoch)
            .find(|known| known.first_sequence == first && known.last_sequence == last)
            .copied()
    }
}

/// A transaction whose marker has just been appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompletedTransaction {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    /// The marker's own offset.
    pub last_offset: Offset,
    pub result: TransactionResult,
    /// Every transaction that began below this offset was complete when the marker was appended.
    pub last_stable_offset: Offset,
}

/// Which of the checks a planted broker bug leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SkippedChecks {
    pub duplicates: bool,
    pub epochs: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProducerStates {
    producers: BTreeMap<ProducerId, ProducerState>,
    /// First offset of each open transaction.
    open: BTreeMap<Offset, ProducerId>,
    /// First offset and marker of transactions that ended in the leader's log, while the marker is still
    /// above the high watermark. They hold the last stable offset back like open ones.
    unreplicated: BTreeMap<Offset, Offset>,
}

impl ProducerStates {
    pub fn get(&self, id: ProducerId) -> Option<&ProducerState> {
        self.producers.get(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ProducerId, &ProducerState)> {
        self.producers.iter().map(|(id, state)| (*id, state))
    }

    pub fn has_open_transaction(&self, id: ProducerId) -> bool {
        self.producers.get(&id).is_some_and(|state| state.transaction_first_offset.is_some())
    }

    /// The offset that the last stable offset cannot pass, if any.
    pub fn first_unstable_offset(&self) -> Option<Offset> {
        let open = self.open.keys().next();
        let unreplicated = self.unreplicated.keys().next();
        open.into_iter().chain(unreplicated).min().copied()
    }

    /// Whether a client's batch may be appended; or what it repeats.
    ///
    /// The order is Kafka's: the exact duplicate first, then the epoch, then the sequence.
    pub fn check(
        &self,
        batch: &RecordBatch,
        skipped: SkippedChecks,
    ) -> Result<Option<RememberedBatch>, ErrorCode> {
        let Some(state) = self.producers.get(&batch.producer_id) else {
            return Ok(None);
        };
        if !skipped.duplicates
            && let Some(known) = state.duplicate_of(batch)
        {
            return Ok(Some(known));
        }
        if !skipped.epochs && batch.producer_epoch < state.epoch {
            return Err(ErrorCode::InvalidProducerEpoch);
        }
        let expected = if batch.producer_epoch == state.epoch { state.last_sequence() } else { NO_SEQUENCE };
        let forgotten = state.epoch == NO_PRODUCER_EPOCH;
        let unchecked = skipped.duplicates || (skipped.epochs && batch.producer_epoch < state.epoch);
        if !forgotten && !unchecked && !follows(expected, batch.base_sequence) {
            return Err(ErrorCode::OutOfOrderSequenceNumber);
        }
        if state.transaction_first_offset.is_some() && !batch.is_transactional {
            return Err(ErrorCode::InvalidTxnState);
        }
        Ok(None)
    }

    /// Whether a marker from the coordinator may be appended.
    pub fn check_marker(&self, batch: &RecordBatch) -> Result<(), ErrorCode> {
        let (Some(state), Some(marker)) = (self.producers.get(&batch.producer_id), batch.marker) else {
            return Ok(());
        };
        if batch.producer_epoch < state.epoch {
            return Err(ErrorCode::InvalidProducerEpoch);
        }
        if marker.coordinator_epoch < state.coordinator_epoch {
            return Err(ErrorCode::TransactionCoordinatorFenced);
        }
        Ok(())
    }

    /// Takes note of a batch that is in the log now, whoever appended it.
    pub fn apply(&mut self, batch: &RecordBatch) -> Option<CompletedTransaction> {
        if !batch.has_producer_id() {
            return None;
        }
        let state = self
            .producers
            .entry(batch.producer_id)
            .or_insert_with(|| ProducerState::new(batch.producer_epoch));
        state.enter_epoch(batch.producer_epoch);
        state.last_timestamp = batch.max_timestamp;
        if let Some(marker) = batch.marker {
            state.coordinator_epoch = marker.coordinator_epoch;
            let first_offset = state.transaction_first_offset.take()?;
            self.open.remove(&first_offset);
            let last_offset = batch.base_offset;
            self.unreplicated.insert(first_offset, last_offset);
            let last_stable_offset = self.open.keys().next().copied().unwrap_or(last_offset + 1);
            return Some(CompletedTransaction {
                producer_id: batch.producer_id,
                first_offset,
                last_offset,
                result: marker.result,
                last_stable_offset,
            });
        }
        if state.batches.len() == BATCHES_REMEMBERED {
            state.batches.pop_front();
        }
        state.batches.push_back(RememberedBatch {
            first_offset: batch.base_offset,
            last_offset: batch.last_offset(),
            first_sequence: batch.base_sequence,
            last_sequence: batch.last_sequence(),
            timestamp: batch.max_timestamp,
        });
        if batch.is_transactional && state.transaction_first_offset.is_none() {
            state.transaction_first_offset = Some(batch.base_offset);
            self.open.insert(batch.base_offset, batch.producer_id);
        }
        None
    }

    /// Transactions whose marker is below the high watermark hold nothing back any more.
    pub fn high_watermark_moved(&mut self, high_watermark: Offset) {
        if !self.unreplicated.is_empty() {
            self.unreplicated.retain(|_, marker| high_watermark <= *marker);
        }
    }

    /// The last offset of each producer's last batch, which compaction must keep; none for a producer whose
    /// last append was a marker.
    pub fn last_data_offset(&self, id: ProducerId) -> Option<Offset> {
        self.producers.get(&id)?.batches.back().map(|batch| batch.last_offset)
    }

    /// Forgets producers without an open transaction that have been idle for `expiration_ms`.
    pub fn expire(&mut self, now: i64, expiration_ms: i64) {
        self.producers.retain(|_, state| {
            state.transaction_first_offset.is_some()
                || now.saturating_sub(state.last_timestamp) < expiration_ms
        });
    }

    /// Forgets one producer, as if it had expired. An open transaction keeps it.
    pub fn forget(&mut self, id: ProducerId) {
        if !self.has_open_transaction(id) {
            self.producers.remove(&id);
        }
    }
}

/// Whether a batch that starts at `next` continues after `last`. After 2,147,483,647 comes 0.
fn follows(last: i32, next: i32) -> bool {
    i64::from(next) == i64::from(last) + 1 || (next == 0 && last == i32::MAX)
}
