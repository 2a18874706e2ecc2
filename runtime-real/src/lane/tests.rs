//! A lane's threads against librdkafka's own mock of a cluster, which fails on demand.

use super::LaneSettings;
use super::emitter::Emitter;
use super::producer::{Producer, ProducerCommand};
use super::source::{Source, SourceCommand};
use super::store::Held;
use super::watchdog::Watchdog;
use crate::client_config;
use crate::ffi::{AssignedConsumer, Code, Liveness, OwnedMessage, StartAt};
use crate::settings::Settings;
use kafka_types::{SourceOffset, SourcePartition, TargetPartition};
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer as _};
use rdkafka::types::RDKafkaApiKey;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use verbatim_core::batch::BatchId;
use verbatim_core::command::{NewLedgerRecord, Position};
use verbatim_core::config::FlowName;
use verbatim_core::event::{LaneEvent, Refused, Step};
use verbatim_core::failure::{Failure, Refusal, Trouble};
use verbatim_core::{Attempt, LaneId};

const LANE: LaneId = LaneId(0);
const ATTEMPT: Attempt = Attempt(1);
/// Far below what a transaction, and so a record, may last: a minute.
const SOON: Duration = Duration::from_secs(8);

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster() -> Cluster {
    let cluster = MockCluster::new(1).unwrap();
    for topic in ["in", "out", "verbatim.f.ledger.internal"] {
        cluster.create_topic(topic, 1, 1).unwrap();
    }
    cluster
}

fn settings(servers: &str) -> Settings {
    let servers = BTreeMap::from([("bootstrap.servers".to_string(), servers.to_string())]);
    Settings {
        source: servers.clone(),
        target: servers,
        flow: FlowName::new("f").unwrap(),
        lanes: 1,
        instance: None,
        memory_bytes: 64 << 20,
    }
}

/// A lane's producer, initialised.
struct Bench {
    producer: Producer,
    events: UnboundedReceiver<(LaneId, Attempt, LaneEvent)>,
}

impl Bench {
    fn open(cluster: &Cluster) -> Bench {
        let settings = settings(&cluster.bootstrap_servers());
        let lane = LaneSettings {
            ledger: settings.flow.ledger(),
            transactional_id: settings.flow.transactional_id(LANE),
            source_consumer: client_config::source_consumer(&settings, LANE),
            target_reader: client_config::target_reader(&settings, LANE),
            producer: client_config::target_producer(&settings, LANE),
            end_max: client_config::end_transaction_max(&settings),
        };
        let (sender, events) = unbounded_channel();
        let emitter = Emitter::new(LANE, sender);
        let watchdog = Watchdog::start(emitter.clone(), ATTEMPT);
        let producer = Producer::start(&emitter, ATTEMPT, watchdog, Arc::new(lane));
        let mut bench = Bench { producer, events };
        assert_eq!(bench.next(), Some(LaneEvent::Opened));
        bench
    }

    fn send(&self, command: ProducerCommand) {
        self.producer.send(ATTEMPT, command);
    }

    /// What happens next, if anything does soon.
    fn next(&mut self) -> Option<LaneEvent> {
        self.next_within(SOON)
    }

    fn next_within(&mut self, time: Duration) -> Option<LaneEvent> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            match self.events.try_recv() {
                Ok((_, _, event)) => return Some(event),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        None
    }

    fn produce(&self, records: Vec<OwnedMessage>, alone: bool) {
        let partition = SourcePartition::new("in", 0);
        let held = Some(Held { attempt: ATTEMPT, partition, records, bytes: 10 });
        let target = TargetPartition { topic: "out".into(), partition: kafka_types::Partition(0) };
        self.send(ProducerCommand::Produce { batch: BatchId(1), held, target, alone });
    }

    fn settle(&self) {
        let record = NewLedgerRecord { key: b"k".to_vec(), value: b"v".to_vec() };
        self.send(ProducerCommand::Settle(vec![record]));
    }
}

/// Two records as a consumer gives them.
fn records(cluster: &Cluster) -> Vec<OwnedMessage> {
    let servers = cluster.bootstrap_servers();
    let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", &servers).create().unwrap();
    for value in ["a", "b"] {
        producer.send(BaseRecord::<str, str>::to("in").partition(0).key("k").payload(value)).unwrap();
    }
    producer.flush(SOON).unwrap();
    let config = client_config::source_consumer(&settings(&servers), LANE);
    let consumer = AssignedConsumer::new(&config, Liveness::default()).unwrap();
    let start = StartAt { topic: "in", partition: 0, offset: 0, epoch: -1 };
    consumer.assign(std::iter::once(start)).unwrap();
    let (mut records, until) = (Vec::new(), Instant::now() + SOON);
    while records.len() < 2 && Instant::now() < until {
        let seen = consumer.poll(10, Duration::from_millis(100));
        records.extend(seen.into_iter().filter(|message| message.error().is_none()));
    }
    // A cluster that was asked before holds more, and all of it may come at once.
    records.truncate(2);
    assert_eq!(records.len(), 2);
    records
}

