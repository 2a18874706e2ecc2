//! H5 and H6: topics that appear, grow, or are deleted and made again.

use integration_tests::checker::{self, SeenRecord};
use integration_tests::{require_kafka, wait_for};

use crate::flow::{Flow, PATIENCE};

/// A record's key and value.
type Pair = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The records of a topic, partition by partition.
fn contents(bootstrap: &str, topic: &str) -> Vec<Vec<Pair>> {
    let pair = |record: SeenRecord| (record.key, record.value);
    let partitions = checker::read_records(bootstrap, topic).unwrap();
    partitions.into_iter().map(|records| records.into_iter().map(pair).collect()).collect()
}

#[test]
fn h05_start_latest_survives_the_death_of_everything_between_first_sight_and_first_copy() {
    require_kafka!();
    let flow = Flow::new("h05").set_text("delivery", "start", "latest");
    let old = flow.make("old", 2, 100);
    let mut mirror = flow.run();
    // It exists, so its start is in the ledger.
    wait_for_partitions(&flow, &old, 2);
    mirror.kill().unwrap();
    flow.fill(&old, 2, 100..150);
    let mut mirror = flow.run();
    flow.wait_until_copied(&old, 50);
    let source = contents(flow.source(), &old);
    let after_start: Vec<_> = source.iter().map(|records| records[50..].to_vec()).collect();
    assert_eq!(contents(flow.target(), &old), after_start, "only what came after the start");

    // Later topics and partitions are copied from their first record, whatever dies.
    let new = flow.make("new", 3, 90);
    wait_for_partitions(&flow, &new, 3);
    mirror.kill().unwrap();
    flow.source_admin.grow_topic(&old, 5).unwrap();
    flow.fill(&old, 5, 1000..1100);
    flow.fill(&new, 3, 90..120);
    let mut mirror = flow.run();
    wait_for_partitions(&flow, &old, 5);
    mirror.kill().unwrap();
    flow.fill(&old, 5, 1100..1200);
    let mirror = flow.run();
    assert_eq!(flow.wait_until_equal(&new), 120);
    flow.wait_until_copied(&old, 250);
    flow.stop(mirror);
    let mut wanted = contents(flow.source(), &old);
    for records in &mut wanted[..2] {
        records.drain(..50);
    }
    assert_eq!(contents(flow.target(), &old), wanted);
    flow.assert_equal(&new);
}

/// Killed before the target topic is there too, at whatever moment: a start is resolved once.
#[test]
fn h05_two_instances_under_start_latest_lose_nothing_of_what_is_new() {
    require_kafka!();
    let flow = Flow::new("h05-two").set_text("delivery", "start", "latest");
    let old = flow.make("old", 2, 100);
    let mut mirrors = [flow.run(), flow.run()];
    wait_for_partitions(&flow, &old, 2);
    let mut names = Vec::new();
    for round in 0..3 {
        let name = flow.make(&format!("new{round}"), 4, 40);
        std::thread::sleep(std::time::Duration::from_millis(400 * round));
        for mirror in &mut mirrors {
            mirror.kill().unwrap();
        }
        flow.fill(&name, 4, 40..80);
        mirrors = [flow.run(), flow.run()];
        names.push(name);
    }
    for name in &names {
        assert_eq!(flow.wait_until_equal(name), 80);
    }
    for mirror in mirrors {
        flow.stop(mirror);
    }
    for name in &names {
        flow.assert_equal(name);
    }
    assert_eq!(flow.copied(&old), 0);
}

fn wait_for_partitions(flow: &Flow, topic: &str, partitions: usize) {
    wait_for(&format!("{partitions} partitions of {topic}"), PATIENCE, || {
        (flow.target_admin.partition_count(topic).unwrap() == Some(partitions)).then_some(())
    });
}

#[test]
fn h06_a_source_topic_made_anew_while_running_halts_and_nothing_of_it_is_copied() {
    require_kafka!();
    let flow = Flow::new("h06").set("delivery", "lanes", "1");
    let (topic, other) = (flow.make("t", 2, 100), flow.make("other", 1, 100));
    let mut mirror = flow.run();
    flow.wait_until_copied(&topic, 100);
    flow.wait_until_copied(&other, 100);
    let before = contents(flow.target(), &topic);
    make_anew(&flow, Side::Source, &topic);
    flow.fill(&topic, 2, 500..800);
    for partition in 0..2 {
        flow.wait_until_halted(&topic, partition, "recreated");
    }
    flow.fill(&other, 1, 100..300);
    assert_eq!(flow.wait_until_equal(&other), 300, "the others go on");
    assert!(mirror.is_running());
    flow.stop(mirror);
    assert_eq!(contents(flow.target(), &topic), before);
    let finished = flow.ends_with(65, "recreated");
    assert!(finished.stderr.contains(&format!("{topic}/1: recreated")), "{}", finished.stderr);
    assert_eq!(contents(flow.target(), &topic), before);
}

