//! The log and the producer states against reference models that are simple enough to be seen to be right.

use crate::log::PartitionLog;
use crate::producer_state::SkippedChecks;
use crate::{CleanupPolicy, TopicConfig};
use bytes::Bytes;
use kafka_types::{EndMarker, ErrorCode, LeaderEpoch, Record, RecordBatch, TransactionResult};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const EPOCH: LeaderEpoch = LeaderEpoch(0);

#[derive(Clone, Debug)]
enum Step {
    /// Plain records with these keys.
    Append(Vec<u8>),
    /// A transaction's record of one of three producers.
    InTransaction(i64, u8),
    End(i64, TransactionResult),
    /// By how much of the log, in tenths.
    Truncate(i64),
    DeleteBelow(i64),
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let result = prop_oneof![Just(TransactionResult::Commit), Just(TransactionResult::Abort)];
    prop_oneof![
        4 => proptest::collection::vec(0..4_u8, 1..4).prop_map(Step::Append),
        4 => (0..3_i64, 0..4_u8).prop_map(|(id, key)| Step::InTransaction(id, key)),
        4 => (0..3_i64, result).prop_map(|(id, result)| Step::End(id, result)),
        1 => (0..=10_i64).prop_map(Step::Truncate),
        1 => (0..=10_i64).prop_map(Step::DeleteBelow),
        1 => Just(Step::Compact),
    ]
}

/// One offset of the reference: who wrote what there.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Data { key: u8, value: u64, producer: Option<i64> },
    Marker(i64, TransactionResult),
}

/// The log as a plain list that forgets nothing but what truncation takes.
#[derive(Default)]
struct Reference {
    cells: Vec<Cell>,
    start: usize,
    values: u64,
}

impl Reference {
    /// For each offset the outcome of its transaction, none while it is open.
    fn outcome(&self, offset: usize, producer: i64) -> Option<TransactionResult> {
        self.cells[offset..].iter().find_map(|cell| match cell {
            Cell::Marker(id, result) if *id == producer => Some(*result),
            Cell::Marker(..) | Cell::Data { .. } => None,
        })
    }

    fn last_stable_offset(&self) -> usize {
        let is_open = |(offset, cell): (usize, &Cell)| match cell {
            Cell::Data { producer: Some(id), .. } => self.outcome(offset, *id).is_none(),
            Cell::Data { producer: None, .. } | Cell::Marker(..) => false,
        };
        let first = self.cells.iter().enumerate().position(is_open);
        first.unwrap_or(self.cells.len()).max(self.start)
    }

    /// Offset, key and value of what a reader of committed records sees.
    fn committed(&self) -> Vec<(i64, u8, u64)> {
        let mut seen = Vec::new();
        for (offset, cell) in self.cells.iter().enumerate().take(self.last_stable_offset()).skip(self.start) {
            if let Cell::Data { key, value, producer } = cell {
                let outcome = producer.map(|id| self.outcome(offset, id));
                if outcome != Some(Some(TransactionResult::Abort)) {
                    seen.push((i64::try_from(offset).expect("small"), *key, *value));
                }
            }
        }
        seen
    }
}

struct Both {
    log: PartitionLog,
    reference: Reference,
    config: TopicConfig,
    sequences: BTreeMap<i64, i32>,
    was_compacted: bool,
}

fn record(key: u8, value: u64) -> Record {
    let key = Some(Bytes::copy_from_slice(&[key]));
    Record::new(0, key, Some(Bytes::copy_from_slice(&value.to_be_bytes())))
}

impl Both {
    fn data(&mut self, key: u8, producer: Option<i64>) -> Record {
        self.reference.values += 1;
        let value = self.reference.values;
        self.reference.cells.push(Cell::Data { key, value, producer });
        record(key, value)
    }

    fn apply(&mut self, step: Step) {
        let end = self.log.end_offset();
        match step {
            Step::Append(keys) => {
                let records = keys.into_iter().map(|key| self.data(key, None)).collect();
                self.log.append(RecordBatch::new(records), EPOCH, &self.config);
            }
            Step::InTransaction(id, key) => {
                let record = self.data(key, Some(id));
                let sequence = self.sequences.entry(id).or_default();
                let batch = RecordBatch::new(vec![record]).from_producer(id, 0, *sequence).transactional();
                *sequence += 1;
                self.log.append(batch, EPOCH, &self.config);
            }
            Step::End(id, result) => {
                self.reference.cells.push(Cell::Marker(id, result));
                let marker = EndMarker { result, coordinator_epoch: 0 };
                self.log.append(RecordBatch::end_marker(id, 0, marker, 0), EPOCH, &self.config);
            }
            Step::Truncate(tenths) if !self.was_compacted && self.log.start_offset() == 0 => {
                let to = end - (end - self.log.start_offset()) * tenths / 10;
                // Leaders differ from some batch on, never within one.
                let to = self.log.batches_from(to).next().map_or(end, |batch| batch.base_offset);
                let to = to.max(self.log.start_offset());
                self.log.truncate_to(to);
                let to = usize::try_from(self.log.end_offset()).expect("not negative");
                self.reference.cells.truncate(to);
            }
            Step::DeleteBelow(tenths) => {
                let to = self.log.start_offset() + (end - self.log.start_offset()) * tenths / 10;
                let to = to.min(i64::try_from(self.reference.last_stable_offset()).expect("small"));
                self.log.advance_start(to);
                self.reference.start = usize::try_from(self.log.start_offset()).expect("not negative");
            }
            Step::Compact => {
                self.was_compacted = true;
                self.log.roll();
                let end = self.log.end_offset();
                self.log.compact(0, end, &self.config);
            }
            // A reload forgets open transactions that began below the log start, as Kafka's does.
            Step::Truncate(_) => {}
        }
    }

