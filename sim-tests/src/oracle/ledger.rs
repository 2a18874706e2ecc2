//! The ledger's records, read by a decoder that shares nothing with the mirror's own.

use kafka_model::Offset;
use kafka_types::{TopicId, TopicName};
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerRecord {
    Claim(Claim),
    FlowStart,
    Topic(TopicName, TopicRecord),
    Entry(TopicName, i32, Box<Entry>),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Claim {
    pub incarnation: String,
    pub attempt: u64,
    pub lanes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TopicRecord {
    pub source_id: TopicId,
    pub starts: Vec<Start>,
    pub target: Option<TargetPin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Start {
    pub offset: Offset,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TargetPin {
    pub topic: TopicName,
    pub id: TopicId,
    pub ends: Vec<Offset>,
    /// Why the topic cannot hold copies, if so.
    pub unfit: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Entry {
    pub next: Offset,
    pub start: Offset,
    pub source_id: TopicId,
    pub target_topic: TopicName,
    pub target_id: TopicId,
    pub target_start: Offset,
    pub run: Option<Run>,
    pub target_end: Option<Offset>,
    pub records: u64,
    pub halted: Option<Halt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Run {
    pub source_first: Offset,
    pub target_first: Offset,
    pub target_last: Offset,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Halt {
    pub reason: HaltReason,
    pub offset: Option<Offset>,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HaltReason {
    Gap,
    Truncated,
    Recreated,
    Deleted,
    Oversized,
    Refused,
    Unsendable,
    Unreadable,
    NotAuthorized,
    Torn,
    RolledBack,
    Unfit,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Key {
    Claim,
    FlowStart,
    Topic { topic: TopicName },
    Entry { topic: TopicName, partition: i32 },
}

/// Reads one record; the error says what is wrong with it.
pub fn decode(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<LedgerRecord, String> {
    let key = key.ok_or("a ledger record without key")?;
    let value = value.ok_or("a tombstone in the ledger")?;
    let bad = |error: serde_json::Error| error.to_string();
    Ok(match serde_json::from_slice(key).map_err(bad)? {
        Key::Claim => LedgerRecord::Claim(serde_json::from_slice(value).map_err(bad)?),
        Key::FlowStart => LedgerRecord::FlowStart,
        Key::Topic { topic } => LedgerRecord::Topic(topic, serde_json::from_slice(value).map_err(bad)?),
        Key::Entry { topic, partition } => {
            LedgerRecord::Entry(topic, partition, Box::new(serde_json::from_slice(value).map_err(bad)?))
        }
    })
}
