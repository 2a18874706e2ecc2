//! How many requests a second the model answers, on one core: `cargo run -p kafka-model --example speed`.
//!
//! One lane's day: transactions of ten batches over four partitions, each fetched back, heartbeats between.

use kafka_model::api::add_partitions_to_txn::AddPartitionsToTxnRequest;
use kafka_model::api::create_topics::{CreateTopicsRequest, NewTopic};
use kafka_model::api::end_txn::EndTxnRequest;
use kafka_model::api::fetch::{FetchPartition, FetchRequest, IsolationLevel};
use kafka_model::api::init_producer_id::InitProducerIdRequest;
use kafka_model::api::produce::{ACKS_ALL, ProducePartition, ProduceRequest};
use kafka_model::{
    BrokerId, ClientId, Cluster, ClusterConfig, CoordinatorKind, Outcome, Reply, Request, RequestHeader,
    RequestToken, Response, TransactionalId,
};
use kafka_types::{Record, RecordBatch, TopicPartition, TransactionResult};
use std::time::Instant;

struct Driver {
    cluster: Cluster,
    now: i64,
    requests: u64,
}

impl Driver {
    fn send(&mut self, broker: BrokerId, request: Request) -> Vec<Reply> {
        self.requests += 1;
        self.now += 1;
        let header = RequestHeader {
            broker,
            token: RequestToken(self.requests),
            client_id: ClientId::from("lane"),
            api_version: 10,
        };
        self.cluster.handle(self.now, header, request)
    }

    fn leader(&self, tp: &TopicPartition) -> BrokerId {
        self.cluster.partition_view(tp).and_then(|view| view.leader).unwrap_or(BrokerId(1))
    }
}

fn main() {
    let config = ClusterConfig { replication_delay_ms: 3, marker_delay_ms: 5, ..ClusterConfig::default() };
    let brokers = [BrokerId(1), BrokerId(2), BrokerId(3)];
    let mut driver = Driver { cluster: Cluster::new(0, &brokers, config), now: 0, requests: 0 };
    let topic = NewTopic { name: "t".into(), num_partitions: 4, replication_factor: 3, configs: Vec::new() };
    driver.send(brokers[0], CreateTopicsRequest { topics: vec![topic], validate_only: false }.into());
    let id = TransactionalId::from("lane-0");
    let coordinator =
        driver.cluster.coordinator(CoordinatorKind::Transaction, "lane-0").unwrap_or(brokers[0]);
    let init = InitProducerIdRequest {
        transactional_id: Some(id.clone()),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
    };
    let mut replies = driver.send(coordinator, init.into());
    let Some(Outcome::Response(Response::InitProducerId(init))) = replies.pop().map(|it| it.outcome) else {
        return;
    };
    let (producer_id, producer_epoch) = (init.producer_id, init.producer_epoch);
    let partitions: Vec<TopicPartition> = (0..4).map(|number| TopicPartition::new("t", number)).collect();
    let payload = Record::new(0, Some(vec![0; 16].into()), Some(vec![0; 1_000].into()));
    let mut sequences = [0; 4];
    let started = Instant::now();
    while driver.requests < 400_000 {
        let add = AddPartitionsToTxnRequest {
            transactional_id: id.clone(),
            producer_id,
            producer_epoch,
            partitions: partitions.clone(),
        };
        driver.send(coordinator, add.into());
        for place in (0..4).cycle().take(10) {
            let tp = &partitions[place];
            let batch = RecordBatch::new(vec![payload.clone(); 10]);
            let batch = batch.from_producer(producer_id, producer_epoch, sequences[place]).transactional();
            sequences[place] += 10;
            let leader = driver.leader(tp);
            let partition = ProducePartition { topic_partition: tp.clone(), topic_id: None, batch };
            let produce = ProduceRequest {
                transactional_id: Some(id.clone()),
                acks: ACKS_ALL,
                timeout_ms: 30_000,
                partitions: vec![partition],
            };
            driver.send(leader, produce.into());
            let view = driver.cluster.partition_view(tp);
            let partition = FetchPartition {
                topic_partition: tp.clone(),
                topic_id: None,
                current_leader_epoch: None,
                fetch_offset: view.map_or(0, |view| view.last_stable_offset),
                last_fetched_epoch: None,
                partition_max_bytes: 1 << 20,
            };
            let fetch = FetchRequest {
                max_wait_ms: 100,
                min_bytes: 1,
                max_bytes: 1 << 20,
                isolation_level: IsolationLevel::ReadCommitted,
                partitions: vec![partition],
            };
            driver.send(leader, fetch.into());
        }
        driver.now += 10;
        let end = EndTxnRequest {
            transactional_id: id.clone(),
            producer_id,
            producer_epoch,
            result: TransactionResult::Commit,
        };
        driver.send(coordinator, end.into());
        driver.now += 20;
        driver.cluster.tick(driver.now);
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} requests in {seconds:.2} s: {:.0} a second; {} transactions decided",
        driver.requests,
        driver.requests as f64 / seconds,
        driver.cluster.decisions().next_number(),
    );
}
