//! The one table from Kafka's and librdkafka's error codes to the core's [`Trouble`].

use rdkafka::types::RDKafkaErrorCode as Code;
use verbatim_core::failure::Trouble;

/// An error as the client library or a broker gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    pub code: Code,
    pub text: String,
}

impl ApiError {
    pub fn new(code: Code, text: impl Into<String>) -> ApiError {
        ApiError { code, text: text.into() }
    }

    /// No answer within the time allowed.
    pub fn timed_out(what: &str) -> ApiError {
        ApiError::new(Code::OperationTimedOut, format!("no answer to {what} in time"))
    }

    /// What this error means to a question that asked for `asked`.
    pub fn trouble(&self, asked: &Asked<'_>) -> Trouble {
        let text = || {
            let name = format!("{:?}", self.code);
            if self.text.is_empty() { name } else { format!("{} ({name})", self.text) }
        };
        match kind(self.code) {
            Kind::Unreachable => Trouble::Unreachable(text()),
            Kind::Authentication => Trouble::Authentication(text()),
            Kind::NotAuthorized(resource) => Trouble::NotAuthorized {
                resource: asked.resource(resource),
                operation: asked.operation_on(resource).into(),
            },
            Kind::Refused => Trouble::Refused(text()),
            Kind::Passing => Trouble::Passing(text()),
        }
    }
}

/// What a question was about, in the words of an ACL: an authorization error names only a code.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The topic, group or transactional id asked about; empty when none is.
    pub name: &'a str,
    /// The ACL operation that the question needs on it.
    pub operation: &'static str,
}

impl<'a> Asked<'a> {
    pub fn new(operation: &'static str, name: &'a str) -> Asked<'a> {
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
enum Resource {
    Cluster,
    Topic,
    Group,
    TransactionalId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unreachable,
    Authentication,
    NotAuthorized(Resource),
    Refused,
    Passing,
}

/// Anything that is not named here is passing: a code nobody thought of must not end a mirror for good.
fn kind(code: Code) -> Kind {
    match code {
        Code::BrokerTransportFailure
        | Code::Resolve
        | Code::AllBrokersDown
        | Code::OperationTimedOut
        | Code::TimedOutQueue
        | Code::BrokerDestroy
        | Code::DestroyBroker
        | Code::NodeUpdate => Kind::Unreachable,

        Code::Authentication
        | Code::SSL
        | Code::SaslAuthenticationFailed
        | Code::UnsupportedSASLMechanism
        | Code::IllegalSASLState
        | Code::SecurityDisabled
        | Code::InvalidPrincipalType
        | Code::DelegationTokenExpired => Kind::Authentication,

        Code::TopicAuthorizationFailed => Kind::NotAuthorized(Resource::Topic),
        Code::GroupAuthorizationFailed => Kind::NotAuthorized(Resource::Group),
        Code::ClusterAuthorizationFailed => Kind::NotAuthorized(Resource::Cluster),
        Code::TransactionalIdAuthorizationFailed => Kind::NotAuthorized(Resource::TransactionalId),

        Code::InvalidReplicationFactor
        | Code::InvalidReplicaAssignment
        | Code::InvalidPartitions
        | Code::InvalidConfig
        | Code::InvalidTopic
        | Code::InvalidRequest
        | Code::InvalidGroupId
        | Code::InvalidSessionTimeout
        | Code::InvalidTransactionTimeout
        | Code::InconsistentGroupProtocol
        | Code::PolicyViolation
        | Code::UnsupportedVersion
        | Code::UnsupportedFeature
        | Code::UnsupportedForMessageFormat
        | Code::InvalidArgument
        | Code::NotImplemented => Kind::Refused,

        _ => Kind::Passing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(code: Code, operation: &'static str, name: &str) -> Trouble {
        ApiError::new(code, "why").trouble(&Asked::new(operation, name))
    }

    #[test]
    fn kinds() {
        for (code, expected) in [
            (Code::BrokerTransportFailure, Kind::Unreachable),
            (Code::AllBrokersDown, Kind::Unreachable),
            (Code::Resolve, Kind::Unreachable),
            (Code::OperationTimedOut, Kind::Unreachable),
            (Code::Authentication, Kind::Authentication),
            (Code::SaslAuthenticationFailed, Kind::Authentication),
            (Code::SSL, Kind::Authentication),
            (Code::InvalidReplicationFactor, Kind::Refused),
            (Code::PolicyViolation, Kind::Refused),
            (Code::InvalidConfig, Kind::Refused),
            (Code::RequestTimedOut, Kind::Passing),
            (Code::NotLeaderForPartition, Kind::Passing),
            (Code::LeaderNotAvailable, Kind::Passing),
            (Code::UnknownTopicOrPartition, Kind::Passing),
            (Code::NotController, Kind::Passing),
            (Code::ThrottlingQuotaExceeded, Kind::Passing),
            (Code::Unknown, Kind::Passing),
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
                Code::TopicAuthorizationFailed,
                "DescribeConfigs",
                "orders",
                named("Topic orders", "DescribeConfigs"),
            ),
            (Code::GroupAuthorizationFailed, "Describe", "verbatim-x", named("Group verbatim-x", "Read")),
            (Code::ClusterAuthorizationFailed, "Create", "", named("Cluster", "Create")),
            (
                Code::TransactionalIdAuthorizationFailed,
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
            trouble(Code::PolicyViolation, "Create", "orders"),
            Trouble::Refused("why (PolicyViolation)".into())
        );
        assert_eq!(
            ApiError::new(Code::Fail, "").trouble(&Asked::new("Describe", "")),
            Trouble::Passing("Fail".into())
        );
    }
}
