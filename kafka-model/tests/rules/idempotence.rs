use crate::support::*;
use kafka_model::api::produce::ACKS_ALL;
use kafka_model::{ClusterConfig, Outcome};
use kafka_types::ErrorCode::{
    self, InvalidProducerEpoch, InvalidTxnState, NotEnoughReplicas, NotEnoughReplicasAfterAppend,
    OutOfOrderSequenceNumber, RequestTimedOut,
};

/// A batch of one producer, as epoch, first sequence and count of records, with what the broker says to it.
type Step = ((i16, i32, usize), (ErrorCode, i64));

#[track_caller]
fn check(steps: &[Step]) {
    let mut bench = Bench::new();
    for (place, ((epoch, first, count), expected)) in steps.iter().enumerate() {
        let answer = bench.append(sequenced((7, *epoch), *first, *count));
        assert_eq!(answer, *expected, "step {place}: epoch {epoch}, sequence {first}, {count} records");
    }
}

#[test]
fn rule_4_1_same_epoch_goes_on_at_last_plus_one() {
    check(&[
        ((0, 0, 3), (NoError, 0)),
        ((0, 3, 2), (NoError, 3)),
        ((0, 6, 1), (OutOfOrderSequenceNumber, -1)),
    ]);
}

#[test]
fn rule_4_1_sequence_wraps_to_zero() {
    let last = i32::MAX;
    check(&[((0, last, 1), (NoError, 0)), ((0, 0, 1), (NoError, 1)), ((0, 1, 1), (NoError, 2))]);
    check(&[((0, last, 2), (NoError, 0)), ((0, 1, 1), (NoError, 2))]);
}

#[test]
fn rule_4_1_older_epoch_is_invalid() {
    check(&[((3, 0, 1), (NoError, 0)), ((2, 1, 1), (InvalidProducerEpoch, -1))]);
}

#[test]
fn rule_4_1_new_epoch_starts_at_sequence_zero() {
    check(&[
        ((0, 0, 1), (NoError, 0)),
        ((1, 1, 1), (OutOfOrderSequenceNumber, -1)),
        ((1, 0, 1), (NoError, 1)),
    ]);
}

#[test]
fn rule_4_1_exact_duplicate_gets_its_first_offset_and_no_append() {
    check(&[
        ((0, 0, 2), (NoError, 0)),
        ((0, 2, 2), (NoError, 2)),
        ((0, 0, 2), (NoError, 0)),
        ((0, 4, 1), (NoError, 4)),
    ]);
}

#[test]
fn rule_4_1_five_batches_are_remembered() {
    let mut steps: Vec<_> = (0..6).map(|n| ((0, n, 1), (NoError, i64::from(n)))).collect();
    steps.push(((0, 1, 1), (NoError, 1)));
    steps.push(((0, 0, 1), (OutOfOrderSequenceNumber, -1)));
    check(&steps);
}

#[test]
fn rule_4_1_rebatched_overlap_is_out_of_order() {
    check(&[
        ((0, 0, 2), (NoError, 0)),
        ((0, 2, 2), (NoError, 2)),
        ((0, 0, 4), (OutOfOrderSequenceNumber, -1)),
        ((0, 3, 2), (OutOfOrderSequenceNumber, -1)),
    ]);
}

#[test]
fn rule_4_1_duplicates_are_found_before_the_epoch_is_checked() {
    // An exact duplicate of the current epoch, then of an older one, whose batches are forgotten.
    check(&[
        ((0, 0, 1), (NoError, 0)),
        ((1, 0, 1), (NoError, 1)),
        ((1, 0, 1), (NoError, 1)),
        ((0, 0, 1), (InvalidProducerEpoch, -1)),
    ]);
}

#[test]
fn rule_4_1_without_state_any_sequence_is_accepted() {
    check(&[((0, 41, 1), (NoError, 0)), ((0, 42, 1), (NoError, 1))]);
}