fn denied(topic: &str) -> Failure {
    let (resource, operation) = (format!("Topic {topic}"), "Write".into());
    Failure::Fatal(Trouble::NotAuthorized { resource, operation })
}

/// Dooms the next transaction, before any of its records is sent.
fn deny_partitions(cluster: &Cluster) {
    let error = Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    cluster.request_errors(RDKafkaApiKey::AddPartitionsToTxn, &[error]);
}

#[test]
fn what_a_sound_cluster_takes_is_settled() {
    let cluster = cluster();
    let mut bench = Bench::open(&cluster);
    for alone in [false, true] {
        bench.produce(records(&cluster), alone);
        let acknowledged = bench.next();
        assert!(
            matches!(&acknowledged, Some(LaneEvent::Acked(_, Ok(acked))) if acked.acknowledged == 2),
            "{acknowledged:?}"
        );
        bench.settle();
        let settled = bench.next();
        assert!(matches!(settled, Some(LaneEvent::Settled { last: Some(_) })), "{settled:?}");
    }
}

#[test]
fn records_are_given_up_with_their_transaction_whether_alone_or_not() {
    for alone in [true, false] {
        let cluster = cluster();
        let records = records(&cluster);
        let mut bench = Bench::open(&cluster);
        deny_partitions(&cluster);
        bench.produce(records, alone);
        let refused = Refused { refusal: Refusal::Collateral(denied("out")), record: None };
        assert_eq!(bench.next(), Some(LaneEvent::Acked(BatchId(1), Err(refused))), "alone: {alone}");
        bench.send(ProducerCommand::Abort);
        assert_eq!(bench.next(), Some(LaneEvent::Aborted), "alone: {alone}");
    }
}

/// A refusal dooms the transaction a moment before it is reported: it is still the cause that is told.
#[test]
fn a_refused_record_is_named_if_its_batch_is_alone_and_holds_no_other() {
    for (count, alone) in [(1, true), (2, true), (1, false)] {
        let cluster = cluster();
        let records: Vec<_> = records(&cluster).into_iter().take(count).collect();
        let place = records[0].place();
        let mut bench = Bench::open(&cluster);
        cluster.request_errors(RDKafkaApiKey::Produce, &[Code::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE]);
        bench.produce(records, alone);
        match bench.next() {
            Some(LaneEvent::Acked(_, Err(Refused { refusal: Refusal::TooLarge(_), record }))) => {
                assert_eq!(record, (count == 1 && alone).then_some(place), "{count} records, alone: {alone}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn ledger_records_are_given_up_with_their_transaction() {
    let cluster = cluster();
    let mut bench = Bench::open(&cluster);
    deny_partitions(&cluster);
    bench.settle();
    let expected = LaneEvent::Failed(Step::Settle, denied("verbatim.f.ledger.internal"));
    assert_eq!(bench.next(), Some(expected));
}

#[test]
fn a_commit_whose_outcome_is_unknown_is_the_last_that_its_producer_does() {
    let cluster = cluster();
    let mut bench = Bench::open(&cluster);
    // The connection is lost in place of an answer; librdkafka asks again by itself, and reports success.
    cluster.request_errors(RDKafkaApiKey::EndTxn, &[Code::RD_KAFKA_RESP_ERR__TRANSPORT]);
    bench.settle();
    let failed = bench.next();
    assert!(matches!(failed, Some(LaneEvent::Failed(Step::Settle, Failure::Unknown(_)))), "{failed:?}");
    bench.send(ProducerCommand::Abort);
    assert_eq!(bench.next_within(Duration::from_millis(500)), None, "the thread has ended");
}

#[test]
fn an_abandoned_reader_looks_up_at_once() {
    let (sender, _events) = unbounded_channel();
    let emitter = Emitter::new(LANE, sender);
    let config = client_config::source_consumer(&settings("127.0.0.1:1"), LANE);
    let source = Source::start(&emitter, ATTEMPT, Arc::default(), config);
    let partition = SourcePartition::new("in", 0);
    let position =
        Position { partition, offset: SourceOffset(0), last: None, last_record: None, stop_before: None };
    source.send(ATTEMPT, SourceCommand::Assign(vec![position]));
    source.send(ATTEMPT, SourceCommand::Credit { bytes: 1 << 20, batch_max: 1_000 });
    std::thread::sleep(Duration::from_millis(300));
    assert!(source.is_reading());
    emitter.abandon();
    source.wake();
    let since = Instant::now();
    while source.is_reading() {
        assert!(since.elapsed() < Duration::from_millis(300), "it waits for the source");
        std::thread::sleep(Duration::from_millis(1));
    }
}
