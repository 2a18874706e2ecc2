//! A source with records, mirrors in slots, and a look at both clusters' truth.

use bytes::Bytes;
use kafka_model::api::create_topics::{CreateTopicsRequest, NewTopic};
use kafka_model::api::init_producer_id::InitProducerIdRequest;
use kafka_model::api::produce::{ACKS_ALL, ProducePartition, ProduceRequest};
use kafka_model::{BrokerId, Millis, Outcome, Request, Response};
use kafka_types::{ErrorCode, Record, RecordBatch, TopicPartition};
use runtime_sim::{Handle, InstanceSettings, Slot};
use std::time::Duration;
use verbatim_core::config::{Flow, FlowName, Limits, Start};
use verbatim_core::failure::Side;
use verbatim_core::route::{Rename, TopicFilter};

pub const TOPIC: &str = "orders";

pub fn flow(incarnation: &str, lanes: u32) -> Flow {
    Flow {
        name: FlowName::new("f").unwrap(),
        incarnation: incarnation.into(),
        filter: TopicFilter::new(&[TOPIC.into()], &[]).unwrap(),
        rename: Rename::identity(),
        refresh: Duration::from_secs(10),
        replication_factor: None,
        start: Start::Earliest,
        commit_interval: Duration::from_millis(500),
        lanes,
        ledger_replication_factor: None,
        intake_bytes_max: 1 << 20,
        until: None,
        wait_open: Duration::from_secs(60),
        limits: Limits::default(),
    }
}

/// Starts the next process of a slot.
pub fn start(handle: &Handle, slot: u32, lanes: u32) {
    let incarnation = format!("slot-{slot}-at-{}", handle.now());
    let settings = InstanceSettings { instance_id: Some(format!("slot-{slot}")) };
    handle.start(Slot(slot), flow(&incarnation, lanes), settings);
}

/// A request until it is answered, by whichever broker knows.
async fn ask(handle: &Handle, broker: BrokerId, request: impl Into<Request>) -> Option<Response> {
    match handle.request(Side::Source, broker, "workload".into(), request).await {
        Outcome::Response(response) => Some(response),
        Outcome::ConnectionClosed => None,
    }
}

pub async fn create_topic(handle: &Handle, partitions: i32) {
    let topic = NewTopic {
        name: TOPIC.into(),
        num_partitions: partitions,
        replication_factor: -1,
        configs: Vec::new(),
    };
    let request = CreateTopicsRequest { topics: vec![topic], validate_only: false };
    ask(handle, BrokerId(1), request).await.expect("no faults for the workload");
}

/// An idempotent producer that retries until each record is stored once.
pub async fn produce(handle: &Handle, count: u32, every: Millis) {
    let partitions = handle.view(Side::Source, |cluster| {
        cluster.topic_names().find(|it| it.0.as_str() == TOPIC).map_or(0, |it| it.2 as i32)
    });
    let (id, epoch) = producer_id(handle).await;
    let mut sequences = vec![0; partitions as usize];
    for number in 0..count {
        let partition = (handle.draw() % partitions as u64) as i32;
        let place = TopicPartition::new(TOPIC, partition);
        let value = Bytes::from(format!("value {number}"));
        let sequence = &mut sequences[partition as usize];
        let batch = RecordBatch::new(vec![Record::new(1_000 + i64::from(number), None, Some(value))]);
        let batch = batch.from_producer(id, epoch, *sequence);
        *sequence += 1;
        store(handle, &place, batch).await;
        if 0 < every {
            handle.sleep(every).await;
        }
    }
}

/// Many records at once in each partition, so that one transaction takes several requests.
pub async fn burst(handle: &Handle, partitions: i32, records: u32) {
    let (id, epoch) = producer_id(handle).await;
    for partition in 0..partitions {
        let record = |number| {
            let value = Bytes::from(format!("burst {number} at {}", handle.now()));
            Record::new(5_000 + i64::from(number), None, Some(value))
        };
        let batch = RecordBatch::new((0..records).map(record).collect()).from_producer(id, epoch, 0);
        store(handle, &TopicPartition::new(TOPIC, partition), batch).await;
    }
}

async fn producer_id(handle: &Handle) -> (i64, i16) {
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
    };
    loop {
        match ask(handle, BrokerId(1), request.clone()).await {
            Some(Response::InitProducerId(response)) => {
                return (response.producer_id, response.producer_epoch);
            }
            _ => handle.sleep(100).await,
        }
    }
}

async fn store(handle: &Handle, place: &TopicPartition, batch: RecordBatch) {
    loop {
        let leader = handle.view(Side::Source, |cluster| cluster.leader(place));
        let partitions =
            vec![ProducePartition { topic_partition: place.clone(), topic_id: None, batch: batch.clone() }];
        let request =
            ProduceRequest { transactional_id: None, acks: ACKS_ALL, timeout_ms: 5_000, partitions };
        if let Some(leader) = leader
            && let Some(Response::Produce(response)) = ask(handle, leader, request).await
            && response.partitions[0].error_code == ErrorCode::None
        {
            return;
        }
        handle.sleep(100).await;
    }
}

/// The committed values of a partition.
pub fn values(handle: &Handle, side: Side, partition: i32) -> Vec<Option<Bytes>> {
    let place = TopicPartition::new(TOPIC, partition);
    handle.view(side, |cluster| cluster.committed(&place, 0).into_iter().map(|it| it.record.value).collect())
}

/// Whether the target holds all that the source does; in each partition it must hold a beginning of it.
#[track_caller]
pub fn is_all_copied(handle: &Handle, partitions: i32) -> bool {
    (0..partitions).all(|partition| {
        let (wanted, found) =
            (values(handle, Side::Source, partition), values(handle, Side::Target, partition));
        let beginning = wanted.get(..found.len());
        assert_eq!(Some(&*found), beginning, "partition {partition} at {} ms", handle.now());
        wanted.len() == found.len()
    })
}

/// Waits until all is copied, and fails after `limit`.
pub async fn await_all_copied(handle: &Handle, partitions: i32, limit: Millis) {
    let until = handle.now() + limit;
    while !is_all_copied(handle, partitions) {
        assert!(
            handle.now() < until,
            "stuck: exits {:?}, lanes {:?}, copied {:?}",
            (0..3).map(|it| handle.exit(Slot(it))).collect::<Vec<_>>(),
            (0..3).map(|it| handle.reports(Slot(it)).map(|it| it.lanes_owned)).collect::<Vec<_>>(),
            (0..partitions)
                .map(|it| (values(handle, Side::Source, it).len(), values(handle, Side::Target, it).len()))
                .collect::<Vec<_>>()
        );
        handle.sleep(500).await;
    }
}
