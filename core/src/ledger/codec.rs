//! The bytes of ledger records: JSON, so that an operator can read a ledger with any Kafka tool.

use super::{Claim, Entry, FlowStart, TopicRecord};
use crate::command::NewLedgerRecord;
use crate::event::LedgerRecord;
use crate::lane::LaneId;
use kafka_types::{Partition, SourcePartition, TargetOffset, TopicName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of everything below. A higher one in a ledger is refused: a newer mirror wrote there.
const VERSION: u32 = 1;

/// A record of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    Claim(Claim),
    FlowStart(FlowStart),
    Topic(TopicName, TopicRecord),
    Entry(SourcePartition, Entry),
}

/// A record in the ledger that this version cannot read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("ledger partition {lane}, offset {offset}: {why}")]
pub struct BadLedgerRecord {
    pub lane: LaneId,
    pub offset: TargetOffset,
    pub why: String,
}

/// Compaction keeps the last record of each key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Key {
    Claim,
    FlowStart,
    Topic { topic: TopicName },
    Entry { topic: TopicName, partition: Partition },
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    value: T,
}

impl Record {
    pub fn encode(&self) -> NewLedgerRecord {
        let key = match self {
            Record::Claim(_) => Key::Claim,
            Record::FlowStart(_) => Key::FlowStart,
            Record::Topic(topic, _) => Key::Topic { topic: topic.clone() },
            Record::Entry(source, _) => {
                Key::Entry { topic: source.topic.clone(), partition: source.partition }
            }
        };
        let value = match self {
            Record::Claim(claim) => to_json(&Versioned { version: VERSION, value: claim }),
            Record::FlowStart(start) => to_json(&Versioned { version: VERSION, value: start }),
            Record::Topic(_, topic) => to_json(&Versioned { version: VERSION, value: topic }),
            Record::Entry(_, entry) => to_json(&Versioned { version: VERSION, value: entry }),
        };
        NewLedgerRecord { key: to_json(&key), value }
    }
}

/// Reads one record of the ledger back.
pub fn decode(record: &LedgerRecord) -> Result<Record, BadLedgerRecord> {
    decode_parts(&record.key, &record.value).map_err(|why| BadLedgerRecord {
        lane: record.lane,
        offset: record.offset,
        why,
    })
}

fn decode_parts(key: &[u8], value: &[u8]) -> Result<Record, String> {
    let key = serde_json::from_slice(key).map_err(|error| format!("not a ledger key: {error}"))?;
    Ok(match key {
        Key::Claim => Record::Claim(versioned(value)?),
        Key::FlowStart => Record::FlowStart(versioned(value)?),
        Key::Topic { topic } => Record::Topic(topic, versioned(value)?),
        Key::Entry { topic, partition } => {
            Record::Entry(SourcePartition { topic, partition }, versioned(value)?)
        }
    })
}

fn versioned<T: DeserializeOwned>(value: &[u8]) -> Result<T, String> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let bad = |error: serde_json::Error| format!("not a ledger value: {error}");
    let Version { version } = serde_json::from_slice(value).map_err(bad)?;
    if version != VERSION {
        return Err(format!("version {version}, but this verbatim reads only {VERSION}"));
    }
    Ok(serde_json::from_slice::<Versioned<T>>(value).map_err(bad)?.value)
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("ledger records have text keys and finite numbers only")
}

#[cfg(test)]
mod tests {
    use super::super::{TargetPin, Terms};
    use super::*;
    use crate::digest::Digest;
    use crate::lane::Attempt;
    use crate::ledger::entry::{LastRecord, RunOffsets};
    use crate::ledger::{Halt, HaltReason};
    use crate::time::Timestamp;
    use kafka_types::{LeaderEpoch, OffsetAndEpoch, SourceOffset, TopicId};

    fn read_back(record: Record) {
        let NewLedgerRecord { key, value } = record.encode();
        let stored = LedgerRecord { lane: LaneId(0), offset: TargetOffset(5), key, value };
        assert_eq!(decode(&stored), Ok(record));
    }

    pub fn entry() -> Entry {
        Entry {
            next: SourceOffset(42),
            last: Some(LastRecord { next: SourceOffset(40), epoch: LeaderEpoch(3) }),
            start: SourceOffset(2),
            source_id: TopicId(7),
            target_topic: "dc1.orders".into(),
            target_id: TopicId(u128::MAX),
            target_start: TargetOffset(100),
            run: Some(RunOffsets {
                source_first: SourceOffset(40),
                target_first: TargetOffset(138),
                target_last: TargetOffset(139),
            }),
            target_end: Some(TargetOffset(140)),
            records: 40,
            bytes: 4_000,
            digest: Digest::EMPTY,
            timestamp: Some(Timestamp(-1)),
            settled_at: Timestamp(1_700_000_000_000),
            halted: Some(Halt {
                reason: HaltReason::RolledBack,
                offset: None,
                detail: "the target lost data".into(),
                at: Timestamp(9),
            }),
        }
    }

    #[test]
    fn every_kind_survives_its_bytes() {
        let terms = Terms::new(8, "source-id", "target-id", "{topic}".into());
        read_back(Record::Claim(Claim { incarnation: "a-1".into(), attempt: Attempt(3), terms }));
        read_back(Record::FlowStart(FlowStart { at: Timestamp(5) }));
        let target = TargetPin {
            topic: "dc1.orders".into(),
            id: TopicId(8),
            ends: vec![TargetOffset(9)],
            unfit: None,
        };
        read_back(Record::Topic(
            "orders".into(),
            TopicRecord {
                source_id: TopicId(7),
                starts: vec![OffsetAndEpoch { offset: SourceOffset(3), epoch: Some(LeaderEpoch(1)) }],
                target: Some(target),
            },
        ));
        read_back(Record::Entry(SourcePartition::new("orders", 3), entry()));
        read_back(Record::Entry(
            SourcePartition::new("orders", 3),
            Entry { last: None, run: None, target_end: None, timestamp: None, halted: None, ..entry() },
        ));
    }

    #[test]
    fn foreign_bytes_and_newer_versions_are_refused_by_place() {
        let stored = |key: &str, value: &str| LedgerRecord {
            lane: LaneId(2),
            offset: TargetOffset(5),
            key: key.into(),
            value: value.into(),
        };
        let why = |key, value| decode(&stored(key, value)).unwrap_err().to_string();
        assert!(why("x", "{}").starts_with("ledger partition 2, offset 5: not a ledger key"));
        assert!(why(r#"{"kind":"claim"}"#, "{}").contains("not a ledger value"));
        let newer = why(r#"{"kind":"flow-start"}"#, r#"{"version":2,"at":1}"#);
        assert!(newer.contains("version 2, but this verbatim reads only 1"), "{newer}");
    }
}
