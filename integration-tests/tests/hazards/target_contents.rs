//! H15: the target does not hold what the ledger says.

use integration_tests::workload::{self, Writer, unique_record};
use integration_tests::{require_kafka, unique_name};

use crate::flow::Flow;

#[test]
fn h15_a_stray_record_in_a_target_partition_halts_that_partition_by_name() {
    require_kafka!();
    let flow = Flow::new("h15").set("delivery", "lanes", "1");
    let topic = flow.make("t", 3, 300);
    let other = flow.make("other", 1, 100);
    flow.ends_with(0, "done");
    let end = flow.target_admin.watermarks(&topic, 1).unwrap().1;
    let stray = Writer::idempotent(flow.target(), &[]).unwrap();
    stray.send(&topic, &workload::Record { partition: 1, ..unique_record(7_000_000, 1, 50) }).unwrap();
    stray.flush().unwrap();

    flow.fill(&topic, 3, 300..600);
    flow.fill(&other, 1, 100..200);
    flow.ends_with(65, &format!("torn: target partition holds a record at offset {end}"));
    let row = flow.row(&topic, 1);
    assert_eq!((row.state.as_str(), row.position.as_str()), ("halted", "100"), "{row:?}");
    assert!(row.reason.starts_with("torn"), "{row:?}");
    for partition in [0, 2] {
        assert_eq!(flow.row(&topic, partition).state, "caught-up");
    }
    assert_eq!(flow.assert_equal(&other), 200);
    let report = integration_tests::checker::compare_topics((flow.source(), &topic), (flow.target(), &topic));
    let report = report.unwrap();
    let of = |partition: usize| report.partitions[partition].differences.clone();
    assert!(of(0).is_equal() && of(2).is_equal(), "{}", report.describe());
    assert_eq!((of(1).target_records, of(1).foreign, of(1).lost), (101, 1, 100), "{}", report.describe());
}

/// What was aborted is no record: another's aborted transaction, or only its marker, tears nothing.
#[test]
fn h15_an_aborted_stray_record_and_deleted_records_halt_nothing() {
    require_kafka!();
    let flow = Flow::new("h15-aborted").set("delivery", "lanes", "1");
    let topic = flow.make("t", 1, 100);
    flow.ends_with(0, "done");
    let stray = Writer::transactional(flow.target(), &unique_name("stray"), &[]).unwrap();
    stray.begin().unwrap();
    stray.send(&topic, &unique_record(7_000_000, 1, 50)).unwrap();
    stray.flush().unwrap();
    stray.abort().unwrap();
    flow.fill(&topic, 1, 100..200);
    flow.ends_with(0, "done");
    assert_eq!(flow.assert_equal(&topic), 200);

    // Retention at the target is its owner's business.
    let end = flow.target_admin.watermarks(&topic, 0).unwrap().1;
    flow.target_admin.delete_records(&topic, 0, end).unwrap();
    flow.fill(&topic, 1, 200..300);
    flow.ends_with(0, "done");
    assert_eq!(flow.copied(&topic), 100);
    assert_eq!(flow.row(&topic, 0).state, "caught-up");
}
