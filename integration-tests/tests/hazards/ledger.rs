//! H2, H3, H4 and H8: the ledger cannot be read to its end, has grown, is made with wrong settings, or is another's.

use std::time::{Duration, Instant};

use integration_tests::kafka::{IMAGE_3_9, default_image};
use integration_tests::workload::{LiveLoad, Record, Writer, now_ms};
use integration_tests::{require_kafka, unique_name, wait_for};

use crate::flow::{Flow, PATIENCE, cluster_3_9, clusters};

/// How long the mirror may need to say that it cannot read its ledger: 60 s and a start.
const STALL_NAMED: Duration = Duration::from_secs(240);

#[test]
fn h02_an_open_transaction_of_another_in_the_ledger_stalls_by_name_and_copies_nothing_twice() {
    require_kafka!();
    let flow = Flow::new("h02").set("delivery", "lanes", "1");
    let topic = flow.make("t", 2, 100);
    let mut mirror = flow.run();
    flow.wait_until_copied(&topic, 100);

    let foreign = foreign_producer(&flow);
    foreign.begin().unwrap();
    foreign.send(&flow.ledger(), &foreign_record()).unwrap();
    foreign.flush().unwrap();
    // Settled behind the open transaction: no read_committed reader sees these entries.
    for part in 1..=5 {
        flow.fill(&topic, 2, part * 100..part * 100 + 100);
        flow.wait_until_copied(&topic, usize::try_from(part).unwrap() * 100 + 100);
    }
    mirror.kill().unwrap();
    flow.fill(&topic, 2, 600..700);
    let mut mirror = flow.run();
    mirror.wait_for_log("the ledger is blocked", STALL_NAMED).unwrap();
    assert_eq!(flow.copied(&topic), 600, "nothing is copied while the ledger cannot be read");
    foreign.abort().unwrap();
    assert_eq!(flow.wait_until_equal(&topic), 700);
    flow.stop(mirror);
    flow.assert_equal(&topic);
}

#[test]
fn h02_a_foreign_record_in_the_ledger_is_refused_and_not_guessed_at() {
    require_kafka!();
    let flow = Flow::new("h02-record");
    let topic = flow.make("t", 2, 100);
    flow.ends_with(0, "done");
    let ends = flow.ledger_ends();
    let foreign = foreign_producer(&flow);
    foreign.begin().unwrap();
    foreign.send(&flow.ledger(), &foreign_record()).unwrap();
    foreign.commit().unwrap();
    flow.fill(&topic, 2, 100..200);
    let finished = flow.finish();
    assert_eq!(finished.code, 78, "{}", finished.stderr);
    assert!(finished.stderr.contains("ledger"), "it says what is wrong: {}", finished.stderr);
    assert_eq!(flow.copied(&topic), 100);
    // The record and its marker, nothing of the mirror's.
    assert_eq!(flow.ledger_ends(), [ends[0] + 2, ends[1]]);
}

fn foreign_producer(flow: &Flow) -> Writer {
    let timeout = [("transaction.timeout.ms", "600000")];
    Writer::transactional(flow.target(), &unique_name("foreign"), &timeout).unwrap()
}

fn foreign_record() -> Record {
    Record {
        partition: 0,
        key: Some(b"foreign".to_vec()),
        value: Some(b"not the mirror's".to_vec()),
        headers: Vec::new(),
        timestamp: Some(now_ms()),
    }
}

#[test]
fn h03_a_ledger_grown_while_running_ends_the_run() {
    require_kafka!();
    let flow = Flow::new("h03");
    let topic = flow.make("t", 4, 0);
    let load = LiveLoad::start(flow.source(), &topic, 4, 0, 100).unwrap();
    let mut mirror = flow.run();
    flow.wait_until_copied(&topic, 50);
    flow.target_admin.grow_topic(&flow.ledger(), 4).unwrap();
    assert_eq!(mirror.wait(PATIENCE).unwrap(), 78, "{}", mirror.story());
    assert!(mirror.stderr().contains("lanes"), "{}", mirror.story());
    load.stop().unwrap();

    // Down, it is still refused, and with the grown number of lanes too: the claims say two.
    let (copied, ends) = (flow.copied(&topic), flow.ledger_ends());
    flow.ends_with(78, "lanes");
    let flow = flow.set("delivery", "lanes", "4");
    flow.ends_with(78, "lanes");
    assert_eq!(flow.copied(&topic), copied);
    assert_eq!(flow.ledger_ends(), ends);
    let report = integration_tests::checker::compare_topics((flow.source(), &topic), (flow.target(), &topic));
    let report = report.unwrap();
    let surplus = report.total(|found| found.duplicated + found.foreign + found.reordered);
    assert_eq!(surplus, 0, "{}", report.describe());
}

