//! A cluster with a clock that the test moves, and short ways to say what clients say.

use bytes::Bytes;
use kafka_model::api::add_partitions_to_txn::AddPartitionsToTxnRequest;
use kafka_model::api::create_topics::{CreateTopicsRequest, NewTopic};
use kafka_model::api::end_txn::EndTxnRequest;
use kafka_model::api::fetch::{FetchPartition, FetchPartitionResponse, FetchRequest, IsolationLevel};
use kafka_model::api::init_producer_id::InitProducerIdRequest;
use kafka_model::api::produce::{ACKS_ALL, ProducePartition, ProducePartitionResponse, ProduceRequest};
use kafka_model::{
    BrokerId, ClientId, Cluster, ClusterConfig, CoordinatorKind, Millis, Outcome, Reply, Request,
    RequestHeader, RequestToken, Response, TransactionalId,
};
use kafka_types::{ErrorCode, Record, RecordBatch, TopicPartition, TransactionResult};
use std::collections::BTreeMap;

pub use ErrorCode::None as NoError;
pub use TransactionResult::{Abort, Commit};

pub struct Bench {
    pub cluster: Cluster,
    pub now: Millis,
    tokens: u64,
    pub replies: BTreeMap<RequestToken, Reply>,
    pub api_version: i16,
}

/// A producer's id and epoch.
pub type Identity = (i64, i16);

pub fn tp(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic, partition)
}

pub fn record(value: &str) -> Record {
    Record::new(1_000, Some(Bytes::copy_from_slice(b"key")), Some(Bytes::copy_from_slice(value.as_bytes())))
}

pub fn batch(values: &[&str]) -> RecordBatch {
    RecordBatch::new(values.iter().map(|value| record(value)).collect())
}

/// `count` records from an idempotent producer, its first with this sequence number.
pub fn sequenced((id, epoch): Identity, first: i32, count: usize) -> RecordBatch {
    batch(&vec!["v"; count]).from_producer(id, epoch, first)
}

impl Bench {
    /// Three brokers, topic `t` with one partition and three replicas, transactions and groups ready.
    pub fn new() -> Bench {
        Bench::with(ClusterConfig::default(), &[])
    }

    pub fn with(config: ClusterConfig, settings: &[(&str, &str)]) -> Bench {
        let brokers = [BrokerId(1), BrokerId(2), BrokerId(3)];
        let cluster = Cluster::new(1_000_000, &brokers, config);
        let replies = BTreeMap::new();
        let mut bench = Bench { cluster, now: 1_000_000, tokens: 0, replies, api_version: 10 };
        bench.create("t", 1, 3, settings);
        bench
    }

