//! What the library's errors mean to a lane: the same table as in the real World.

use super::super::error::{Code, LibraryError};
use kafka_types::{ErrorCode, TopicName};
use std::collections::BTreeSet;
use verbatim_core::failure::{Failure, Refusal, Trouble};

/// A call that concerns the producer or its transaction as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Init,
    Begin,
    /// With how many EndTxn requests it sent.
    Commit {
        end_txn_sent: u64,
    },
    Abort,
}

/// What a code says, before it is known which call met it.
enum Meaning {
    Fenced,
    /// The epoch is not the coordinator's: fenced or timed out if the client has given up, else unclear.
    Epoch,
    /// Coordinator and client do not agree on the transaction.
    Diverged,
    Denied(Trouble),
    TooLarge,
    Invalid,
    Refused,
    Passing,
}

fn meaning(error: &LibraryError, topic: Option<&TopicName>, operation: &str, id: &str) -> Meaning {
    let denied = |resource: String, operation: &str| {
        Meaning::Denied(Trouble::NotAuthorized { resource, operation: operation.into() })
    };
    let Code::Broker(code) = error.code else {
        return if error.code == Code::Fenced { Meaning::Fenced } else { Meaning::Passing };
    };
    match code {
        ErrorCode::ProducerFenced => Meaning::Fenced,
        ErrorCode::InvalidProducerEpoch => Meaning::Epoch,
        ErrorCode::InvalidTxnState
        | ErrorCode::InvalidProducerIdMapping
        | ErrorCode::UnknownProducerId
        | ErrorCode::OutOfOrderSequenceNumber
        | ErrorCode::TransactionCoordinatorFenced => Meaning::Diverged,
        ErrorCode::TopicAuthorizationFailed => {
            denied(topic.map_or("Topic".into(), |topic| format!("Topic {topic}")), operation)
        }
        ErrorCode::TransactionalIdAuthorizationFailed => denied(format!("TransactionalId {id}"), "Write"),
        ErrorCode::ClusterAuthorizationFailed => denied("Cluster".into(), "IdempotentWrite"),
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge => Meaning::TooLarge,
        ErrorCode::InvalidRecord
        | ErrorCode::InvalidTimestamp
        | ErrorCode::PolicyViolation
        | ErrorCode::UnsupportedForMessageFormat
        | ErrorCode::UnsupportedCompressionType => Meaning::Invalid,
        ErrorCode::UnsupportedVersion
        | ErrorCode::InvalidTransactionTimeout
        | ErrorCode::InvalidRequest
        | ErrorCode::InvalidTopicException => Meaning::Refused,
        _ => Meaning::Passing,
    }
}

/// How a call failed. `fatal` is the producer's fatal error, if it has one.
pub(super) fn of_call(call: Call, error: &LibraryError, fatal: Option<&LibraryError>, id: &str) -> Failure {
    let cause = fatal.unwrap_or(error);
    let text = cause.to_string();
    match (meaning(cause, None, "Write", id), call) {
        (Meaning::Denied(trouble), _) => Failure::Fatal(trouble),
        (Meaning::Fenced, _) => Failure::Fenced(text),
        (Meaning::Epoch, _) if cause.is_fatal => Failure::Fenced(text),
        (Meaning::Refused, Call::Init) => Failure::Fatal(Trouble::Refused(text)),
        (_, Call::Init) if cause.is_fatal => Failure::Fatal(Trouble::Refused(text)),
        (_, Call::Init) => Failure::Retry(text),
        (Meaning::Epoch | Meaning::Diverged, _) => Failure::Unknown(text),
        (_, Call::Commit { end_txn_sent: 0 }) if error.requires_abort && fatal.is_none() => {
            Failure::Abort(text)
        }
        (_, Call::Begin | Call::Commit { .. } | Call::Abort) => Failure::Unknown(text),
    }
}

/// Why a record, or the batch it went in, was not taken.
pub(super) fn of_record(
    error: &LibraryError,
    fatal: Option<&LibraryError>,
    topic: &TopicName,
    id: &str,
) -> Refusal {
    let cause = fatal.unwrap_or(error);
    let text = cause.to_string();
    match meaning(cause, Some(topic), "Write", id) {
        Meaning::Denied(trouble) => Refusal::Collateral(Failure::Fatal(trouble)),
        Meaning::Fenced => Refusal::Collateral(Failure::Fenced(text)),
        Meaning::Epoch if cause.is_fatal => Refusal::Collateral(Failure::Fenced(text)),
        Meaning::Epoch | Meaning::Diverged => Refusal::Collateral(Failure::Unknown(text)),
        _ if fatal.is_some() => Refusal::Collateral(Failure::Unknown(text)),
        Meaning::TooLarge => Refusal::TooLarge(text),
        Meaning::Invalid => Refusal::Invalid(text),
        Meaning::Refused | Meaning::Passing => Refusal::Collateral(Failure::Abort(text)),
    }
}

/// Whether an error only tells that something else has gone wrong before.
pub(super) fn is_echo(error: &LibraryError) -> bool {
    matches!(error.code, Code::PurgedFromQueue | Code::PurgedInFlight | Code::State)
}

/// Why a transaction with records for `topics` can only be aborted. The coordinator refuses a topic without saying
/// which: with one there is no doubt, and with several the lane is taken again.
pub(super) fn of_transaction(cause: &LibraryError, topics: &BTreeSet<TopicName>, id: &str) -> Failure {
    let only = if topics.len() == 1 { topics.first() } else { None };
    match (meaning(cause, only, "Write", id), only) {
        (Meaning::Denied(Trouble::NotAuthorized { resource, .. }), None) if resource == "Topic" => {
            Failure::Unknown(cause.to_string())
        }
        (Meaning::Denied(trouble), _) => Failure::Fatal(trouble),
        (Meaning::Fenced, _) => Failure::Fenced(cause.to_string()),
        (Meaning::Epoch | Meaning::Diverged, _) => Failure::Unknown(cause.to_string()),
        (Meaning::TooLarge | Meaning::Invalid | Meaning::Refused | Meaning::Passing, _) => {
            Failure::Abort(cause.to_string())
        }
    }
}

/// Whether a record that failed so leaves a gap in its partition's sequence numbers that an abort does not
/// close: what a broker refused for good does, errors of the library's own do not.
pub(super) fn leaves_gap(error: &LibraryError) -> bool {
    matches!(error.code, Code::Broker(_))
}

/// The worse of two refusals of one batch.
pub(super) fn worse(a: Refusal, b: Refusal) -> Refusal {
    fn rank(refusal: &Refusal) -> u8 {
        match refusal {
            Refusal::Collateral(Failure::Fenced(_)) => 5,
            Refusal::Collateral(Failure::Unknown(_)) => 4,
            Refusal::Collateral(Failure::Fatal(_)) => 3,
            Refusal::TooLarge(_) | Refusal::Invalid(_) => 2,
            Refusal::Collateral(Failure::Abort(_)) => 1,
            Refusal::Collateral(Failure::Retry(_)) => 0,
        }
    }
    if rank(&a) < rank(&b) { b } else { a }
}

/// A refusal of ledger records, as the failure of the step that produced them.
pub(super) fn of_ledger(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::TooLarge(text) | Refusal::Invalid(text) => Failure::Fatal(Trouble::Refused(text)),
        Refusal::Collateral(failure) => failure,
    }
}
