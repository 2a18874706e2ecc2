//! How many requests a second the model answers, on one core: `cargo run -p kafka-model --example speed`.
//!
//! One lane's day: transactions of ten batches over four partitions, each fetched back.

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
    fetched: u64,
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
        let replies = self.cluster.handle(self.now, header, request);
        self.count(&replies);
        replies
    }

    fn count(&mut self, replies: &[Reply]) {
        for reply in replies {
            if let Outcome::Response(Response::Fetch(response)) = &reply.outcome {
                self.fetched += response.partitions[0].records.len() as u64;
            }
        }
    }

    fn leader(&self, tp: &TopicPartition) -> BrokerId {
        self.cluster.leader(tp).unwrap_or(BrokerId(1))
    }
}

const PARTITIONS: i32 = 4;

/// What the lane's producer knows of itself.
struct Lane {
    id: TransactionalId,
    coordinator: BrokerId,
    producer_id: i64,
    producer_epoch: i16,
    sequences: Vec<i32>,
}

fn main() {
    let config = ClusterConfig { replication_delay_ms: 3, marker_delay_ms: 5, ..ClusterConfig::default() };
    let brokers = [BrokerId(1), BrokerId(2), BrokerId(3)];
    let mut driver = Driver { cluster: Cluster::new(0, &brokers, config), now: 0, requests: 0, fetched: 0 };
    let topic =
        NewTopic { name: "t".into(), num_partitions: PARTITIONS, replication_factor: 3, configs: Vec::new() };
    driver.send(brokers[0], CreateTopicsRequest { topics: vec![topic], validate_only: false }.into());
    let Some(mut lane) = driver.init() else { return };
    let partitions: Vec<TopicPartition> =
        (0..PARTITIONS).map(|number| TopicPartition::new("t", number)).collect();
    let payload = Record::new(0, Some(vec![0; 16].into()), Some(vec![0; 1_000].into()));
    let started = Instant::now();
    while driver.requests < 400_000 {
        driver.begin(&lane, &partitions);
        for (place, tp) in partitions.iter().enumerate().cycle().take(10) {
            driver.produce(&mut lane, place, tp, &payload);
            driver.fetch(tp);
        }
        driver.now += 10;
        driver.commit(&lane);
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} requests in {seconds:.2} s: {:.0} a second; {} transactions decided, {} batches fetched",
        driver.requests,
        driver.requests as f64 / seconds,
        driver.cluster.decisions().next_number(),
        driver.fetched,
    );
}

impl Driver {
    fn init(&mut self) -> Option<Lane> {
        let id = TransactionalId::from("lane-0");
        let coordinator = self.cluster.coordinator(CoordinatorKind::Transaction, "lane-0")?;
        let request = InitProducerIdRequest {
            transactional_id: Some(id.clone()),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
        };
        let mut replies = self.send(coordinator, request.into());
        let Outcome::Response(Response::InitProducerId(init)) = replies.pop()?.outcome else { return None };
        let (producer_id, producer_epoch) = (init.producer_id, init.producer_epoch);
        let sequences = vec![0; PARTITIONS as usize];
        Some(Lane { id, coordinator, producer_id, producer_epoch, sequences })
    }

    fn begin(&mut self, lane: &Lane, partitions: &[TopicPartition]) {
        let request = AddPartitionsToTxnRequest {
            transactional_id: lane.id.clone(),
            producer_id: lane.producer_id,
            producer_epoch: lane.producer_epoch,
            partitions: partitions.to_vec(),
        };
        self.send(lane.coordinator, request.into());
    }

    fn produce(&mut self, lane: &mut Lane, place: usize, tp: &TopicPartition, payload: &Record) {
        let batch = RecordBatch::new(vec![payload.clone(); 10])
            .from_producer(lane.producer_id, lane.producer_epoch, lane.sequences[place])
            .transactional();
        lane.sequences[place] += 10;
        let partition = ProducePartition { topic_partition: tp.clone(), topic_id: None, batch };
        let request = ProduceRequest {
            transactional_id: Some(lane.id.clone()),
            acks: ACKS_ALL,
            timeout_ms: 30_000,
            partitions: vec![partition],
        };
        self.send(self.leader(tp), request.into());
    }

    fn fetch(&mut self, tp: &TopicPartition) {
        let stable = self.cluster.partition_view(tp).map_or(0, |view| view.last_stable_offset);
        let partition = FetchPartition {
            topic_partition: tp.clone(),
            topic_id: None,
            current_leader_epoch: None,
            fetch_offset: stable,
            last_fetched_epoch: None,
            partition_max_bytes: 1 << 20,
        };
        let request = FetchRequest {
            max_wait_ms: 100,
            min_bytes: 1,
            max_bytes: 1 << 20,
            isolation_level: IsolationLevel::ReadCommitted,
            partitions: vec![partition],
        };
        self.send(self.leader(tp), request.into());
    }

    fn commit(&mut self, lane: &Lane) {
        let request = EndTxnRequest {
            transactional_id: lane.id.clone(),
            producer_id: lane.producer_id,
            producer_epoch: lane.producer_epoch,
            result: TransactionResult::Commit,
        };
        self.send(lane.coordinator, request.into());
        self.now += 20;
        let replies = self.cluster.tick(self.now);
        self.count(&replies);
    }
}
