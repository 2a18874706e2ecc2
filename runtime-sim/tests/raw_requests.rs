//! The workload's own requests, the network and the clock, without any mirror.
#![cfg(madsim)]

use bytes::Bytes;
use kafka_model::api::create_topics::{CreateTopicsRequest, NewTopic};
use kafka_model::api::fetch::{FetchPartition, FetchRequest, IsolationLevel};
use kafka_model::api::produce::{ACKS_ALL, ProducePartition, ProduceRequest};
use kafka_model::{BrokerId, Outcome, Request, Response};
use kafka_types::{ErrorCode, Record, RecordBatch, TopicPartition};
use runtime_sim::{Handle, NetworkFaults, Rate, Setup, TraceMode, simulate};
use verbatim_core::failure::Side;

const BROKER: BrokerId = BrokerId(1);

async fn ask(handle: &Handle, client: &str, request: impl Into<Request>) -> Option<Response> {
    match handle.request(Side::Source, BROKER, client.into(), request).await {
        Outcome::Response(response) => Some(response),
        Outcome::ConnectionClosed => None,
    }
}

fn produce(number: u32) -> ProduceRequest {
    let value = Bytes::from(format!("value {number}"));
    let batch = RecordBatch::new(vec![Record::new(1_000, None, Some(value))]);
    let topic_partition = TopicPartition::new("orders", 0);
    let partitions = vec![ProducePartition { topic_partition, topic_id: None, batch }];
    ProduceRequest { transactional_id: None, acks: ACKS_ALL, timeout_ms: 30_000, partitions }
}

fn fetch(offset: i64) -> FetchRequest {
    let partition = FetchPartition {
        topic_partition: TopicPartition::new("orders", 0),
        topic_id: None,
        current_leader_epoch: None,
        fetch_offset: offset,
        last_fetched_epoch: None,
        partition_max_bytes: 1 << 20,
    };
    FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
        isolation_level: IsolationLevel::ReadCommitted,
        partitions: vec![partition],
    }
}

async fn produces_and_fetches(handle: Handle) -> (usize, u32) {
    let topic =
        NewTopic { name: "orders".into(), num_partitions: 1, replication_factor: 1, configs: Vec::new() };
    ask(&handle, "admin", CreateTopicsRequest { topics: vec![topic], validate_only: false }).await;
    let producer = handle.clone();
    handle.spawn(async move {
        for number in 0..20 {
            producer.sleep(100).await;
            ask(&producer, "producer", produce(number)).await;
        }
    });
    let (mut read, mut next, mut failed) = (0, 0, 0);
    while handle.now() < 5_000 {
        match ask(&handle, "consumer", fetch(next)).await {
            Some(Response::Fetch(response)) => {
                let partition = &response.partitions[0];
                assert_eq!(partition.error_code, ErrorCode::None);
                for batch in &partition.records {
                    read += batch.records.len();
                    next = batch.next_offset();
                }
            }
            Some(other) => panic!("{other:?}"),
            None => failed += 1,
        }
    }
    (read, failed)
}

fn setup() -> Setup {
    Setup { brokers: 1, trace: TraceMode::Text, ..Setup::default() }
}

#[test]
fn a_producer_and_a_fetcher_work_through_the_network() {
    let ((read, failed), record) = simulate(1, setup(), produces_and_fetches);
    assert_eq!((read, failed), (20, 0));
    assert!(5_000 <= record.virtual_millis);
    assert!(record.lines.iter().any(|line| line.contains("Produce")), "{:#?}", record.lines);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let run = |seed| simulate(seed, setup(), produces_and_fetches).1;
    let (first, again, other) = (run(7), run(7), run(8));
    assert_eq!(first.lines, again.lines);
    assert_eq!(first, again);
    assert_ne!(first.trace_hash, other.trace_hash);
}

#[test]
fn what_a_lossy_network_loses_is_lost_to_its_sender_alone() {
    let (stored, record) = simulate(3, setup(), async |handle: Handle| {
        let topic =
            NewTopic { name: "orders".into(), num_partitions: 1, replication_factor: 1, configs: Vec::new() };
        ask(&handle, "admin", CreateTopicsRequest { topics: vec![topic], validate_only: false }).await;
        handle.set_network(NetworkFaults {
            response_lost: Rate(300_000),
            strikes_workload: true,
            ..NetworkFaults::default()
        });
        let mut answered = 0;
        for number in 0..50 {
            answered += usize::from(ask(&handle, "producer", produce(number)).await.is_some());
        }
        let place = TopicPartition::new("orders", 0);
        let stored = handle.view(Side::Source, |cluster| cluster.committed(&place, 0).len());
        (stored, answered)
    });
    let (stored, answered) = stored;
    assert_eq!(stored, 50, "each was applied");
    assert!(answered < 50, "and some were not answered");
    assert!(!record.counters.faults.is_empty());
}

/// A sweep of many seeds must not grow: whatever a run holds goes with it.
#[test]
fn a_run_that_is_over_holds_nothing() {
    let held = std::sync::Arc::new(());
    let (by_task, by_watcher) = (held.clone(), held.clone());
    simulate(1, setup(), async move |handle: Handle| {
        let beside = handle.clone();
        handle.spawn(async move {
            beside.sleep(100_000).await;
            drop(by_task);
        });
        handle.watch(Box::new(move |_, _, _| {
            let _ = &by_watcher;
        }));
        handle.sleep(1_000).await;
    });
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
}
