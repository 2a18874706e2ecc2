use super::*;
use crate::fake::{Fake, flow, record};
use kafka_types::SourceOffset;
use verbatim_core::lane::lane_of;
use verbatim_core::ledger::{Halt, HaltReason};
use verbatim_core::status::State;

const NOW: Timestamp = Timestamp(61_002);

fn shown(fake: &Fake, topics: &[&str]) -> String {
    let topics: Vec<String> = topics.iter().map(|topic| topic.to_string()).collect();
    text(&gather(fake, &flow(), &topics, NOW).unwrap())
}

fn log(values: &[&str]) -> crate::fake::Log {
    values.iter().zip(0..).map(|(value, offset)| record(offset, "k", value)).collect()
}

#[test]
fn every_state_has_its_row() {
    let mut fake = Fake::new();
    fake.topic("caught-up", log(&["a", "b"]), 2);
    fake.topic("copying", log(&["a", "b", "c"]), 2);
    fake.topic("untouched", log(&["a"]), 0);
    let halted = fake.topic("halted", log(&["a", "b"]), 1);
    let mut entry = fake.settle(&halted, 1, &log(&["a"]));
    let halt = Halt {
        reason: HaltReason::Oversized,
        offset: Some(SourceOffset(1)),
        detail: "2000000 bytes".into(),
        at: NOW,
    };
    entry.halted = Some(halt);
    fake.put(&halted, entry);
    let gap = fake.topic("gap", log(&["a", "b", "c"]), 1);
    fake.source_starts.insert(gap, 2);
    fake.topic("unknown", log(&["a"]), 0);
    fake.ledger.retain(|record| !String::from_utf8_lossy(&record.key).contains("unknown"));
    insta::assert_snapshot!(shown(&fake, &[]));
}

/// The row of this topic's only partition.
fn row_of(fake: &Fake, topic: &str) -> Row {
    gather(fake, &flow(), &[topic.into()], NOW).unwrap().remove(0)
}

/// A partition that halted after its first record.
fn halted(fake: &mut Fake, topic: &str) -> SourcePartition {
    let partition = fake.topic(topic, log(&["a", "b"]), 1);
    let mut entry = fake.settle(&partition, 1, &log(&["a"]));
    let detail = "its batch is corrupt".into();
    entry.halted = Some(Halt { reason: HaltReason::Unreadable, offset: None, detail, at: NOW });
    fake.put(&partition, entry);
    partition
}

#[test]
fn a_record_that_cannot_be_read_costs_no_more_than_its_lag_time() {
    let mut fake = Fake::new();
    halted(&mut fake, "corrupt");
    fake.topic("other", log(&["a", "b"]), 1);
    fake.unreadable.push("corrupt".into());
    let rows = gather(&fake, &flow(), &[], NOW).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].state, rows[0].lag, rows[0].lag_time_ms), (State::Halted, Some(1), None));
    assert!(rows[0].reason.as_ref().unwrap().starts_with("unreadable"), "{rows:?}");
    assert_eq!(rows[1].lag_time_ms, Some(60_001));
}

#[test]
fn a_leader_that_does_not_answer_costs_no_more_than_its_row() {
    let mut fake = Fake::new();
    fake.topic("silent", log(&["a"]), 1);
    fake.topic("other", log(&["a"]), 1);
    fake.silent.insert((Side::Source, "silent".into()));
    let row = row_of(&fake, "silent");
    assert_eq!((row.state, row.position, row.source_end), (State::Waiting, Some(SourceOffset(1)), None));
    assert!(row.reason.as_ref().unwrap().contains("silent has no leader"), "{row:?}");
    assert_eq!(row_of(&fake, "other").state, State::CaughtUp);
}

#[test]
fn a_topic_made_anew_is_not_shown_as_copied() {
    let mut fake = Fake::new();
    let partition = fake.topic("anew", log(&["a"]), 1);
    fake.source.topics.get_mut(&partition.topic).unwrap().id = kafka_types::TopicId(4711);
    let row = row_of(&fake, "anew");
    assert_eq!((row.state, row.lag, row.lag_time_ms), (State::Waiting, None, None));
    assert!(row.reason.as_ref().unwrap().contains("made again"), "{row:?}");
}

