use crate::support::*;
use kafka_model::api::describe_transactions::DescribeTransactionsRequest;
use kafka_model::api::fetch::IsolationLevel::{ReadCommitted, ReadUncommitted};
use kafka_model::transaction::{DecisionCause, TransactionState};
use kafka_model::{ClusterConfig, CoordinatorKind, Fate, Response};
use kafka_types::ErrorCode::{
    ConcurrentTransactions, CoordinatorLoadInProgress, InvalidProducerEpoch, InvalidProducerIdMapping,
    InvalidTxnState, NotCoordinator, NotEnoughReplicas, ProducerFenced, TransactionAbortable,
};
use kafka_types::RecordBatch;

fn slow_markers(delay_ms: i64) -> Bench {
    Bench::with(ClusterConfig { marker_delay_ms: delay_ms, ..ClusterConfig::default() }, &[])
}

fn state(bench: &mut Bench) -> TransactionState {
    let request = DescribeTransactionsRequest { transactional_ids: vec!["tx".into()] };
    let response = bench.ask(bench.coordinator("tx"), request);
    let Response::DescribeTransactions(response) = response else { panic!() };
    response.transactions[0].state.expect("tx exists")
}

fn in_transaction((id, epoch): Identity, sequence: i32) -> RecordBatch {
    batch(&["v"]).from_producer(id, epoch, sequence).transactional()
}

#[test]
fn rule_4_2_init_bumps_the_epoch_of_an_idle_id() {
    let mut bench = Bench::new();
    let (id, epoch) = bench.init();
    assert_eq!(epoch, 0);
    assert_eq!(bench.init(), (id, 1));
    bench.write((id, 1), &tp("t", 0), 0, "a");
    assert_eq!(bench.end((id, 1), Commit), NoError);
    assert_eq!(bench.init(), (id, 2));
}

#[test]
fn rule_4_2_init_aborts_what_is_open_and_bumps_twice() {
    let mut bench = slow_markers(50);
    let t = tp("t", 0);
    let zombie = bench.init();
    bench.write(zombie, &t, 0, "zombie");
    assert_eq!(bench.try_init(None), Err(ConcurrentTransactions));
    assert_eq!(bench.try_init(None), Err(ConcurrentTransactions), "until the marker is written");
    bench.wait(50);
    assert_eq!(bench.try_init(None), Ok((zombie.0, 2)));

    assert_eq!(bench.add(zombie, &t), ProducerFenced);
    assert_eq!(bench.end(zombie, Commit), ProducerFenced);
    assert_eq!(bench.append(in_transaction(zombie, 1)).0, InvalidProducerEpoch);
    assert!(bench.read_committed(&t, 0).is_empty());
    let decision = &bench.cluster.decisions().since(0)[0];
    assert_eq!((decision.result, decision.cause, decision.producer_epoch), (Abort, DecisionCause::Fenced, 1));
}

#[test]
fn rule_4_2_fenced_under_its_old_name_for_old_versions() {
    let mut bench = Bench::new();
    let zombie = bench.init();
    bench.init();
    bench.api_version = 1;
    assert_eq!(bench.add(zombie, &tp("t", 0)), InvalidProducerEpoch);
    assert_eq!(bench.end(zombie, Commit), InvalidProducerEpoch);
}

#[test]
fn rule_4_2_recovery_with_an_expected_epoch_kip_360() {
    let mut bench = Bench::new();
    let (id, epoch) = bench.init();
    assert_eq!(bench.try_init(Some((id, epoch))), Ok((id, 1)));
    assert_eq!(bench.try_init(Some((id, epoch))), Ok((id, 1)), "a retry whose answer was lost");
    bench.init();
    assert_eq!(bench.try_init(Some((id, epoch))), Err(ProducerFenced));
    assert_eq!(bench.try_init(Some((id + 100, 0))), Err(ProducerFenced), "another producer id");
}

#[test]
fn rule_4_2_exhausted_epochs_give_a_new_producer_id() {
    let mut bench = Bench::new();
    let (id, mut epoch) = bench.init();
    while epoch < i16::MAX - 1 {
        epoch = bench.init().1;
    }
    let (new_id, epoch) = bench.init();
    assert!(new_id != id && epoch == 0);
    assert_eq!(bench.add((id, i16::MAX - 1), &tp("t", 0)), InvalidProducerIdMapping);
}

#[test]
fn rule_4_2_partitions_are_added_before_they_are_written() {
    let mut bench = Bench::new();
    let identity = bench.init();
    for (version, error) in [(10, InvalidTxnState), (11, TransactionAbortable)] {
        bench.api_version = version;
        assert_eq!(bench.append(in_transaction(identity, 0)).0, error, "version {version}");
    }
    assert_eq!(bench.add(identity, &tp("t", 0)), NoError);
    assert_eq!(bench.append(in_transaction(identity, 0)), (NoError, 0));
}

