use super::report::Method;
use super::*;
use crate::fake::{Fake, Log, flow, record};
use std::collections::BTreeMap;
use verbatim_core::ledger::{Halt, HaltReason};
use verbatim_core::time::Timestamp;

const IMPATIENT: Patience = Patience { visible: Duration::ZERO, accounted: Duration::ZERO };

fn log(values: &[&str]) -> Log {
    // Offsets with holes, as markers and compaction leave them.
    values.iter().zip(0..).map(|(value, index)| record(index * 2, &format!("k{index}"), value)).collect()
}

fn checked(fake: &Fake) -> PartitionReport {
    verify(fake, &flow(), &[], IMPATIENT).unwrap().partitions.remove(0)
}

#[track_caller]
fn differs(fake: &Fake, kind: Kind, source: Option<i64>, target: Option<i64>) {
    let report = verify(fake, &flow(), &[], IMPATIENT).unwrap();
    assert!(!report.equal);
    let found = report.partitions[0].difference.clone().unwrap();
    assert_eq!(
        (found.kind, found.source_offset, found.target_offset),
        (kind, source.map(SourceOffset), target.map(TargetOffset)),
        "{found:?}"
    );
}

fn target(fake: &mut Fake) -> &mut Log {
    fake.target_logs.get_mut(&TargetPartition::new("t", 0)).unwrap()
}

#[test]
fn equal_partitions_are_equal() {
    let mut fake = Fake::new();
    fake.topic("t", log(&["a", "b", "c"]), 3);
    fake.topic("lagging", log(&["a", "b", "c"]), 2);
    let halted = fake.topic("halted", log(&["a", "b"]), 1);
    let mut entry = fake.settle(&halted, 2, &log(&["a"]));
    let detail = "the source deleted 2..4".into();
    entry.halted = Some(Halt { reason: HaltReason::Gap, offset: None, detail, at: Timestamp(0) });
    fake.put(&halted, entry);
    fake.topic("untouched", log(&["a"]), 0);
    let report = verify(&fake, &flow(), &[], IMPATIENT).unwrap();
    assert!(report.equal && !report.complete);
    assert_eq!((report.records, report.code()), (6, Code::Done));
    insta::assert_snapshot!(text(&report));
}

#[test]
fn the_first_difference_is_named() {
    let mut fake = Fake::new();
    fake.topic("t", log(&["a", "b", "c"]), 3);
    target(&mut fake)[1].value = Some(b"x".to_vec());
    differs(&fake, Kind::Value, Some(2), Some(1));
    target(&mut fake).remove(1);
    differs(&fake, Kind::Missing, Some(2), None);
    insta::assert_snapshot!(text(&verify(&fake, &flow(), &[], IMPATIENT).unwrap()));
}

#[test]
fn records_of_another_writer_are_strays() {
    let mut fake = Fake::new();
    fake.topic("t", log(&["a"]), 1);
    target(&mut fake).push(record(7, "k", "not ours"));
    differs(&fake, Kind::Stray, None, Some(7));
    let mut untouched = Fake::new();
    untouched.topic("t", Log::new(), 0);
    target(&mut untouched).push(record(0, "k", "not ours"));
    differs(&untouched, Kind::Stray, None, Some(0));
}

#[test]
fn a_target_that_lost_records_or_is_another_topic_is_a_difference() {
    let mut fake = Fake::new();
    fake.topic("t", log(&["a", "b"]), 2);
    target(&mut fake).pop();
    differs(&fake, Kind::Target, None, Some(1));
    fake.target.topics.get_mut(&TopicName::from("t")).unwrap().id = kafka_types::TopicId(77);
    differs(&fake, Kind::Target, None, None);
    fake.target.topics.remove(&TopicName::from("t"));
    differs(&fake, Kind::Target, None, None);
}

#[test]
fn a_source_that_was_cut_back_is_a_difference() {
    let mut fake = Fake::new();
    let partition = fake.topic("t", log(&["a", "b", "c"]), 3);
    fake.source_logs.get_mut(&partition).unwrap().truncate(1);
    differs(&fake, Kind::Source, Some(1), None);
}

#[test]
fn what_the_source_deleted_is_compared_by_digest() {
    let mut fake = Fake::new();
    let partition = fake.topic("t", log(&["a", "b", "c"]), 3);
    fake.source_logs.get_mut(&partition).unwrap().remove(0);
    let report = checked(&fake);
    assert_eq!((report.method, report.records, report.digest_equal), (Method::Suffix, 2, Some(true)));
    assert!(report.notes[0].contains("no longer has 0 to 2"), "{report:?}");
    target(&mut fake)[0].value = None;
    differs(&fake, Kind::Digest, None, None);
    target(&mut fake)[2].value = None;
    differs(&fake, Kind::Value, Some(4), Some(2));
    fake.source_logs.get_mut(&partition).unwrap().clear();
    fake.source_starts.insert(partition, 5);
    assert_eq!(checked(&fake).method, Method::DigestOnly);
}

