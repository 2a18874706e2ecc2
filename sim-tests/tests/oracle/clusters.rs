use bytes::Bytes;
use kafka_model::api::add_partitions_to_txn::AddPartitionsToTxnRequest;
use kafka_model::api::create_topics::{CreateTopicsRequest, NewTopic};
use kafka_model::api::delete_topics::{DeleteTopicsRequest, TopicToDelete};
use kafka_model::api::end_txn::EndTxnRequest;
use kafka_model::api::init_producer_id::InitProducerIdRequest;
use kafka_model::api::produce::{ACKS_ALL, ProducePartition, ProduceRequest};
use kafka_model::{
    BrokerId, ClientId, Cluster, ClusterConfig, CoordinatorKind, Offset, Outcome, Request, RequestHeader,
    RequestToken, Response, TransactionalId,
};
use kafka_types::{
    ErrorCode, ProducerEpoch, ProducerId, Record, RecordBatch, TopicName, TopicPartition, TransactionResult,
};
use sim_tests::oracle::{FlowNames, Oracle};

const ACKS_LEADER: i16 = 1;

/// Two clusters without faults, every change of which the oracle sees.
pub struct Clusters {
    pub source: Cluster,
    pub target: Cluster,
    pub oracle: Oracle,
    now: i64,
    token: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    Target,
}

/// A transactional producer after its initialisation.
#[derive(Clone, Debug)]
pub struct Producer {
    pub transactional_id: TransactionalId,
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    sequences: std::collections::BTreeMap<TopicPartition, i32>,
}

impl Clusters {
    pub fn new() -> Clusters {
        let brokers = [BrokerId(1), BrokerId(2), BrokerId(3)];
        let config = |cluster_id: &str| ClusterConfig {
            cluster_id: cluster_id.to_owned(),
            default_replication_factor: 3,
            ..ClusterConfig::default()
        };
        Clusters {
            source: Cluster::new(0, &brokers, config("source")),
            target: Cluster::new(0, &brokers, config("target")),
            oracle: Oracle::new(FlowNames::of("sim", "")),
            now: 0,
            token: 0,
        }
    }

    pub fn cluster(&mut self, side: Side) -> &mut Cluster {
        match side {
            Side::Source => &mut self.source,
            Side::Target => &mut self.target,
        }
    }

    pub fn observe(&mut self) {
        self.oracle.observe_source(self.now, &mut self.source);
        self.oracle.observe_target(self.now, &mut self.target);
    }

    pub fn request(&mut self, side: Side, broker: BrokerId, request: impl Into<Request>) -> Response {
        self.now += 1;
        self.token += 1;
        let header = RequestHeader {
            broker,
            token: RequestToken(self.token),
            client_id: ClientId::from("test"),
            api_version: 1,
        };
        let now = self.now;
        let replies = self.cluster(side).handle(now, header, request.into());
        self.observe();
        match replies.into_iter().next().expect("nothing waits here").outcome {
            Outcome::Response(response) => response,
            Outcome::ConnectionClosed => panic!("all brokers live"),
        }
    }

    pub fn create(&mut self, side: Side, topic: &str, partitions: i32) {
        let topic = NewTopic {
            name: topic.into(),
            num_partitions: partitions,
            replication_factor: 3,
            configs: Vec::new(),
        };
        self.request(side, BrokerId(1), CreateTopicsRequest { topics: vec![topic], validate_only: false });
    }

    pub fn recreate(&mut self, side: Side, topic: &str, partitions: i32) {
        self.delete(side, topic);
        self.create(side, topic, partitions);
    }

    pub fn delete(&mut self, side: Side, topic: &str) {
        let topics = vec![TopicToDelete::Named(topic.into())];
        self.request(side, BrokerId(1), DeleteTopicsRequest { topics });
    }

    /// Records that are committed and that one replica lacks, which is answered.
    pub fn produce_behind_a_replica(&mut self, tp: &TopicPartition, records: Vec<Record>) -> BrokerId {
        let view = self.source.partition_view(tp).expect("the partition exists");
        let behind = *view.in_sync.iter().find(|it| Some(**it) != view.leader).expect("a follower");
        self.source.stall_replica(self.now, tp, behind, true);
        let batch = RecordBatch::new(records);
        assert_eq!(self.produce_with(Side::Source, tp, None, batch, ACKS_LEADER), ErrorCode::None);
        // It falls out of sync, and the others can be read without it.
        self.now += 60_000;
        self.source.tick(self.now);
        self.observe();
        behind
    }

    pub fn elect_uncleanly(&mut self, tp: &TopicPartition, to: BrokerId) {
        let readable_below = self.last_stable(Side::Source, tp);
        self.oracle.unclean_election_ahead(self.now, tp, readable_below);
        self.source.unclean_election(self.now, tp, to);
        self.observe();
    }

