//! What a sweep has to attack with, and how each of it shows.

use super::Summary;
use crate::oracle::HaltReason;
use crate::plan::FaultClass;
use kafka_types::ErrorCode;
use runtime_sim::Fault;

/// How often a class of faults struck.
pub fn strikes(class: FaultClass, summary: &Summary) -> u64 {
    let c = &summary.counters;
    let done = |actions: &[&str]| actions.iter().filter_map(|it| summary.actions.get(*it)).sum::<u64>();
    let of = |faults: &[Fault]| faults.iter().filter_map(|it| c.faults.get(it)).sum::<u64>();
    match class {
        FaultClass::Crash => c.crashes - c.crashes_at_moments,
        FaultClass::CrashAtMoment => c.crashes_at_moments,
        FaultClass::Pause => c.pauses.min(of(&[Fault::LongPause])),
        FaultClass::Stop => done(&["Stop"]),
        FaultClass::BrokerCrash => done(&["CrashBroker"]),
        FaultClass::LeaderMove => done(&["MoveLeader"]),
        FaultClass::CoordinatorMove => done(&["MoveTransactionCoordinator", "MoveGroupCoordinator"]),
        FaultClass::ReplicaStall => done(&["StallReplica"]),
        FaultClass::UncleanElection => done(&["UncleanElection"]),
        FaultClass::Retention => done(&["DeleteRecords"]),
        FaultClass::Compaction => done(&["Compact"]),
        FaultClass::TopicsCreated => done(&["CreateTopic"]),
        FaultClass::TopicsGrown => done(&["GrowTopic"]),
        FaultClass::TopicsDeleted => done(&["DeleteTopic"]),
        FaultClass::TopicsRecreated => done(&["RecreateTopic"]),
        FaultClass::TargetTopics => done(&["RecreateTopic", "DeleteTopic", "RecreateTopicAt"]),
        FaultClass::ClockSkew => done(&["SkewClock"]),
        FaultClass::DiskFull => done(&["FillDisk"]),
        FaultClass::Throttling => of(&[Fault::Throttled]),
        FaultClass::RebalanceStorm => done(&["ExpireMember"]),
        FaultClass::AdminTool => {
            of(&[Fault::MemberRemoved, Fault::LaneFenced]) + done(&["CommitForeignOffsets"])
        }
        FaultClass::WorkerStall => of(&[Fault::WorkerStalled]),
        // At one of the moments, and of its own kind.
        FaultClass::CrashInRelease => c.crashes_at_moments,
        FaultClass::LedgerCompaction => of(&[Fault::LedgerCompacted]),
        FaultClass::IdExpiry => done(&["ExpireTransactionalId", "ExpireProducers"]),
        FaultClass::MarkerDelay => done(&["DelayMarkers"]),
        FaultClass::RequestLost => of(&[Fault::RequestLost]),
        FaultClass::ResponseLost => of(&[Fault::ResponseLost]),
        FaultClass::SlowMessages => of(&[Fault::Slow]),
        FaultClass::ErrorAnswers => of(&[Fault::Refused, Fault::RefusedAfterApply]),
        FaultClass::SlowSteps => of(&[Fault::SlowStep]),
        FaultClass::PartialSend => c.partial_sends,
        FaultClass::TransactionTrouble => of(&[Fault::Disconnected]),
        FaultClass::LateRequests => of(&[Fault::Outlived]),
        FaultClass::BrokerCrashAtMoment => c.broker_crashes_at_moments,
        FaultClass::CutOff => of(&[Fault::CutOff]),
        FaultClass::TopicsDenied => done(&["DenyTopic"]),
        FaultClass::RightsDenied => done(&["DenyRight"]),
        FaultClass::ForeignWrites => done(&["ForeignWrite"]),
        FaultClass::DamagedBatches => done(&["DamagedBatch"]),
    }
}

/// Why partitions halt.
pub const HALTS: &[HaltReason] = &[
    HaltReason::Gap,
    HaltReason::Truncated,
    HaltReason::Recreated,
    HaltReason::Deleted,
    HaltReason::Oversized,
    HaltReason::Refused,
    HaltReason::Unsendable,
    HaltReason::Unreadable,
    HaltReason::NotAuthorized,
    HaltReason::Torn,
    HaltReason::Unfit,
];

/// What brokers may answer to a mirror, in sickness or in health. OPERATION_NOT_ATTEMPTED comes only beside another.
pub const ERRORS: &[ErrorCode] = &[
    ErrorCode::UnknownServerError,
    ErrorCode::OffsetOutOfRange,
    ErrorCode::CorruptMessage,
    ErrorCode::UnknownTopicOrPartition,
    ErrorCode::LeaderNotAvailable,
    ErrorCode::NotLeaderOrFollower,
    ErrorCode::RequestTimedOut,
    ErrorCode::ReplicaNotAvailable,
    ErrorCode::MessageTooLarge,
    ErrorCode::CoordinatorLoadInProgress,
    ErrorCode::CoordinatorNotAvailable,
    ErrorCode::NotCoordinator,
    ErrorCode::NotEnoughReplicas,
    ErrorCode::NotEnoughReplicasAfterAppend,
    ErrorCode::IllegalGeneration,
    ErrorCode::UnknownMemberId,
    ErrorCode::RebalanceInProgress,
    ErrorCode::TopicAuthorizationFailed,
    ErrorCode::GroupAuthorizationFailed,
    ErrorCode::ClusterAuthorizationFailed,
    ErrorCode::InvalidTimestamp,
    ErrorCode::TopicAlreadyExists,
    ErrorCode::InvalidPartitions,
    ErrorCode::NotController,
    ErrorCode::OutOfOrderSequenceNumber,
    ErrorCode::DuplicateSequenceNumber,
    ErrorCode::InvalidProducerEpoch,
    ErrorCode::InvalidTxnState,
    ErrorCode::InvalidProducerIdMapping,
    ErrorCode::ConcurrentTransactions,
    ErrorCode::TransactionalIdAuthorizationFailed,
    ErrorCode::KafkaStorageError,
    ErrorCode::UnknownProducerId,
    ErrorCode::FencedLeaderEpoch,
    ErrorCode::UnknownLeaderEpoch,
    ErrorCode::OffsetNotAvailable,
    ErrorCode::MemberIdRequired,
    ErrorCode::GroupMaxSizeReached,
    ErrorCode::FencedInstanceId,
    ErrorCode::InvalidRecord,
    ErrorCode::ProducerFenced,
    ErrorCode::UnknownTopicId,
    ErrorCode::InconsistentTopicId,
];