#[test]
fn a_topic_that_may_not_be_described_is_not_gone() {
    let mut fake = Fake::new();
    fake.topic("hidden", log(&["a"]), 1);
    fake.hidden.insert((Side::Source, "hidden".into()));
    let row = row_of(&fake, "hidden");
    assert_eq!((row.state, row.position), (State::Waiting, Some(SourceOffset(1))));
    assert!(row.reason.as_ref().unwrap().contains("Describe on Topic hidden"), "{row:?}");
}

#[test]
fn what_an_open_transaction_holds_back_has_no_known_age() {
    let mut fake = Fake::new();
    let partition = fake.topic("held", log(&["a", "b"]), 1);
    fake.open_from.insert(partition, 1);
    let row = row_of(&fake, "held");
    assert_eq!((row.state, row.lag, row.lag_time_ms), (State::Copying, Some(1), None));
    let expected = "a source transaction is open: producer id 4711 since offset 1";
    assert_eq!(row.reason.as_deref(), Some(expected));
}

#[test]
fn a_topic_that_is_left_out_is_no_longer_halted() {
    let mut fake = Fake::new();
    halted(&mut fake, "retired");
    assert_eq!(row_of(&fake, "retired").state, State::Halted);
    let filter = verbatim_core::route::TopicFilter::new(&[".*".into()], &["retired".into()]).unwrap();
    let rows = gather(&fake, &Flow { filter, ..flow() }, &[], NOW).unwrap();
    assert_eq!(rows[0].state, State::Waiting);
    assert!(rows[0].reason.as_ref().unwrap().contains("topics.exclude"), "{rows:?}");
}

#[test]
fn only_a_long_silence_is_remarked_upon() {
    let mut fake = Fake::new();
    fake.topic("copying", log(&["a", "b", "c"]), 2);
    let reason = |now| gather(&fake, &flow(), &[], Timestamp(now)).unwrap().remove(0).reason;
    // The next record is of 1,002 ms, and the last settle of 0 ms.
    assert_eq!(reason(61_001), None);
    let expected = "nothing settled for 1m1s: is an instance running?";
    assert_eq!(reason(61_002).as_deref(), Some(expected));
}

#[test]
fn a_flow_that_never_ran_shows_what_it_would_take() {
    let mut fake = Fake::new();
    fake.topic("orders", log(&["a"]), 0);
    fake.target.topics.clear();
    let rows = gather(&fake, &flow(), &[], NOW).unwrap();
    assert_eq!((rows.len(), rows[0].state, rows[0].position), (1, State::Waiting, None));
}

#[test]
fn topics_narrow_and_must_exist() {
    let mut fake = Fake::new();
    fake.topic("a", log(&["a"]), 1);
    fake.topic("b", log(&["a"]), 1);
    assert_eq!(shown(&fake, &["b"]).lines().count(), 2);
    let failed = gather(&fake, &flow(), &["c".into()], NOW).unwrap_err();
    assert_eq!(failed.code, Code::Usage);
}

#[test]
fn json_has_raw_numbers() {
    let mut fake = Fake::new();
    fake.topic("copying", log(&["a", "b", "c"]), 2);
    let rows = serde_json::to_value(gather(&fake, &flow(), &[], NOW).unwrap()).unwrap();
    let expected = serde_json::json!([{
        "flow": "f", "topic": "copying", "partition": 0, "lane": lane_of(&SourcePartition::new("copying", 0), 2).0,
        "owner": rows[0]["owner"], "position": 2, "source_end": 3, "lag": 1, "lag_time_ms": 60_000,
        "state": "copying", "reason": "nothing settled for 1m1s: is an instance running?",
    }]);
    assert_eq!(rows, expected);
}