    pub fn create(&mut self, name: &str, partitions: i32, replicas: i16, settings: &[(&str, &str)]) {
        let topic = NewTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: replicas,
            configs: settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        };
        let request = CreateTopicsRequest { topics: vec![topic], validate_only: false };
        let Response::CreateTopics(response) = self.ask(BrokerId(1), request) else { panic!() };
        assert_eq!(response.topics[0].error_code, NoError);
    }

    pub fn send(&mut self, broker: BrokerId, request: impl Into<Request>) -> RequestToken {
        self.tokens += 1;
        let token = RequestToken(self.tokens);
        let header = RequestHeader {
            broker,
            token,
            client_id: ClientId::from("client"),
            api_version: self.api_version,
        };
        let replies = self.cluster.handle(self.now, header, request.into());
        self.take(replies);
        token
    }

    pub fn take(&mut self, replies: Vec<Reply>) {
        for reply in replies {
            let token = reply.token;
            assert!(self.replies.insert(token, reply).is_none(), "a request is answered once");
        }
    }

    pub fn wait(&mut self, millis: Millis) {
        self.now += millis;
        let replies = self.cluster.tick(self.now);
        self.take(replies);
    }

    /// What came of a request: nothing yet, a hang-up, or a response.
    pub fn outcome(&self, token: RequestToken) -> Option<&Outcome> {
        self.replies.get(&token).map(|reply| &reply.outcome)
    }

    pub fn response(&self, token: RequestToken) -> Response {
        match self.outcome(token) {
            Some(Outcome::Response(response)) => response.clone(),
            other => panic!("no response but {other:?}"),
        }
    }

    pub fn ask(&mut self, broker: BrokerId, request: impl Into<Request>) -> Response {
        let token = self.send(broker, request);
        self.response(token)
    }

    pub fn leader(&self, tp: &TopicPartition) -> BrokerId {
        self.cluster.partition_view(tp).and_then(|view| view.leader).expect("a leader")
    }

    /// The replicas of a partition that do not lead it, in order.
    pub fn followers(&self, tp: &TopicPartition) -> Vec<BrokerId> {
        let leader = self.leader(tp);
        (1..=3).map(BrokerId).filter(|broker| *broker != leader).collect()
    }

    pub fn coordinator(&self, id: &str) -> BrokerId {
        self.cluster.coordinator(CoordinatorKind::Transaction, id).expect("a coordinator")
    }

    pub fn send_produce(&mut self, tp: &TopicPartition, batch: RecordBatch, acks: i16) -> RequestToken {
        let leader = self.leader(tp);
        let transactional_id = batch.is_transactional.then(|| TransactionalId::from("tx"));
        self.send(leader, produce_request(tp, transactional_id, batch, acks))
    }

    pub fn produced(&self, token: RequestToken) -> ProducePartitionResponse {
        let Response::Produce(mut response) = self.response(token) else { panic!() };
        response.partitions.remove(0)
    }

    pub fn produce(&mut self, tp: &TopicPartition, batch: RecordBatch) -> ProducePartitionResponse {
        let token = self.send_produce(tp, batch, ACKS_ALL);
        self.produced(token)
    }

    /// Error and base offset of a produce to `t/0`.
    pub fn append(&mut self, batch: RecordBatch) -> (ErrorCode, i64) {
        let response = self.produce(&tp("t", 0), batch);
        (response.error_code, response.base_offset)
    }

    pub fn fetch_request(&self, tp: &TopicPartition, offset: i64, level: IsolationLevel) -> FetchRequest {
        FetchRequest {
            max_wait_ms: 0,
            min_bytes: 1,
            max_bytes: 1 << 20,
            isolation_level: level,
            partitions: vec![FetchPartition {
                topic_partition: tp.clone(),
                topic_id: None,
                current_leader_epoch: None,
                fetch_offset: offset,
                last_fetched_epoch: None,
                partition_max_bytes: 1 << 20,
            }],
        }
    }

    pub fn fetch(
        &mut self,
        tp: &TopicPartition,
        offset: i64,
        level: IsolationLevel,
    ) -> FetchPartitionResponse {
        let request = self.fetch_request(tp, offset, level);
        self.fetch_with(request)
    }

    pub fn fetch_with(&mut self, request: FetchRequest) -> FetchPartitionResponse {
        let leader = self.leader(&request.partitions[0].topic_partition);
        let Response::Fetch(mut response) = self.ask(leader, request) else { panic!() };
        response.partitions.remove(0)
    }

    /// The values that a reader of committed records sees from `offset` on, as a client filters them.
    pub fn read_committed(&mut self, tp: &TopicPartition, offset: i64) -> Vec<String> {
        let answer = self.fetch(tp, offset, IsolationLevel::ReadCommitted);
        assert_eq!(answer.error_code, NoError);
        let mut aborted = answer.aborted_transactions;
        let mut skipped = Vec::new();
        let mut values = Vec::new();
        for batch in &answer.records {
            aborted.retain(|range| {
                let begins = range.first_offset <= batch.last_offset();
                if begins {
                    skipped.push(range.producer_id);
                }
                !begins
            });
            match batch.marker {
                Some(marker) if marker.result == Abort => skipped.retain(|id| *id != batch.producer_id),
                Some(_) => {}
                None if batch.is_transactional && skipped.contains(&batch.producer_id) => {}
                None => values.extend(values_of(batch).into_iter().filter(|(at, _)| offset <= *at)),
            }
        }
        values.into_iter().map(|(_, value)| value).collect()
    }

    /// What the oracle takes for committed.
    pub fn committed(&self, tp: &TopicPartition) -> Vec<String> {
        let committed = self.cluster.committed(tp, 0);
        committed.iter().map(|it| text(it.record.value.as_ref().expect("a value"))).collect()
    }

    /// InitProducerId of `tx`, again until no transaction is in the way.
    pub fn init(&mut self) -> Identity {
        for _ in 0..100 {
            match self.try_init(None) {
                Ok(identity) => return identity,
                Err(ErrorCode::ConcurrentTransactions) => self.wait(100),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("transactions in the way for ever");
    }

    pub fn try_init(&mut self, known: Option<Identity>) -> Result<Identity, ErrorCode> {
        let (producer_id, producer_epoch) = known.unwrap_or((-1, -1));
        let request = InitProducerIdRequest {
            transactional_id: Some("tx".into()),
            transaction_timeout_ms: 60_000,
            producer_id,
            producer_epoch,
        };
        let Response::InitProducerId(response) = self.ask(self.coordinator("tx"), request) else { panic!() };
        match response.error_code {
            NoError => Ok((response.producer_id, response.producer_epoch)),
            error => Err(error),
        }
    }

    pub fn add(&mut self, (producer_id, producer_epoch): Identity, tp: &TopicPartition) -> ErrorCode {
        let request = AddPartitionsToTxnRequest {
            transactional_id: "tx".into(),
            producer_id,
            producer_epoch,
            partitions: vec![tp.clone()],
        };
        let Response::AddPartitionsToTxn(response) = self.ask(self.coordinator("tx"), request) else {
            panic!()
        };
        response.partitions[0].1
    }

    pub fn end(&mut self, (producer_id, producer_epoch): Identity, result: TransactionResult) -> ErrorCode {
        let request = EndTxnRequest { transactional_id: "tx".into(), producer_id, producer_epoch, result };
        let Response::EndTxn(response) = self.ask(self.coordinator("tx"), request) else { panic!() };
        response.error_code
    }

    /// The same requests where no broker may be there to take them.
    pub fn init_if_possible(&mut self) -> Option<Result<Identity, ErrorCode>> {
        self.living_coordinator().map(|_| self.try_init(None))
    }

    pub fn try_add(&mut self, identity: Identity, tp: &TopicPartition) -> Option<ErrorCode> {
        self.living_coordinator().map(|_| self.add(identity, tp))
    }

    pub fn try_end(&mut self, identity: Identity, result: TransactionResult) -> Option<ErrorCode> {
        self.living_coordinator().map(|_| self.end(identity, result))
    }

    fn living_coordinator(&self) -> Option<BrokerId> {
        let holder = self.cluster.coordinator(CoordinatorKind::Transaction, "tx")?;
        self.cluster.broker_ids().find(|it| *it == (holder, true)).map(|(id, _)| id)
    }

    /// What a produce was answered, none while it waits and after a hang-up.
    pub fn produce_error(&self, token: RequestToken) -> Option<ErrorCode> {
        match self.outcome(token) {
            Some(Outcome::Response(Response::Produce(response))) => Some(response.partitions[0].error_code),
            _ => None,
        }
    }

    /// Adds the partition and produces one record in the transaction.
    pub fn write(&mut self, identity: Identity, tp: &TopicPartition, sequence: i32, value: &str) {
        assert_eq!(self.add(identity, tp), NoError);
        let (id, epoch) = identity;
        let batch = batch(&[value]).from_producer(id, epoch, sequence).transactional();
        assert_eq!(self.produce(tp, batch).error_code, NoError);
    }
}

pub fn produce_request(
    tp: &TopicPartition,
    transactional_id: Option<TransactionalId>,
    batch: RecordBatch,
    acks: i16,
) -> ProduceRequest {
    let partition = ProducePartition { topic_partition: tp.clone(), topic_id: None, batch };
    ProduceRequest { transactional_id, acks, timeout_ms: 30_000, partitions: vec![partition] }
}

pub fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn values_of(batch: &RecordBatch) -> Vec<(i64, String)> {
    let value = |record: &Record| text(record.value.as_ref().expect("a value"));
    batch.records.iter().map(|record| (batch.offset_of(record), value(record))).collect()
}
