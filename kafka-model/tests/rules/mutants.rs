//! Each planted bug changes what a client sees, and an unplanted cluster does not show it.

use crate::progress;
use crate::support::*;
use kafka_model::api::fetch::IsolationLevel::{ReadCommitted, ReadUncommitted};
use kafka_model::api::offset_fetch::OffsetFetchRequest;
use kafka_model::api::produce::ACKS_ALL;
use kafka_model::group::Committer;
use kafka_model::{BrokerFaults, ClusterConfig, Response};

fn planted(config: ClusterConfig, faults: BrokerFaults) -> Bench {
    let mut bench = Bench::with(config, &[]);
    bench.cluster.plant(faults);
    bench
}

/// Runs a story with the bug and without it. It answers whether the bug showed.
#[track_caller]
fn check(faults: BrokerFaults, shows: impl Fn(&mut Bench) -> bool) {
    let config = || ClusterConfig { replication_delay_ms: 10, ..ClusterConfig::default() };
    assert!(shows(&mut planted(config(), faults)), "{faults:?}");
    assert!(!shows(&mut planted(config(), BrokerFaults::default())), "without the bug");
}

fn append(bench: &mut Bench, batch: kafka_types::RecordBatch) -> i64 {
    let token = bench.send_produce(&tp("t", 0), batch, ACKS_ALL);
    bench.wait(20);
    bench.produced(token).base_offset
}

fn write(bench: &mut Bench, identity: Identity, topic: &str, sequence: i32) {
    bench.add(identity, &tp(topic, 0));
    let batch = batch(&["v"]).from_producer(identity.0, identity.1, sequence).transactional();
    bench.send_produce(&tp(topic, 0), batch, ACKS_ALL);
    bench.wait(20);
}

#[test]
fn mutant_43_acknowledged_before_replication() {
    let faults = BrokerFaults { acknowledges_before_replication: true, ..BrokerFaults::default() };
    check(faults, |bench| {
        let token = bench.send_produce(&tp("t", 0), batch(&["a"]), ACKS_ALL);
        let is_acknowledged = bench.outcome(token).is_some();
        let replies = bench.cluster.crash_broker(bench.now, bench.leader(&tp("t", 0)));
        bench.take(replies);
        is_acknowledged && bench.committed(&tp("t", 0)).is_empty()
    });
}

#[test]
fn mutant_44_no_duplicate_is_remembered() {
    let faults = BrokerFaults { forgets_duplicates: true, ..BrokerFaults::default() };
    check(faults, |bench| {
        append(bench, sequenced((7, 0), 0, 1));
        append(bench, sequenced((7, 0), 0, 1));
        bench.committed(&tp("t", 0)).len() == 2
    });
}

#[test]
fn mutant_45_open_transactions_are_visible() {
    let faults =
        BrokerFaults { last_stable_offset_ignores_open_transactions: true, ..BrokerFaults::default() };
    check(faults, |bench| {
        let identity = bench.init();
        write(bench, identity, "t", 0);
        !bench.fetch(&tp("t", 0), 0, ReadCommitted).records.is_empty()
    });
}

#[test]
fn mutant_46_one_partition_gets_no_marker() {
    let faults = BrokerFaults { commit_marker_skips_a_partition: true, ..BrokerFaults::default() };
    check(faults, |bench| {
        bench.create("u", 1, 3, &[]);
        let identity = bench.init();
        write(bench, identity, "t", 0);
        write(bench, identity, "u", 0);
        assert_eq!(bench.end(identity, Commit), NoError);
        bench.wait(100);
        bench.read_committed(&tp("t", 0), 0) != bench.read_committed(&tp("u", 0), 0)
    });
}

#[test]
fn mutant_47_and_49_offset_fetch_lies() {
    let fetch = |bench: &mut Bench| {
        let partitions = Some(vec![tp("t", 0)]);
        let request = OffsetFetchRequest { group_id: "g".into(), partitions, require_stable: true };
        let Response::OffsetFetch(response) = bench.ask(progress::group_coordinator(bench), request) else {
            panic!()
        };
        response.partitions[0].clone()
    };
    let faults = BrokerFaults { offset_fetch_answers_nothing: true, ..BrokerFaults::default() };
    check(faults, |bench| {
        progress::commit_as(bench, Committer::nobody(), progress::offset_of(&tp("t", 0), 5));
        fetch(bench).committed_offset == -1
    });
    let faults = BrokerFaults { offset_fetch_ignores_pending: true, ..BrokerFaults::default() };
    check(faults, |bench| {
        let identity = bench.init();
        progress::commit_pending(bench, identity);
        fetch(bench).error_code == NoError
    });
}

#[test]
fn mutant_48_zombies_are_let_through() {
    let faults = BrokerFaults { fencing_is_off: true, ..BrokerFaults::default() };
    check(faults, |bench| {
        let zombie = bench.init();
        write(bench, zombie, "t", 0);
        let _ = bench.try_init(None);
        bench.wait(100);
        let identity = bench.init();
        write(bench, identity, "t", 0);
        bench.end(zombie, Abort) == NoError
    });
}

#[test]
fn mutant_49_offset_zero_in_produce_responses() {
    let faults = BrokerFaults { produce_answers_offset_zero: true, ..BrokerFaults::default() };
    check(faults, |bench| {
        append(bench, batch(&["a"]));
        append(bench, batch(&["b"])) == 0
    });
}

#[test]
fn mutant_50_readers_see_past_the_high_watermark() {
    let faults = BrokerFaults { fetch_reads_past_high_watermark: true, ..BrokerFaults::default() };
    check(faults, |bench| {
        bench.send_produce(&tp("t", 0), batch(&["a"]), 1);
        !bench.fetch(&tp("t", 0), 0, ReadUncommitted).records.is_empty()
    });
}
