use crate::support::*;
use kafka_model::api::add_offsets_to_txn::AddOffsetsToTxnRequest;
use kafka_model::api::offset_commit::{OffsetCommitRequest, OffsetToCommit};
use kafka_model::api::offset_fetch::{FetchedOffset, OffsetFetchRequest};
use kafka_model::api::txn_offset_commit::TxnOffsetCommitRequest;
use kafka_model::group::Committer;
use kafka_model::{BrokerId, ClusterConfig, CoordinatorKind, Response};
use kafka_types::ErrorCode::{
    self, IllegalGeneration, InvalidProducerEpoch, InvalidTxnState, OffsetMetadataTooLarge,
    UnknownTopicOrPartition, UnstableOffsetCommit,
};
use kafka_types::TopicPartition;

pub fn group_coordinator(bench: &Bench) -> BrokerId {
    bench.cluster.coordinator(CoordinatorKind::Group, "g").expect("a coordinator")
}

pub fn offset_of(t: &TopicPartition, offset: i64) -> OffsetToCommit {
    OffsetToCommit { topic_partition: t.clone(), offset, leader_epoch: None, metadata: String::new() }
}

pub fn commit_as(bench: &mut Bench, committer: Committer, offset: OffsetToCommit) -> ErrorCode {
    let request = OffsetCommitRequest { group_id: "g".into(), committer, offsets: vec![offset] };
    let Response::OffsetCommit(response) = bench.ask(group_coordinator(bench), request) else { panic!() };
    response.partitions[0].1
}

fn commit(bench: &mut Bench, offset: i64) -> ErrorCode {
    commit_as(bench, Committer::nobody(), offset_of(&tp("t", 0), offset))
}

fn fetch(bench: &mut Bench, require_stable: bool) -> FetchedOffset {
    let partitions = Some(vec![tp("t", 0)]);
    let request = OffsetFetchRequest { group_id: "g".into(), partitions, require_stable };
    let Response::OffsetFetch(response) = bench.ask(group_coordinator(bench), request) else { panic!() };
    response.partitions[0].clone()
}

fn add_offsets(bench: &mut Bench, (producer_id, producer_epoch): Identity) -> ErrorCode {
    let request = AddOffsetsToTxnRequest {
        transactional_id: "tx".into(),
        producer_id,
        producer_epoch,
        group_id: "g".into(),
    };
    let Response::AddOffsetsToTxn(response) = bench.ask(bench.coordinator("tx"), request) else { panic!() };
    response.error_code
}

fn commit_in_transaction(
    bench: &mut Bench,
    (producer_id, producer_epoch): Identity,
    committer: Committer,
    topic: &str,
    offset: i64,
) -> ErrorCode {
    let request = TxnOffsetCommitRequest {
        transactional_id: "tx".into(),
        group_id: "g".into(),
        producer_id,
        producer_epoch,
        committer,
        offsets: vec![offset_of(&tp(topic, 0), offset)],
    };
    let Response::TxnOffsetCommit(response) = bench.ask(group_coordinator(bench), request) else { panic!() };
    response.partitions[0].1
}

/// An offset that a transaction holds.
pub fn commit_pending(bench: &mut Bench, identity: Identity) {
    assert_eq!(add_offsets(bench, identity), NoError);
    assert_eq!(commit_in_transaction(bench, identity, Committer::nobody(), "t", 9), NoError);
}

#[test]
fn rule_4_3_generation_minus_one_commits_to_an_empty_group() {
    let mut bench = Bench::new();
    assert_eq!(commit(&mut bench, 5), NoError);
    assert_eq!(fetch(&mut bench, true).committed_offset, 5);
    let member = Committer { generation_id: 3, member_id: "m".into(), group_instance_id: None };
    assert_eq!(commit_as(&mut bench, member.clone(), offset_of(&tp("t", 0), 6)), ErrorCode::UnknownMemberId);
    let mut bench = Bench::new();
    assert_eq!(commit_as(&mut bench, member, offset_of(&tp("t", 0), 6)), IllegalGeneration, "no such group");
}

#[test]
fn rule_4_3_offsets_are_of_partitions_that_exist() {
    let mut bench = Bench::new();
    let nobody = Committer::nobody();
    assert_eq!(commit_as(&mut bench, nobody.clone(), offset_of(&tp("none", 0), 1)), UnknownTopicOrPartition);
    let mut long = offset_of(&tp("t", 0), 1);
    long.metadata = "x".repeat(4097);
    assert_eq!(commit_as(&mut bench, nobody, long), OffsetMetadataTooLarge);
    assert_eq!(fetch(&mut bench, false).committed_offset, -1);
}

