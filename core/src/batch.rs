//! What the core knows of records: tickets for batches that the World holds.

use crate::digest::Digest;
use crate::time::Timestamp;
use kafka_types::{LeaderEpoch, SourceOffset, SourcePartition, TargetOffset};
use std::fmt;

/// Names one batch within one World, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A run of records of one source partition, in order, held by the World under `id`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    pub id: BatchId,
    pub partition: SourcePartition,
    /// The first record's offset.
    pub first: SourceOffset,
    /// The position after the last record: its offset plus one.
    pub next: SourceOffset,
    /// The last record's leader epoch, where the client knows it.
    pub epoch: Option<LeaderEpoch>,
    /// At least one. Fewer than `next - first` where markers and compaction left holes.
    pub records: u64,
    /// Keys, values and headers, in bytes.
    pub bytes: u64,
    pub digest: Digest,
    /// The last record's timestamp.
    pub timestamp: Timestamp,
}

/// What a record takes in memory beside its keys, values and headers, in bytes: the client library keeps a few
/// hundred for each, however small it is.
pub const RECORD_OVERHEAD: u64 = 256;

impl Batch {
    /// What the batch takes in memory, in bytes.
    pub fn weight(&self) -> u64 {
        self.bytes + self.records * RECORD_OVERHEAD
    }
}

/// Where the copies of one batch stand in the target partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetRun {
    pub first: TargetOffset,
    pub last: TargetOffset,
}

/// The acknowledgement of a whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acknowledged {
    /// How many records the client's queue accepted.
    pub accepted: u64,
    /// How many of those the target acknowledged. A run settles only if both equal its records.
    pub acknowledged: u64,
    /// Unknown when the broker recognised a retry as a duplicate: such acknowledgements carry no offset.
    pub run: Option<TargetRun>,
}
