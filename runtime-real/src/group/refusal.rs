//! Errors of the membership that will not pass.

use crate::ffi::{ClientError, Code};
use crate::settings::Settings;
use crate::trouble::Asked;
use rdkafka::error::KafkaError;
use verbatim_core::failure::Trouble;

/// Why the group will never have this member; `None` for errors that pass.
pub(super) fn refusal(error: &KafkaError, settings: &Settings) -> Option<Trouble> {
    let code = error.rdkafka_error_code()?;
    let error = ClientError::of_rdkafka(code, "joining the group");
    let (group, ledger) = (settings.flow.group(), settings.flow.ledger());
    let trouble = match error.code {
        Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED => {
            error.trouble(&Asked::new("Describe", ledger.as_str()))
        }
        _ => error.trouble(&Asked::new("Read", &group)),
    };
    match trouble {
        Trouble::NotAuthorized { .. } | Trouble::Refused(_) => Some(trouble),
        // Reported by the client that asks the questions to this cluster, and worth another try.
        Trouble::Unreachable(_) | Trouble::Authentication(_) | Trouble::Passing(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::types::RDKafkaErrorCode;
    use verbatim_core::config::FlowName;

    fn refused(code: RDKafkaErrorCode) -> Option<Trouble> {
        let settings = Settings {
            source: Default::default(),
            target: Default::default(),
            flow: FlowName::new("x").unwrap(),
            lanes: 8,
            instance: None,
            memory_bytes: 0,
        };
        refusal(&KafkaError::MessageConsumption(code), &settings)
    }

    #[test]
    fn only_what_will_not_pass_is_a_refusal() {
        let denied = |resource: &str, operation: &str| {
            Some(Trouble::NotAuthorized { resource: resource.into(), operation: operation.into() })
        };
        assert_eq!(refused(RDKafkaErrorCode::GroupAuthorizationFailed), denied("Group verbatim-x", "Read"));
        assert_eq!(
            refused(RDKafkaErrorCode::TopicAuthorizationFailed),
            denied("Topic verbatim.x.ledger.internal", "Describe")
        );
        assert!(matches!(refused(RDKafkaErrorCode::InvalidSessionTimeout), Some(Trouble::Refused(_))));
        for code in [
            RDKafkaErrorCode::UnknownTopicOrPartition,
            RDKafkaErrorCode::BrokerTransportFailure,
            RDKafkaErrorCode::CoordinatorNotAvailable,
            RDKafkaErrorCode::Authentication,
        ] {
            assert_eq!(refused(code), None, "{code:?}");
        }
    }
}
