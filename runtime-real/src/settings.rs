//! How to reach the two clusters, and the client configurations made from that for each use.

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use std::collections::BTreeMap;
use verbatim_core::config::FlowName;
use verbatim_core::failure::Side;

/// What this process must know to reach its clusters. Made by the cli from the user's file: the maps hold
/// librdkafka's property names, already translated and checked; nothing is refused here.
#[derive(Clone, Debug)]
pub struct Settings {
    pub source: BTreeMap<String, String>,
    pub target: BTreeMap<String, String>,
    pub flow: FlowName,
    pub lanes: u32,
    /// `group.instance.id`: static membership (see [`crate::group`]).
    pub instance: Option<String>,
    /// Bounds all queues of all clients together.
    pub memory_bytes: u64,
}

/// How long one question to a cluster may take before it counts as unreachable, in milliseconds.
pub const REQUEST_MS: i32 = 10_000;

/// How long the group waits for a member's heartbeat before its lanes go to others.
const SESSION_MS: u32 = 8_000;
const HEARTBEAT_MS: u32 = 2_000;

/// How long a rebalance waits for one member. Also the bound on a turn's answer: see [`crate::group`].
pub(crate) const REBALANCE_MS: u32 = 30_000;

impl Settings {
    pub fn properties(&self, side: Side) -> &BTreeMap<String, String> {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    /// The user's properties for one side, and what every client of ours adds to them. `purpose` ends the
    /// client id, which brokers show in their logs, metrics and quotas.
    pub fn client(&self, side: Side, purpose: &str) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (name, value) in self.properties(side) {
            config.set(name, value);
        }
        config
            .set("client.id", format!("verbatim-{}-{purpose}", self.flow))
            // Producers create topics by default: with the broker's settings, not the flow's (H4).
            .set("allow.auto.create.topics", "false")
            .set("enable.metrics.push", "false")
            .set_log_level(RDKafkaLogLevel::Info);
        if config.get("reconnect.backoff.max.ms").is_none() {
            config.set("reconnect.backoff.max.ms", "1000");
        }
        config
    }

    /// How much one lane's consumer may fetch ahead. All lanes may be this instance's, and an eighth of the
    /// memory is for what librdkafka holds before the mirror sees it.
    pub(crate) fn lane_queue_bytes(&self) -> u64 {
        self.memory_bytes / 8 / u64::from(self.lanes.max(1))
    }

    /// A client for questions: a consumer that belongs to no group and fetches nothing.
    pub(crate) fn admin(&self, side: Side) -> ClientConfig {
        let mut config = self.client(side, "admin");
        config.remove("group.id").set("socket.timeout.ms", REQUEST_MS.to_string());
        config
    }

    /// The member of the flow's group. It is assigned nothing and fetches nothing.
    pub(crate) fn group(&self) -> ClientConfig {
        let mut config = self.client(Side::Target, "group");
        config
            .set("group.id", self.flow.group())
            .set("group.protocol", "classic")
            .set("partition.assignment.strategy", "range")
            .set("session.timeout.ms", SESSION_MS.to_string())
            .set("heartbeat.interval.ms", HEARTBEAT_MS.to_string())
            .set("max.poll.interval.ms", REBALANCE_MS.to_string())
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            // A ledger made a moment ago must be seen soon.
            .set("topic.metadata.refresh.interval.ms", "5000");
        match &self.instance {
            Some(instance) => config.set("group.instance.id", instance),
            None => config.remove("group.instance.id"),
        };
        config
    }

    /// A consumer that reads assigned partitions, read_committed and checked, and says where each ends.
    /// Never from a follower: those lag behind the leader's last stable offset (H2).
    pub(crate) fn reader(&self, side: Side, purpose: &str, queue_bytes: u64) -> ClientConfig {
        let kilobytes = (queue_bytes / 1024).clamp(1024, 2_097_151);
        let mut config = self.client(side, purpose);
        config
            .remove("client.rack")
            .remove("group.instance.id")
            // librdkafka wants a group id even for assigned partitions (S10); nothing is ever committed.
            .set("group.id", self.flow.group())
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_committed")
            .set("check.crcs", "true")
            .set("fetch.wait.max.ms", "200")
            .set("fetch.queue.backoff.ms", "10")
            .set("fetch.error.backoff.ms", "200")
            .set("queued.min.messages", "100000")
            .set("queued.max.messages.kbytes", kilobytes.to_string());
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(instance: Option<&str>) -> Settings {
        let servers =
            |address: &str| BTreeMap::from([("bootstrap.servers".to_string(), address.to_string())]);
        Settings {
            source: servers("source:9092"),
            target: servers("target:9092"),
            flow: FlowName::new("orders").unwrap(),
            lanes: 8,
            instance: instance.map(Into::into),
            memory_bytes: 64 << 20,
        }
    }

    #[test]
    fn every_client_refuses_to_create_topics() {
        let settings = settings(None);
        for config in [
            settings.admin(Side::Source),
            settings.group(),
            settings.reader(Side::Source, "reader", 1),
            settings.client(Side::Target, "lane-0"),
        ] {
            assert_eq!(config.get("allow.auto.create.topics"), Some("false"));
            assert!(config.get("client.id").unwrap().starts_with("verbatim-orders-"));
            config.create_native_config().unwrap();
        }
    }

    #[test]
    fn the_user_s_properties_reach_their_side_only() {
        let mut settings = settings(None);
        settings.source.insert("security.protocol".into(), "ssl".into());
        assert_eq!(settings.admin(Side::Source).get("security.protocol"), Some("ssl"));
        assert_eq!(settings.admin(Side::Target).get("security.protocol"), None);
        assert_eq!(settings.group().get("bootstrap.servers"), Some("target:9092"));
    }

    #[test]
    fn membership_is_static_only_with_an_instance_id() {
        assert_eq!(settings(None).group().get("group.instance.id"), None);
        assert_eq!(settings(Some("a-1")).group().get("group.instance.id"), Some("a-1"));
        assert_eq!(settings(Some("a-1")).reader(Side::Target, "r", 1).get("group.instance.id"), None);
    }

    #[test]
    fn reader_queues_stay_within_librdkafka_s_bounds() {
        let kilobytes = |bytes| {
            settings(None)
                .reader(Side::Source, "r", bytes)
                .get("queued.max.messages.kbytes")
                .unwrap()
                .to_string()
        };
        assert_eq!(kilobytes(0), "1024");
        assert_eq!(kilobytes(64 << 20), "65536");
        assert_eq!(kilobytes(u64::MAX), "2097151");
    }
}
