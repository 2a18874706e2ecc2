//! `verbatim status`: where each partition stands, from the ledger and the source alone.

use crate::clusters::{Clusters, Extent};
use crate::exit_code::Code;
use crate::failed::Failed;
use crate::ledger::Ledger;
use crate::table::{cell, table};
use kafka_types::{Partition, SourceOffset, SourcePartition, TopicName};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use verbatim_core::config::Flow;
use verbatim_core::event::Listing;
use verbatim_core::failure::Side;
use verbatim_core::lane::lane_of;
use verbatim_core::time::Timestamp;

/// One row, with raw numbers; the JSON form of it is relied on by users' scripts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    pub flow: String,
    pub topic: TopicName,
    pub partition: Partition,
    pub lane: u32,
    pub owner: Option<String>,
    pub position: Option<SourceOffset>,
    pub source_end: Option<SourceOffset>,
    pub lag: Option<u64>,
    pub lag_time_ms: Option<u64>,
    pub state: State,
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// There is something to copy.
    Copying,
    CaughtUp,
    /// It stands still until somebody acts.
    Halted,
    /// Something must happen first that the mirror does by itself.
    Waiting,
    /// The source deleted records before they were copied, and no instance has noticed yet.
    Gap,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Copying => "copying",
            State::CaughtUp => "caught-up",
            State::Halted => "halted",
            State::Waiting => "waiting",
            State::Gap => "gap",
        }
    }
}

/// Gathers the rows of `topics`, of all topics where none is named.
pub(crate) fn gather(
    clusters: &impl Clusters,
    flow: &Flow,
    topics: &[String],
    now: Timestamp,
) -> Result<Vec<Row>, Failed> {
    let source = describe(clusters, Side::Source)?;
    let target = describe(clusters, Side::Target)?;
    let ledger = Ledger::read(clusters, &flow.name, &target)?.unwrap_or_default();
    let partitions = partitions(flow, &source, &ledger, topics);
    refuse_unknown(topics, &partitions)?;
    let known: Vec<_> = partitions.iter().filter(|p| exists(&source, p)).cloned().collect();
    let extents =
        clusters.source_extents(&known).map_err(|trouble| Failed::trouble(Side::Source, &trouble))?;
    let mut rows = Vec::new();
    for partition in partitions {
        rows.push(row(clusters, flow, &source, &ledger, &extents, partition, now)?);
    }
    Ok(rows)
}

pub(crate) fn describe(clusters: &impl Clusters, side: Side) -> Result<Listing, Failed> {
    clusters.describe(side).map_err(|trouble| Failed::trouble(side, &trouble))
}

/// What the rules take at the source, and what the ledger knows, in order.
pub(crate) fn partitions(
    flow: &Flow,
    source: &Listing,
    ledger: &Ledger,
    topics: &[String],
) -> BTreeSet<SourcePartition> {
    let wanted = |topic: &TopicName| topics.is_empty() || topics.iter().any(|name| name == topic.as_str());
    let taken =
        source.topics.iter().filter(|(topic, info)| !info.internal && flow.filter.takes(topic)).flat_map(
            |(topic, info)| {
                Partition::all(info.partitions)
                    .map(|partition| SourcePartition { topic: topic.clone(), partition })
            },
        );
    let known = ledger.entries().map(|(partition, _)| partition.clone());
    taken.chain(known).filter(|partition| wanted(&partition.topic)).collect()
}

/// A topic asked for by name that is nowhere is a mistake, not an empty table.
pub(crate) fn refuse_unknown(topics: &[String], found: &BTreeSet<SourcePartition>) -> Result<(), Failed> {
    match topics.iter().find(|topic| !found.iter().any(|partition| partition.topic.as_str() == *topic)) {
        None => Ok(()),
        Some(topic) => Err(Failed::new(Code::Usage, format!("the flow has no topic {topic}"))
            .help("--topic names a source topic that topics.include takes")),
    }
}

pub(crate) fn exists(source: &Listing, partition: &SourcePartition) -> bool {
    source
        .topics
        .get(&partition.topic)
        .is_some_and(|info| partition.partition.index() < info.partitions as usize)
}

