//! Instances come, go and die: lanes move on in time, and a clean end leaves nothing half done.

#[path = "support/stage.rs"]
mod stage;

use std::time::{Duration, Instant};

use integration_tests::flow::{Flow, PARTITIONS};
use integration_tests::mirror::Mirror;
use integration_tests::proxy::Proxy;
use integration_tests::require_kafka;
use integration_tests::workload::now_ms;
use stage::{PATIENCE, alone, source, target};

const EVERY_LANE: usize = 8;

fn all_partitions() -> Vec<i32> {
    (0..PARTITIONS).collect()
}

#[test]
fn of_two_with_one_id_the_elder_ends() {
    require_kafka!();
    let _alone = alone();
    let flow = Flow::new(source(), target(), "one-id").unwrap();
    let mut elder = flow.start_as("twin").unwrap();
    let load = flow.load(0, 500).unwrap();
    let visible = flow.follow().unwrap();
    flow.wait_until_copying(&[&elder], &visible, PATIENCE);
    let mut younger = flow.start_as("twin").unwrap();
    assert_eq!(elder.wait(PATIENCE).unwrap(), 78);
    let log = elder.stderr();
    assert!(log.contains("another process runs") && log.contains("twin"), "{log}");
    flow.wait_until_copying(&[&younger], &visible, PATIENCE);
    assert!(younger.is_running());
    let records = load.stop().unwrap();
    visible.wait_for_count(records, PATIENCE);
    flow.judge(records);
}

#[test]
fn one_instance_becomes_three_and_one_again() {
    require_kafka!();
    let _alone = alone();
    let flow = Flow::new(source(), target(), "one-three-one").unwrap();
    let first = flow.start().unwrap();
    let load = flow.load(0, 1000).unwrap();
    let visible = flow.follow().unwrap();
    flow.wait_until_copying(&[&first], &visible, PATIENCE);
    let mut others = [flow.start().unwrap(), flow.start().unwrap()];
    flow.wait_until_copying(&[&first, &others[0], &others[1]], &visible, PATIENCE);
    for other in &mut others {
        stop(other);
    }
    // Sooner than after a crash: no session of 8 s has to time out.
    let after = visible.wait_for_newer(&all_partitions(), now_ms(), Duration::from_secs(8));
    eprintln!("all partitions go on {after:?} after two of three instances left");
    assert_eq!(flow.lanes_of(&first).unwrap().len(), EVERY_LANE);
    let records = load.stop().unwrap();
    visible.wait_for_count(records, PATIENCE);
    flow.judge(records);
}

#[test]
fn sigterm_settles_what_was_read() {
    require_kafka!();
    let _alone = alone();
    let flow = Flow::new(source(), target(), "settled").unwrap();
    let mut mirror = flow.start().unwrap();
    let load = flow.load(0, 3000).unwrap();
    let visible = flow.follow().unwrap();
    visible.wait_for_count(10_000, PATIENCE);
    stop(&mut mirror);
    assert!(flow.open_transactions().unwrap().is_empty());
    let settled = flow.records_written().unwrap();
    visible.wait_for_count(settled, PATIENCE);
    assert_eq!(visible.count(), settled, "nothing was written in vain");
    let positions: i64 = flow.status().unwrap().iter().filter_map(|row| row.position).sum();
    assert_eq!(positions as u64, settled, "the ledger tells of all that was written");

    let records = load.stop().unwrap();
    let finished = flow.command(&["run", "--until", "end"]).unwrap();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(flow.records_written().unwrap(), records, "nothing is copied again");
    flow.judge(records);
}

#[test]
fn sigterm_with_a_dead_target_ends_with_75() {
    require_kafka!();
    let _alone = alone();
    let flow = Flow::new(source(), target(), "dead-target").unwrap();
    let mut mirror = flow.start().unwrap();
    let load = flow.load(0, 3000).unwrap();
    let visible = flow.follow().unwrap();
    visible.wait_for_count(10_000, PATIENCE);
    target().pause().unwrap();
    let start = Instant::now();
    mirror.terminate().unwrap();
    let code = mirror.wait(Duration::from_secs(12));
    let after = start.elapsed();
    target().unpause().unwrap();
    assert_eq!(code.unwrap(), 75, "{}", mirror.story());
    eprintln!("with a dead target it ended after {after:?}");
    let records = load.stop().unwrap();
    let finished = flow.command(&["run", "--until", "end"]).unwrap();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    flow.judge(records);
}

