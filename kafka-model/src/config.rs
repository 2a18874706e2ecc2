//! What can be configured: the cluster's settings and those of a topic, under Kafka's names and defaults.
//!
//! Modelled: the settings that change what a client of the cluster can see. All others do not exist.

use crate::Millis;
use kafka_types::TimestampType;
use std::collections::BTreeMap;

/// Settings of every broker of a cluster. The time it takes to do a thing is a setting here, never random:
/// whoever drives the cluster draws it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusterConfig {
    pub cluster_id: String,
    /// Defaults for topics that do not say otherwise.
    pub topic: TopicConfig,
    pub num_partitions: u32,
    pub default_replication_factor: usize,
    pub auto_create_topics: bool,
    /// How long after an append the followers fetch it. Zero replicates within the request.
    pub replication_delay_ms: Millis,
    /// `replica.lag.time.max.ms`: a follower that is behind for longer leaves the in-sync replicas.
    pub replica_lag_time_max_ms: Millis,
    /// How long after a decision the coordinator writes the markers. Zero writes them within the request.
    pub marker_delay_ms: Millis,
    /// How long a moved coordinator answers COORDINATOR_LOAD_IN_PROGRESS.
    pub coordinator_load_ms: Millis,
    /// How long a crashed broker still counts as leader and coordinator before others take over.
    pub failover_ms: Millis,
    pub transaction_max_timeout_ms: Millis,
    /// `transaction.abort.timed.out.transaction.cleanup.interval.ms`
    pub transaction_timeout_scan_ms: Millis,
    /// `transactional.id.expiration.ms`
    pub transactional_id_expiration_ms: Millis,
    /// `transaction.partition.verification.enable` (KIP-890 part 1)
    pub transaction_partition_verification: bool,
    /// KAFKA-19690, mended in 4.1 and 4.2: a producer whose transaction timed out got INVALID_TXN_STATE from
    /// its next produce, in a race with the marker; here it always does. Else it gets INVALID_PRODUCER_EPOCH.
    pub timed_out_produce_gets_invalid_txn_state: bool,
    pub producer_id_expiration_ms: Millis,
    pub producer_id_expiration_check_ms: Millis,
    pub group_initial_rebalance_delay_ms: Millis,
    pub group_min_session_timeout_ms: Millis,
    pub group_max_session_timeout_ms: Millis,
    pub group_max_size: usize,
    pub offset_metadata_max_bytes: usize,
    pub offsets_retention_ms: Millis,
    /// `offsets.retention.check.interval.ms`
    pub offsets_retention_check_ms: Millis,
    pub log_retention_check_ms: Millis,
    /// How often the cleaner looks for a log that is dirty enough.
    pub log_cleaner_interval_ms: Millis,
    /// Partitions of `__consumer_offsets` and `__transaction_state`: the units by which coordinators move.
    pub coordinator_partitions: i32,
    /// Whether every batch ever appended stays in [`crate::History`]. An exhaustive search turns it off, since
    /// two states that differ only in their past are the same to it.
    pub keeps_history: bool,
}

