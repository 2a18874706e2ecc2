//! `verbatim status`: where each partition stands, from the ledger and the source alone.

use crate::clusters::{Clusters, trouble_of_all};
use crate::exit_code::Code;
use crate::failed::Failed;
use crate::ledger::{self, FlowLedger};
use crate::parallel;
use crate::table::{cell, table};
use kafka_types::{SourcePartition, TopicName};
use std::collections::{BTreeMap, BTreeSet};
use verbatim_core::command::Topics;
use verbatim_core::config::Flow;
use verbatim_core::event::Listing;
use verbatim_core::failure::Side;
use verbatim_core::status::{Row, Scene, Unread, age};
use verbatim_core::time::Timestamp;

/// Partitions whose next record is read at once, to see how old it is.
const PARALLEL: usize = 16;
/// Gathers the rows of `topics`, of all topics where none is named.
pub(crate) fn gather(
    clusters: &impl Clusters,
    flow: &Flow,
    topics: &[String],
    now: Timestamp,
) -> Result<Vec<Row>, Failed> {
    let mut source = describe(clusters, Side::Source)?;
    let target = describe(clusters, Side::Target)?;
    let ledger = ledger::read(clusters, &flow.name, &target)?.unwrap_or_default();
    describe_known(clusters, Side::Source, &mut source, &ledger)?;
    let partitions = partitions(flow, &source, &ledger, topics);
    refuse_unknown(topics, &partitions)?;
    let partitions: Vec<SourcePartition> = partitions.into_iter().collect();
    let known: Vec<_> = partitions.iter().filter(|p| exists(&source, p)).cloned().collect();
    let extents = clusters.source_extents(&known);
    if let Some(trouble) = trouble_of_all(&extents) {
        return Err(Failed::trouble(Side::Source, trouble));
    }
    let mut scene = Scene { flow, source, ledger, extents, open: BTreeMap::new(), now };
    let held_back: Vec<_> = partitions.iter().filter(|p| scene.is_held_back(p)).cloned().collect();
    if !held_back.is_empty() {
        scene.open = clusters.open_transactions(&held_back);
    }
    let lag_times = parallel::map(PARALLEL, &partitions, |partition| lag_time(&scene, clusters, partition));
    Ok(partitions.into_iter().zip(lag_times).map(|(p, lag_time)| scene.row(p, lag_time)).collect())
}

/// All topics that may be seen.
pub(crate) fn describe(clusters: &impl Clusters, side: Side) -> Result<Listing, Failed> {
    clusters.describe(side, &Topics::All).map_err(|trouble| Failed::trouble(side, &trouble))
}

/// Adds to a listing of all topics what the ledger knows besides. Brokers leave out what may not be described, as if
/// it were not there; asked by name they say so.
pub(crate) fn describe_known(
    clusters: &impl Clusters,
    side: Side,
    listing: &mut Listing,
    ledger: &FlowLedger,
) -> Result<(), Failed> {
    let is_unlisted = |topic: &TopicName| !listing.topics.contains_key(topic);
    let unlisted: Vec<TopicName> = ledger.names(side).into_iter().filter(is_unlisted).collect();
    if unlisted.is_empty() {
        return Ok(());
    }
    let named = clusters.describe(side, &Topics::Named(unlisted));
    let named = named.map_err(|trouble| Failed::trouble(side, &trouble))?;
    listing.topics.extend(named.topics);
    listing.trouble.extend(named.trouble);
    Ok(())
}

/// What the rules take at the source, and what the ledger knows, in order.
pub(crate) fn partitions(
    flow: &Flow,
    source: &Listing,
    ledger: &FlowLedger,
    topics: &[String],
) -> BTreeSet<SourcePartition> {
    let wanted = |topic: &TopicName| topics.is_empty() || topics.iter().any(|name| name == topic.as_str());
    let all = Scene::partitions(flow, source, ledger);
    all.into_iter().filter(|partition| wanted(&partition.topic)).collect()
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

/// How old the next record to copy is; nothing where nobody can tell. Whatever is wrong with one partition, the
/// table must come: it is what an operator looks at then.
fn lag_time(scene: &Scene<'_>, clusters: &impl Clusters, partition: &SourcePartition) -> Option<u64> {
    let (from, to) = match scene.unread(partition)? {
        Unread::Nothing => return Some(0),
        Unread::HeldBack => return None,
        Unread::Between(from, to) => (from, to),
    };
    let next =
        clusters.source_records(partition, from, to).and_then(|mut records| records.next().transpose());
    match next {
        Ok(next) => scene.lag_time(partition, next.map(|record| record.timestamp)),
        Err(trouble) => {
            tracing::debug!(%partition, %trouble, "no lag time");
            None
        }
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

#[cfg(test)]
mod tests;
