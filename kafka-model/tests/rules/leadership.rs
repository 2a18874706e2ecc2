use crate::support::*;
use kafka_model::api::fetch::IsolationLevel::ReadUncommitted;
use kafka_model::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, OffsetSpec};
use kafka_model::api::metadata::{MetadataRequest, MetadataTopics};
use kafka_model::api::offset_for_leader_epoch::{OffsetForLeaderEpochPartition, OffsetForLeaderEpochRequest};
use kafka_model::api::produce::ACKS_ALL;
use kafka_model::{BrokerId, ClusterConfig, LogEvent, Outcome, Response};
use kafka_types::ErrorCode::{
    FencedLeaderEpoch, LeaderNotAvailable, NotLeaderOrFollower, OffsetNotAvailable, OffsetOutOfRange,
    UnknownLeaderEpoch,
};
use kafka_types::{ErrorCode, LeaderEpoch, Record, RecordBatch, TopicPartition};

/// What compaction took because of later records is still with a replica that never had those.
#[test]
fn rule_4_7_a_replica_compacts_by_what_it_has_itself() {
    let mut bench = Bench::with(ClusterConfig::default(), &[("cleanup.policy", "compact")]);
    let t = tp("t", 0);
    let keyed =
        |value: &'static str| RecordBatch::new(vec![Record::new(1, Some("key".into()), Some(value.into()))]);
    bench.append(keyed("old"));
    let behind = bench.followers(&t)[1];
    let replies = bench.cluster.stall_replica(bench.now, &t, behind, true);
    bench.take(replies);
    let superseding = bench.send_produce(&t, keyed("new"), ACKS_ALL);
    bench.wait(60_000);
    assert_eq!(bench.produced(superseding).base_offset, 1);
    let replies = bench.cluster.compact_partition(bench.now, &t);
    bench.take(replies);
    let replies = bench.cluster.unclean_election(bench.now, &t, behind);
    bench.take(replies);
    assert_eq!(bench.committed(&t), ["old"]);
}

fn lagging(delay_ms: i64) -> Bench {
    Bench::with(ClusterConfig { replication_delay_ms: delay_ms, ..ClusterConfig::default() }, &[])
}

/// A follower that holds what was there before the call and nothing that comes after it.
fn leave_behind(bench: &mut Bench, t: &TopicPartition) -> BrokerId {
    let behind = bench.followers(t)[1];
    let replies = bench.cluster.stall_replica(bench.now, t, behind, true);
    bench.take(replies);
    behind
}

fn elect_uncleanly(bench: &mut Bench, t: &TopicPartition, to: BrokerId) {
    let replies = bench.cluster.unclean_election(bench.now, t, to);
    bench.take(replies);
    let replies = bench.cluster.stall_replica(bench.now, t, to, false);
    bench.take(replies);
}

fn list(bench: &mut Bench, t: &TopicPartition, position: OffsetSpec) -> (ErrorCode, i64) {
    let partition = ListOffsetsPartition { topic_partition: t.clone(), current_leader_epoch: None, position };
    let request = ListOffsetsRequest { isolation_level: ReadUncommitted, partitions: vec![partition] };
    let Response::ListOffsets(response) = bench.ask(bench.leader(t), request) else { panic!() };
    (response.partitions[0].error_code, response.partitions[0].offset)
}

#[test]
fn rule_4_5_only_the_leader_answers() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let other = bench.followers(&t)[0];
    let Response::Produce(response) = bench.ask(other, produce_request(&t, None, batch(&["a"]), 1)) else {
        panic!()
    };
    let answer = &response.partitions[0];
    assert_eq!(answer.error_code, NotLeaderOrFollower);
    assert_eq!(answer.current_leader, Some((bench.leader(&t), LeaderEpoch(0))));
}

#[test]
fn rule_4_5_leader_epochs_are_fenced_or_unknown() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let to = bench.followers(&t)[0];
    let replies = bench.cluster.move_leader(bench.now, &t, to);
    bench.take(replies);
    for (epoch, error) in [(0, FencedLeaderEpoch), (1, NoError), (2, UnknownLeaderEpoch)] {
        let mut request = bench.fetch_request(&t, 0, ReadUncommitted);
        request.partitions[0].current_leader_epoch = Some(LeaderEpoch(epoch));
        assert_eq!(bench.fetch_with(request).error_code, error, "epoch {epoch}");
    }
}

