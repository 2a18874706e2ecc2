use super::*;
use crate::fake::{Fake, flow, record};
use verbatim_core::ledger::{Halt, HaltReason};

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
        "state": "copying", "reason": null,
    }]);
    assert_eq!(rows, expected);
}