#[test]
fn rule_4_2_verification_that_must_wait_is_not_enough_replicas() {
    let config = ClusterConfig { coordinator_load_ms: 500, marker_delay_ms: 50, ..ClusterConfig::default() };
    let mut bench = Bench::with(config, &[]);
    let identity = bench.init();
    assert_eq!(bench.add(identity, &tp("t", 0)), NoError);
    let to = bench.coordinator("tx");
    let replies = bench.cluster.move_coordinator(bench.now, CoordinatorKind::Transaction, "tx", to);
    bench.take(replies);
    assert_eq!(bench.append(in_transaction(identity, 0)).0, NotEnoughReplicas);
    bench.wait(500);
    assert_eq!(bench.append(in_transaction(identity, 0)), (NoError, 0));
    // While the markers of the last transaction are under way, too.
    bench.create("other", 1, 3, &[]);
    assert_eq!(bench.end(identity, Commit), NoError);
    assert_eq!(bench.produce(&tp("other", 0), in_transaction(identity, 0)).error_code, NotEnoughReplicas);
}

#[test]
fn rule_4_2_without_verification_a_late_batch_hangs_for_ever() {
    let config = ClusterConfig { transaction_partition_verification: false, ..ClusterConfig::default() };
    let mut bench = Bench::with(config, &[]);
    let t = tp("t", 0);
    let identity = bench.init();
    bench.write(identity, &t, 0, "a");
    assert_eq!(bench.end(identity, Abort), NoError);
    assert_eq!(bench.append(in_transaction(identity, 1)).0, NoError);
    bench.append(batch(&["later"]));
    bench.wait(3_600_000);
    let view = bench.cluster.partition_view(&t).expect("t");
    assert_eq!((view.last_stable_offset, view.high_watermark), (2, 4), "pinned");
}

#[test]
fn rule_4_2_end_txn_by_state() {
    let mut bench = slow_markers(50);
    let identity = bench.init();
    assert_eq!(bench.end(identity, Commit), InvalidTxnState, "Empty");
    bench.write(identity, &tp("t", 0), 0, "a");
    assert_eq!(bench.end(identity, Commit), NoError, "Ongoing");
    assert_eq!(state(&mut bench), TransactionState::Prepare(Commit));
    assert_eq!(bench.end(identity, Commit), ConcurrentTransactions, "PrepareCommit, same");
    assert_eq!(bench.end(identity, Abort), InvalidTxnState, "PrepareCommit, opposite");
    assert_eq!(bench.add(identity, &tp("t", 0)), ConcurrentTransactions);
    bench.wait(50);
    assert_eq!(state(&mut bench), TransactionState::Complete(Commit));
    assert_eq!(bench.end(identity, Commit), NoError, "CompleteCommit, same");
    assert_eq!(bench.end(identity, Abort), InvalidTxnState, "CompleteCommit, opposite");
    assert_eq!(bench.end((identity.0 + 9, 0), Commit), InvalidProducerIdMapping);
    assert_eq!(bench.end((identity.0, 9), Commit), ProducerFenced);
}

#[test]
fn rule_4_2_a_late_end_txn_ends_the_next_transaction_kafka_17754() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let identity = bench.init();
    bench.write(identity, &t, 0, "first");
    assert_eq!(bench.end(identity, Commit), NoError, "the retry arrives first");
    bench.write(identity, &t, 1, "half of the second");
    assert_eq!(bench.end(identity, Commit), NoError, "the delayed original");
    assert_eq!(bench.append(in_transaction(identity, 2)).0, InvalidTxnState, "the other half");
    assert_eq!(bench.read_committed(&t, 0), ["first", "half of the second"]);
}

#[test]
fn rule_4_2_time_out_fences_and_aborts_at_the_next_scan() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let identity = bench.init();
    bench.write(identity, &t, 0, "a");
    bench.wait(60_000);
    assert_eq!(state(&mut bench), TransactionState::Ongoing, "not before a scan");
    bench.wait(10_000);
    assert_eq!(state(&mut bench), TransactionState::Complete(Abort));
    assert_eq!(bench.cluster.decisions().since(0)[0].cause, DecisionCause::TimedOut);
    assert_eq!(bench.append(in_transaction(identity, 1)).0, InvalidProducerEpoch);
    assert_eq!(bench.end(identity, Commit), ProducerFenced);
    assert_eq!(bench.add(identity, &t), ProducerFenced);
}

