//! The configurations of all clients: the user's properties, and over them what each use needs. A user's value that
//! asks for less than the use does is kept; what cannot be honoured the cli has refused.

use crate::settings::Settings;
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use std::time::Duration;
use verbatim_core::LaneId;
use verbatim_core::failure::Side;

/// How long one question to a cluster may take before it counts as unreachable, in milliseconds.
pub(crate) const REQUEST_MS: u32 = 10_000;

/// How long the group waits for a member's heartbeat before its lanes go to others.
const SESSION_MS: u32 = 8_000;
const HEARTBEAT_MS: u32 = 2_000;

/// How long a rebalance waits for one member. Also the bound on a turn's answer: see [`crate::group`].
pub(crate) const REBALANCE_MS: u32 = 30_000;

/// How soon the group's client sees a ledger that was made a moment ago.
const REFRESH_MS: u32 = 5_000;

/// Longer than a commit may take, or a request's time-out would go unnoticed by the commit around it (H1).
const PRODUCER_SOCKET_TIMEOUT: Duration = Duration::from_secs(30);
/// However long a transaction may last.
const END_TRANSACTION_MAX: Duration = Duration::from_secs(15);
const TRANSACTION_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
pub(crate) const INIT_MAX: Duration = Duration::from_secs(30);

/// Less than a transaction may last, or librdkafka refuses it.
const LINGER: Duration = Duration::from_secs(1);

/// Beyond this an idempotent producer may reorder records.
const IN_FLIGHT_MAX: u32 = 5;

/// What no user may set otherwise, of any client.
const EVERY_CLIENT: &[(&str, &str)] = &[
    // Producers create topics by default: with the broker's settings, not the flow's (H4).
    ("allow.auto.create.topics", "false"),
    ("enable.metrics.push", "false"),
];

/// What every consumer needs that reads partitions which it was told to read: committed records only, checked, and
/// told where each partition ends.
const EVERY_READER: &[(&str, &str)] = &[
    ("isolation.level", "read_committed"),
    ("check.crcs", "true"),
    ("auto.offset.reset", "error"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "true"),
    // A record of any size still comes, alone, and this bounds what a batch may unpack to as well.
    ("receive.message.max.bytes", "1100000000"),
];

const EVERY_PRODUCER: &[(&str, &str)] = &[
    ("enable.idempotence", "true"),
    ("acks", "all"),
    // The brokers' limits decide, and librdkafka asserts that no record with its framing is longer than this.
    ("message.max.bytes", "1000000000"),
    // The lane's credit bounds what is queued; these only must not be reached before it.
    ("queue.buffering.max.kbytes", "2097151"),
    ("queue.buffering.max.messages", "10000000"),
];

/// What a producer derives from its transaction's time-out and from idempotence.
const DERIVED: &[&str] = &["message.timeout.ms", "delivery.timeout.ms", "request.required.acks", "retries"];

/// Every configuration that a client of one side is made from, by its use: for whoever wants to see that a property
/// reaches one.
pub fn client_configs(settings: &Settings, side: Side) -> Vec<(&'static str, ClientConfig)> {
    let reader = reader(settings, side, "reader", settings.lane_queue_bytes());
    let mut configs = vec![("questions", admin(settings, side)), ("reader", reader)];
    match side {
        Side::Source => configs.push(("lane's source", source_consumer(settings, LaneId::FIRST))),
        Side::Target => configs.extend([
            ("group", group(settings)),
            ("lane's target reader", target_reader(settings, LaneId::FIRST)),
            ("lane's producer", target_producer(settings, LaneId::FIRST)),
        ]),
    }
    configs
}

/// The user's properties for one side, and what every client of ours adds to them. `purpose` ends the client id, which
/// brokers show in their logs, metrics and quotas.
pub(crate) fn client(settings: &Settings, side: Side, purpose: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    for (name, value) in settings.properties(side) {
        config.set(name, value);
    }
    config
        .set("client.id", format!("verbatim-{}-{purpose}", settings.flow))
        .set_log_level(RDKafkaLogLevel::Info);
    // Whoever wants longer pauses from the start wants them later too, and librdkafka insists on it.
    let pause = number(&config, "reconnect.backoff.ms").unwrap_or(0).max(1_000);
    default(&mut config, "reconnect.backoff.max.ms", &pause.to_string());
    force(&mut config, EVERY_CLIENT);
    config
}

/// The same of a consumer, which does nothing with what limits a producer: yet librdkafka measures its fetches by it.
fn consumer(settings: &Settings, side: Side, purpose: &str) -> ClientConfig {
    let mut config = client(settings, side, purpose);
    config.remove("message.max.bytes").remove("transaction.timeout.ms").remove("group.instance.id");
    config
}

/// A client for questions: a consumer that belongs to no group and fetches nothing.
pub(crate) fn admin(settings: &Settings, side: Side) -> ClientConfig {
    let mut config = consumer(settings, side, "admin");
    config.remove("group.id");
    at_most(&mut config, "socket.timeout.ms", REQUEST_MS);
    config
}