/// SIGTERM: within 10 s it has left, with everything settled.
#[track_caller]
fn stop(mirror: &mut Mirror) {
    let start = Instant::now();
    mirror.terminate().unwrap();
    assert_eq!(mirror.wait(Duration::from_secs(10)).unwrap(), 0, "{}", mirror.story());
    eprintln!("left after {:?}", start.elapsed());
}

#[test]
fn lanes_move_on_after_a_kill() {
    require_kafka!();
    let _alone = alone();
    let flow = Flow::new(source(), target(), "moved").unwrap();
    let mut instances = [flow.start().unwrap(), flow.start().unwrap()];
    let load = flow.load(0, 500).unwrap();
    let visible = flow.follow().unwrap();
    flow.wait_until_copying(&instances.each_ref(), &visible, PATIENCE);
    let lost = flow.partitions_of(&flow.lanes_of(&instances[0]).unwrap()).unwrap();
    assert!(!lost.is_empty() && lost.len() < PARTITIONS as usize);
    instances[0].kill().unwrap();
    let after = visible.wait_for_newer(&lost, now_ms(), Duration::from_secs(15));
    eprintln!("partitions {lost:?} go on {after:?} after their instance was killed");
    let records = load.stop().unwrap();
    visible.wait_for_count(records, PATIENCE);
    assert_eq!(flow.lanes_of(&instances[1]).unwrap().len(), EVERY_LANE);
    flow.judge(records);
}

#[test]
fn the_same_id_takes_over_at_once() {
    require_kafka!();
    let _alone = alone();
    let flow = Flow::new(source(), target(), "same-id").unwrap();
    let mut instances = [flow.start_as("one").unwrap(), flow.start_as("two").unwrap()];
    let load = flow.load(0, 500).unwrap();
    let visible = flow.follow().unwrap();
    flow.wait_until_copying(&instances.each_ref(), &visible, PATIENCE);
    let own = flow.lanes_of(&instances[0]).unwrap();
    let lost = flow.partitions_of(&own).unwrap();
    instances[0].kill().unwrap();
    let killed = now_ms();
    instances[0] = flow.start_as("one").unwrap();
    let after = visible.wait_for_newer(&lost, killed, Duration::from_secs(5));
    eprintln!("partitions {lost:?} go on {after:?} after their instance was killed and started again");
    assert_eq!(flow.lanes_of(&instances[0]).unwrap(), own, "the lanes stay where they were");
    let records = load.stop().unwrap();
    visible.wait_for_count(records, PATIENCE);
    flow.judge(records);
}

/// It lives, heartbeats and cannot work: the group would never take its lanes away (S6).
#[test]
fn s06_an_instance_without_its_source_leaves_its_lanes_to_others() {
    require_kafka!();
    let _alone = alone();
    let flow = Flow::new(source(), target(), "blind").unwrap();
    let proxy = Proxy::start(source()).unwrap();
    let blind =
        Mirror::run(&flow.config.clone().text("source", "bootstrap.servers", proxy.bootstrap())).unwrap();
    let seeing = flow.start().unwrap();
    let load = flow.load(0, 300).unwrap();
    let visible = flow.follow().unwrap();
    flow.wait_until_copying(&[&blind, &seeing], &visible, PATIENCE);
    proxy.refuse(true);
    let cut = now_ms();
    let after = visible.wait_for_newer(&all_partitions(), cut, Duration::from_secs(100));
    eprintln!("all partitions go on {after:?} after one of two instances lost its source");
    assert_eq!(flow.lanes_of(&seeing).unwrap().len(), EVERY_LANE);
    // With its source back it takes its share again.
    proxy.refuse(false);
    flow.wait_until_copying(&[&blind, &seeing], &visible, PATIENCE);
    let records = load.stop().unwrap();
    visible.wait_for_count(records, PATIENCE);
    flow.judge(records);
}