#[test]
fn rule_4_2_old_brokers_say_invalid_txn_state_after_a_time_out_kafka_19690() {
    let config = ClusterConfig { timed_out_produce_gets_invalid_txn_state: true, ..ClusterConfig::default() };
    let mut bench = Bench::with(config, &[]);
    let identity = bench.init();
    bench.write(identity, &tp("t", 0), 0, "a");
    bench.wait(70_000);
    assert_eq!(bench.append(in_transaction(identity, 1)).0, InvalidTxnState);
}

#[test]
fn rule_4_2_expired_transactional_id_is_an_unknown_mapping() {
    let mut bench = Bench::new();
    let identity = bench.init();
    bench.wait(7 * 24 * 3_600_000);
    assert_eq!(bench.add(identity, &tp("t", 0)), InvalidProducerIdMapping);

    let identity = bench.init();
    assert_eq!(bench.add(identity, &tp("t", 0)), NoError);
    assert!(!bench.cluster.expire_transactional_id(&"tx".into()), "not while a transaction is open");
    assert_eq!(bench.end(identity, Abort), NoError);
    assert!(bench.cluster.expire_transactional_id(&"tx".into()));
    assert_eq!(bench.end(identity, Abort), InvalidProducerIdMapping);
}

#[test]
fn rule_4_2_markers_come_later_and_partition_by_partition() {
    let mut bench = slow_markers(10);
    bench.create("u", 1, 3, &[]);
    let (t, u) = (tp("t", 0), tp("u", 0));
    bench.cluster.delay_markers(&u, Some(500));
    let identity = bench.init();
    bench.write(identity, &t, 0, "a");
    bench.write(identity, &u, 0, "b");
    assert_eq!(bench.end(identity, Commit), NoError);
    assert_eq!((bench.committed(&t), bench.committed(&u)), (vec!["a".into()], vec!["b".into()]), "decided");
    assert!(bench.read_committed(&t, 0).is_empty(), "but not visible");
    bench.wait(10);
    assert_eq!(bench.read_committed(&t, 0), ["a"]);
    assert!(bench.read_committed(&u, 0).is_empty());
    assert_eq!(bench.cluster.fates(&u, 0)[0].1, Fate::Committed);
    bench.wait(490);
    assert_eq!(bench.read_committed(&u, 0), ["b"]);
    let decision = bench.cluster.decisions().since(0)[0].clone();
    let delays: Vec<_> =
        decision.markers.values().map(|at| at.expect("written") - decision.decided_at).collect();
    assert_eq!((delays, decision.completed_at), (vec![10, 500], Some(decision.decided_at + 500)));
}

#[test]
fn rule_4_2_decided_stays_decided_when_the_coordinator_dies() {
    let mut bench = slow_markers(200);
    let t = tp("t", 0);
    let identity = bench.init();
    bench.write(identity, &t, 0, "a");
    assert_eq!(bench.end(identity, Commit), NoError);
    let coordinator = bench.coordinator("tx");
    let replies = bench.cluster.crash_broker(bench.now, coordinator);
    bench.take(replies);
    bench.wait(1_000);
    assert_eq!(bench.read_committed(&t, 0), ["a"]);
    assert!(bench.coordinator("tx") != coordinator);
}

#[test]
fn rule_4_2_a_leaderless_partition_holds_the_transaction_open() {
    let mut bench = slow_markers(10);
    bench.create("alone", 3, 1, &[]);
    let coordinator = bench.coordinator("tx");
    let alone = (0..3).map(|n| tp("alone", n)).find(|tp| bench.leader(tp) != coordinator).expect("one");
    let identity = bench.init();
    bench.write(identity, &alone, 0, "a");
    assert_eq!(bench.end(identity, Commit), NoError);
    let leader = bench.leader(&alone);
    let replies = bench.cluster.crash_broker(bench.now, leader);
    bench.take(replies);
    bench.wait(5_000);
    assert_eq!(bench.try_init(None), Err(ConcurrentTransactions));
    let replies = bench.cluster.restart_broker(bench.now, leader);
    bench.take(replies);
    bench.wait(200);
    assert_eq!(bench.try_init(None), Ok((identity.0, 1)));
    assert_eq!(bench.read_committed(&alone, 0), ["a"]);
}

#[test]
fn rule_4_2_last_stable_offset_stops_at_the_first_open_transaction() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    bench.append(batch(&["plain 0"]));
    let identity = bench.init();
    bench.write(identity, &t, 0, "open 1");
    bench.append(batch(&["plain 2"]));
    let answer = bench.fetch(&t, 0, ReadCommitted);
    assert_eq!((answer.last_stable_offset, answer.high_watermark), (1, 3));
    assert_eq!(bench.read_committed(&t, 0), ["plain 0"]);
    assert_eq!(bench.fetch(&t, 0, ReadUncommitted).records.len(), 3);
    assert_eq!(bench.end(identity, Commit), NoError);
    assert_eq!(bench.read_committed(&t, 0), ["plain 0", "open 1", "plain 2"]);
}

