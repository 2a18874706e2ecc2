//! Which errors a broker may answer to each request that a mirror sends, whatever the request says: those of
//! moves, elections, overload and coordinators that disagree. Errors that say something of the request itself,
//! such as MESSAGE_TOO_LARGE or FENCED_INSTANCE_ID, come only from a cluster that means them.

use kafka_model::Request;
use kafka_model::api::metadata::MetadataTopics;
use kafka_types::ErrorCode;
use kafka_types::ErrorCode as E;

const NONE: &[ErrorCode] = &[];

const PRODUCE: &[ErrorCode] = &[
    E::CorruptMessage,
    // Of brokers from before KIP-360, of a producer that they have forgotten.
    E::UnknownProducerId,
    E::NotLeaderOrFollower,
    E::UnknownTopicOrPartition,
    E::LeaderNotAvailable,
    E::NotEnoughReplicas,
    E::KafkaStorageError,
    E::InvalidTxnState,
    E::OutOfOrderSequenceNumber,
    E::InvalidProducerEpoch,
    E::UnknownServerError,
];
const PRODUCE_AFTER: &[ErrorCode] = &[
    E::NotEnoughReplicasAfterAppend,
    E::RequestTimedOut,
    // Of a batch that is older than those which the broker remembers, and so has no offset to tell.
    E::DuplicateSequenceNumber,
];
const FETCH: &[ErrorCode] = &[
    E::NotLeaderOrFollower,
    E::UnknownTopicOrPartition,
    E::ReplicaNotAvailable,
    E::FencedLeaderEpoch,
    E::UnknownLeaderEpoch,
    E::OffsetNotAvailable,
    E::OffsetOutOfRange,
    E::CorruptMessage,
    // A broker that has not heard of the topic yet, or still knows one that was there before (KIP-516).
    E::UnknownTopicId,
    E::InconsistentTopicId,
    E::KafkaStorageError,
    E::UnknownServerError,
];
const LIST_OFFSETS: &[ErrorCode] = &[
    E::NotLeaderOrFollower,
    E::UnknownTopicOrPartition,
    E::LeaderNotAvailable,
    E::OffsetNotAvailable,
    E::KafkaStorageError,
    E::UnknownServerError,
];
const OFFSET_FOR_LEADER_EPOCH: &[ErrorCode] =
    &[E::NotLeaderOrFollower, E::FencedLeaderEpoch, E::UnknownLeaderEpoch, E::KafkaStorageError];
/// The brokers of the cluster are told all the same: only topics have errors.
const METADATA_AFTER: &[ErrorCode] = &[E::LeaderNotAvailable, E::UnknownTopicOrPartition];
/// Asked for all topics, a broker names only those that it knows.
const METADATA_OF_ALL_AFTER: &[ErrorCode] = &[E::LeaderNotAvailable];
const FIND_COORDINATOR: &[ErrorCode] = &[E::CoordinatorNotAvailable, E::CoordinatorLoadInProgress];
const INIT_PRODUCER_ID: &[ErrorCode] = &[
    E::CoordinatorLoadInProgress,
    E::CoordinatorNotAvailable,
    E::NotCoordinator,
    E::ConcurrentTransactions,
    E::ProducerFenced,
];
const ADD_PARTITIONS: &[ErrorCode] = &[
    E::CoordinatorLoadInProgress,
    E::CoordinatorNotAvailable,
    E::NotCoordinator,
    E::ConcurrentTransactions,
    E::UnknownTopicOrPartition,
    E::InvalidProducerIdMapping,
    // PRODUCER_FENCED, to clients that do not know it yet.
    E::InvalidProducerEpoch,
    E::UnknownServerError,
];
const END_TXN: &[ErrorCode] = &[
    E::CoordinatorLoadInProgress,
    E::CoordinatorNotAvailable,
    E::NotCoordinator,
    E::ConcurrentTransactions,
    E::InvalidTxnState,
    E::InvalidProducerIdMapping,
    E::InvalidProducerEpoch,
    E::UnknownServerError,
];
/// The transaction can only be aborted, and the producer is as sound as before.
const ADD_PARTITIONS_WORST: &[ErrorCode] = &[E::UnknownServerError];
/// In answer to EndTxn, by a coordinator that knows of no such transaction.
pub(super) const FORGOTTEN: &[ErrorCode] = &[E::InvalidTxnState];
/// Those after which a producer must not go on from memory, and one after which it asks again.
const END_TXN_WORST: &[ErrorCode] =
    &[E::InvalidTxnState, E::InvalidProducerIdMapping, E::UnknownServerError, E::CoordinatorNotAvailable];