    /// The same as [`Reference::committed`], as a client works it out from a fetch.
    fn read_committed(&self) -> Vec<(i64, u8, u64)> {
        let from = self.log.start_offset();
        let upper = self.log.last_stable_offset(self.log.end_offset());
        let batches = self.log.read(from, upper, usize::MAX, true).expect("in range");
        let mut aborted = self.log.aborted_transactions(from, upper);
        aborted.sort_by_key(|range| range.first_offset);
        let mut skipped = BTreeSet::new();
        let mut seen = Vec::new();
        for batch in batches {
            while aborted.first().is_some_and(|range| range.first_offset <= batch.last_offset()) {
                skipped.insert(aborted.remove(0).producer_id);
            }
            if let Some(marker) = batch.marker {
                if marker.result == TransactionResult::Abort {
                    skipped.remove(&batch.producer_id);
                }
            } else if !(batch.is_transactional && skipped.contains(&batch.producer_id)) {
                for record in batch.records.iter().filter(|record| from <= batch.offset_of(record)) {
                    let value: [u8; 8] =
                        record.value.as_ref().expect("a value")[..].try_into().expect("8 bytes");
                    let key = record.key.as_ref().expect("a key")[0];
                    seen.push((batch.offset_of(record), key, u64::from_be_bytes(value)));
                }
            }
        }
        seen
    }

    fn check(&self) {
        let expected = self.reference.committed();
        let seen = self.read_committed();
        let stable = i64::try_from(self.reference.last_stable_offset()).expect("small");
        assert_eq!(self.log.last_stable_offset(self.log.end_offset()), stable);
        assert_eq!(usize::try_from(self.log.end_offset()), Ok(self.reference.cells.len()));
        if !self.was_compacted {
            assert_eq!(seen, expected);
            return;
        }
        // Compaction takes away what a later record of the key replaces, and nothing else.
        assert!(seen.iter().all(|it| expected.contains(it)), "{seen:?} not within {expected:?}");
        let latest = |all: &[(i64, u8, u64)]| -> BTreeMap<u8, u64> {
            all.iter().map(|(_, key, value)| (*key, *value)).collect()
        };
        assert_eq!(latest(&seen), latest(&expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_reads_as_a_plain_list_does(steps in proptest::collection::vec(step(), 1..60)) {
        let config = TopicConfig {
            cleanup_policy: CleanupPolicy::Compact,
            segment_bytes: 400,
            delete_retention_ms: 0,
            ..TopicConfig::default()
        };
        let (log, reference) = (PartitionLog::new(), Reference::default());
        let mut both = Both { log, reference, config, sequences: BTreeMap::new(), was_compacted: false };
        for step in steps {
            both.apply(step);
            let end = both.log.end_offset();
            both.log.producers.high_watermark_moved(end);
            both.check();
        }
    }

    #[test]
    fn producer_states_judge_as_a_full_memory_does(
        batches in proptest::collection::vec((0..3_i16, 0..12_i32, 1..3_usize), 1..60),
    ) {
        let (mut log, mut reference) = (PartitionLog::new(), ProducerReference::default());
        let config = TopicConfig::default();
        for (epoch, first, count) in batches {
            let batch = RecordBatch::new(vec![record(0, 0); count]).from_producer(7, epoch, first);
            let expected = reference.judge(epoch, first, i32::try_from(count).expect("small"), log.end_offset());
            let answer = log.append_from_client(0, batch, EPOCH, &config, SkippedChecks::default());
            let answer = answer.map(|it| it.base_offset).map_err(|refusal| refusal.error);
            prop_assert_eq!(answer, expected, "epoch {}, sequence {}, {} records", epoch, first, count);
        }
    }
}

/// Everything that one producer ever appended: epoch, first and last sequence, offset.
#[derive(Default)]
struct ProducerReference {
    appended: Vec<(i16, i32, i32, i64)>,
}

impl ProducerReference {
    fn judge(&mut self, epoch: i16, first: i32, count: i32, end: i64) -> Result<i64, ErrorCode> {
        let batch = (epoch, first, first + count - 1);
        if let Some(&(current, _, last, _)) = self.appended.last() {
            let of_epoch = self.appended.iter().rev().take_while(|it| it.0 == current).take(5);
            let is_same = |it: &&(i16, i32, i32, i64)| (it.0, it.1, it.2) == batch;
            if let Some(known) = of_epoch.clone().find(is_same) {
                return Ok(known.3);
            }
            if epoch < current {
                return Err(ErrorCode::InvalidProducerEpoch);
            }
            let next = if epoch == current { last + 1 } else { 0 };
            if first != next {
                return Err(ErrorCode::OutOfOrderSequenceNumber);
            }
        }
        self.appended.push((batch.0, batch.1, batch.2, end));
        Ok(end)
    }
}

#[test]
fn every_offset_is_found_in_its_batch() {
    let mut log = PartitionLog::new();
    let config = TopicConfig::default();
    for count in [1, 3, 2, 1, 5, 1, 1, 4] {
        log.append(RecordBatch::new(vec![record(0, 0); count]), EPOCH, &config);
        for offset in 0..log.end_offset() {
            let found = log.batches_from(offset).next().expect("an offset of the log");
            assert!((found.base_offset..found.next_offset()).contains(&offset), "{offset}");
        }
        assert_eq!(log.batches_from(log.end_offset()).count(), 0);
    }
}