fn row(
    clusters: &impl Clusters,
    flow: &Flow,
    source: &Listing,
    ledger: &Ledger,
    extents: &BTreeMap<SourcePartition, Extent<SourceOffset>>,
    partition: SourcePartition,
    now: Timestamp,
) -> Result<Row, Failed> {
    let lane = lane_of(&partition, flow.lanes);
    let entry = ledger.entry(&partition);
    let record = ledger.topic(&partition.topic);
    let position =
        entry.map(|entry| entry.next).or_else(|| record.map(|record| record.start(partition.partition)));
    let extent = extents.get(&partition);
    let lag = position.zip(extent).map(|(position, extent)| extent.high_watermark.distance_from(position));
    let (state, reason) = if let Some(halt) = entry.and_then(|entry| entry.halted.as_ref()) {
        (State::Halted, Some(halt.to_string()))
    } else if let Some(unfit) = record.and_then(|record| record.target.as_ref()?.unfit.as_ref()) {
        (State::Halted, Some(format!("unfit: {unfit}")))
    } else if extent.is_none() {
        let reason = if exists(source, &partition) {
            "its leader does not answer"
        } else {
            "the source has no such partition"
        };
        (State::Waiting, Some(reason.into()))
    } else if !flow.filter.takes(&partition.topic) {
        (State::Waiting, Some("topics.include and topics.exclude leave it out".into()))
    } else if record.is_none() {
        (State::Waiting, Some("not in the ledger yet".into()))
    } else if entry.is_none() && record.is_some_and(|record| record.target.is_none()) {
        (State::Waiting, Some("the target topic does not exist yet".into()))
    } else {
        progress(position, extent)
    };
    let lag_time_ms = match (position, extent) {
        (Some(position), Some(extent)) => lag_time(clusters, &partition, position, extent, now)?,
        _ => None,
    };
    Ok(Row {
        flow: flow.name.to_string(),
        lane: lane.0,
        owner: ledger.claim(lane).map(|claim| claim.incarnation.clone()),
        position,
        source_end: extent.map(|extent| extent.high_watermark),
        lag,
        lag_time_ms,
        state,
        reason,
        topic: partition.topic,
        partition: partition.partition,
    })
}

fn progress(
    position: Option<SourceOffset>,
    extent: Option<&Extent<SourceOffset>>,
) -> (State, Option<String>) {
    let (Some(position), Some(extent)) = (position, extent) else { return (State::Waiting, None) };
    if position < extent.start {
        let lost = extent.start.distance_from(position);
        let reason = format!("the source deleted {lost} offsets from {position} on before they were copied");
        (State::Gap, Some(reason))
    } else if extent.high_watermark <= position {
        (State::CaughtUp, None)
    } else if extent.last_stable <= position {
        (State::Copying, Some("a source transaction is open".into()))
    } else {
        (State::Copying, None)
    }
}

/// How old the next record to copy is; nothing where there is none, or where it has no timestamp.
fn lag_time(
    clusters: &impl Clusters,
    partition: &SourcePartition,
    position: SourceOffset,
    extent: &Extent<SourceOffset>,
    now: Timestamp,
) -> Result<Option<u64>, Failed> {
    let from = position.max(extent.start);
    if extent.last_stable <= from {
        return Ok(Some(0));
    }
    let mut records = clusters
        .source_records(partition, from, extent.last_stable)
        .map_err(|trouble| Failed::trouble(Side::Source, &trouble))?;
    match records.next() {
        None => Ok(Some(0)),
        Some(Ok(record)) if record.timestamp < 0 => Ok(None),
        Some(Ok(record)) => Ok(Some(u64::try_from(now.0 - record.timestamp).unwrap_or(0))),
        Some(Err(trouble)) => Err(Failed::trouble(Side::Source, &trouble)),
    }
}

pub(crate) fn text(rows: &[Row]) -> String {
    const HEADER: [&str; 11] = [
        "FLOW",
        "TOPIC",
        "PARTITION",
        "LANE",
        "OWNER",
        "POSITION",
        "SOURCE-END",
        "LAG",
        "LAG-TIME",
        "STATE",
        "REASON",
    ];
    let cells: Vec<[String; 11]> = rows
        .iter()
        .map(|row| {
            [
                row.flow.clone(),
                row.topic.to_string(),
                row.partition.to_string(),
                row.lane.to_string(),
                cell(row.owner.as_ref()),
                cell(row.position),
                cell(row.source_end),
                cell(row.lag),
                cell(row.lag_time_ms.map(age)),
                row.state.name().into(),
                cell(row.reason.as_ref()),
            ]
        })
        .collect();
    table(HEADER, &cells)
}

/// Whole seconds are enough for an age, milliseconds for a very young one.
fn age(millis: u64) -> String {
    let age = match millis {
        0..1000 => Duration::from_millis(millis),
        _ => Duration::from_secs(millis / 1000),
    };
    humantime::format_duration(age).to_string().replace(' ', "")
}

#[cfg(test)]
mod tests;
