use super::pace::{Course, Pace};
use crate::batch::{Acknowledged, Batch, BatchId, TargetRun};
use crate::digest::Digest;
use crate::ledger::{Entry, LastRecord, RunOffsets};
use crate::time::{Instant, Timestamp};
use kafka_types::{SourceOffset, SourcePartition};
use std::collections::BTreeMap;
use std::time::Duration;

/// What one transaction has taken in so far.
///
/// A. Per partition, batches follow each other in source order.
/// B. A batch is unacknowledged from `add` until all its records were accepted and acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Run {
    since: Option<Instant>,
    records: u64,
    bytes: u64,
    parts: BTreeMap<SourcePartition, RunPart>,
    unacknowledged: BTreeMap<BatchId, Batch>,
    /// Batches that go alone.
    alone: u64,
}

/// A run's records of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunPart {
    pub next: SourceOffset,
    pub last: Option<LastRecord>,
    pub bytes: u64,
    pub digest: Digest,
    pub timestamp: Option<Timestamp>,
    source_first: Option<SourceOffset>,
    target: Span,
}

/// Where a run's records of one partition stand in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Span {
    Nothing,
    Known(TargetRun),
    /// An acknowledgement carried no offset (S11).
    Unknown,
}

/// Each batch that goes alone takes a request's time, and nothing goes beside it.
const ALONE_MAX: u64 = 8;

/// The acknowledgement does not cover the batch: accepted, acknowledged and held records differ (H10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miscounted;

impl Run {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn is_full(&self, pace: &Pace) -> bool {
        pace.records_max() <= self.records || pace.bytes_max() <= self.bytes || ALONE_MAX <= self.alone
    }

    pub fn is_acknowledged(&self) -> bool {
        self.unacknowledged.is_empty()
    }

    /// When this run is to be cut.
    pub fn cut_at(&self, interval: Duration) -> Option<Instant> {
        self.since.map(|since| since + interval)
    }

    /// A batch that is being produced.
    pub fn add(&mut self, now: Instant, batch: Batch) {
        self.since.get_or_insert(now);
        self.records += batch.records;
        self.bytes += batch.bytes;
        let part = self.part(&batch.partition, batch.first);
        part.next = batch.next;
        let last = batch.epoch.map(|epoch| LastRecord { next: batch.next, epoch });
        part.last = last.or(part.last);
        part.bytes += batch.bytes;
        part.digest = part.digest.join(batch.digest);
        part.timestamp = Some(batch.timestamp);
        part.source_first.get_or_insert(batch.first);
        self.unacknowledged.insert(batch.id, batch);
    }

    /// A batch was added that goes alone.
    pub fn count_alone(&mut self) {
        self.alone += 1;
    }

    /// A position that was reached without records.
    pub fn add_caught(&mut self, now: Instant, partition: &SourcePartition, position: SourceOffset) {
        self.since.get_or_insert(now);
        self.part(partition, position).next = position;
    }

    /// Takes in a batch's acknowledgement; the batch is returned.
    pub fn acknowledge(&mut self, id: BatchId, acknowledged: Acknowledged) -> Result<Batch, Miscounted> {
        let batch = self.unacknowledged.remove(&id).ok_or(Miscounted)?;
        let counts = (acknowledged.accepted, acknowledged.acknowledged);
        if counts != (batch.records, batch.records) {
            return Err(Miscounted);
        }
        let part = self.parts.get_mut(&batch.partition).expect("a batch's partition is part of its run");
        part.target = part.target.extended(acknowledged.run);
        Ok(batch)
    }

    /// A batch that is not acknowledged yet.
    pub fn unacknowledged(&self, id: BatchId) -> Option<&Batch> {
        self.unacknowledged.get(&id)
    }

    pub fn parts(&self) -> &BTreeMap<SourcePartition, RunPart> {
        &self.parts
    }

    /// What has become of it by now.
    pub fn course(&self, now: Instant) -> Course {
        let waiting = self.unacknowledged.values();
        let (records, bytes) = waiting.fold((0, 0), |sum, it| (sum.0 + it.records, sum.1 + it.bytes));
        Course {
            records: self.records,
            bytes: self.bytes,
            acknowledged_records: self.records - records,
            acknowledged_bytes: self.bytes - bytes,
            age: self.since.map_or(Duration::ZERO, |since| now.since(since)),
        }
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn part(&mut self, partition: &SourcePartition, next: SourceOffset) -> &mut RunPart {
        self.parts.entry(partition.clone()).or_insert(RunPart {
            next,
            last: None,
            bytes: 0,
            digest: Digest::EMPTY,
            timestamp: None,
            source_first: None,
            target: Span::Nothing,
        })
    }
}

impl RunPart {
    /// Where the records stand; absent without records, or when not known.
    pub fn offsets(&self) -> Option<RunOffsets> {
        match (self.source_first, self.target) {
            (Some(first), Span::Known(run)) => Some(RunOffsets::new(first, run)),
            (_, Span::Nothing | Span::Unknown) | (None, _) => None,
        }
    }