#[test]
fn h06_a_source_topic_made_anew_while_down_halts_and_nothing_of_it_is_copied() {
    require_kafka!();
    let flow = Flow::new("h06-down").set("delivery", "lanes", "1");
    let (topic, other) = (flow.make("t", 2, 100), flow.make("other", 1, 100));
    flow.ends_with(0, "done");
    let before = contents(flow.target(), &topic);
    make_anew(&flow, Side::Source, &topic);
    flow.fill(&topic, 2, 500..800);
    flow.fill(&other, 1, 100..300);
    flow.ends_with(65, "recreated");
    assert_eq!(contents(flow.target(), &topic), before);
    assert_eq!(flow.assert_equal(&other), 300, "the others go on");
    let row = flow.row(&topic, 0);
    assert_eq!((row.state.as_str(), row.position.as_str()), ("halted", "50"), "{row:?}");
    assert!(row.reason.starts_with("recreated"), "{row:?}");
}

#[test]
fn h06_a_target_topic_made_anew_while_running_halts() {
    require_kafka!();
    let flow = Flow::new("h06-target").set("delivery", "lanes", "1");
    let (topic, other) = (flow.make("t", 2, 100), flow.make("other", 1, 100));
    let mirror = flow.run();
    flow.wait_until_copied(&topic, 100);
    flow.wait_until_copied(&other, 100);
    make_anew(&flow, Side::Target, &topic);
    flow.fill(&topic, 2, 100..200);
    for partition in 0..2 {
        flow.wait_until_halted(&topic, partition, "recreated");
    }
    flow.fill(&other, 1, 100..300);
    assert_eq!(flow.wait_until_equal(&other), 300, "the others go on");
    flow.stop(mirror);
    assert_eq!(flow.copied(&topic), 0, "nothing goes to another topic than before");
    flow.ends_with(65, "recreated");
    assert_eq!(flow.copied(&topic), 0);
}

#[test]
fn h06_a_target_topic_made_anew_while_down_halts() {
    require_kafka!();
    let flow = Flow::new("h06-target-down").set("delivery", "lanes", "1");
    let (topic, other) = (flow.make("t", 2, 100), flow.make("other", 1, 100));
    flow.ends_with(0, "done");
    make_anew(&flow, Side::Target, &topic);
    flow.fill(&topic, 2, 100..200);
    flow.fill(&other, 1, 100..300);
    flow.ends_with(65, "recreated");
    assert_eq!(flow.copied(&topic), 0);
    assert_eq!(flow.assert_equal(&other), 300, "the others go on");
    assert!(flow.row(&topic, 1).reason.starts_with("recreated"));
}

#[test]
fn a_topic_deleted_while_running_halts_by_name_on_either_side() {
    require_kafka!();
    for side in [Side::Source, Side::Target] {
        let flow = Flow::new("deleted").set("delivery", "lanes", "1");
        let (topic, other) = (flow.make("t", 2, 100), flow.make("other", 1, 100));
        let mirror = flow.run();
        flow.wait_until_copied(&topic, 100);
        flow.wait_until_copied(&other, 100);
        match side {
            Side::Source => flow.source_admin.delete_topic(&topic).unwrap(),
            Side::Target => {
                flow.target_admin.delete_topic(&topic).unwrap();
                flow.fill(&topic, 2, 100..200);
            }
        }
        for partition in 0..2 {
            flow.wait_until_halted(&topic, partition, "deleted");
        }
        flow.fill(&other, 1, 100..300);
        assert_eq!(flow.wait_until_equal(&other), 300, "the others go on");
        flow.stop(mirror);
        if side == Side::Target {
            assert_eq!(flow.target_admin.partition_count(&topic).unwrap(), None, "not made again unasked");
        }
    }
}

#[test]
fn a_topic_deleted_while_down_halts_by_name_on_either_side() {
    require_kafka!();
    for side in [Side::Source, Side::Target] {
        let flow = Flow::new("deleted-down").set("delivery", "lanes", "1");
        let (topic, other) = (flow.make("t", 2, 100), flow.make("other", 1, 100));
        flow.ends_with(0, "done");
        match side {
            Side::Source => flow.source_admin.delete_topic(&topic).unwrap(),
            Side::Target => {
                flow.target_admin.delete_topic(&topic).unwrap();
                flow.fill(&topic, 2, 100..200);
            }
        }
        flow.fill(&other, 1, 100..300);
        let finished = flow.ends_with(65, "deleted");
        assert!(finished.stderr.contains(&format!("{topic}/1: deleted")), "{}", finished.stderr);
        assert_eq!(flow.assert_equal(&other), 300, "the others go on");
        let row = flow.row(&topic, 0);
        assert_eq!((row.state.as_str(), row.position.as_str()), ("halted", "50"), "{row:?}");
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Source,
    Target,
}

fn make_anew(flow: &Flow, side: Side, topic: &str) {
    let admin = match side {
        Side::Source => &flow.source_admin,
        Side::Target => &flow.target_admin,
    };
    admin.delete_topic(topic).unwrap();
    admin.create_topic(topic, 2).unwrap();
}
