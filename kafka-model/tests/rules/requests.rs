use crate::support::*;
use kafka_model::api::configs::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};
use kafka_model::api::create_partitions::CreatePartitionsRequest;
use kafka_model::api::create_topics::{CreateTopicsRequest, NewTopic};
use kafka_model::api::delete_topics::{DeleteTopicsRequest, TopicToDelete};
use kafka_model::api::describe_producers::DescribeProducersRequest;
use kafka_model::api::fetch::IsolationLevel::ReadUncommitted;
use kafka_model::api::find_coordinator::FindCoordinatorRequest;
use kafka_model::api::init_producer_id::InitProducerIdRequest;
use kafka_model::api::metadata::{MetadataRequest, MetadataTopics};
use kafka_model::api::produce::ACKS_ALL;
use kafka_model::{
    BrokerId, ClientId, ClusterConfig, CoordinatorKind, Outcome, Resource, Response, TransactionalId,
};
use kafka_types::ErrorCode::{
    ClusterAuthorizationFailed, GroupAuthorizationFailed, InvalidConfig, InvalidPartitions,
    InvalidReplicationFactor, InvalidRequiredAcks, InvalidTopicException, InvalidTransactionTimeout,
    NotCoordinator, TopicAlreadyExists, TransactionalIdAuthorizationFailed, UnknownTopicOrPartition,
};
use kafka_types::{ErrorCode, TopicName};
use std::hash::{DefaultHasher, Hash, Hasher};

const ANY: BrokerId = BrokerId(1);

fn create(bench: &mut Bench, name: &str, partitions: i32, replicas: i16, config: (&str, &str)) -> ErrorCode {
    let topic = NewTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: replicas,
        configs: vec![(config.0.into(), config.1.into())],
    };
    let request = CreateTopicsRequest { topics: vec![topic], validate_only: false };
    let Response::CreateTopics(response) = bench.ask(ANY, request) else { panic!() };
    response.topics[0].error_code
}

#[test]
fn create_topics_refuses_what_kafka_refuses() {
    let mut bench = Bench::new();
    let fine = ("retention.ms", "1000");
    for (name, partitions, replicas, config, error) in [
        ("t", 1, 1, fine, TopicAlreadyExists),
        ("not legal", 1, 1, fine, InvalidTopicException),
        ("a", 0, 1, fine, InvalidPartitions),
        ("a", -2, 1, fine, InvalidPartitions),
        ("a", 1, 0, fine, InvalidReplicationFactor),
        ("a", 1, 4, fine, InvalidReplicationFactor),
        ("a", 1, 1, ("no.such.setting", "1"), InvalidConfig),
        ("a", 1, 1, ("retention.ms", "soon"), InvalidConfig),
        ("a", 1, 1, ("cleanup.policy", "shred"), InvalidConfig),
        ("a.b", -1, -1, fine, NoError),
        ("a_b", 1, 1, fine, InvalidTopicException),
    ] {
        assert_eq!(create(&mut bench, name, partitions, replicas, config), error, "{name} {config:?}");
    }
}

#[test]
fn topics_grow_and_never_shrink() {
    let mut bench = Bench::new();
    for (count, error) in
        [(3, NoError), (3, InvalidPartitions), (2, InvalidPartitions), (-1, InvalidPartitions)]
    {
        let request = CreatePartitionsRequest { topics: vec![("t".into(), count)], validate_only: false };
        let Response::CreatePartitions(response) = bench.ask(ANY, request) else { panic!() };
        assert_eq!(response.topics[0].1, error, "{count}");
    }
    assert_eq!(bench.produce(&tp("t", 2), batch(&["a"])).error_code, NoError);
    let token = bench.send(ANY, produce_request(&tp("t", 3), None, batch(&["a"]), 1));
    assert_eq!(bench.produced(token).error_code, UnknownTopicOrPartition);
}

#[test]
fn metadata_names_ids_leaders_and_replicas() {
    let mut bench = Bench::new();
    let id = bench.cluster.topic_id(&"t".into()).expect("t");
    let mut ask = |topics, allow_auto_topic_creation| {
        let request = MetadataRequest { topics, allow_auto_topic_creation };
        let Response::Metadata(response) = bench.ask(ANY, request) else { panic!() };
        response
    };
    let named = |name: &str| MetadataTopics::Named(vec![TopicName::from(name)]);
    let response = ask(MetadataTopics::All, false);
    assert_eq!((response.brokers.len(), response.topics.len()), (3, 1));
    assert_eq!(response.topics[0].topic_id, Some(id));
    assert_eq!(response.topics[0].partitions[0].replicas.len(), 3);
    assert_eq!(ask(MetadataTopics::Ids(vec![id]), false).topics[0].name, Some("t".into()));
    assert_eq!(ask(named("none"), false).topics[0].error_code, UnknownTopicOrPartition);
    assert_eq!(ask(named("not legal"), true).topics[0].error_code, InvalidTopicException);
    assert_eq!(ask(named("made"), true).topics[0].error_code, NoError);
}