    /// Whether something other than records lies between the last record that was settled and the end of this, be it
    /// markers, holes or an election.
    pub fn passes_something(&self, base: &Entry) -> bool {
        let from = base.last.map_or(base.start, |last| last.next);
        let has_holes = self.digest.records < self.next.distance_from(from);
        let elected = base.last.zip(self.last).is_some_and(|(before, last)| before.epoch != last.epoch);
        has_holes || elected
    }

    pub fn has_records(&self) -> bool {
        self.source_first.is_some()
    }
}

impl Span {
    fn extended(self, run: Option<TargetRun>) -> Span {
        match (self, run) {
            (Span::Unknown, _) | (_, None) => Span::Unknown,
            (Span::Nothing, Some(run)) => Span::Known(run),
            (Span::Known(before), Some(run)) => {
                Span::Known(TargetRun { first: before.first.min(run.first), last: before.last.max(run.last) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{RecordHash, RecordParts};
    use kafka_types::{LeaderEpoch, TargetOffset};
    use proptest::prelude::*;

    /// Batches of a few partitions, in the order of each: how many records, how many holes before them, and whether the
    /// acknowledgement tells an offset.
    fn batches() -> impl Strategy<Value = Vec<(i32, u64, i64, bool)>> {
        prop::collection::vec((0i32..3, 1u64..5, 0i64..3, prop::bool::weighted(0.9)), 0..20)
    }

    fn batch(id: u64, partition: i32, first: i64, records: u64) -> Batch {
        let parts = RecordParts { key: None, value: None, headers: std::iter::empty(), timestamp: first };
        let hash = RecordHash::of(parts);
        Batch {
            id: BatchId(id),
            partition: SourcePartition::new("orders", partition),
            first: SourceOffset(first),
            next: SourceOffset(first + records as i64),
            epoch: Some(LeaderEpoch(1)),
            records,
            bytes: records * 10,
            digest: (0..records).fold(Digest::EMPTY, |digest, _| digest.push(hash)),
            timestamp: Timestamp(first),
        }
    }

    proptest! {
        /// Beside lists of what was added: in whatever order acknowledgements come, a run is acknowledged once all are
        /// in, and says of each partition where it stands and where its copies do.
        #[test]
        fn a_run_adds_up_in_any_order(batches in batches(), order in any::<u64>()) {
            let mut run = Run::default();
            let (mut ends, mut target_ends) = ([0i64; 3], [0i64; 3]);
            let mut waiting = Vec::new();
            for (id, (partition, records, holes, tells)) in (1..).zip(batches) {
                let at = partition as usize;
                let batch = batch(id, partition, ends[at] + holes, records);
                ends[at] = batch.next.0;
                let first = target_ends[at];
                target_ends[at] += records as i64;
                let copies = TargetRun { first: TargetOffset(first), last: TargetOffset(target_ends[at] - 1) };
                run.add(Instant::START, batch.clone());
                waiting.push((batch, tells.then_some(copies)));
            }
            let all = waiting.clone();
            let mut random = order;
            while !waiting.is_empty() {
                prop_assert!(!run.is_acknowledged());
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (batch, copies) = waiting.remove((random >> 33) as usize % waiting.len());
                let (accepted, acknowledged) = (batch.records, batch.records);
                let said = Acknowledged { accepted, acknowledged, run: copies };
                prop_assert_eq!(run.acknowledge(batch.id, said), Ok(batch.clone()));
                prop_assert_eq!(run.acknowledge(batch.id, said), Err(Miscounted), "never twice");
            }
            prop_assert!(run.is_acknowledged());
            prop_assert_eq!(run.records(), all.iter().map(|(batch, _)| batch.records).sum::<u64>());
            for (partition, part) in run.parts() {
                let of_it: Vec<_> = all.iter().filter(|(batch, _)| batch.partition == *partition).collect();
                let copies: Option<Vec<TargetRun>> = of_it.iter().map(|(_, copies)| *copies).collect();
                let wanted = copies.and_then(|it| Some((it.first()?.first, it.last()?.last)));
                let found = part.offsets().map(|it| (it.target_first, it.target_last));
                prop_assert_eq!(found, wanted);
                prop_assert_eq!(Some(part.next), of_it.last().map(|(batch, _)| batch.next));
                prop_assert_eq!(part.digest.records, of_it.iter().map(|(batch, _)| batch.records).sum::<u64>());
            }
        }

        /// An acknowledgement that does not cover its batch never lets the run be settled (H10).
        #[test]
        fn miscounted_acknowledgements_are_refused(records in 1u64..5, accepted in 0u64..6, acknowledged in 0u64..6) {
            let mut run = Run::default();
            run.add(Instant::START, batch(1, 0, 0, records));
            let said = Acknowledged { accepted, acknowledged, run: None };
            let is_whole = (accepted, acknowledged) == (records, records);
            prop_assert_eq!(run.acknowledge(BatchId(1), said).is_ok(), is_whole);
        }
    }
}