#[test]
fn rule_4_2_a_marker_that_is_not_replicated_holds_the_last_stable_offset() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let identity = bench.init();
    bench.write(identity, &t, 0, "a");
    for follower in bench.followers(&t) {
        let replies = bench.cluster.stall_replica(bench.now, &t, follower, true);
        bench.take(replies);
    }
    assert_eq!(bench.end(identity, Abort), NoError);
    let view = bench.cluster.partition_view(&t).expect("t");
    assert_eq!((view.last_stable_offset, view.high_watermark, view.log_end_offset), (0, 1, 2));
    assert_eq!(bench.try_init(None), Err(ConcurrentTransactions), "the marker is not safe yet");
}

#[test]
fn rule_4_2_aborted_transactions_are_listed_and_filtered() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let identity = bench.init();
    bench.write(identity, &t, 0, "gone");
    bench.append(batch(&["plain"]));
    assert_eq!(bench.end(identity, Abort), NoError);
    bench.write(identity, &t, 1, "kept");
    assert_eq!(bench.end(identity, Commit), NoError);
    let answer = bench.fetch(&t, 0, ReadCommitted);
    let aborted = answer.aborted_transactions;
    assert_eq!(
        aborted.iter().map(|it| (it.producer_id, it.first_offset)).collect::<Vec<_>>(),
        [(identity.0, 0)]
    );
    assert!(bench.fetch(&t, 0, ReadUncommitted).aborted_transactions.is_empty());
    assert!(bench.fetch(&t, 3, ReadCommitted).aborted_transactions.is_empty(), "beyond its marker");
    assert_eq!(bench.read_committed(&t, 0), ["plain", "kept"]);
    assert_eq!(bench.committed(&t), ["plain", "kept"]);
}

#[test]
fn rule_4_2_an_empty_aborted_transaction_leaves_a_marker_and_no_index_entry() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let identity = bench.init();
    assert_eq!(bench.add(identity, &t), NoError);
    assert_eq!(bench.end(identity, Abort), NoError);
    bench.append(batch(&["plain"]));
    let answer = bench.fetch(&t, 0, ReadCommitted);
    assert!(answer.aborted_transactions.is_empty() && answer.records[0].is_control());
    assert_eq!(bench.read_committed(&t, 0), ["plain"]);
}

#[test]
fn rule_4_2_markers_take_offsets() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let identity = bench.init();
    bench.write(identity, &t, 0, "a");
    assert_eq!(bench.end(identity, Commit), NoError);
    assert_eq!(bench.append(batch(&["b"])), (NoError, 2));
}

#[test]
fn rule_4_2_other_coordinators_say_so() {
    let config = ClusterConfig { coordinator_load_ms: 500, ..ClusterConfig::default() };
    let mut bench = Bench::with(config, &[]);
    let identity = bench.init();
    let from = bench.coordinator("tx");
    let to = bench.cluster.broker_ids().map(|(id, _)| id).find(|id| *id != from).expect("another");
    let replies = bench.cluster.move_coordinator(bench.now, CoordinatorKind::Transaction, "tx", to);
    bench.take(replies);
    assert_eq!(bench.add(identity, &tp("t", 0)), CoordinatorLoadInProgress);
    bench.wait(500);
    assert_eq!(bench.add(identity, &tp("t", 0)), NoError);
    let replies = bench.cluster.move_coordinator(bench.now, CoordinatorKind::Transaction, "tx", from);
    bench.take(replies);
    let request = kafka_model::api::end_txn::EndTxnRequest {
        transactional_id: "tx".into(),
        producer_id: identity.0,
        producer_epoch: identity.1,
        result: Commit,
    };
    let Response::EndTxn(response) = bench.ask(to, request) else { panic!() };
    assert_eq!(response.error_code, NotCoordinator);
}

#[test]
fn rule_4_2_a_marker_survives_a_leader_that_had_it_alone() {
    let mut bench = Bench::new();
    let t = tp("t", 0);
    let identity = bench.init();
    bench.write(identity, &t, 0, "a");
    let followers = bench.followers(&t);
    for follower in &followers {
        let replies = bench.cluster.stall_replica(bench.now, &t, *follower, true);
        bench.take(replies);
    }
    assert_eq!(bench.end(identity, Commit), NoError);
    for follower in &followers {
        let replies = bench.cluster.move_leader(bench.now, &t, *follower);
        bench.take(replies);
        let replies = bench.cluster.stall_replica(bench.now, &t, *follower, false);
        bench.take(replies);
    }
    bench.wait(1_000);
    assert_eq!(bench.read_committed(&t, 0), ["a"], "the coordinator wrote it again");
    assert_eq!(state(&mut bench), TransactionState::Complete(Commit));
}