#[test]
fn rule_4_1_expired_state_lets_a_late_retry_duplicate() {
    let mut bench = Bench::new();
    assert_eq!(bench.append(sequenced((7, 0), 0, 1)), (NoError, 0));
    // Timestamps of long ago: the state is idle from the start, and the next check finds it.
    bench.wait(10 * 60_000 + 24 * 3_600_000);
    assert_eq!(bench.append(sequenced((7, 0), 0, 1)), (NoError, 1));

    let mut bench = Bench::new();
    assert_eq!(bench.append(sequenced((7, 0), 0, 1)), (NoError, 0));
    bench.cluster.expire_producer(&tp("t", 0), 7);
    assert_eq!(bench.append(sequenced((7, 0), 0, 1)), (NoError, 1));
}

#[test]
fn rule_4_1_open_transaction_keeps_producer_state() {
    let mut bench = Bench::new();
    let identity = bench.init();
    bench.write(identity, &tp("t", 0), 0, "a");
    bench.cluster.expire_producer(&tp("t", 0), identity.0);
    let gap = sequenced(identity, 5, 1).transactional();
    assert_eq!(bench.append(gap), (OutOfOrderSequenceNumber, -1));
}

#[test]
fn rule_4_1_plain_batch_inside_an_open_transaction_is_refused() {
    let mut bench = Bench::new();
    let identity = bench.init();
    bench.write(identity, &tp("t", 0), 0, "a");
    assert_eq!(bench.append(sequenced(identity, 1, 1)), (InvalidTxnState, -1));
}

#[test]
fn rule_4_1_deleted_records_leave_the_producer_known() {
    // ProducerStateManager.onLogStartOffsetIncremented keeps the state; only a reload loses it.
    let mut bench = Bench::new();
    bench.append(sequenced((7, 0), 0, 2));
    let replies = bench.cluster.delete_records_below(bench.now, &tp("t", 0), 2);
    bench.take(replies);
    assert_eq!(bench.append(sequenced((7, 0), 5, 1)), (OutOfOrderSequenceNumber, -1));
    assert_eq!(bench.append(sequenced((7, 0), 2, 1)), (NoError, 2));
}

#[test]
fn rule_4_1_state_survives_a_clean_leader_change() {
    let mut bench = Bench::new();
    bench.append(sequenced((7, 0), 0, 1));
    let to = bench.followers(&tp("t", 0))[0];
    let replies = bench.cluster.move_leader(bench.now, &tp("t", 0), to);
    bench.take(replies);
    assert_eq!(bench.append(sequenced((7, 0), 0, 1)), (NoError, 0));
    assert_eq!(bench.append(sequenced((7, 0), 1, 1)), (NoError, 1));
}

#[test]
fn rule_4_1_unclean_election_loses_state_with_the_data() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let behind = bench.followers(&t)[1];
    let replies = bench.cluster.stall_replica(bench.now, &t, behind, true);
    bench.take(replies);
    bench.send_produce(&t, sequenced((7, 0), 0, 1), 1);
    let replies = bench.cluster.unclean_election(bench.now, &t, behind);
    bench.take(replies);
    // The retry of a batch that was acknowledged by its leader is new to this one.
    assert_eq!(bench.append(sequenced((7, 0), 0, 1)), (NoError, 0));
    assert_eq!(bench.cluster.partition_view(&t).expect("t").log_end_offset, 1);
}

#[test]
fn rule_4_1_acks_all_waits_for_the_in_sync_replicas() {
    let config = ClusterConfig { replication_delay_ms: 40, ..ClusterConfig::default() };
    let mut bench = Bench::with(config, &[]);
    let t = tp("t", 0);
    let all = bench.send_produce(&t, batch(&["a"]), ACKS_ALL);
    let leader = bench.send_produce(&t, batch(&["b"]), 1);
    assert_eq!(bench.produced(leader).base_offset, 1);
    bench.wait(39);
    assert_eq!(bench.outcome(all), None);
    bench.wait(1);
    assert_eq!(bench.produced(all).base_offset, 0);
}