#[test]
fn rule_4_5_consumers_never_see_past_the_high_watermark() {
    let mut bench = lagging(40);
    let t = tp("t", 0);
    bench.send_produce(&t, batch(&["a"]), 1);
    let answer = bench.fetch(&t, 0, ReadUncommitted);
    assert_eq!((answer.high_watermark, answer.records.len()), (0, 0));
    // Between high watermark and log end there is nothing to read and no error.
    assert_eq!(bench.fetch(&t, 1, ReadUncommitted).error_code, NoError);
    assert_eq!(bench.fetch(&t, 2, ReadUncommitted).error_code, OffsetOutOfRange);
    bench.wait(40);
    assert_eq!(bench.fetch(&t, 0, ReadUncommitted).records.len(), 1);
}

#[test]
fn rule_4_5_a_new_leaders_high_watermark_lags() {
    let mut bench = lagging(40);
    let t = tp("t", 0);
    bench.send_produce(&t, batch(&["a"]), ACKS_ALL);
    bench.wait(40);
    assert_eq!(bench.cluster.partition_view(&t).expect("t").high_watermark, 1);
    // The followers have the record and have not heard of the high watermark, nor the new leader of them.
    let to = bench.followers(&t)[0];
    let replies = bench.cluster.move_leader(bench.now, &t, to);
    bench.take(replies);
    let view = bench.cluster.partition_view(&t).expect("t");
    assert_eq!((view.log_end_offset, view.high_watermark, view.replicated_offset), (1, 0, 1));
    assert!(bench.fetch(&t, 0, ReadUncommitted).records.is_empty(), "what was visible is not for a while");
    assert_eq!(list(&mut bench, &t, OffsetSpec::Latest), (OffsetNotAvailable, -1));
    bench.wait(40);
    assert_eq!(list(&mut bench, &t, OffsetSpec::Latest), (NoError, 1));
}

#[test]
fn rule_4_5_offsets_are_not_available_until_the_high_watermark_reaches_the_epoch() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    bench.append(batch(&["a"]));
    let followers = bench.followers(&t);
    let replies = bench.cluster.stall_replica(bench.now, &t, followers[1], true);
    bench.take(replies);
    bench.send_produce(&t, batch(&["b"]), 1);
    // followers[0] has two records, followers[1] one, and both are in sync: the high watermark stands at one.
    let replies = bench.cluster.move_leader(bench.now, &t, followers[0]);
    bench.take(replies);
    assert_eq!(list(&mut bench, &t, OffsetSpec::Latest), (OffsetNotAvailable, -1));
    assert_eq!(list(&mut bench, &t, OffsetSpec::Earliest), (NoError, 0));
    let replies = bench.cluster.stall_replica(bench.now, &t, followers[1], false);
    bench.take(replies);
    assert_eq!(list(&mut bench, &t, OffsetSpec::Latest), (NoError, 2));
}

#[test]
fn rule_4_5_clean_election_keeps_what_all_acknowledged() {
    let mut bench = lagging(40);
    let t = tp("t", 0);
    let acknowledged = bench.send_produce(&t, batch(&["kept"]), ACKS_ALL);
    bench.wait(100);
    assert_eq!(bench.produced(acknowledged).error_code, NoError);
    let lost = bench.send_produce(&t, batch(&["lost"]), ACKS_ALL);
    let leader = bench.leader(&t);
    let replies = bench.cluster.crash_broker(bench.now, leader);
    bench.take(replies);
    assert_eq!(bench.outcome(lost), Some(&Outcome::ConnectionClosed));
    assert_eq!(bench.committed(&t), ["kept"]);
    assert!(bench.cluster.log_events(&t).contains(&LogEvent::Truncated { to: 1 }));
    // The old leader comes back, cuts its tail off and follows.
    let replies = bench.cluster.restart_broker(bench.now, leader);
    bench.take(replies);
    bench.wait(100);
    let replies = bench.cluster.move_leader(bench.now, &t, leader);
    bench.take(replies);
    assert_eq!(bench.committed(&t), ["kept"]);
}

#[test]
fn rule_4_5_a_waiting_produce_learns_that_the_leader_moved() {
    let mut bench = lagging(1_000);
    let t = tp("t", 0);
    let pending = bench.send_produce(&t, batch(&["a"]), ACKS_ALL);
    let to = bench.followers(&t)[0];
    let replies = bench.cluster.move_leader(bench.now, &t, to);
    bench.take(replies);
    assert_eq!(bench.produced(pending).error_code, NotLeaderOrFollower);
}