#[test]
fn settings_are_described_as_they_were_given() {
    let mut bench =
        Bench::with(ClusterConfig::default(), &[("max.compaction.lag.ms", "5"), ("retention.ms", "-1")]);
    let describe = |bench: &mut Bench| {
        let Response::DescribeConfigs(mut response) =
            bench.ask(ANY, DescribeConfigsRequest { topics: vec!["t".into()] })
        else {
            panic!()
        };
        response.topics.remove(0).configs
    };
    let configs = describe(&mut bench);
    for (name, value) in [
        ("max.compaction.lag.ms", "5"),
        ("retention.ms", "-1"),
        ("cleanup.policy", "delete"),
        ("min.cleanable.dirty.ratio", "0.5"),
        ("unclean.leader.election.enable", "false"),
        ("message.timestamp.type", "CreateTime"),
        ("max.message.bytes", "1048588"),
    ] {
        assert_eq!(configs.get(name).map(String::as_str), Some(value), "{name}");
    }
    let configs =
        vec![("cleanup.policy".into(), Some("compact,delete".into())), ("retention.ms".into(), None)];
    bench.ask(ANY, IncrementalAlterConfigsRequest { topic: "t".into(), configs });
    assert_eq!(describe(&mut bench)["cleanup.policy"], "compact,delete");
    assert_eq!(describe(&mut bench)["retention.ms"], "604800000");
}

#[test]
fn fetch_waits_for_bytes_or_for_its_time() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let mut request = bench.fetch_request(&t, 0, ReadUncommitted);
    request.max_wait_ms = 500;
    let leader = bench.leader(&t);
    let waiting = bench.send(leader, request.clone());
    assert_eq!(bench.outcome(waiting), None);
    bench.append(batch(&["a"]));
    let Response::Fetch(response) = bench.response(waiting) else { panic!() };
    assert_eq!(response.partitions[0].records.len(), 1);
    request.min_bytes = 1 << 20;
    let waiting = bench.send(leader, request);
    assert_eq!(bench.cluster.next_deadline(), Some(bench.now + 500));
    bench.append(batch(&["b"]));
    assert_eq!(bench.outcome(waiting), None);
    bench.wait(500);
    let Response::Fetch(response) = bench.response(waiting) else { panic!() };
    assert_eq!(response.partitions[0].records.len(), 2);
}

#[test]
fn fetch_sizes_bound_batches_and_let_one_pass() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let size = batch(&["a"]).size_bytes;
    for _ in 0..4 {
        bench.append(batch(&["a"]));
    }
    for (max_bytes, partition_max_bytes, expected) in
        [(1 << 20, 2 * size, 2), (3 * size + 1, 1 << 20, 3), (1, 1, 1), (1 << 20, 0, 1)]
    {
        let mut request = bench.fetch_request(&t, 0, ReadUncommitted);
        request.max_bytes = max_bytes;
        request.partitions[0].partition_max_bytes = partition_max_bytes;
        assert_eq!(bench.fetch_with(request).records.len(), expected);
    }
}

#[test]
fn acks_zero_is_answered_by_silence_or_a_hang_up() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let fine = bench.send_produce(&t, batch(&["a"]), 0);
    assert_eq!(bench.outcome(fine), None);
    assert_eq!(bench.committed(&t), ["a"]);
    let other = bench.followers(&t)[0];
    let wrong = bench.send(other, produce_request(&t, None, batch(&["a"]), 0));
    assert_eq!(bench.outcome(wrong), Some(&Outcome::ConnectionClosed));
    let token = bench.send_produce(&t, batch(&["a"]), 2);
    assert_eq!(bench.produced(token).error_code, InvalidRequiredAcks);
}

#[test]
fn quotas_are_a_throttle_time_on_every_response() {
    let mut bench = Bench::new();
    bench.cluster.throttle(ClientId::from("client"), 2_000);
    let token = bench.send_produce(&tp("t", 0), batch(&["a"]), ACKS_ALL);
    assert_eq!(bench.replies[&token].throttle_time_ms, 2_000);
    bench.cluster.throttle(ClientId::from("client"), 0);
    let token = bench.send_produce(&tp("t", 0), batch(&["a"]), ACKS_ALL);
    assert_eq!(bench.replies[&token].throttle_time_ms, 0);
}

