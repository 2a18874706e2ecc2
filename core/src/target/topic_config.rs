use crate::event::TopicConfig;
use std::collections::BTreeMap;

/// Settings that belong to a cluster and not to a topic's contents (MirrorMaker 2 leaves out the same ones).
const NOT_COPIED: &[&str] = &[
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.insync.replicas",
    "remote.storage.enable",
    "unclean.leader.election.enable",
];

/// Settings that decide whether a record is accepted: copied even where the source has them from its brokers,
/// since the target's brokers may be stricter.
const COPIED_ALWAYS: &[&str] =
    &["max.message.bytes", "message.timestamp.after.max.ms", "message.timestamp.before.max.ms"];

/// The configuration of a target topic that is to hold every record of the source topic.
pub fn config_for_copy(source: &TopicConfig) -> BTreeMap<String, String> {
    let copied = |key: &str, overridden: bool| {
        COPIED_ALWAYS.contains(&key) || (overridden && !NOT_COPIED.contains(&key))
    };
    let mut config: BTreeMap<String, String> = source
        .iter()
        .filter(|(key, value)| copied(key, value.overridden))
        .map(|(key, value)| (key.clone(), value.value.clone()))
        .collect();
    // A target default of LogAppendTime would rewrite every timestamp.
    config.insert("message.timestamp.type".into(), "CreateTime".into());
    config
}

/// Whether a topic of this configuration gives records another timestamp than they came with.
pub fn would_alter_records(target: &TopicConfig) -> bool {
    target.get("message.timestamp.type").is_some_and(|value| value.value == "LogAppendTime")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ConfigValue;

    fn config(values: &[(&str, &str, bool)]) -> TopicConfig {
        let value = |value: &str, overridden| ConfigValue { value: value.into(), overridden };
        values.iter().map(|(key, text, overridden)| (key.to_string(), value(text, *overridden))).collect()
    }

    #[test]
    fn overrides_and_acceptance_limits_are_copied() {
        let source = config(&[
            ("cleanup.policy", "compact", true),
            ("retention.ms", "604800000", false),
            ("max.message.bytes", "5000000", false),
            ("min.insync.replicas", "2", true),
            ("message.timestamp.type", "LogAppendTime", true),
        ]);
        let copy = config_for_copy(&source);
        let pairs: Vec<(&str, &str)> = copy.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("cleanup.policy", "compact"),
                ("max.message.bytes", "5000000"),
                ("message.timestamp.type", "CreateTime")
            ]
        );
    }

    #[test]
    fn a_target_that_rewrites_timestamps_is_unfit() {
        assert!(would_alter_records(&config(&[("message.timestamp.type", "LogAppendTime", false)])));
        assert!(!would_alter_records(&config(&[("message.timestamp.type", "CreateTime", true)])));
    }
}