    fn leader(&mut self, side: Side, tp: &TopicPartition) -> BrokerId {
        self.cluster(side).leader(tp).expect("a leader")
    }

    fn coordinator(&mut self, side: Side, id: &TransactionalId) -> BrokerId {
        let request = kafka_model::api::find_coordinator::FindCoordinatorRequest {
            kind: CoordinatorKind::Transaction,
            keys: vec![id.to_string()],
        };
        let Response::FindCoordinator(found) = self.request(side, BrokerId(1), request) else {
            unreachable!()
        };
        found.coordinators[0].broker.expect("a coordinator")
    }

    pub fn produce_plain(&mut self, side: Side, tp: &TopicPartition, records: Vec<Record>) {
        let batch = RecordBatch::new(records);
        assert_eq!(self.produce(side, tp, None, batch), ErrorCode::None);
    }

    fn produce(
        &mut self,
        side: Side,
        tp: &TopicPartition,
        transactional_id: Option<TransactionalId>,
        batch: RecordBatch,
    ) -> ErrorCode {
        self.produce_with(side, tp, transactional_id, batch, ACKS_ALL)
    }

    fn produce_with(
        &mut self,
        side: Side,
        tp: &TopicPartition,
        transactional_id: Option<TransactionalId>,
        batch: RecordBatch,
        acks: i16,
    ) -> ErrorCode {
        let leader = self.leader(side, tp);
        let partitions = vec![ProducePartition { topic_partition: tp.clone(), topic_id: None, batch }];
        let request = ProduceRequest { transactional_id, acks, timeout_ms: 1000, partitions };
        let Response::Produce(answer) = self.request(side, leader, request) else { unreachable!() };
        answer.partitions[0].error_code
    }

    pub fn init(&mut self, side: Side, id: &str) -> Producer {
        let transactional_id = TransactionalId::from(id);
        let coordinator = self.coordinator(side, &transactional_id);
        let request = InitProducerIdRequest {
            transactional_id: Some(transactional_id.clone()),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
        };
        let Response::InitProducerId(answer) = self.request(side, coordinator, request) else {
            unreachable!()
        };
        assert_eq!(answer.error_code, ErrorCode::None);
        Producer {
            transactional_id,
            id: answer.producer_id,
            epoch: answer.producer_epoch,
            sequences: std::collections::BTreeMap::new(),
        }
    }

    pub fn send(&mut self, side: Side, producer: &mut Producer, tp: &TopicPartition, records: Vec<Record>) {
        let coordinator = self.coordinator(side, &producer.transactional_id);
        let request = AddPartitionsToTxnRequest {
            transactional_id: producer.transactional_id.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            partitions: vec![tp.clone()],
        };
        self.request(side, coordinator, request);
        let count = i32::try_from(records.len()).expect("few records");
        let sequence = producer.sequences.entry(tp.clone()).or_default();
        let batch =
            RecordBatch::new(records).from_producer(producer.id, producer.epoch, *sequence).transactional();
        *sequence += count;
        let error = self.produce(side, tp, Some(producer.transactional_id.clone()), batch);
        assert_eq!(error, ErrorCode::None);
    }

    /// A late repeat of the last records that were sent.
    pub fn send_again(
        &mut self,
        side: Side,
        producer: &mut Producer,
        tp: &TopicPartition,
        records: Vec<Record>,
    ) {
        let count = i32::try_from(records.len()).expect("few records");
        *producer.sequences.entry(tp.clone()).or_default() -= count;
        self.send(side, producer, tp, records);
    }

    pub fn end(&mut self, side: Side, producer: &Producer, result: TransactionResult) {
        let coordinator = self.coordinator(side, &producer.transactional_id);
        let request = EndTxnRequest {
            transactional_id: producer.transactional_id.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            result,
        };
        self.request(side, coordinator, request);
    }

    /// What a reader of committed records finds from `from` on.
    pub fn committed(&mut self, side: Side, tp: &TopicPartition, from: Offset) -> Vec<(Offset, Record)> {
        let found = self.cluster(side).committed(tp, from);
        found.into_iter().map(|it| (it.offset, it.record)).collect()
    }

    pub fn topic_id(&mut self, side: Side, topic: &str) -> kafka_types::TopicId {
        self.cluster(side).topic_id(&TopicName::from(topic)).expect("the topic exists")
    }

    pub fn last_stable(&mut self, side: Side, tp: &TopicPartition) -> Offset {
        self.cluster(side).partition_view(tp).expect("the partition exists").last_stable_offset
    }

    pub fn now(&self) -> i64 {
        self.now
    }
}

pub fn record(key: &str, value: &str) -> Record {
    Record::new(
        1_000,
        Some(Bytes::copy_from_slice(key.as_bytes())),
        Some(Bytes::copy_from_slice(value.as_bytes())),
    )
}
