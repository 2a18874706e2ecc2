use crate::batch::TargetRun;
use crate::digest::Digest;
use crate::time::Timestamp;
use kafka_types::{LeaderEpoch, OffsetAndEpoch, SourceOffset, TargetOffset, TopicId, TopicName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The settled progress of one source partition. The last entry of a partition is the whole truth about it;
/// all entries together map source offsets to target offsets exactly.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// The position: everything below it that was committed at the source is on the target.
    pub next: SourceOffset,
    /// The last record that was copied, or before any was, the start; a position without one cannot be checked for
    /// truncation (H7).
    pub last: Option<LastRecord>,
    /// Where the flow started in this partition.
    pub start: SourceOffset,
    pub source_id: TopicId,
    pub target_topic: TopicName,
    pub target_id: TopicId,
    /// Where the mirror's first record could stand in the target partition.
    pub target_start: TargetOffset,
    /// The target offsets of the records that came with this entry; absent if none came, or not known (S11).
    pub run: Option<RunOffsets>,
    /// The position after the mirror's last record in the target partition. Absent where acknowledgements
    /// carried no offset (S11): then only the count below is known.
    pub target_end: Option<TargetOffset>,
    /// Records copied since `start`.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The digest of all records since `start`.
    pub digest: Digest,
    /// The timestamp of the last record.
    pub timestamp: Option<Timestamp>,
    /// When this entry was written.
    pub settled_at: Timestamp,
    pub halted: Option<Halt>,
}

impl Entry {
    /// What the first entry of a partition builds on.
    pub fn first(
        start: OffsetAndEpoch,
        source_id: TopicId,
        target_topic: TopicName,
        target_id: TopicId,
        target_start: TargetOffset,
    ) -> Entry {
        Entry {
            next: start.offset,
            last: start.epoch.map(|epoch| LastRecord { next: start.offset, epoch }),
            start: start.offset,
            source_id,
            target_topic,
            target_id,
            target_start,
            run: None,
            target_end: Some(target_start),
            records: 0,
            bytes: 0,
            digest: Digest::EMPTY,
            timestamp: None,
            settled_at: Timestamp(0),
            halted: None,
        }
    }
}

/// The last record that was copied of a source partition, as the log's history knows it (KIP-320).
///
/// The position can be further on, beyond markers and aborted records of later epochs. Its own epoch is not to be
/// had from a client; and checked with the record's, it would pass for cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LastRecord {
    /// The record's offset plus one.
    pub next: SourceOffset,
    pub epoch: LeaderEpoch,
}

/// Source and target offsets of the records that one transaction copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunOffsets {
    pub source_first: SourceOffset,
    pub target_first: TargetOffset,
    pub target_last: TargetOffset,
}

impl RunOffsets {
    pub fn new(source_first: SourceOffset, run: TargetRun) -> RunOffsets {
        RunOffsets { source_first, target_first: run.first, target_last: run.last }
    }
}

/// A partition that stands still until somebody acts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Halt {
    pub reason: HaltReason,
    /// The record it stands before, where one is to blame.
    pub offset: Option<SourceOffset>,
    pub detail: String,
    pub at: Timestamp,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// Why a partition halted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HaltReason {
    /// The source deleted records before they were copied.
    Gap,
    /// The source's log was cut back below the position.
    Truncated,
    /// The source or target topic was deleted and made again.
    Recreated,
    /// The source or target topic was deleted.
    Deleted,
    /// The record is larger than the target takes.
    Oversized,
    /// The target refuses the record for another reason.
    Refused,
    /// The client library cannot send the record exactly as it is.
    Unsendable,
    /// The source's record cannot be read.
    Unreadable,
    /// READ or WRITE is missing.
    NotAuthorized,
    /// The target partition holds records that the ledger does not know.
    Torn,
    /// The target partition holds fewer records than the ledger says.
    RolledBack,
    /// The target topic would alter records (LogAppendTime).
    Unfit,
}

impl HaltReason {
    /// Whether it speaks of one record, which the partition stands before.
    pub fn is_of_record(self) -> bool {
        match self {
            HaltReason::Oversized | HaltReason::Refused | HaltReason::Unsendable | HaltReason::Unreadable => {
                true
            }
            HaltReason::Gap
            | HaltReason::Truncated
            | HaltReason::Recreated
            | HaltReason::Deleted
            | HaltReason::NotAuthorized
            | HaltReason::Torn
            | HaltReason::RolledBack
            | HaltReason::Unfit => false,
        }
    }
}

impl fmt::Display for HaltReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HaltReason::Gap => "gap",
            HaltReason::Truncated => "truncated",
            HaltReason::Recreated => "recreated",
            HaltReason::Deleted => "deleted",
            HaltReason::Oversized => "oversized",
            HaltReason::Refused => "refused",
            HaltReason::Unsendable => "unsendable",
            HaltReason::Unreadable => "unreadable",
            HaltReason::NotAuthorized => "not-authorized",
            HaltReason::Torn => "torn",
            HaltReason::RolledBack => "rolled-back",
            HaltReason::Unfit => "unfit",
        })
    }
}
