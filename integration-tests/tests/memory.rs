//! Memory is bounded by configuration, whatever the lag and whatever the records.

use std::time::Duration;

use integration_tests::admin::Admin;
use integration_tests::kafka::{Broker, BrokerOptions};
use integration_tests::mirror::{Mirror, MirrorConfig};
use integration_tests::{checker, require_kafka, workload};

const PATIENCE: Duration = Duration::from_secs(400);
const PARTITIONS: i32 = 8;
const RECORD_BYTES: usize = 900_000;
/// 2 GB.
const RECORDS: u64 = 2_230;
const LIMIT: &str = "128MiB";
const PEAK_MIB: u64 = 280;

#[test]
fn big_records_and_a_long_lag_stay_within_the_limit() {
    require_kafka!();
    let start = || Broker::start(&BrokerOptions::default()).unwrap();
    let (source, target) = (start(), start());
    let topic = "big";
    Admin::connect(&source.bootstrap()).unwrap().create_topic(topic, PARTITIONS as usize).unwrap();
    workload::fill(&source.bootstrap(), topic, PARTITIONS, 0..RECORDS, RECORD_BYTES).unwrap();
    let config = MirrorConfig::new("memory", &source.bootstrap(), &target.bootstrap(), &[topic])
        .text("limits", "memory", LIMIT);
    let mut mirror = Mirror::start(&config.to_toml(), &["run", "--until", "end"]).unwrap();
    // The kernel keeps the peak only for as long as the process lives.
    let mut peak = 0;
    while mirror.is_running() {
        peak = mirror.peak_memory_kib().unwrap_or(peak).max(peak);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(mirror.wait(PATIENCE).unwrap(), 0, "{}", mirror.story());
    eprintln!("peak memory: {} MiB", peak / 1024);
    assert!(0 < peak && peak / 1024 < PEAK_MIB, "{} MiB with limits.memory = {LIMIT}", peak / 1024);
    let copied = checker::assert_equal((&source.bootstrap(), topic), (&target.bootstrap(), topic));
    assert_eq!(copied as u64, RECORDS);
}
