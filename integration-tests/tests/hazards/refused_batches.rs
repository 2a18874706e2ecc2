//! H10 and H11: records that the client or the target does not take at first.

use integration_tests::workload::{LiveLoad, Record, unique_record};
use integration_tests::{batch, require_kafka};

use crate::flow::{Flow, PATIENCE};

#[test]
fn h10_a_source_topic_that_grows_under_load_is_copied_whole() {
    require_kafka!();
    let flow = Flow::new("h10");
    let topic = flow.make("t", 1, 0);
    let first = LiveLoad::start(flow.source(), &topic, 1, 0, 200).unwrap();
    let mirror = flow.run();
    flow.wait_until_copied(&topic, 100);
    flow.source_admin.grow_topic(&topic, 3).unwrap();
    let second = LiveLoad::start(flow.source(), &topic, 3, 1_000_000, 200).unwrap();
    let grown = || flow.target_admin.partition_count(&topic).unwrap() == Some(3);
    integration_tests::wait_for("the target topic to grow", PATIENCE, || grown().then_some(()));
    std::thread::sleep(std::time::Duration::from_secs(2));
    first.stop().unwrap();
    second.stop().unwrap();
    flow.wait_until_equal(&topic);
    flow.stop(mirror);
    flow.assert_equal(&topic);
}

#[test]
fn h11_a_batch_too_large_for_the_target_arrives_record_by_record() {
    require_kafka!();
    let flow = Flow::new("h11");
    let topic = flow.make("t", 1, 0);
    flow.target_admin.create_topic_with(&topic, 1, &[("max.message.bytes", "20000")]).unwrap();
    for part in 0..3 {
        let records: Vec<Record> =
            (part * 100..part * 100 + 100).map(|number| unique_record(number, 1, 1000)).collect();
        batch::produce(flow.source(), &topic, 0, &records).unwrap();
    }
    let finished = flow.ends_with(0, "done");
    assert!(!finished.stderr.contains("halted"), "{}", finished.stderr);
    assert_eq!(flow.assert_equal(&topic), 300);
}

#[test]
fn h11_a_record_too_large_for_the_target_halts_its_partition_there() {
    require_kafka!();
    let flow = Flow::new("h11-record").set("delivery", "lanes", "1");
    let topic = flow.make("t", 2, 0);
    let other = flow.make("other", 1, 300);
    flow.target_admin.create_topic_with(&topic, 2, &[("max.message.bytes", "20000")]).unwrap();
    let mut records: Vec<Record> = (0..100).map(|number| unique_record(number, 1, 1000)).collect();
    batch::produce(flow.source(), &topic, 1, &records).unwrap();
    records[57] = unique_record(57, 1, 30_000);
    batch::produce(flow.source(), &topic, 0, &records).unwrap();

    let finished = flow.ends_with(65, "oversized at offset 57");
    assert!(finished.stderr.contains(&format!("{topic}/0")), "{}", finished.stderr);
    let row = flow.row(&topic, 0);
    assert_eq!((row.position.as_str(), row.state.as_str()), ("57", "halted"), "{row:?}");
    assert!(row.reason.starts_with("oversized at offset 57"), "{row:?}");
    assert_eq!(flow.row(&topic, 1).state, "caught-up");
    assert_eq!(flow.assert_equal(&other), 300);
    let report = integration_tests::checker::compare_topics((flow.source(), &topic), (flow.target(), &topic));
    let report = report.unwrap();
    assert_eq!(report.partitions[0].differences.target_records, 57, "{}", report.describe());
    assert_eq!(report.total(|found| found.lost), 43, "{}", report.describe());
    let surplus = report.total(|found| found.duplicated + found.foreign + found.reordered);
    assert_eq!(surplus, 0, "{}", report.describe());

    // A restart halts at the same place; a target that takes it has the rest.
    flow.ends_with(65, "oversized at offset 57");
    flow.target_admin.set_topic_config(&topic, "max.message.bytes", "100000").unwrap();
    flow.ends_with(0, "done");
    assert_eq!(flow.assert_equal(&topic), 200);
}

/// A compacted topic takes no record without a key, and says so of the whole batch.
#[test]
fn a_record_without_a_key_halts_before_a_compacted_topic() {
    require_kafka!();
    let flow = Flow::new("keyless").set("delivery", "lanes", "1");
    let topic = flow.make("t", 1, 0);
    let other = flow.make("other", 1, 300);
    flow.target_admin.create_topic_with(&topic, 1, &[("cleanup.policy", "compact")]).unwrap();
    let mut records: Vec<Record> = (0..50).map(|number| unique_record(number, 1, 100)).collect();
    records[31].key = None;
    batch::produce(flow.source(), &topic, 0, &records).unwrap();

    flow.ends_with(65, "refused at offset 31");
    let row = flow.row(&topic, 0);
    assert_eq!((row.position.as_str(), row.state.as_str()), ("31", "halted"), "{row:?}");
    assert_eq!(flow.copied(&topic), 31, "all before it, and nothing after it");
    assert_eq!(flow.assert_equal(&other), 300, "the others go on");
}