#[test]
fn coordinators_are_found_and_others_say_so() {
    let mut bench = Bench::new();
    let keys = vec!["tx".to_owned(), "other".to_owned()];
    let request = FindCoordinatorRequest { kind: CoordinatorKind::Transaction, keys };
    let Response::FindCoordinator(response) = bench.ask(ANY, request) else { panic!() };
    assert_eq!(response.coordinators[0].broker, Some(bench.coordinator("tx")));
    let request = |timeout| kafka_model::api::init_producer_id::InitProducerIdRequest {
        transactional_id: Some("tx".into()),
        transaction_timeout_ms: timeout,
        producer_id: -1,
        producer_epoch: -1,
    };
    let right = bench.coordinator("tx");
    let wrong = BrokerId(right.0 % 3 + 1);
    for (broker, timeout, error) in [
        (wrong, 1_000, NotCoordinator),
        (right, 900_001, InvalidTransactionTimeout),
        (right, 900_000, NoError),
    ] {
        let Response::InitProducerId(response) = bench.ask(broker, request(timeout)) else { panic!() };
        assert_eq!(response.error_code, error);
    }
}

#[test]
fn producers_are_described() {
    let mut bench = Bench::new();
    let identity = bench.init();
    bench.write(identity, &tp("t", 0), 0, "a");
    let request = DescribeProducersRequest { partitions: vec![tp("t", 0)] };
    let Response::DescribeProducers(response) = bench.ask(bench.leader(&tp("t", 0)), request) else {
        panic!()
    };
    let producer = &response.partitions[0].active_producers[0];
    assert_eq!((producer.producer_id, producer.last_sequence), (identity.0, 0));
    assert_eq!(producer.current_transaction_start_offset, 0);
}

fn hash_of(bench: &Bench) -> u64 {
    let mut hasher = DefaultHasher::new();
    bench.cluster.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn equal_clusters_told_the_same_stay_equal() {
    let story = |bench: &mut Bench| {
        let identity = bench.init();
        bench.write(identity, &tp("t", 0), 0, "a");
        let leader = bench.leader(&tp("t", 0));
        let replies = bench.cluster.crash_broker(bench.now, leader);
        bench.take(replies);
        bench.wait(100_000);
        bench.ask(BrokerId(2), DeleteTopicsRequest { topics: vec![TopicToDelete::Named("t".into())] });
    };
    let (mut one, mut two) = (Bench::new(), Bench::new());
    story(&mut one);
    assert!(one.cluster != two.cluster);
    story(&mut two);
    assert!(one.cluster == two.cluster && hash_of(&one) == hash_of(&two));
    // A clone goes its own way.
    let before = one.cluster.clone();
    one.wait(1);
    assert!(one.cluster != before && before == two.cluster);
}

#[test]
fn an_oracle_can_forget_what_it_has_seen() {
    let mut bench = Bench::new();
    let identity = bench.init();
    bench.write(identity, &tp("t", 0), 0, "a");
    assert_eq!(bench.end(identity, Commit), NoError);
    let next = bench.cluster.decisions().next_number();
    bench.cluster.decisions_mut().forget_before(next);
    assert!(bench.cluster.decisions().since(0).is_empty());
    assert_eq!(bench.cluster.history_mut().take().len(), 1);
    bench.write(identity, &tp("t", 0), 1, "b");
    assert_eq!(bench.end(identity, Abort), NoError);
    assert_eq!(bench.cluster.decisions().since(next)[0].number, next);
    assert_eq!(bench.cluster.log_events(&tp("t", 0)).len(), 2);
}

#[test]
fn rights_are_looked_at_before_anything_else() {
    let mut bench = Bench::new();
    let find = |bench: &mut Bench, kind, key: &str| {
        let request = FindCoordinatorRequest { kind, keys: vec![key.to_owned()] };
        let Response::FindCoordinator(found) = bench.ask(ANY, request) else { panic!() };
        found.coordinators[0].error_code
    };
    let (now, lane) = (bench.now, TransactionalId::from("lane"));
    for resource in [Resource::Cluster, Resource::Group("g".into()), Resource::TransactionalId(lane)] {
        bench.cluster.deny(now, resource, true);
    }
    assert_eq!(find(&mut bench, CoordinatorKind::Group, "g"), GroupAuthorizationFailed);
    assert_eq!(find(&mut bench, CoordinatorKind::Group, "h"), NoError);
    assert_eq!(find(&mut bench, CoordinatorKind::Transaction, "lane"), TransactionalIdAuthorizationFailed);
    let init = |bench: &mut Bench, id: Option<&str>| {
        let request = InitProducerIdRequest {
            transactional_id: id.map(TransactionalId::from),
            transaction_timeout_ms: 1_000,
            producer_id: -1,
            producer_epoch: -1,
        };
        let broker = id.map_or(ANY, |id| bench.coordinator(id));
        let Response::InitProducerId(answer) = bench.ask(broker, request) else { panic!() };
        answer.error_code
    };
    assert_eq!(init(&mut bench, None), ClusterAuthorizationFailed);
    assert_eq!(init(&mut bench, Some("lane")), TransactionalIdAuthorizationFailed);
    assert_eq!(init(&mut bench, Some("other")), NoError);
    bench.cluster.deny(now, Resource::Cluster, false);
    assert_eq!(init(&mut bench, None), NoError);
}