impl Default for ClusterConfig {
    fn default() -> ClusterConfig {
        const MINUTE: Millis = 60_000;
        const DAY: Millis = 24 * 60 * MINUTE;
        ClusterConfig {
            cluster_id: "kafka-model".to_owned(),
            topic: TopicConfig::default(),
            num_partitions: 1,
            default_replication_factor: 3,
            auto_create_topics: true,
            replication_delay_ms: 0,
            replica_lag_time_max_ms: 30_000,
            marker_delay_ms: 0,
            coordinator_load_ms: 0,
            failover_ms: 0,
            transaction_max_timeout_ms: 15 * MINUTE,
            transaction_timeout_scan_ms: 10_000,
            transactional_id_expiration_ms: 7 * DAY,
            transaction_partition_verification: true,
            timed_out_produce_gets_invalid_txn_state: false,
            producer_id_expiration_ms: DAY,
            producer_id_expiration_check_ms: 10 * MINUTE,
            group_initial_rebalance_delay_ms: 3_000,
            group_min_session_timeout_ms: 6_000,
            group_max_session_timeout_ms: 30 * MINUTE,
            group_max_size: usize::MAX,
            offset_metadata_max_bytes: 4096,
            offsets_retention_ms: 7 * DAY,
            offsets_retention_check_ms: 10 * MINUTE,
            log_retention_check_ms: 5 * MINUTE,
            log_cleaner_interval_ms: 15_000,
            coordinator_partitions: 50,
            keeps_history: true,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CleanupPolicy {
    #[default]
    Delete,
    Compact,
    CompactAndDelete,
}

impl CleanupPolicy {
    pub fn deletes(self) -> bool {
        self != CleanupPolicy::Compact
    }

    pub fn compacts(self) -> bool {
        self != CleanupPolicy::Delete
    }
}

/// Settings of a topic, with the names of `kafka-configs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopicConfig {
    pub cleanup_policy: CleanupPolicy,
    /// None for without limit.
    pub retention_ms: Option<Millis>,
    /// None for without limit.
    pub retention_bytes: Option<u64>,
    pub delete_retention_ms: Millis,
    pub segment_bytes: u64,
    pub segment_ms: Millis,
    /// `min.cleanable.dirty.ratio`, in percent so that a configuration can be hashed.
    pub min_cleanable_dirty_percent: u64,
    /// Of a batch, not of a record.
    pub max_message_bytes: usize,
    pub min_insync_replicas: usize,
    pub unclean_leader_election: bool,
    pub timestamp_type: TimestampType,
    pub timestamp_before_max_ms: Millis,
    pub timestamp_after_max_ms: Millis,
    /// Settings of Kafka's that change nothing here, kept so that they can be described.
    pub without_effect: BTreeMap<&'static str, String>,
}

impl Default for TopicConfig {
    fn default() -> TopicConfig {
        const WEEK_MS: Millis = 7 * 24 * 3_600_000;
        TopicConfig {
            cleanup_policy: CleanupPolicy::Delete,
            retention_ms: Some(WEEK_MS),
            retention_bytes: None,
            delete_retention_ms: 24 * 3_600_000,
            segment_bytes: 1 << 30,
            segment_ms: WEEK_MS,
            min_cleanable_dirty_percent: 50,
            max_message_bytes: 1_048_588,
            min_insync_replicas: 1,
            unclean_leader_election: false,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: Millis::MAX,
            timestamp_after_max_ms: Millis::MAX,
            without_effect: BTreeMap::new(),
        }
    }
}

/// A setting that the model does not know, or a value that it cannot be given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BadSetting {
    pub name: String,
    pub value: String,
}

impl TopicConfig {
    pub fn bounds_timestamps(&self) -> bool {
        self.timestamp_before_max_ms != Millis::MAX || self.timestamp_after_max_ms != Millis::MAX
    }

    /// Changes one setting, by Kafka's name and in Kafka's notation.
    ///
    /// Settings that exist in Kafka and change nothing here are kept and otherwise ignored.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), BadSetting> {
        self.try_set(name, value).ok_or_else(|| BadSetting { name: name.to_owned(), value: value.to_owned() })
    }