#[test]
fn h04_a_ledger_with_other_settings_is_refused_before_anything_is_written() {
    require_kafka!();
    let flow = Flow::new("h04");
    let topic = flow.make("t", 2, 10);
    flow.target_admin.create_topic_with(&flow.ledger(), 2, &[("cleanup.policy", "delete")]).unwrap();
    flow.ends_with(78, "cleanup.policy=delete");
    assert_eq!(flow.ledger_ends(), [0, 0]);
    assert_eq!(flow.target_admin.partition_count(&topic).unwrap(), None, "no target topic was made");
}

#[test]
fn h04_ledger_settings_changed_later_are_refused_at_the_next_start() {
    require_kafka!();
    let flow = Flow::new("h04-later");
    let topic = flow.make("t", 2, 100);
    flow.ends_with(0, "done");
    let ends = flow.ledger_ends();
    flow.fill(&topic, 2, 100..200);
    for policy in ["delete", "compact,delete"] {
        flow.target_admin.set_topic_config(&flow.ledger(), "cleanup.policy", policy).unwrap();
        flow.ends_with(78, "cleanup.policy");
        assert_eq!((flow.copied(&topic), flow.ledger_ends()), (100, ends.clone()));
    }
    flow.target_admin.set_topic_config(&flow.ledger(), "cleanup.policy", "compact").unwrap();
    flow.ends_with(0, "done");
    assert_eq!(flow.assert_equal(&topic), 200);
}

/// A ledger from which records were deleted no longer says what was copied.
#[test]
fn h04_a_ledger_that_lost_records_is_refused() {
    require_kafka!();
    let flow = Flow::new("h04-lost").set("delivery", "lanes", "1");
    let topic = flow.make("t", 1, 100);
    flow.ends_with(0, "done");
    flow.fill(&topic, 1, 100..200);
    let ends = flow.ledger_ends();
    // Kafka deletes no records by hand where the policy is to compact only.
    flow.target_admin.set_topic_config(&flow.ledger(), "cleanup.policy", "delete").unwrap();
    flow.target_admin.delete_records(&flow.ledger(), 0, ends[0]).unwrap();
    flow.target_admin.set_topic_config(&flow.ledger(), "cleanup.policy", "compact").unwrap();
    flow.ends_with(78, "were deleted");
    assert_eq!(flow.copied(&topic), 100);
}

#[test]
fn h08_a_flow_name_used_under_other_terms_is_refused_and_nothing_is_written() {
    require_kafka!(default_image());
    require_kafka!(IMAGE_3_9);
    let flow = Flow::new("h08");
    let topic = flow.make("t", 2, 100);
    flow.ends_with(0, "done");
    flow.fill(&topic, 2, 100..200);
    let ends = flow.ledger_ends();
    let config = flow.config.clone();

    let (other, _) = cluster_3_9();
    let other = Flow::between("h08-unused", &other.bootstrap(), flow.target()).with(config.clone().text(
        "source",
        "bootstrap.servers",
        &other.bootstrap(),
    ));
    other.source_admin.create_topic(&topic, 2).unwrap();
    other.fill(&topic, 2, 0..10);
    other.ends_with(78, clusters().source.cluster_id());

    let flow = flow.with(config.clone().set("delivery", "lanes", "3"));
    flow.ends_with(78, "lanes");
    let flow = flow.with(config.clone().text("topics", "rename", "other.{topic}"));
    flow.ends_with(78, "rename");

    assert_eq!((flow.copied(&topic), flow.ledger_ends()), (100, ends));
    assert_eq!(flow.target_admin.partition_count(&format!("other.{topic}")).unwrap(), None);
    let flow = flow.with(config);
    flow.ends_with(0, "done");
    assert_eq!(flow.assert_equal(&topic), 200);
}

/// The first claim is what a second instance is measured by, while the first is running too.
#[test]
fn h08_other_terms_are_refused_beside_a_running_instance() {
    require_kafka!();
    let flow = Flow::new("h08-beside");
    let topic = flow.make("t", 2, 100);
    let mut mirror = flow.run();
    flow.wait_until_copied(&topic, 100);
    let other = flow.config.clone().text("topics", "rename", "other.{topic}");
    let started = Instant::now();
    let finished = integration_tests::mirror::finish(&other, &["run"], PATIENCE).unwrap();
    assert_eq!(finished.code, 78, "after {:?}: {}", started.elapsed(), finished.stderr);
    assert!(mirror.is_running());
    flow.fill(&topic, 2, 100..200);
    flow.wait_until_equal(&topic);
    flow.stop(mirror);
    wait_for("nothing under the other name", PATIENCE, || {
        flow.target_admin.partition_count(&format!("other.{topic}")).unwrap().is_none().then_some(())
    });
}