#[test]
fn rule_4_1_appended_and_unknown_is_not_the_same_as_not_appended() {
    // Refused before the append: nothing is in the log.
    let mut bench = Bench::with(ClusterConfig::default(), &[("min.insync.replicas", "3")]);
    let t = tp("t", 0);
    let crashed = bench.followers(&t)[0];
    let replies = bench.cluster.crash_broker(bench.now, crashed);
    bench.take(replies);
    assert_eq!(bench.append(batch(&["a"])), (NotEnoughReplicas, -1));
    assert_eq!(bench.cluster.partition_view(&t).expect("t").log_end_offset, 0);

    // Refused after it: the record is there.
    let config = ClusterConfig { replication_delay_ms: 40, ..ClusterConfig::default() };
    let mut bench = Bench::with(config, &[("min.insync.replicas", "2")]);
    let followers = bench.followers(&t);
    let pending = bench.send_produce(&t, batch(&["a"]), ACKS_ALL);
    for follower in followers {
        let replies = bench.cluster.crash_broker(bench.now, follower);
        bench.take(replies);
    }
    bench.wait(30_000);
    assert_eq!(bench.produced(pending).error_code, RequestTimedOut);
    assert_eq!(bench.cluster.partition_view(&t).expect("t").log_end_offset, 1);
}

#[test]
fn rule_4_5_not_enough_replicas_after_append_means_appended() {
    let config = ClusterConfig { replication_delay_ms: 40, ..ClusterConfig::default() };
    let mut bench = Bench::with(config, &[("min.insync.replicas", "2")]);
    let t = tp("t", 0);
    let followers = bench.followers(&t);
    let pending = bench.send_produce(&t, batch(&["a"]), ACKS_ALL);
    let replies = bench.cluster.stall_replica(bench.now, &t, followers[0], true);
    bench.take(replies);
    // One follower is out, the other dies after the high watermark has moved on.
    let replies = bench.cluster.crash_broker(bench.now, followers[0]);
    bench.take(replies);
    bench.wait(40);
    assert_eq!(bench.produced(pending).error_code, NoError);
    let late = bench.send_produce(&t, batch(&["b"]), ACKS_ALL);
    let replies = bench.cluster.crash_broker(bench.now, followers[1]);
    bench.take(replies);
    bench.wait(30_000);
    let error = bench.produced(late).error_code;
    assert!([NotEnoughReplicasAfterAppend, RequestTimedOut].contains(&error), "{error}");
    assert_eq!(bench.cluster.partition_view(&t).expect("t").log_end_offset, 2);
}

#[test]
fn rule_4_1_response_lost_after_the_append() {
    // The broker dies between the append and the answer: the client sees a hang-up, the log has the batch.
    let config = ClusterConfig { replication_delay_ms: 40, ..ClusterConfig::default() };
    let mut bench = Bench::with(config, &[]);
    let t = tp("t", 0);
    let pending = bench.send_produce(&t, sequenced((7, 0), 0, 1), ACKS_ALL);
    let leader = bench.leader(&t);
    bench.cluster.set_replication_delay(0);
    let other = bench.followers(&t)[0];
    let unstall = bench.cluster.stall_replica(bench.now, &t, other, false);
    bench.take(unstall);
    assert_eq!(bench.produced(pending).base_offset, 0);
    let replies = bench.cluster.crash_broker(bench.now, leader);
    bench.take(replies);
    assert_eq!(bench.append(sequenced((7, 0), 0, 1)), (NoError, 0), "the retry is recognised");

    let mut bench = Bench::with(ClusterConfig { replication_delay_ms: 40, ..ClusterConfig::default() }, &[]);
    let pending = bench.send_produce(&t, sequenced((7, 0), 0, 1), ACKS_ALL);
    let leader = bench.leader(&t);
    let replies = bench.cluster.crash_broker(bench.now, leader);
    bench.take(replies);
    assert_eq!(bench.outcome(pending), Some(&Outcome::ConnectionClosed));
    assert_eq!(bench.cluster.partition_view(&t).expect("t").log_end_offset, 0, "nobody else had it");
}

#[test]
fn rule_4_1_a_gap_makes_everything_behind_it_out_of_order() {
    let mut bench = Bench::with(ClusterConfig::default(), &[("max.message.bytes", "200")]);
    let big = "x".repeat(300);
    assert_eq!(bench.append(sequenced((7, 0), 0, 1)), (NoError, 0));
    let refused = batch(&[&big]).from_producer(7, 0, 1);
    assert_eq!(bench.append(refused), (ErrorCode::MessageTooLarge, -1));
    assert_eq!(bench.append(sequenced((7, 0), 2, 1)), (OutOfOrderSequenceNumber, -1));
    assert_eq!(bench.append(sequenced((7, 0), 1, 1)), (NoError, 1));
}
