//! All that a mirror may ask of its World.

use crate::batch::BatchId;
use crate::event::{Ask, Turn};
use crate::failure::Side;
use crate::lane::{Attempt, LaneId};
use crate::time::Timestamp;
use kafka_types::{OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicName};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Cluster id, brokers, topics with ids and partition counts -> `Event::Described`.
    Describe { side: Side, ask: Ask, topics: Topics },
    /// Effective configuration of topics -> `Event::Configs`.
    DescribeConfigs { side: Side, ask: Ask, topics: Vec<TopicName> },
    /// Create topics on the target -> `Event::TopicsCreated`.
    CreateTopics { ask: Ask, topics: Vec<NewTopic> },
    /// Raise the partition counts of target topics to these -> `Event::TopicsGrown`.
    GrowTopics { ask: Ask, topics: BTreeMap<TopicName, u32> },
    /// Turn a place in time into offsets of source partitions -> `Event::SourceOffsets`.
    SourceOffsets { ask: Ask, partitions: Vec<SourcePartition>, at: Place },
    /// Both ends of target partitions -> `Event::TargetEnds`.
    TargetEnds { ask: Ask, partitions: Vec<TargetPartition> },
    /// Who holds back the last stable offset of source partitions -> `Event::OpenTransactions`.
    OpenTransactions { ask: Ask, partitions: Vec<SourcePartition> },
    /// Read every ledger partition, read_committed, from its beginning to its present end -> `Event::Surveyed`.
    Survey { ask: Ask },
    /// From now on report what is committed to ledger partition 0, from its beginning -> `Event::TopicRecords`.
    FollowTopics,
    /// Join the group of instances, subscribed to the ledger -> `Event::Group`.
    JoinGroup,
    /// Take on what a turn offered.
    Accept(Turn),
    /// Give up what a turn recalled or lost.
    Release(Turn),
    /// Leave the group -> `GroupEvent::Left`.
    LeaveGroup,
    /// Work in one lane -> `Event::Lane` with the same lane and attempt.
    Lane(LaneId, Attempt, LaneCommand),
    /// How far the flow is, for whoever watches.
    Report(Report),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Topics {
    All,
    Named(Vec<TopicName>),
}

/// A place in a source partition that only its leader can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The log's start.
    Earliest,
    /// The last stable offset: where a read_committed reader's view ends.
    LastStable,
    HighWatermark,
    /// The first record of this time or later; where there is none, the last stable offset.
    Time(Timestamp),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewTopic {
    pub name: TopicName,
    pub partitions: u32,
    /// The target's own default where absent.
    pub replication_factor: Option<i16>,
    pub config: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LaneCommand {
    /// Abandon whatever an earlier attempt of this lane left, make a producer under the lane's transactional
    /// id and initialise it -> `Opened` or `Failed(Open, _)`. Leaves the lane without partitions and credit.
    Open,
    /// Read the lane's ledger partition from its beginning, read_committed, until the record at `until` has
    /// been read -> `Replayed`. No end of partition and no watermark counts as the end (H2).
    Replay { until: TargetOffset },
    /// Read the lane's ledger partition as far as it goes now and report its claims -> `Claims`.
    ReadClaims,
    /// Make the lane's own producer know these target partitions (H10), and look at what they hold
    /// -> `Prepared`.
    Prepare { targets: BTreeMap<TargetPartition, PrepareFrom> },
    /// Read these source partitions too, from these positions.
    Assign { positions: Vec<Position> },
    /// Drop all batches and partitions of older attempts and all credit, then read these source partitions.
    Rewind { positions: Vec<Position> },
    /// Stop reading these source partitions and drop their batches that were not produced.
    Unassign { partitions: Vec<SourcePartition> },
    /// The lane may bring this many more bytes of records than it was allowed so far. What `Fetched` brought
    /// beyond its credit is owed, and this pays it first. A batch holds at most `batch_max` records from now on, one
    /// or more.
    Credit { bytes: u64, batch_max: u64 },
    /// Begin a transaction if none is open and produce the batch's records to `target`
    /// -> `Acked`. `alone`: by itself, once all that was produced before has landed, and awaited before anything else;
    /// if the batch has one record only, a refusal is that record's.
    Produce { batch: BatchId, target: TargetPartition, alone: bool },
    /// Produce ledger records, await their acknowledgement, then commit -> `Settled` or `Failed(Settle, _)`.
    Settle { records: Vec<NewLedgerRecord> },
    /// Abort the open transaction, if one is open, and purge what is in flight -> `Aborted` or
    /// `Failed(Abort, _)`.
    Abort,
    /// Abandon producer and consumer, drop all batches -> `Closed`.
    Close,
}

/// From where `Prepare` looks for records that should not be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrepareFrom {
    /// Look for the first committed record at or after this offset.
    Offset(TargetOffset),
    /// Do not look.
    Nowhere,
}

/// Where to start reading a source partition. Without the last record a position cannot be checked for truncation
/// (H7); a partition that was never read has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    pub partition: SourcePartition,
    pub offset: SourceOffset,
    /// Where reading begins: the end of the last record below `offset`; for a partition that never had one, where it
    /// started. Its epoch is to be checked against the log's history before anything is read (KIP-320). Whatever
    /// record stands between here and `offset`, where there was none when the position was settled, tells that the
    /// log has diverged.
    pub last: Option<OffsetAndEpoch>,
    /// The last record that was copied, if any was: reading begins there, and another record in its place tells that the
    /// log has diverged. Two unclean elections can leave a log that reaches far enough under older epochs, of which
    /// the history alone says nothing amiss.
    pub last_record: Option<OffsetAndEpoch>,
    /// Bring neither this record nor any after it: stop there as `SourceStop::AtRefused`. Where another record stands
    /// in its place, or none, reading goes on.
    pub stop_before: Option<OffsetAndEpoch>,
}

impl Position {
    /// Where reading begins, with the epoch to be checked.
    pub fn beginning(&self) -> OffsetAndEpoch {
        let here = OffsetAndEpoch { offset: self.offset, epoch: None };
        let last = self.last.unwrap_or(here);
        let offset = self.last_record.map_or(last.offset, |record| record.offset);
        OffsetAndEpoch { offset: offset.min(last.offset).min(self.offset), epoch: last.epoch }
    }
}

/// A record to append to the lane's ledger partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewLedgerRecord {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// How far a flow is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    pub lanes_owned: u32,
    pub records_settled: u64,
    pub bytes_settled: u64,
    /// Of a bounded run: source offsets below the end that are settled, and all of them.
    pub done: u64,
    pub total: Option<u64>,
    pub halted: u32,
}
