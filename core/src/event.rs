//! All that can happen to a mirror.

use crate::batch::{Acknowledged, Batch, BatchId};
use crate::failure::{Failure, Refusal, Side, Trouble};
use crate::lane::{Attempt, LaneId};
use kafka_types::{
    OffsetAndEpoch, Partition, SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicId,
    TopicName,
};
use std::collections::BTreeMap;

/// Ties an answer to its question. Questions are numbered in the order they are asked, so an answer to a
/// later question is newer than anything seen before it was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ask(pub u64);

/// A turn of the group's rebalance protocol: the World holds the client's assignment until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn(pub u64);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The time asked for has come.
    Woke,
    /// Somebody wants the mirror to end.
    Stop(Urgency),
    /// Something is wrong with a cluster, outside any question: all brokers down, authentication refused.
    Trouble(Side, Trouble),
    /// The answer to `Command::Describe`.
    Described {
        side: Side,
        ask: Ask,
        answer: Result<Listing, Trouble>,
    },
    /// The answer to `Command::DescribeConfigs`.
    Configs {
        side: Side,
        ask: Ask,
        answer: Result<BTreeMap<TopicName, TopicConfig>, Trouble>,
    },
    /// The answer to `Command::CreateTopics`; a topic that exists already is a success.
    TopicsCreated {
        ask: Ask,
        answer: BTreeMap<TopicName, Result<(), Trouble>>,
    },
    /// The answer to `Command::GrowTopics`; a topic that has that many partitions already is a success.
    TopicsGrown {
        ask: Ask,
        answer: BTreeMap<TopicName, Result<(), Trouble>>,
    },
    /// The answer to `Command::SourceOffsets`.
    SourceOffsets {
        ask: Ask,
        answer: BTreeMap<SourcePartition, Result<OffsetAndEpoch, Trouble>>,
    },
    /// The answer to `Command::TargetEnds`.
    TargetEnds {
        ask: Ask,
        answer: BTreeMap<TargetPartition, Result<TargetEnd, Trouble>>,
    },
    /// The answer to `Command::OpenTransactions`: producers that hold back each partition.
    OpenTransactions {
        ask: Ask,
        answer: BTreeMap<SourcePartition, Vec<OpenTransaction>>,
    },
    /// The answer to `Command::Survey`: the ledger's committed records, all partitions, each to its end.
    Surveyed {
        ask: Ask,
        answer: Result<Vec<LedgerRecord>, Trouble>,
    },
    /// Committed records of ledger partition 0, in order, since `Command::FollowTopics`.
    TopicRecords(Vec<LedgerRecord>),
    Group(GroupEvent),
    Lane(LaneId, Attempt, LaneEvent),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Settle what was read, leave the group, then end.
    Settle,
    /// Abort and end at once.
    Now,
}

/// What the group of instances (on the target) tells this one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GroupEvent {
    /// These lanes are ours to take; answer with `Command::Accept`.
    Offered { turn: Turn, lanes: Vec<LaneId> },
    /// These lanes go to somebody else; settle, close, then answer with `Command::Release`.
    Recalled { turn: Turn, lanes: Vec<LaneId> },
    /// These lanes have gone to somebody else already; close, then answer with `Command::Release`.
    Lost { turn: Turn, lanes: Vec<LaneId> },
    /// Another member of the same `group.instance.id` has replaced this one.
    Replaced(String),
    /// The group refuses this member for good.
    Refused(Trouble),
    /// The member has left, as `Command::LeaveGroup` asked.
    Left,
}

/// What happens in one lane, under the attempt that its command was given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LaneEvent {
    /// `Open` is done: former owners are fenced, their transactions ended, all markers written.
    Opened,
    /// `Replay` has read up to the record it was told to.
    Replayed {
        log_start: TargetOffset,
        records: Vec<LedgerRecord>,
    },
    /// `ReadClaims`: the lane's claim records as far as they can be read now.
    Claims(Vec<LedgerRecord>),
    /// `Prepare`: the state of each target partition asked for.
    Prepared(BTreeMap<TargetPartition, Result<TargetState, Failure>>),
    /// Records arrived.
    Fetched(Batch),
    /// The source has no record between the last batch and this position now: only markers and holes.
    Caught(SourcePartition, SourceOffset),
    /// The source gives no more of this partition from here.
    Stopped(SourcePartition, SourceStop),
    /// `Produce` has come to its end for a batch.
    Acked(BatchId, Result<Acknowledged, Refused>),
    /// `Settle`: the transaction is committed, and every EndTxn that was sent was answered.
    Settled {
        last: Option<TargetOffset>,
    },
    /// `Abort`: the transaction is aborted, cleanly, and the producer is sound.
    Aborted,
    /// `Close`: nothing of this lane runs any more.
    Closed,
    Failed(Step, Failure),
}

/// The step of a lane's work that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    Open,
    Replay,
    ReadClaims,
    Prepare,
    Assign,
    Produce,
    Settle,
    Abort,
}

/// Why reading a source partition cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SourceStop {
    /// The position is no longer, or not yet, in the log (OFFSET_OUT_OF_RANGE).
    OutOfRange { position: SourceOffset, log_start: Option<SourceOffset>, log_end: Option<SourceOffset> },
    /// The log was cut back below the position (KIP-320): it diverges from what was read.
    Truncated { position: SourceOffset, diverges_at: Option<SourceOffset> },
    /// The client library cannot send this record exactly as it is.
    Unsendable { offset: SourceOffset, why: String },
    /// A batch is damaged (CRC) or in a format that cannot be read.
    Unreadable { offset: Option<SourceOffset>, why: String },
    /// The next record is the one that `Position::stop_before` names.
    AtRefused { offset: SourceOffset },
    /// READ was refused.
    NotAuthorized,
    /// The topic or partition is gone.
    Gone,
}

/// A refused batch. The record is named only when it went alone, a batch of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refused {
    pub refusal: Refusal,
    pub record: Option<OffsetAndEpoch>,
}

/// One cluster's topics as it described them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Listing {
    pub cluster_id: String,
    pub brokers: u32,
    pub topics: BTreeMap<TopicName, TopicInfo>,
    /// Topics asked for by name that the cluster does not know.
    pub unknown: Vec<TopicName>,
    /// Topics asked for by name that could not be described, and why. Neither present nor absent.
    pub trouble: BTreeMap<TopicName, Trouble>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopicInfo {
    pub id: TopicId,
    pub partitions: u32,
    /// The cluster's own bookkeeping (`__consumer_offsets`...).
    pub internal: bool,
}

/// A topic's effective configuration.
pub type TopicConfig = BTreeMap<String, ConfigValue>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConfigValue {
    pub value: String,
    /// Set on the topic itself, not inherited from the brokers.
    pub overridden: bool,
}

/// Both ends of a target partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetEnd {
    pub high_watermark: TargetOffset,
    /// Where a read_committed reader's view ends.
    pub last_stable: TargetOffset,
}

/// What a lane finds in a target partition before it produces there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetState {
    pub log_start: TargetOffset,
    pub high_watermark: TargetOffset,
    /// The first committed record at or after the position that `Prepare` named, if there is one.
    pub stray: Option<TargetOffset>,
}

/// A transaction that is still open at the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpenTransaction {
    pub first: Option<SourceOffset>,
    /// The producer id; absent where the broker could not be asked.
    pub producer_id: Option<i64>,
}

/// A record of the ledger, as the World read it; only the core knows what its bytes mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LedgerRecord {
    pub lane: LaneId,
    pub offset: TargetOffset,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// A partition of some topic whose name the context gives.
pub type PartitionOffsets<O> = BTreeMap<Partition, O>;
