//! The settings of the ledger topic: what it is created with, and what makes one unsafe (H4).

use crate::event::TopicConfig;
use std::collections::BTreeMap;

/// Bounds a replay: compaction starts early and works on small segments.
const SEGMENT_BYTES: u64 = 16 << 20;

/// The settings with which the mirror creates its ledger.
pub fn wanted_settings(replication_factor: i16) -> BTreeMap<String, String> {
    let in_sync = if 3 <= replication_factor { 2 } else { 1 };
    let settings = [
        ("cleanup.policy", "compact".to_string()),
        ("segment.bytes", SEGMENT_BYTES.to_string()),
        ("min.cleanable.dirty.ratio", "0.1".into()),
        // An hour: an idle ledger is compacted too.
        ("max.compaction.lag.ms", "3600000".into()),
        ("min.insync.replicas", in_sync.to_string()),
        ("unclean.leader.election.enable", "false".into()),
        ("message.timestamp.type", "CreateTime".into()),
        ("retention.ms", "-1".into()),
        ("retention.bytes", "-1".into()),
    ];
    settings.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

/// A ledger that would lose progress, and with it the promise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the ledger has {setting}={found}, which is unsafe: {why}; set it to {wanted}")]
pub struct UnsafeLedger {
    pub setting: &'static str,
    pub found: String,
    pub wanted: &'static str,
    pub why: &'static str,
}

/// Refuses a ledger whose settings could drop or alter progress.
pub fn check_settings(config: &TopicConfig) -> Result<(), UnsafeLedger> {
    let found = |setting: &str| config.get(setting).map_or("", |value| value.value.as_str()).to_string();
    let refuse = |setting, wanted, why| Err(UnsafeLedger { setting, found: found(setting), wanted, why });
    if found("cleanup.policy") != "compact" {
        return refuse("cleanup.policy", "compact", "the progress of idle partitions would be deleted");
    }
    if found("unclean.leader.election.enable") == "true" {
        return refuse("unclean.leader.election.enable", "false", "settled progress could be cut off");
    }
    let segment: u64 = found("segment.bytes").parse().unwrap_or(0);
    if 4 * SEGMENT_BYTES < segment {
        return refuse("segment.bytes", "16777216", "taking a lane would replay more than 64 MiB");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ConfigValue;

    fn config(changes: &[(&str, &str)]) -> TopicConfig {
        let mut settings = wanted_settings(3);
        for (key, value) in changes {
            settings.insert(key.to_string(), value.to_string());
        }
        settings.into_iter().map(|(key, value)| (key, ConfigValue { value, overridden: true })).collect()
    }

    #[test]
    fn what_the_mirror_creates_is_safe() {
        assert_eq!(check_settings(&config(&[])), Ok(()));
    }

    #[test]
    fn settings_that_lose_progress_are_refused_by_name() {
        for (setting, value) in [
            ("cleanup.policy", "delete"),
            ("cleanup.policy", "compact,delete"),
            ("unclean.leader.election.enable", "true"),
            ("segment.bytes", "1073741824"),
        ] {
            let unsafe_ledger = check_settings(&config(&[(setting, value)])).unwrap_err();
            assert_eq!((unsafe_ledger.setting, unsafe_ledger.found.as_str()), (setting, value));
        }
        assert!(check_settings(&TopicConfig::new()).is_err());
    }

    #[test]
    fn in_sync_replicas_follow_the_replication_factor() {
        assert_eq!(wanted_settings(1)["min.insync.replicas"], "1");
        assert_eq!(wanted_settings(3)["min.insync.replicas"], "2");
    }
}