#[test]
fn rule_4_5_without_an_in_sync_replica_nobody_leads() {
    let mut bench = Bench::new();
    bench.create("alone", 1, 1, &[]);
    let alone = tp("alone", 0);
    let leader = bench.leader(&alone);
    bench.send_produce(&alone, batch(&["a"]), 1);
    let replies = bench.cluster.crash_broker(bench.now, leader);
    bench.take(replies);
    let other = bench.cluster.broker_ids().find(|(_, alive)| *alive).expect("alive").0;
    let request = MetadataRequest {
        topics: MetadataTopics::Named(vec!["alone".into()]),
        allow_auto_topic_creation: false,
    };
    let Response::Metadata(response) = bench.ask(other, request) else { panic!() };
    assert_eq!(response.topics[0].partitions[0].error_code, LeaderNotAvailable);
    let token = bench.send(leader, produce_request(&alone, None, batch(&["b"]), 1));
    assert_eq!(bench.outcome(token), Some(&Outcome::ConnectionClosed));
    let replies = bench.cluster.restart_broker(bench.now, leader);
    bench.take(replies);
    assert_eq!(bench.committed(&alone), ["a"]);
}

#[test]
fn rule_4_5_failover_takes_its_time() {
    let mut bench = Bench::with(ClusterConfig { failover_ms: 9_000, ..ClusterConfig::default() }, &[]);
    let t = tp("t", 0);
    let dead = bench.leader(&t);
    let replies = bench.cluster.crash_broker(bench.now, dead);
    bench.take(replies);
    assert_eq!(bench.leader(&t), dead, "nobody has noticed yet");
    bench.wait(9_000);
    assert!(bench.leader(&t) != dead);
}

#[test]
fn rule_4_5_unclean_election_truncates_committed_records() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    bench.append(batch(&["a"]));
    let behind = leave_behind(&mut bench, &t);
    let pending = bench.send_produce(&t, batch(&["b", "c"]), ACKS_ALL);
    assert_eq!(bench.outcome(pending), None, "the laggard is awaited until it is out of sync");
    bench.wait(30_000);
    assert_eq!(bench.produced(pending).base_offset, 1);
    assert_eq!(bench.committed(&t), ["a", "b", "c"]);
    elect_uncleanly(&mut bench, &t, behind);
    assert_eq!(bench.committed(&t), ["a"]);
    assert_eq!(bench.fetch(&t, 3, ReadUncommitted).error_code, OffsetOutOfRange);
    // The log grows again: other records at the same offsets, and only the epoch tells.
    bench.append(batch(&["x", "y", "z"]));
    assert_eq!(bench.fetch(&t, 3, ReadUncommitted).error_code, NoError);
    let mut request = bench.fetch_request(&t, 3, ReadUncommitted);
    request.partitions[0].last_fetched_epoch = Some(LeaderEpoch(0));
    let answer = bench.fetch_with(request);
    assert_eq!(answer.diverging_epoch, Some((LeaderEpoch(0), 1)));
    assert!(answer.records.is_empty());
}

#[test]
fn rule_4_5_offset_for_leader_epoch_tells_where_the_old_leader_ended() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    bench.append(batch(&["a"]));
    let behind = leave_behind(&mut bench, &t);
    bench.send_produce(&t, batch(&["b"]), 1);
    elect_uncleanly(&mut bench, &t, behind);
    bench.append(batch(&["x", "y"]));
    let partition = |epoch| OffsetForLeaderEpochPartition {
        topic_partition: t.clone(),
        current_leader_epoch: None,
        leader_epoch: LeaderEpoch(epoch),
    };
    let request = OffsetForLeaderEpochRequest { partitions: [0, 1, 2].map(partition).to_vec() };
    let Response::OffsetForLeaderEpoch(response) = bench.ask(bench.leader(&t), request) else { panic!() };
    let ends: Vec<_> = response.partitions.iter().map(|it| (it.leader_epoch, it.end_offset)).collect();
    assert_eq!(ends, [(Some(LeaderEpoch(0)), 1), (Some(LeaderEpoch(1)), 3), (None, -1)]);
}

#[test]
fn rule_4_5_an_old_leader_may_bring_its_own_records_back() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let first = bench.leader(&t);
    let behind = leave_behind(&mut bench, &t);
    bench.send_produce(&t, batch(&["old 0", "old 1"]), 1);
    let replies = bench.cluster.crash_broker(bench.now, first);
    bench.take(replies);
    elect_uncleanly(&mut bench, &t, behind);
    let other = bench.followers(&t).into_iter().find(|id| *id != first).expect("a third");
    let replies = bench.cluster.crash_broker(bench.now, other);
    bench.take(replies);
    bench.send_produce(&t, batch(&["new 0"]), 1);
    let replies = bench.cluster.crash_broker(bench.now, behind);
    bench.take(replies);
    let replies = bench.cluster.restart_broker(bench.now, first);
    bench.take(replies);
    elect_uncleanly(&mut bench, &t, first);
    assert_eq!(bench.committed(&t), ["old 0", "old 1"]);
    let epochs: Vec<_> = bench.cluster.fates(&t, 0).iter().map(|(it, _)| it.leader_epoch).collect();
    assert_eq!(epochs, [Some(LeaderEpoch(0))]);
}
