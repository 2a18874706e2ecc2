//! What librdkafka says of one property, before any client exists.

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

/// A client property that librdkafka does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProperty {
    #[error("no such property")]
    Unknown,
    #[error("{0}")]
    Invalid(String),
}

/// Whether librdkafka knows the property and takes the value.
pub fn check_property(name: &str, value: &str) -> Result<(), BadProperty> {
    match ClientConfig::new().set(name, value).create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)) => Err(BadProperty::Unknown),
        Err(KafkaError::ClientConfig(_, why, ..)) => Err(BadProperty::Invalid(why)),
        Err(other) => Err(BadProperty::Invalid(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn librdkafka_judges_names_and_values() {
        assert_eq!(check_property("bootstrap.servers", "a:9092"), Ok(()));
        assert_eq!(check_property("acks", "all"), Ok(()));
        assert_eq!(check_property("no.such.property", "x"), Err(BadProperty::Unknown));
        assert!(matches!(check_property("socket.timeout.ms", "-7"), Err(BadProperty::Invalid(_))));
    }
}
