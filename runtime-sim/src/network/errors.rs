//! Which errors a broker may answer to each request that a mirror sends, whatever the request says: those of
//! moves, elections, overload and coordinators that disagree. Errors that say something of the request itself,
//! such as MESSAGE_TOO_LARGE or FENCED_INSTANCE_ID, come only from a cluster that means them.

use kafka_model::Request;
use kafka_types::ErrorCode;
use kafka_types::ErrorCode as E;

/// Errors that come before anything was done, and errors that Kafka answers although it was done.
pub(super) fn of(request: &Request) -> (&'static [ErrorCode], &'static [ErrorCode]) {
    match request {
        Request::Produce(_) => (
            &[
                E::NotLeaderOrFollower,
                E::UnknownTopicOrPartition,
                E::LeaderNotAvailable,
                E::NotEnoughReplicas,
                E::KafkaStorageError,
                E::InvalidTxnState,
                E::OutOfOrderSequenceNumber,
                E::InvalidProducerEpoch,
                E::UnknownServerError,
            ],
            &[E::NotEnoughReplicasAfterAppend, E::RequestTimedOut],
        ),
        Request::Fetch(_) => (
            &[
                E::NotLeaderOrFollower,
                E::UnknownTopicOrPartition,
                E::ReplicaNotAvailable,
                E::FencedLeaderEpoch,
                E::UnknownLeaderEpoch,
                E::OffsetNotAvailable,
                E::OffsetOutOfRange,
                E::KafkaStorageError,
                E::UnknownServerError,
            ],
            &[],
        ),
        Request::ListOffsets(_) => (
            &[
                E::NotLeaderOrFollower,
                E::UnknownTopicOrPartition,
                E::LeaderNotAvailable,
                E::OffsetNotAvailable,
                E::KafkaStorageError,
                E::UnknownServerError,
            ],
            &[],
        ),
        Request::OffsetForLeaderEpoch(_) => (
            &[E::NotLeaderOrFollower, E::FencedLeaderEpoch, E::UnknownLeaderEpoch, E::KafkaStorageError],
            &[],
        ),
        // The brokers of the cluster are told all the same: only topics have errors.
        Request::Metadata(_) => (&[], &[E::LeaderNotAvailable, E::UnknownTopicOrPartition]),
        Request::FindCoordinator(_) => (&[E::CoordinatorNotAvailable, E::CoordinatorLoadInProgress], &[]),
        Request::InitProducerId(_) => (
            &[
                E::CoordinatorLoadInProgress,
                E::CoordinatorNotAvailable,
                E::NotCoordinator,
                E::ConcurrentTransactions,
            ],
            &[E::CoordinatorNotAvailable, E::NotCoordinator],
        ),
        Request::AddPartitionsToTxn(_) => (
            &[
                E::CoordinatorLoadInProgress,
                E::CoordinatorNotAvailable,
                E::NotCoordinator,
                E::ConcurrentTransactions,
                E::UnknownTopicOrPartition,
                E::InvalidProducerIdMapping,
                E::UnknownServerError,
            ],
            &[E::CoordinatorNotAvailable, E::NotCoordinator],
        ),
        Request::EndTxn(_) => (
            &[
                E::CoordinatorLoadInProgress,
                E::CoordinatorNotAvailable,
                E::NotCoordinator,
                E::ConcurrentTransactions,
                E::InvalidTxnState,
                E::InvalidProducerIdMapping,
                E::UnknownServerError,
            ],
            &[E::CoordinatorNotAvailable, E::NotCoordinator],
        ),
        Request::JoinGroup(_) => (
            &[
                E::CoordinatorLoadInProgress,
                E::CoordinatorNotAvailable,
                E::NotCoordinator,
                E::UnknownMemberId,
                E::RebalanceInProgress,
            ],
            &[],
        ),
        Request::SyncGroup(_) => (
            &[
                E::CoordinatorNotAvailable,
                E::NotCoordinator,
                E::RebalanceInProgress,
                E::UnknownMemberId,
                E::IllegalGeneration,
            ],
            &[E::NotCoordinator],
        ),
        Request::Heartbeat(_) => (
            &[
                E::CoordinatorNotAvailable,
                E::NotCoordinator,
                E::RebalanceInProgress,
                E::UnknownMemberId,
                E::IllegalGeneration,
            ],
            &[],
        ),
        Request::LeaveGroup(_) => (&[E::NotCoordinator, E::CoordinatorNotAvailable], &[]),
        Request::CreateTopics(_) | Request::CreatePartitions(_) => {
            (&[E::NotController, E::RequestTimedOut, E::UnknownServerError], &[E::RequestTimedOut])
        }
        Request::DescribeConfigs(_) => (&[E::RequestTimedOut, E::UnknownServerError], &[]),
        Request::DescribeProducers(_) => (&[E::NotLeaderOrFollower, E::UnknownTopicOrPartition], &[]),
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
        | Request::DeleteGroups(_) => (&[], &[]),
    }
}