    fn try_set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "cleanup.policy" => self.cleanup_policy = policy(value)?,
            "retention.ms" => self.retention_ms = unless_minus_one(value)?,
            "retention.bytes" => self.retention_bytes = unless_minus_one(value)?,
            "delete.retention.ms" => self.delete_retention_ms = number(value)?,
            "segment.bytes" => self.segment_bytes = number(value)?,
            "segment.ms" => self.segment_ms = number(value)?,
            "min.cleanable.dirty.ratio" => {
                let ratio: f64 = value.trim().parse().ok()?;
                self.min_cleanable_dirty_percent =
                    (0.0..=1.0).contains(&ratio).then_some((ratio * 100.0).round() as u64)?;
            }
            "max.message.bytes" => self.max_message_bytes = number(value)?,
            "min.insync.replicas" => {
                self.min_insync_replicas = number(value).filter(|least| 1 <= *least)?;
            }
            "unclean.leader.election.enable" => {
                self.unclean_leader_election = value.trim().to_ascii_lowercase().parse().ok()?;
            }
            "message.timestamp.type" => {
                self.timestamp_type = match value.trim() {
                    "CreateTime" => TimestampType::CreateTime,
                    "LogAppendTime" => TimestampType::LogAppendTime,
                    _ => return None,
                };
            }
            "message.timestamp.before.max.ms" => self.timestamp_before_max_ms = number(value)?,
            "message.timestamp.after.max.ms" => self.timestamp_after_max_ms = number(value)?,
            name => {
                let known = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name)?.0;
                self.without_effect.insert(known, value.to_owned());
            }
        }
        Some(())
    }

    /// Every setting that the model knows, as DescribeConfigs tells it.
    pub fn entries(&self) -> BTreeMap<&'static str, String> {
        let limit = |value: Option<String>| value.unwrap_or_else(|| "-1".to_owned());
        let mut entries = BTreeMap::from([
            ("cleanup.policy", policy_name(self.cleanup_policy).to_owned()),
            ("retention.ms", limit(self.retention_ms.map(|value| value.to_string()))),
            ("retention.bytes", limit(self.retention_bytes.map(|value| value.to_string()))),
            ("delete.retention.ms", self.delete_retention_ms.to_string()),
            ("segment.bytes", self.segment_bytes.to_string()),
            ("segment.ms", self.segment_ms.to_string()),
            ("min.cleanable.dirty.ratio", (self.min_cleanable_dirty_percent as f64 / 100.0).to_string()),
            ("max.message.bytes", self.max_message_bytes.to_string()),
            ("min.insync.replicas", self.min_insync_replicas.to_string()),
            ("unclean.leader.election.enable", self.unclean_leader_election.to_string()),
            ("message.timestamp.type", format!("{:?}", self.timestamp_type)),
            ("message.timestamp.before.max.ms", self.timestamp_before_max_ms.to_string()),
            ("message.timestamp.after.max.ms", self.timestamp_after_max_ms.to_string()),
        ]);
        for (name, default) in WITHOUT_EFFECT {
            let value = self.without_effect.get(name).map_or(default, String::as_str);
            entries.insert(name, value.to_owned());
        }
        entries
    }
}

/// With their defaults.
const WITHOUT_EFFECT: [(&str, &str); 10] = [
    ("compression.type", "producer"),
    ("file.delete.delay.ms", "60000"),
    ("flush.messages", "9223372036854775807"),
    ("flush.ms", "9223372036854775807"),
    ("index.interval.bytes", "4096"),
    ("max.compaction.lag.ms", "9223372036854775807"),
    ("min.compaction.lag.ms", "0"),
    ("preallocate", "false"),
    ("segment.index.bytes", "10485760"),
    ("segment.jitter.ms", "0"),
];

fn number<T: std::str::FromStr>(value: &str) -> Option<T> {
    value.trim().parse().ok()
}

fn unless_minus_one<T: std::str::FromStr>(value: &str) -> Option<Option<T>> {
    if value.trim() == "-1" { Some(None) } else { number(value).map(Some) }
}

fn policy(value: &str) -> Option<CleanupPolicy> {
    let mut names: Vec<&str> = value.split(',').map(str::trim).collect();
    names.sort_unstable();
    match names.as_slice() {
        ["delete"] => Some(CleanupPolicy::Delete),
        ["compact"] => Some(CleanupPolicy::Compact),
        ["compact", "delete"] => Some(CleanupPolicy::CompactAndDelete),
        _ => None,
    }
}

fn policy_name(policy: CleanupPolicy) -> &'static str {
    match policy {
        CleanupPolicy::Delete => "delete",
        CleanupPolicy::Compact => "compact",
        CleanupPolicy::CompactAndDelete => "compact,delete",
    }
}
