//! Client properties that the mirror's promises rest on.

use super::Property;
use crate::config::error::ConfigError;
use verbatim_core::failure::Side;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing a promise depends on.
    Anything,
    /// Exactly what the mirror sets by itself.
    WhatIsDoneAnyway,
}

/// Properties with the values that the mirror sets; any other is refused for this reason.
const ENFORCED: &[(&str, &[&str], &str)] = &[
    ("enable.idempotence", &["true"], "a retried request could double or reorder records"),
    ("acks", &["all", "-1"], "an acknowledged record could be lost with one broker"),
    ("request.required.acks", &["all", "-1"], "an acknowledged record could be lost with one broker"),
    ("isolation.level", &["read_committed"], "aborted records would be copied"),
    ("enable.auto.commit", &["false"], "progress lives in the ledger, with the records it stands for"),
    ("enable.auto.offset.store", &["false"], "progress lives in the ledger, with the records it stands for"),
    ("allow.auto.create.topics", &["false"], "a topic made by chance has the wrong partitions and settings"),
    ("auto.create.topics.enable", &["false"], "a topic made by chance has the wrong partitions and settings"),
    ("check.crcs", &["true"], "a damaged record would be copied as it is"),
    ("enable.partition.eof", &["false"], "the mirror sets it itself where it needs it"),
    ("delivery.report.only.error", &["false"], "records settle by their acknowledgements"),
    ("produce.offset.report", &["true"], "the ledger records the offset of every copy"),
    ("api.version.request", &["true"], "transactions need to know what the brokers speak"),
    ("exclude.internal.topics", &["true"], "internal topics are never taken"),
    ("enable.metrics.push", &["false"], "brokers would be sent metrics that nobody asked for"),
    ("retries", &["2147483647"], "a record could be given up before its transaction is"),
    ("message.send.max.retries", &["2147483647"], "a record could be given up before its transaction is"),
];

/// Properties that are the mirror's own, whatever the value, and why or what to use in their place.
const REFUSED: &[(&str, &str)] = &[
    ("client.id", "each client is verbatim-<name>-<purpose>, so that brokers can tell them apart"),
    ("group.id", "the group is verbatim-<name>: it derives from the flow's name"),
    ("group.instance.id", "use instance, at the top of the configuration"),
    ("group.protocol", "the mirror depends on the classic protocol's hand-over of lanes"),
    ("group.protocol.type", "the mirror depends on the consumer protocol"),
    ("group.remote.assignor", "the mirror depends on the classic protocol's hand-over of lanes"),
    ("partition.assignment.strategy", "lanes are shared out all at once, so that each always has an owner"),
    ("transactional.id", "each lane's is verbatim-<name>-<lane>: it is what fences a former owner"),
    ("auto.offset.reset", "no position is ever reset; use delivery.start for what exists at first"),
    ("auto.commit.interval.ms", "progress lives in the ledger; use delivery.commit.interval"),
    ("offset.store.method", "progress lives in the ledger"),
    ("offset.store.path", "progress lives in the ledger"),
    ("offset.store.sync.interval.ms", "progress lives in the ledger"),
    ("enable.gapless.guarantee", "it turns one refused record into a failure of the whole lane"),
    ("partitioner", "every record keeps its partition number"),
    ("partitioner.class", "every record keeps its partition number"),
    ("partitioner.ignore.keys", "every record keeps its partition number"),
    ("partitioner.adaptive.partitioning.enable", "every record keeps its partition number"),
    ("partitioner.availability.timeout.ms", "every record keeps its partition number"),
    ("queuing.strategy", "records must leave in the order they came"),
    ("test.mock.num.brokers", "a mock cluster keeps no transaction apart"),
    ("plugin.library.paths", "a plugin could change what is copied"),
    ("interceptor.classes", "records are copied byte for byte"),
    ("message.timeout.ms", "a record has as long as its transaction: use transaction.timeout.ms"),
    ("message.max.bytes", "the brokers' and topics' own limits decide what is too large"),
    ("max.request.size", "the brokers' and topics' own limits decide what is too large"),
    ("queue.buffering.max.messages", "limits.memory bounds every queue"),
    ("queued.min.messages", "limits.memory bounds every queue"),
    ("queued.max.messages.kbytes", "limits.memory bounds every queue"),
    ("fetch.max.bytes", "limits.memory bounds every fetch; a larger record still comes, alone"),
    ("max.partition.fetch.bytes", "limits.memory bounds every fetch; a larger record still comes, alone"),
    ("fetch.message.max.bytes", "limits.memory bounds every fetch; a larger record still comes, alone"),
    ("receive.message.max.bytes", "limits.memory bounds every fetch; a larger record still comes, alone"),
    ("session.timeout.ms", "it is 8 s, so that a dead instance's lanes move on soon"),
    ("heartbeat.interval.ms", "it is 2 s, to fit a session of 8 s"),
    ("max.poll.interval.ms", "it bounds how long the hand-over of lanes may take"),
    ("delivery.timeout.ms", "a record has as long as its transaction: use transaction.timeout.ms"),
];

/// Refuses a property that would break a promise.
pub(super) fn check(side: Side, property: &Property) -> Result<Asked, ConfigError> {
    let Property { name, value, .. } = property;
    if let Some((_, wanted, why)) = ENFORCED.iter().find(|(enforced, ..)| enforced == name) {
        if wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(value)) {
            return Ok(Asked::WhatIsDoneAnyway);
        }
        return Err(refuse_value(property, &format!("{name} is always {}: else {why}", wanted[0])));
    }
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| refused == name) {
        return Err(refuse_name(property, &format!("{name} cannot be set: {why}")));
    }
    match name.as_str() {
        "max.in.flight.requests.per.connection" | "max.in.flight"
            if value.parse::<u64>().is_ok_and(|requests| 5 < requests) =>
        {
            Err(refuse_value(property, &format!("{name} is at most 5: beyond it records can be reordered")))
        }
        "socket.timeout.ms" | "request.timeout.ms" if side == Side::Target => Err(refuse_name(
            property,
            &format!(
                "{name} cannot be set for the target: a request must outlast a commit, or its time-out goes unnoticed"
            ),
        )),
        "key.serializer" | "value.serializer" | "key.deserializer" | "value.deserializer" => {
            serializer(property)
        }
        "debug" if side == Side::Target => Err(refuse_name(
            property,
            "debug cannot be set for the target: the mirror reads librdkafka's own account of transactions",
        )),
        "sasl.mechanism" | "sasl.mechanisms" => mechanism(property),
        _ => Ok(Asked::Anything),
    }
}

fn serializer(property: &Property) -> Result<Asked, ConfigError> {
    let class = property.value.rsplit('.').next().unwrap_or_default();
    if class.starts_with("ByteArray") || class.starts_with("ByteBuffer") || class.starts_with("Bytes") {
        return Ok(Asked::WhatIsDoneAnyway);
    }
    Err(refuse_value(property, &format!("{} cannot be set: records are copied byte for byte", property.name)))
}

fn mechanism(property: &Property) -> Result<Asked, ConfigError> {
    match property.value.to_ascii_uppercase().as_str() {
        "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512" | "OAUTHBEARER" => Ok(Asked::Anything),
        _ => {
            let message = format!("{} is not a SASL mechanism of this build", property.value);
            Err(refuse_value(property, &message)
                .help("use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"))
        }
    }
}

fn refuse_value(property: &Property, message: &str) -> ConfigError {
    ConfigError::at(&property.value_place, message).label("refused")
}

fn refuse_name(property: &Property, message: &str) -> ConfigError {
    ConfigError::at(&property.name_place, message).label("refused")
}
