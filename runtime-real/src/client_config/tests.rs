use super::*;
use std::collections::BTreeMap;
use verbatim_core::config::FlowName;

const LANE: LaneId = LaneId(3);

fn settings() -> Settings {
    let servers = |address: &str| BTreeMap::from([("bootstrap.servers".to_string(), address.to_string())]);
    Settings {
        source: servers("source:9092"),
        target: servers("target:9092"),
        flow: FlowName::new("orders").unwrap(),
        lanes: 8,
        instance: None,
        memory_bytes: 64 << 20,
    }
}

fn with(side: Side, properties: &[(&str, &str)]) -> Settings {
    let mut settings = settings();
    let map = match side {
        Side::Source => &mut settings.source,
        Side::Target => &mut settings.target,
    };
    map.extend(properties.iter().map(|&(name, value)| (name.to_string(), value.to_string())));
    settings
}

#[test]
fn every_client_refuses_to_create_topics() {
    for side in [Side::Source, Side::Target] {
        for (purpose, config) in client_configs(&with(side, &[("allow.auto.create.topics", "true")]), side) {
            assert_eq!(config.get("allow.auto.create.topics"), Some("false"), "{purpose}");
            assert!(config.get("client.id").unwrap().starts_with("verbatim-orders-"), "{purpose}");
        }
    }
}

#[test]
fn the_user_s_properties_reach_every_client_of_their_side_only() {
    let properties = [
        ("security.protocol", "plaintext"),
        ("reconnect.backoff.ms", "70"),
        ("reconnect.backoff.max.ms", "900"),
        ("retry.backoff.ms", "150"),
        ("metadata.max.age.ms", "60000"),
        ("socket.keepalive.enable", "true"),
        ("broker.address.family", "v4"),
        ("connections.max.idle.ms", "30000"),
    ];
    for (side, other) in [(Side::Source, Side::Target), (Side::Target, Side::Source)] {
        let settings = with(side, &properties);
        for (name, value) in properties {
            for (purpose, config) in client_configs(&settings, side) {
                assert_eq!(config.get(name), Some(value), "{name} of {purpose}");
            }
            for (purpose, config) in client_configs(&settings, other) {
                assert_ne!(config.get(name), Some(value), "{name} of {purpose}");
            }
        }
    }
}

#[test]
fn safety_is_not_the_user_s_to_change() {
    let properties = [("acks", "1"), ("enable.idempotence", "false"), ("message.timeout.ms", "5")];
    let producer = target_producer(&with(Side::Target, &properties), LANE);
    assert_eq!(producer.get("acks"), Some("all"));
    assert_eq!(producer.get("enable.idempotence"), Some("true"));
    assert_eq!(producer.get("message.timeout.ms"), None);
    assert_eq!(producer.get("transactional.id"), Some("verbatim-orders-3"));
}

#[test]
fn speed_is() {
    let properties = [
        ("linger.ms", "7"),
        ("transaction.timeout.ms", "20000"),
        ("batch.size", "5000"),
        ("compression.type", "zstd"),
    ];
    let producer = target_producer(&with(Side::Target, &properties), LANE);
    for (name, value) in properties {
        assert_eq!(producer.get(name), Some(value));
    }
    let properties =
        [("fetch.wait.max.ms", "70"), ("fetch.queue.backoff.ms", "20"), ("fetch.error.backoff.ms", "90")];
    let settings = with(Side::Source, &properties);
    for config in [reader(&settings, Side::Source, "r", 1), source_consumer(&settings, LANE)] {
        for (name, value) in properties {
            assert_eq!(config.get(name), Some(value));
        }
    }
}

