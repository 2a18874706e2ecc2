use super::pace::{Course, Pace};
use crate::batch::{Acknowledged, Batch, BatchId, TargetRun};
use crate::digest::Digest;
use crate::ledger::{LastRecord, RunOffsets};
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