#[test]
fn rule_4_3_pending_offsets_are_unstable_until_the_marker() {
    let mut bench = Bench::with(ClusterConfig { marker_delay_ms: 50, ..ClusterConfig::default() }, &[]);
    assert_eq!(commit(&mut bench, 5), NoError);
    let identity = bench.init();
    assert_eq!(add_offsets(&mut bench, identity), NoError);
    assert_eq!(commit_in_transaction(&mut bench, identity, Committer::nobody(), "t", 9), NoError);
    assert_eq!(fetch(&mut bench, true).error_code, UnstableOffsetCommit);
    assert_eq!(fetch(&mut bench, false).committed_offset, 5);
    assert_eq!(bench.end(identity, Commit), NoError);
    assert_eq!(fetch(&mut bench, true).error_code, UnstableOffsetCommit, "decided, and not written");
    bench.wait(50);
    assert_eq!(fetch(&mut bench, true).committed_offset, 9);
}

#[test]
fn rule_4_3_offsets_of_an_aborted_transaction_are_gone() {
    let mut bench = Bench::new();
    let identity = bench.init();
    assert_eq!(add_offsets(&mut bench, identity), NoError);
    assert_eq!(commit_in_transaction(&mut bench, identity, Committer::nobody(), "t", 9), NoError);
    assert_eq!(bench.end(identity, Abort), NoError);
    assert_eq!(fetch(&mut bench, true).committed_offset, -1);
}

#[test]
fn rule_4_3_txn_offset_commit_is_for_topics_of_this_cluster() {
    let mut bench = Bench::new();
    let identity = bench.init();
    assert_eq!(add_offsets(&mut bench, identity), NoError);
    let error = commit_in_transaction(&mut bench, identity, Committer::nobody(), "source-only", 9);
    assert_eq!(error, UnknownTopicOrPartition);
}

#[test]
fn rule_4_3_txn_offset_commit_is_verified_and_fenced() {
    let mut bench = Bench::new();
    let zombie = bench.init();
    let nobody = Committer::nobody();
    for (version, error) in [(3, InvalidTxnState), (4, ErrorCode::TransactionAbortable)] {
        bench.api_version = version;
        assert_eq!(commit_in_transaction(&mut bench, zombie, nobody.clone(), "t", 9), error);
    }
    let identity = bench.init();
    assert_eq!(add_offsets(&mut bench, identity), NoError);
    assert_eq!(commit_in_transaction(&mut bench, zombie, nobody.clone(), "t", 9), InvalidProducerEpoch);
    assert_eq!(commit_in_transaction(&mut bench, identity, nobody, "t", 9), NoError);
    let unknown = Committer { generation_id: 3, member_id: "m".into(), group_instance_id: None };
    assert_eq!(commit_in_transaction(&mut bench, identity, unknown, "t", 9), ErrorCode::UnknownMemberId);
}

#[test]
fn rule_4_3_offsets_of_an_empty_group_expire() {
    let mut bench = Bench::new();
    assert_eq!(commit(&mut bench, 5), NoError);
    bench.wait(6 * 24 * 3_600_000);
    assert_eq!(fetch(&mut bench, true).committed_offset, 5);
    bench.wait(2 * 24 * 3_600_000);
    assert_eq!(fetch(&mut bench, true).committed_offset, -1);

    assert_eq!(commit(&mut bench, 6), NoError);
    bench.cluster.expire_offsets(&"g".into());
    assert_eq!(fetch(&mut bench, true).committed_offset, -1);
}

#[test]
fn rule_4_3_offsets_survive_their_coordinator() {
    let mut bench = Bench::new();
    assert_eq!(commit(&mut bench, 5), NoError);
    let coordinator = group_coordinator(&bench);
    let replies = bench.cluster.crash_broker(bench.now, coordinator);
    bench.take(replies);
    assert!(group_coordinator(&bench) != coordinator);
    assert_eq!(fetch(&mut bench, true).committed_offset, 5);
}

#[test]
fn rule_4_3_deleted_topics_take_their_offsets_along() {
    use kafka_model::api::delete_topics::{DeleteTopicsRequest, TopicToDelete};
    let mut bench = Bench::new();
    assert_eq!(commit(&mut bench, 5), NoError);
    bench.ask(BrokerId(1), DeleteTopicsRequest { topics: vec![TopicToDelete::Named("t".into())] });
    bench.create("t", 1, 3, &[]);
    assert_eq!(fetch(&mut bench, true).committed_offset, -1);
}