#[test]
fn what_the_target_deleted_is_left_out() {
    let mut fake = Fake::new();
    fake.topic("t", log(&["a", "b", "c"]), 3);
    target(&mut fake).remove(0);
    let report = checked(&fake);
    assert_eq!((report.method, report.records, report.digest_equal), (Method::Suffix, 2, None));
    assert_eq!(report.difference, None);
}

#[test]
fn compacted_topics_are_compared_by_their_last_records() {
    let mut fake = Fake::new();
    let partition = fake.topic("t", vec![record(0, "k", "1"), record(1, "k", "2"), record(2, "l", "1")], 3);
    let compact = BTreeMap::from([("cleanup.policy".to_string(), "compact".to_string())]);
    fake.set_configs(Side::Source, &"t".into(), compact);
    fake.source_logs.get_mut(&partition).unwrap().remove(0);
    fake.source_starts.insert(partition, 0);
    let report = checked(&fake);
    assert_eq!((report.method, report.records, report.digest_equal), (Method::LastPerKey, 2, Some(true)));
    target(&mut fake)[2].value = None;
    differs(&fake, Kind::Value, Some(2), Some(2));
}

#[test]
fn without_acknowledged_offsets_the_ledger_s_count_bounds_the_target() {
    let mut fake = Fake::new();
    let partition = fake.topic("t", log(&["a", "b"]), 2);
    let copy = target(&mut fake).clone();
    let entry = fake.settle(&partition, 3, &copy);
    fake.put(&partition, Entry { target_end: None, ..entry });
    assert_eq!(checked(&fake).difference, None);
    target(&mut fake).pop();
    differs(&fake, Kind::Missing, Some(2), None);
}

#[test]
fn what_stays_unreadable_is_to_be_tried_again() {
    let mut fake = Fake::new();
    fake.topic("t", log(&["a"]), 1);
    fake.target_logs.clear();
    let report = verify(&fake, &flow(), &[], IMPATIENT).unwrap();
    assert_eq!((report.equal, report.complete, report.code()), (true, false, Code::TryAgain));
    let json = serde_json::to_value(&report).unwrap();
    assert!(json["partitions"][0]["unread"].as_str().unwrap().contains("t has no leader"), "{json}");
}

/// What is asked again and again and gets no answer must not pass for what is gone.
#[test]
fn a_leader_that_does_not_answer_proves_nothing() {
    for side in [Side::Source, Side::Target] {
        let mut fake = Fake::new();
        fake.topic("other", log(&["a"]), 1);
        fake.topic("t", log(&["a", "b"]), 2);
        fake.topic("untouched", Log::new(), 0);
        for topic in ["t", "untouched"] {
            fake.silent.insert((side, topic.into()));
        }
        let report = verify(&fake, &flow(), &[], IMPATIENT).unwrap();
        assert_eq!(report.code(), Code::TryAgain, "{side}");
        let [other, silent, untouched] = report.partitions.as_slice() else { panic!("{report:?}") };
        assert_eq!((other.method, &other.unread), (Method::Records, &None));
        assert!(silent.unread.as_ref().unwrap().why.contains("t has no leader"), "{silent:?}");
        assert_eq!(silent.method, Method::Nothing, "{side}");
        assert_eq!(untouched.unread.is_some(), side == Side::Target, "strays could be there");
        assert!(!report.complete);
        let shown = text(&report);
        let closing = shown.lines().last().unwrap();
        assert!(closing.starts_with("equal as far as compared: 1 record in 3 partitions"), "{shown}");
        assert!(closing.contains("could not be read"), "{shown}");
    }
}

/// Brokers list no topic that may not be described, as if it were gone.
#[test]
fn a_topic_that_may_not_be_described_is_not_gone() {
    for side in [Side::Source, Side::Target] {
        let mut fake = Fake::new();
        fake.topic("other", log(&["a"]), 1);
        fake.topic("t", log(&["a", "b"]), 2);
        fake.hidden.insert((side, "t".into()));
        let report = verify(&fake, &flow(), &[], IMPATIENT).unwrap();
        assert_eq!(
            (report.equal, report.complete, report.code()),
            (true, false, Code::NotAuthorized),
            "{side}"
        );
        assert!(
            report.partitions[1].unread.as_ref().unwrap().why.contains("Describe on Topic t"),
            "{report:?}"
        );
    }
}

