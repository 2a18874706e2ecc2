//! The settings of a lane's clients: what the user gave, and over it what exactly-once copying needs.

use rdkafka::ClientConfig;
use std::time::Duration;

/// Longer than a commit may take, or a request's time-out would go unnoticed by the commit around it (H1).
const PRODUCER_SOCKET_TIMEOUT: Duration = Duration::from_secs(30);
/// However long a transaction may last.
const END_TRANSACTION_MAX: Duration = Duration::from_secs(15);
const TRANSACTION_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
pub(super) const INIT_MAX: Duration = Duration::from_secs(30);

/// librdkafka's limit on a message, beyond what any broker takes by default: the brokers' limits decide.
const MESSAGE_BYTES_MAX: u64 = 1_000_000_000;

/// What no user may set otherwise, of any client.
const EVERY_CLIENT: &[(&str, &str)] =
    &[("allow.auto.create.topics", "false"), ("enable.metrics.push", "false")];

const EVERY_CONSUMER: &[(&str, &str)] = &[
    // librdkafka wants a group even for a consumer that is only assigned; nothing is ever stored under it.
    ("group.id", "verbatim"),
    ("isolation.level", "read_committed"),
    ("check.crcs", "true"),
    ("auto.offset.reset", "error"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "true"),
];

/// The consumer of a lane's source partitions, with about `queue_bytes` of records fetched ahead.
pub(super) fn source_consumer(user: &ClientConfig, queue_bytes: u64) -> ClientConfig {
    let mut config = user.clone();
    default(&mut config, "fetch.queue.backoff.ms", "10");
    default(&mut config, "reconnect.backoff.max.ms", "1000");
    force(&mut config, EVERY_CLIENT);
    force(&mut config, EVERY_CONSUMER);
    // Bytes bound the queue, not messages.
    config.set("queued.min.messages", "10000000");
    config.set("queued.max.messages.kbytes", (queue_bytes / 1024).clamp(64, 2_097_151).to_string());
    // A fetch may overshoot the queue's bound, so it is bounded likewise. A single batch larger than this
    // still comes, alone.
    let fetch = queue_bytes.clamp(1 << 20, 50 << 20);
    config.set("fetch.max.bytes", fetch.to_string());
    config.set("max.partition.fetch.bytes", (fetch / 2).clamp(1 << 20, 4 << 20).to_string());
    config.set("receive.message.max.bytes", (MESSAGE_BYTES_MAX + fetch).to_string());
    config
}

/// A consumer of the target, for the ledger and for what a lane finds in its target partitions.
pub(super) fn target_reader(user: &ClientConfig) -> ClientConfig {
    let mut config = user.clone();
    // A follower may lag behind what was committed (H2).
    config.remove("client.rack");
    config.remove("transaction.timeout.ms");
    default(&mut config, "fetch.queue.backoff.ms", "10");
    default(&mut config, "reconnect.backoff.max.ms", "1000");
    force(&mut config, EVERY_CLIENT);
    force(&mut config, EVERY_CONSUMER);
    config.set("queued.max.messages.kbytes", "16384");
    config
}

/// The lane's transactional producer.
pub(super) fn target_producer(user: &ClientConfig, transactional_id: &str) -> ClientConfig {
    let mut config = user.clone();
    // Longer than an answer takes, or the broker's thread would poll without a pause while it waits for one
    // (docs/librdkafka.md). A full batch does not linger, and neither do ledger records, which are flushed.
    default(&mut config, "linger.ms", "50");
    default(&mut config, "batch.size", "1000000");
    default(&mut config, "batch.num.messages", "10000");
    let timeout = transaction_timeout(user);
    config.set("transaction.timeout.ms", timeout.as_millis().to_string());
    default(&mut config, "reconnect.backoff.max.ms", "1000");
    force(&mut config, EVERY_CLIENT);
    config.set("transactional.id", transactional_id);
    config.set("enable.idempotence", "true");
    config.set("acks", "all");
    config.set("max.in.flight.requests.per.connection", "5");
    // librdkafka refuses one that is longer than the transaction may last.
    config.set("socket.timeout.ms", PRODUCER_SOCKET_TIMEOUT.min(timeout).as_millis().to_string());
    config.set("message.max.bytes", MESSAGE_BYTES_MAX.to_string());
    // The lane's credit bounds what is queued; these only must not be reached before it.
    config.set("queue.buffering.max.kbytes", "2097151");
    config.set("queue.buffering.max.messages", "10000000");
    for derived in ["message.timeout.ms", "delivery.timeout.ms", "request.required.acks", "retries"] {
        config.remove(derived);
    }
    config
}

/// How long committing or aborting may take: at most a quarter of the transaction's time-out (H9), and so
/// less than a request's.
pub(super) fn end_transaction_max(user: &ClientConfig) -> Duration {
    END_TRANSACTION_MAX.min(transaction_timeout(user) / 4)
}

/// What is not a number is refused by librdkafka, with its name.
fn transaction_timeout(user: &ClientConfig) -> Duration {
    let given = user.get("transaction.timeout.ms").and_then(|text| text.parse().ok());
    given.map_or(TRANSACTION_TIMEOUT_DEFAULT, Duration::from_millis)
}

fn default(config: &mut ClientConfig, key: &str, value: &str) {
    if config.get(key).is_none() {
        config.set(key, value);
    }
}

fn force(config: &mut ClientConfig, settings: &[(&str, &str)]) {
    for &(key, value) in settings {
        config.set(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", "127.0.0.1:1").set("client.rack", "a");
        config
    }

    #[test]
    fn safety_is_not_the_users_to_change() {
        let mut user = user();
        user.set("acks", "1").set("enable.idempotence", "false").set("message.timeout.ms", "5");
        user.set("allow.auto.create.topics", "true");
        let producer = target_producer(&user, "verbatim-f-0");
        assert_eq!(producer.get("acks"), Some("all"));
        assert_eq!(producer.get("enable.idempotence"), Some("true"));
        assert_eq!(producer.get("allow.auto.create.topics"), Some("false"));
        assert_eq!(producer.get("message.timeout.ms"), None);
    }

    #[test]
    fn speed_is() {
        let mut user = user();
        user.set("linger.ms", "7").set("transaction.timeout.ms", "20000");
        let producer = target_producer(&user, "verbatim-f-0");
        assert_eq!(producer.get("linger.ms"), Some("7"));
        assert_eq!(producer.get("transaction.timeout.ms"), Some("20000"));
    }

    #[test]
    fn short_transactions_shorten_what_ends_them() {
        let mut user = user();
        user.set("transaction.timeout.ms", "10000");
        assert_eq!(target_producer(&user, "verbatim-f-0").get("socket.timeout.ms"), Some("10000"));
        assert_eq!(end_transaction_max(&user), Duration::from_millis(2500));
        assert_eq!(end_transaction_max(&self::user()), Duration::from_secs(15));
    }

    #[test]
    fn only_the_source_is_read_from_a_near_replica() {
        assert_eq!(target_reader(&user()).get("client.rack"), None);
        assert_eq!(source_consumer(&user(), 1 << 20).get("client.rack"), Some("a"));
    }

    #[test]
    fn librdkafka_takes_them_at_any_size() {
        for queue_bytes in [0, 1 << 20, 64 << 20, u64::MAX] {
            source_consumer(&user(), queue_bytes).create_native_config().unwrap();
        }
        target_reader(&user()).create_native_config().unwrap();
        target_producer(&user(), "verbatim-f-0").create_native_config().unwrap();
    }
}
