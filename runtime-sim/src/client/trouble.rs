//! The one table from error codes to the core's [`Trouble`].

use kafka_types::ErrorCode;
use verbatim_core::failure::Trouble;

/// What a broker's error means to a question that needed `operation` on `resource`.
pub(super) fn trouble(error: ErrorCode, operation: &str, resource: &str) -> Trouble {
    let not_authorized = |resource: String, operation: &str| Trouble::NotAuthorized {
        resource: resource.trim_end().into(),
        operation: operation.into(),
    };
    match error {
        ErrorCode::TopicAuthorizationFailed => not_authorized(format!("Topic {resource}"), operation),
        ErrorCode::GroupAuthorizationFailed => not_authorized(format!("Group {resource}"), "Read"),
        ErrorCode::ClusterAuthorizationFailed => not_authorized("Cluster".into(), operation),
        ErrorCode::TransactionalIdAuthorizationFailed => {
            not_authorized(format!("TransactionalId {resource}"), "Write")
        }
        ErrorCode::InvalidReplicationFactor
        | ErrorCode::InvalidReplicaAssignment
        | ErrorCode::InvalidPartitions
        | ErrorCode::InvalidConfig
        | ErrorCode::InvalidTopicException
        | ErrorCode::InvalidRequest
        | ErrorCode::InvalidGroupId
        | ErrorCode::InvalidSessionTimeout
        | ErrorCode::InvalidTransactionTimeout
        | ErrorCode::InconsistentGroupProtocol
        | ErrorCode::PolicyViolation
        | ErrorCode::UnsupportedVersion
        | ErrorCode::UnsupportedForMessageFormat => Trouble::Refused(error.to_string()),
        // Anything else passes: a code nobody thought of must not end a mirror for good.
        passing => Trouble::Passing(passing.to_string()),
    }
}

pub(super) fn unreachable() -> Trouble {
    Trouble::Unreachable("no answer in time".into())
}