/// What was decided is written down, and the coordinator moves or times out before it can say so.
const COORDINATOR_AFTER: &[ErrorCode] = &[E::CoordinatorNotAvailable, E::NotCoordinator];
const JOIN_GROUP: &[ErrorCode] = &[
    E::CoordinatorLoadInProgress,
    E::CoordinatorNotAvailable,
    E::NotCoordinator,
    E::UnknownMemberId,
    E::RebalanceInProgress,
    // Members that are gone still count until their sessions run out.
    E::GroupMaxSizeReached,
];
const MEMBER: &[ErrorCode] = &[
    E::CoordinatorNotAvailable,
    E::NotCoordinator,
    E::RebalanceInProgress,
    E::UnknownMemberId,
    E::IllegalGeneration,
];
const SYNC_GROUP_AFTER: &[ErrorCode] = &[E::NotCoordinator];
const LEAVE_GROUP: &[ErrorCode] = &[E::NotCoordinator, E::CoordinatorNotAvailable];
const CHANGE_TOPICS: &[ErrorCode] = &[E::NotController, E::RequestTimedOut, E::UnknownServerError];
const CHANGE_TOPICS_AFTER: &[ErrorCode] = &[E::RequestTimedOut];
const DESCRIBE_CONFIGS: &[ErrorCode] = &[E::RequestTimedOut, E::UnknownServerError];
const DESCRIBE_PRODUCERS: &[ErrorCode] = &[E::NotLeaderOrFollower, E::UnknownTopicOrPartition];

/// The errors that come before anything was done and lead furthest astray.
pub(super) fn worst_of(request: &Request) -> &'static [ErrorCode] {
    match request {
        Request::AddPartitionsToTxn(_) => ADD_PARTITIONS_WORST,
        Request::EndTxn(_) => END_TXN_WORST,
        _ => NONE,
    }
}

/// Errors that come before anything was done, and errors that Kafka answers although it was done.
pub(super) fn of(request: &Request) -> (&'static [ErrorCode], &'static [ErrorCode]) {
    match request {
        Request::Produce(_) => (PRODUCE, PRODUCE_AFTER),
        Request::Fetch(_) => (FETCH, NONE),
        Request::ListOffsets(_) => (LIST_OFFSETS, NONE),
        Request::OffsetForLeaderEpoch(_) => (OFFSET_FOR_LEADER_EPOCH, NONE),
        Request::Metadata(it) => match it.topics {
            MetadataTopics::All => (NONE, METADATA_OF_ALL_AFTER),
            MetadataTopics::Named(_) | MetadataTopics::Ids(_) => (NONE, METADATA_AFTER),
        },
        Request::FindCoordinator(_) => (FIND_COORDINATOR, NONE),
        Request::InitProducerId(_) => (INIT_PRODUCER_ID, COORDINATOR_AFTER),
        Request::AddPartitionsToTxn(_) => (ADD_PARTITIONS, COORDINATOR_AFTER),
        Request::EndTxn(_) => (END_TXN, COORDINATOR_AFTER),
        Request::JoinGroup(_) => (JOIN_GROUP, NONE),
        Request::SyncGroup(_) => (MEMBER, SYNC_GROUP_AFTER),
        Request::Heartbeat(_) => (MEMBER, NONE),
        Request::LeaveGroup(_) => (LEAVE_GROUP, NONE),
        Request::CreateTopics(_) | Request::CreatePartitions(_) => (CHANGE_TOPICS, CHANGE_TOPICS_AFTER),
        Request::DescribeConfigs(_) => (DESCRIBE_CONFIGS, NONE),
        Request::DescribeProducers(_) => (DESCRIBE_PRODUCERS, NONE),
        // Not a mirror's.
        Request::DescribeTransactions(_)
        | Request::ApiVersions(_)
        | Request::DeleteTopics(_)
        | Request::IncrementalAlterConfigs(_)
        | Request::DeleteRecords(_)
        | Request::AddOffsetsToTxn(_)
        | Request::TxnOffsetCommit(_)
        | Request::OffsetCommit(_)
        | Request::OffsetFetch(_)
        | Request::DescribeGroups(_)
        | Request::ListGroups(_)
        | Request::DeleteGroups(_) => (NONE, NONE),
    }
}