/// The member of the flow's group. It is assigned nothing and fetches nothing.
pub(crate) fn group(settings: &Settings) -> ClientConfig {
    let mut config = consumer(settings, Side::Target, "group");
    config
        .set("group.id", settings.flow.group())
        .set("group.protocol", "classic")
        .set("partition.assignment.strategy", "range")
        .set("session.timeout.ms", SESSION_MS.to_string())
        .set("heartbeat.interval.ms", HEARTBEAT_MS.to_string())
        .set("max.poll.interval.ms", REBALANCE_MS.to_string())
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false");
    at_most(&mut config, "topic.metadata.refresh.interval.ms", REFRESH_MS);
    if let Some(instance) = &settings.instance {
        config.set("group.instance.id", instance);
    }
    config
}

/// A consumer that reads the partitions that it is told to, from where it is told.
fn assigned(settings: &Settings, side: Side, purpose: &str) -> ClientConfig {
    let mut config = consumer(settings, side, purpose);
    // librdkafka wants a group even for a consumer that is only assigned (S10); nothing is ever stored under it.
    config.set("group.id", settings.flow.group());
    default(&mut config, "fetch.queue.backoff.ms", "10");
    force(&mut config, EVERY_READER);
    config
}

/// The consumer of a lane's source partitions.
pub(crate) fn source_consumer(settings: &Settings, lane: LaneId) -> ClientConfig {
    let mut config = assigned(settings, Side::Source, &format!("lane-{lane}"));
    let queue_bytes = settings.lane_queue_bytes();
    // Bytes bound the queue, not messages.
    config.set("queued.min.messages", "10000000");
    config.set("queued.max.messages.kbytes", (queue_bytes / 1024).clamp(64, 2_097_151).to_string());
    // A fetch may overshoot the queue's bound, so it is bounded likewise. A single batch larger than this
    // still comes, alone.
    let fetch = queue_bytes.clamp(1 << 20, 50 << 20);
    config.set("fetch.max.bytes", fetch.to_string());
    config.set("max.partition.fetch.bytes", (fetch / 2).clamp(1 << 20, 4 << 20).to_string());
    config
}

/// A consumer of the target, for the ledger and for what a lane finds in its target partitions.
pub(crate) fn target_reader(settings: &Settings, lane: LaneId) -> ClientConfig {
    let mut config = assigned(settings, Side::Target, &format!("lane-{lane}"));
    // A follower may lag behind what was committed (H2).
    config.remove("client.rack");
    config.set("queued.max.messages.kbytes", "16384");
    config
}

/// A consumer for whoever looks at a cluster without changing it. Never from a follower: those lag behind the
/// leader's last stable offset (H2).
pub(crate) fn reader(settings: &Settings, side: Side, purpose: &str, queue_bytes: u64) -> ClientConfig {
    let mut config = assigned(settings, side, purpose);
    config.remove("client.rack");
    default(&mut config, "fetch.wait.max.ms", "200");
    default(&mut config, "fetch.error.backoff.ms", "200");
    config
        .set("queued.min.messages", "100000")
        .set("queued.max.messages.kbytes", (queue_bytes / 1024).clamp(1024, 2_097_151).to_string());
    config
}

/// A lane's transactional producer.
pub(crate) fn target_producer(settings: &Settings, lane: LaneId) -> ClientConfig {
    let mut config = client(settings, Side::Target, &format!("lane-{lane}"));
    // Longer than an answer takes, or the broker's thread would poll without a pause while it waits for one
    // (docs/librdkafka.md). A full batch does not linger, and for less the client is told to flush.
    let timeout = transaction_timeout(settings);
    default(&mut config, "linger.ms", &LINGER.min(timeout / 2).as_millis().to_string());
    default(&mut config, "batch.size", "1000000");
    default(&mut config, "batch.num.messages", "10000");
    force(&mut config, EVERY_PRODUCER);
    for derived in DERIVED {
        config.remove(derived);
    }
    at_most(&mut config, "max.in.flight.requests.per.connection", IN_FLIGHT_MAX);
    config
        .set("transactional.id", settings.flow.transactional_id(lane))
        .set("transaction.timeout.ms", timeout.as_millis().to_string())
        // librdkafka refuses one that is longer than the transaction may last.
        .set("socket.timeout.ms", PRODUCER_SOCKET_TIMEOUT.min(timeout).as_millis().to_string());
    config
}

/// How long committing or aborting may take: at most a quarter of the transaction's time-out (H9), and so
/// less than a request's.
pub(crate) fn end_transaction_max(settings: &Settings) -> Duration {
    END_TRANSACTION_MAX.min(transaction_timeout(settings) / 4)
}

/// What is not a number is refused by librdkafka, with its name.
fn transaction_timeout(settings: &Settings) -> Duration {
    let given = settings.properties(Side::Target).get("transaction.timeout.ms");
    let given = given.and_then(|text| text.parse().ok());
    given.map_or(TRANSACTION_TIMEOUT_DEFAULT, Duration::from_millis)
}

fn number(config: &ClientConfig, key: &str) -> Option<u32> {
    config.get(key).and_then(|text| text.parse().ok())
}

fn default(config: &mut ClientConfig, key: &str, value: &str) {
    if config.get(key).is_none() {
        config.set(key, value);
    }
}

/// Keeps a smaller value of the user's. Zero and less mean "never" or "without bound" to librdkafka.
fn at_most(config: &mut ClientConfig, key: &str, most: u32) {
    let given = number(config, key).filter(|given| 0 < *given && *given < most);
    config.set(key, given.unwrap_or(most).to_string());
}

fn force(config: &mut ClientConfig, settings: &[(&str, &str)]) {
    for &(key, value) in settings {
        config.set(key, value);
    }
}

#[cfg(test)]
mod tests;
