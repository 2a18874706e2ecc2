//! The one table of what Kafka's and librdkafka's error codes say. A lane's transaction knows some of them better
//! (`lane/failure.rs`) and asks here for the rest.

use crate::ffi::{ClientError, Code};
use verbatim_core::failure::Trouble;

impl ClientError {
    /// What this error means to a question that asked for `asked`.
    pub(crate) fn trouble(&self, asked: &Asked<'_>) -> Trouble {
        match kind(self.code) {
            Kind::Unreachable => Trouble::Unreachable(self.to_string()),
            Kind::Authentication => Trouble::Authentication(self.to_string()),
            Kind::NotAuthorized(resource) => Trouble::NotAuthorized {
                resource: asked.resource(resource),
                operation: asked.operation_on(resource).into(),
            },
            Kind::Refused => Trouble::Refused(self.to_string()),
            Kind::Passing => Trouble::Passing(self.to_string()),
        }
    }
}

/// What a question was about, in the words of an ACL: an authorization error names only a code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The topic, group or transactional id asked about; empty when none is.
    pub(crate) name: &'a str,
    /// The ACL operation that the question needs on it.
    pub(crate) operation: &'static str,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(operation: &'static str, name: &'a str) -> Asked<'a> {
        Asked { name, operation }
    }

    fn resource(&self, resource: Resource) -> String {
        match resource {
            Resource::Cluster => "Cluster".into(),
            Resource::Topic => format!("Topic {}", self.name).trim_end().into(),
            Resource::Group => format!("Group {}", self.name).trim_end().into(),
            Resource::TransactionalId => format!("TransactionalId {}", self.name).trim_end().into(),
        }
    }

    /// A request that needs an operation on the cluster says so itself; one about a topic may still be
    /// refused for the sake of a group, which a client only ever reads.
    fn operation_on(&self, resource: Resource) -> &'static str {
        match resource {
            Resource::Cluster | Resource::Topic => self.operation,
            Resource::Group => "Read",
            Resource::TransactionalId => "Write",
        }
    }
}

/// The kinds of resource that an ACL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Cluster,
    Topic,
    Group,
    TransactionalId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unreachable,
    Authentication,
    NotAuthorized(Resource),
    Refused,
    Passing,
}

/// Anything that is not named here is passing: a code nobody thought of must not end a mirror for good.
pub(crate) fn kind(code: Code) -> Kind {
    match code {
        Code::RD_KAFKA_RESP_ERR__TRANSPORT
        | Code::RD_KAFKA_RESP_ERR__RESOLVE
        | Code::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN
        | Code::RD_KAFKA_RESP_ERR__TIMED_OUT
        | Code::RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE
        | Code::RD_KAFKA_RESP_ERR__DESTROY
        | Code::RD_KAFKA_RESP_ERR__DESTROY_BROKER
        | Code::RD_KAFKA_RESP_ERR__NODE_UPDATE => Kind::Unreachable,

        // A connection that is lost during the handshake is not among them: librdkafka calls that transport.
        Code::RD_KAFKA_RESP_ERR__AUTHENTICATION
        | Code::RD_KAFKA_RESP_ERR__SSL
        | Code::RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED
        | Code::RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM
        | Code::RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE
        | Code::RD_KAFKA_RESP_ERR_SECURITY_DISABLED
        | Code::RD_KAFKA_RESP_ERR_INVALID_PRINCIPAL_TYPE
        | Code::RD_KAFKA_RESP_ERR_DELEGATION_TOKEN_EXPIRED => Kind::Authentication,

        Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED => Kind::NotAuthorized(Resource::Topic),
        Code::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED => Kind::NotAuthorized(Resource::Group),
        Code::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED => Kind::NotAuthorized(Resource::Cluster),
        Code::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED => {
            Kind::NotAuthorized(Resource::TransactionalId)
        }

        Code::RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR
        | Code::RD_KAFKA_RESP_ERR_INVALID_REPLICA_ASSIGNMENT
        | Code::RD_KAFKA_RESP_ERR_INVALID_PARTITIONS
        | Code::RD_KAFKA_RESP_ERR_INVALID_CONFIG
        | Code::RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION
        | Code::RD_KAFKA_RESP_ERR_INVALID_REQUEST
        | Code::RD_KAFKA_RESP_ERR_INVALID_GROUP_ID
        | Code::RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT
        | Code::RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT
        | Code::RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL
        | Code::RD_KAFKA_RESP_ERR_POLICY_VIOLATION
        | Code::RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION
        | Code::RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE
        | Code::RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT
        | Code::RD_KAFKA_RESP_ERR__INVALID_ARG
        | Code::RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED => Kind::Refused,

        _ => Kind::Passing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(code: Code, operation: &'static str, name: &str) -> Trouble {
        ClientError::new(code, "why").trouble(&Asked::new(operation, name))
    }

    #[test]
    fn kinds() {
        for (code, expected) in [
            (Code::RD_KAFKA_RESP_ERR__TRANSPORT, Kind::Unreachable),
            (Code::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, Kind::Unreachable),
            (Code::RD_KAFKA_RESP_ERR__RESOLVE, Kind::Unreachable),
            (Code::RD_KAFKA_RESP_ERR__TIMED_OUT, Kind::Unreachable),
            (Code::RD_KAFKA_RESP_ERR__AUTHENTICATION, Kind::Authentication),
            (Code::RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, Kind::Authentication),
            (Code::RD_KAFKA_RESP_ERR__SSL, Kind::Authentication),
            (Code::RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR, Kind::Refused),
            (Code::RD_KAFKA_RESP_ERR_POLICY_VIOLATION, Kind::Refused),
            (Code::RD_KAFKA_RESP_ERR_INVALID_CONFIG, Kind::Refused),
            (Code::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, Kind::Passing),
            (Code::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, Kind::Passing),
            (Code::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, Kind::Passing),
            (Code::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, Kind::Passing),
            (Code::RD_KAFKA_RESP_ERR_NOT_CONTROLLER, Kind::Passing),
            (Code::RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, Kind::Passing),
            (Code::RD_KAFKA_RESP_ERR_UNKNOWN, Kind::Passing),
        ] {
            assert_eq!(kind(code), expected, "{code:?}");
        }
    }

    #[test]
    fn a_refused_acl_is_named() {
        let named = |resource: &str, operation: &str| Trouble::NotAuthorized {
            resource: resource.into(),
            operation: operation.into(),
        };
        for (code, operation, name, expected) in [
            (
                Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
                "DescribeConfigs",
                "orders",
                named("Topic orders", "DescribeConfigs"),
            ),
            (
                Code::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
                "Describe",
                "verbatim-x",
                named("Group verbatim-x", "Read"),
            ),
            (Code::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, "Create", "", named("Cluster", "Create")),
            (
                Code::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "Write",
                "verbatim-x-0",
                named("TransactionalId verbatim-x-0", "Write"),
            ),
        ] {
            assert_eq!(trouble(code, operation, name), expected);
        }
    }

    #[test]
    fn texts_keep_the_code() {
        assert_eq!(
            trouble(Code::RD_KAFKA_RESP_ERR_POLICY_VIOLATION, "Create", "orders"),
            Trouble::Refused("why (POLICY_VIOLATION)".into())
        );
        assert_eq!(
            ClientError::new(Code::RD_KAFKA_RESP_ERR__FAIL, "").trouble(&Asked::new("Describe", "")),
            Trouble::Passing("_FAIL".into())
        );
    }
}