#[test]
fn a_difference_is_the_answer_whatever_else_cannot_be_read() {
    let mut fake = Fake::new();
    fake.topic("silent", log(&["a"]), 1);
    fake.silent.insert((Side::Source, "silent".into()));
    fake.topic("t", log(&["a", "b"]), 2);
    target(&mut fake)[0].value = None;
    let report = verify(&fake, &flow(), &[], IMPATIENT).unwrap();
    assert_eq!(report.code(), Code::Data);
    let shown = text(&report);
    let closing = "DIFFERENT: 1 of 2 partitions; not compared to the end: 1 could not be read\n";
    assert!(shown.ends_with(closing), "{shown}");
}

#[test]
fn what_may_not_be_read_is_77() {
    let mut fake = Fake::new();
    fake.topic("secret", log(&["a"]), 1);
    fake.topic("silent", log(&["a"]), 1);
    fake.unreadable.push("secret".into());
    fake.silent.insert((Side::Source, "silent".into()));
    assert_eq!(verify(&fake, &flow(), &[], IMPATIENT).unwrap().code(), Code::NotAuthorized);
}

#[test]
fn all_that_there_is_makes_it_complete() {
    let mut fake = Fake::new();
    fake.topic("t", log(&["a", "b"]), 2);
    fake.topic("empty", Log::new(), 0);
    let report = verify(&fake, &flow(), &[], IMPATIENT).unwrap();
    assert!(report.equal && report.complete, "{report:?}");
    assert!(text(&report).ends_with("equal: 2 records in 2 partitions\n"), "{}", text(&report));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["complete"], true);
    assert_eq!(json["partitions"][1]["unread"], serde_json::Value::Null);
}

#[test]
fn a_topic_that_is_not_in_the_ledger_is_complete_only_if_it_is_empty() {
    let mut fake = Fake::new();
    fake.topic("t", log(&["a"]), 1);
    fake.topic("late", Log::new(), 0);
    fake.ledger.retain(|record| !String::from_utf8_lossy(&record.key).contains("late"));
    assert!(verify(&fake, &flow(), &[], IMPATIENT).unwrap().complete);
    fake.source_logs.insert(SourcePartition::new("late", 0), log(&["a"]));
    let report = verify(&fake, &flow(), &[], IMPATIENT).unwrap();
    assert!(!report.complete && text(&report).contains("1 not begun"), "{}", text(&report));
}

#[test]
fn rules_that_match_nothing_prove_nothing() {
    let fake = Fake::new();
    let filter = verbatim_core::route::TopicFilter::new(&["oders".into()], &[]).unwrap();
    let report = verify(&fake, &Flow { filter, ..flow() }, &[], IMPATIENT).unwrap();
    assert_eq!((report.equal, report.complete, report.code()), (true, false, Code::Done));
    assert!(text(&report).lines().last().unwrap().starts_with("nothing matches"), "{}", text(&report));
    assert_eq!(report.matched.missing, [TopicName::from("oders")]);
}

#[test]
fn what_is_left_out_by_now_counts_as_far_as_it_was_copied() {
    let mut fake = Fake::new();
    fake.topic("retired", log(&["a", "b"]), 1);
    fake.topic("t", log(&["a"]), 1);
    let filter = verbatim_core::route::TopicFilter::new(&[".*".into()], &["retired".into()]).unwrap();
    let report = verify(&fake, &Flow { filter, ..flow() }, &[], IMPATIENT).unwrap();
    assert!(report.complete && !report.partitions[0].taken, "{report:?}");
}

#[test]
fn where_both_sides_have_deleted_everything_nothing_is_called_equal() {
    let mut fake = Fake::new();
    let partition = fake.topic("t", log(&["a", "b", "c"]), 3);
    fake.source_logs.get_mut(&partition).unwrap().clear();
    fake.source_starts.insert(partition, 5);
    target(&mut fake).remove(0);
    let report = verify(&fake, &flow(), &[], IMPATIENT).unwrap();
    assert!(!report.complete);
    let shown = text(&report);
    assert!(
        shown.contains("digest-only  -  ") && shown.contains("1 with nothing left to compare"),
        "{shown}"
    );
}

#[test]
fn a_flow_that_never_ran_cannot_be_verified() {
    let mut fake = Fake::new();
    fake.target.topics.clear();
    assert_eq!(verify(&fake, &flow(), &[], IMPATIENT).unwrap_err().code, Code::Configuration);
}