#[test]
fn what_asks_for_less_is_kept() {
    let in_flight = |given: &str| {
        let settings = with(Side::Target, &[("max.in.flight.requests.per.connection", given)]);
        let producer = target_producer(&settings, LANE);
        producer.get("max.in.flight.requests.per.connection").map(str::to_string)
    };
    assert_eq!(in_flight("1").as_deref(), Some("1"));
    assert_eq!(in_flight("9").as_deref(), Some("5"));
    let refresh = |given: &str| {
        let group = group(&with(Side::Target, &[("topic.metadata.refresh.interval.ms", given)]));
        group.get("topic.metadata.refresh.interval.ms").map(str::to_string)
    };
    assert_eq!(refresh("1000").as_deref(), Some("1000"));
    assert_eq!(refresh("60000").as_deref(), Some("5000"));
    assert_eq!(refresh("-1").as_deref(), Some("5000"), "never");
    let asks = admin(&with(Side::Source, &[("socket.timeout.ms", "3000")]), Side::Source);
    assert_eq!(asks.get("socket.timeout.ms"), Some("3000"));
    assert_eq!(admin(&settings(), Side::Source).get("socket.timeout.ms"), Some("10000"));
}

#[test]
fn short_transactions_shorten_what_ends_them() {
    let settings = with(Side::Target, &[("transaction.timeout.ms", "10000")]);
    assert_eq!(target_producer(&settings, LANE).get("socket.timeout.ms"), Some("10000"));
    assert_eq!(end_transaction_max(&settings), Duration::from_millis(2500));
    assert_eq!(end_transaction_max(&self::settings()), Duration::from_secs(15));
}

#[test]
fn only_a_lane_s_source_is_read_from_a_near_replica() {
    let near = |side| with(side, &[("client.rack", "a")]);
    assert_eq!(source_consumer(&near(Side::Source), LANE).get("client.rack"), Some("a"));
    assert_eq!(target_reader(&near(Side::Target), LANE).get("client.rack"), None);
    assert_eq!(reader(&near(Side::Source), Side::Source, "r", 1).get("client.rack"), None);
}

#[test]
fn membership_is_static_only_with_an_instance_id() {
    assert_eq!(group(&settings()).get("group.instance.id"), None);
    let settings = Settings { instance: Some("a-1".into()), ..settings() };
    assert_eq!(group(&settings).get("group.instance.id"), Some("a-1"));
    assert_eq!(reader(&settings, Side::Target, "r", 1).get("group.instance.id"), None);
}

#[test]
fn every_reader_reads_alike() {
    let settings = settings();
    let readers = [
        source_consumer(&settings, LANE),
        target_reader(&settings, LANE),
        reader(&settings, Side::Source, "r", 1),
        reader(&settings, Side::Target, "r", 1),
    ];
    for config in readers {
        for (name, value) in EVERY_READER {
            assert_eq!(config.get(name), Some(*value));
        }
        assert_eq!(config.get("group.id"), Some("verbatim-orders"));
    }
}

#[test]
fn queues_stay_within_librdkafka_s_bounds() {
    let kilobytes = |bytes| {
        let config = reader(&settings(), Side::Source, "r", bytes);
        config.get("queued.max.messages.kbytes").map(str::to_string)
    };
    assert_eq!(kilobytes(0).as_deref(), Some("1024"));
    assert_eq!(kilobytes(64 << 20).as_deref(), Some("65536"));
    assert_eq!(kilobytes(u64::MAX).as_deref(), Some("2097151"));
}

/// Values that librdkafka refuses only once it makes a client of them.
#[test]
fn librdkafka_makes_clients_of_them() {
    use rdkafka::consumer::BaseConsumer;
    use rdkafka::producer::BaseProducer;
    let odd: &[(&str, &str)] = &[
        ("message.max.bytes", "100000000"),
        ("reconnect.backoff.ms", "5000"),
        ("transaction.timeout.ms", "1000"),
    ];
    for side in [Side::Source, Side::Target] {
        for memory_bytes in [0, 64 << 20, u64::MAX] {
            for properties in [&[], odd] {
                let settings = Settings { memory_bytes, ..with(side, properties) };
                for (purpose, config) in client_configs(&settings, side) {
                    let made = match purpose {
                        "lane's producer" => config.create::<BaseProducer>().map(drop),
                        _ => config.create::<BaseConsumer>().map(drop),
                    };
                    made.unwrap_or_else(|error| panic!("{purpose}: {error}"));
                }
            }
        }
    }
}
