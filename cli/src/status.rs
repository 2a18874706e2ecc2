//! `verbatim status`: where each partition stands, from the ledger and the source alone.

use crate::clusters::{Clusters, Extent, Extents, trouble_of_all};
use crate::exit_code::Code;
use crate::failed::Failed;
use crate::ledger::Ledger;
use crate::matching::taken;
use crate::parallel;
use crate::table::{cell, count, table};
use kafka_types::{Partition, SourceOffset, SourcePartition, TopicName};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use verbatim_core::command::Topics;
use verbatim_core::config::Flow;
use verbatim_core::event::{Listing, OpenTransaction};
use verbatim_core::failure::Side;
use verbatim_core::lane::lane_of;
use verbatim_core::time::Timestamp;

/// Partitions whose next record is read at once, to see how old it is.
const PARALLEL: usize = 16;
/// A partition that has something to copy and settles nothing for this long is remarked upon.
const SILENCE_MIN_MS: u64 = 60_000;

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
    let mut source = describe(clusters, Side::Source)?;
    let target = describe(clusters, Side::Target)?;
    let ledger = Ledger::read(clusters, &flow.name, &target)?.unwrap_or_default();
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
    let lag_times = parallel::map(PARALLEL, &partitions, |partition| scene.lag_time(clusters, partition));
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
    ledger: &Ledger,
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
    ledger: &Ledger,
    topics: &[String],
) -> BTreeSet<SourcePartition> {
    let wanted = |topic: &TopicName| topics.is_empty() || topics.iter().any(|name| name == topic.as_str());
    let taken = taken(flow, source).flat_map(|(topic, info)| {
        Partition::all(info.partitions).map(|partition| SourcePartition { topic: topic.clone(), partition })
    });
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

/// Everything that rows are made from, as of one moment.
struct Scene<'a> {
    flow: &'a Flow,
    source: Listing,
    ledger: Ledger,
    /// Of the partitions that the source has.
    extents: Extents<SourcePartition, SourceOffset>,
    /// Who holds partitions back, where that is so and could be asked.
    open: BTreeMap<SourcePartition, Vec<OpenTransaction>>,
    now: Timestamp,
}

impl Scene<'_> {
    fn position(&self, partition: &SourcePartition) -> Option<SourceOffset> {
        let start = || Some(self.ledger.topic(&partition.topic)?.start(partition.partition).offset);
        self.ledger.entry(partition).map(|entry| entry.next).or_else(start)
    }

    fn extent(&self, partition: &SourcePartition) -> Option<&Extent<SourceOffset>> {
        self.extents.get(partition)?.as_ref().ok()
    }

    /// Whether all that is left to copy lies behind an open transaction.
    fn is_held_back(&self, partition: &SourcePartition) -> bool {
        let Some((position, extent)) = self.position(partition).zip(self.extent(partition)) else {
            return false;
        };
        extent.last_stable <= position && position < extent.high_watermark
    }

    /// How old the next record to copy is; nothing where nobody can tell. Whatever is wrong with one partition, the
    /// table must come: it is what an operator looks at then.
    fn lag_time(&self, clusters: &impl Clusters, partition: &SourcePartition) -> Option<u64> {
        let (position, extent) = (self.position(partition)?, self.extent(partition)?);
        let from = position.max(extent.start);
        if extent.high_watermark <= from {
            return Some(0);
        }
        if extent.last_stable <= from {
            // What an open transaction holds back cannot be read, so it has no known age.
            return None;
        }
        let next = clusters
            .source_records(partition, from, extent.last_stable)
            .and_then(|mut records| records.next().transpose());
        match next {
            Ok(Some(record)) if record.timestamp < 0 => None,
            Ok(Some(record)) => Some(u64::try_from(self.now.0.saturating_sub(record.timestamp)).unwrap_or(0)),
            // Nothing but markers and aborted records.
            Ok(None) => (extent.last_stable == extent.high_watermark).then_some(0),
            Err(trouble) => {
                tracing::debug!(%partition, %trouble, "no lag time");
                None
            }
        }
    }

    fn row(&self, partition: SourcePartition, lag_time_ms: Option<u64>) -> Row {
        let lane = lane_of(&partition, self.flow.lanes);
        let (position, extent) = (self.position(&partition), self.extent(&partition));
        let (state, reason) = self.state(&partition, lag_time_ms);
        Row {
            flow: self.flow.name.to_string(),
            lane: lane.0,
            owner: self.ledger.claim(lane).map(|claim| claim.incarnation.clone()),
            position,
            source_end: extent.map(|extent| extent.high_watermark),
            lag: position.zip(extent).map(|(position, extent)| extent.high_watermark.distance_from(position)),
            lag_time_ms,
            state,
            reason,
            topic: partition.topic,
            partition: partition.partition,
        }
    }

    fn state(&self, partition: &SourcePartition, lag_time_ms: Option<u64>) -> (State, Option<String>) {
        let entry = self.ledger.entry(partition);
        let record = self.ledger.topic(&partition.topic);
        let waiting = |reason: &str| (State::Waiting, Some(reason.to_string()));
        // Judged before any halt: leaving a topic out is how an operator ends one.
        if !self.flow.filter.takes(&partition.topic) {
            return waiting("topics.include and topics.exclude leave it out");
        }
        if let Some(halt) = entry.and_then(|entry| entry.halted.as_ref()) {
            return (State::Halted, Some(halt.to_string()));
        }
        if let Some(unfit) = record.and_then(|record| record.target.as_ref()?.unfit.as_ref()) {
            return (State::Halted, Some(format!("unfit: {unfit}")));
        }
        let extent = match self.extents.get(partition) {
            None => match self.source.trouble.get(&partition.topic) {
                Some(trouble) => return waiting(&format!("its topic cannot be described: {trouble}")),
                None => return waiting("the source has no such partition"),
            },
            Some(Err(trouble)) => return waiting(&format!("its ends cannot be told: {trouble}")),
            Some(Ok(extent)) => extent,
        };
        match self.position(partition) {
            None => waiting("not in the ledger yet"),
            Some(_) if entry.is_none() && record.is_some_and(|record| record.target.is_none()) => {
                waiting("the target topic does not exist yet")
            }
            Some(position) => self.progress(partition, position, extent, lag_time_ms),
        }
    }

    fn progress(
        &self,
        partition: &SourcePartition,
        position: SourceOffset,
        extent: &Extent<SourceOffset>,
        lag_time_ms: Option<u64>,
    ) -> (State, Option<String>) {
        if position < extent.start {
            let lost = count(extent.start.distance_from(position), "offset");
            let reason = format!("the source deleted {lost} from {position} on, uncopied");
            (State::Gap, Some(reason))
        } else if extent.high_watermark <= position {
            (State::CaughtUp, None)
        } else if extent.last_stable <= position {
            (
                State::Copying,
                Some(held_back_by(self.open.get(partition).map(Vec::as_slice).unwrap_or_default())),
            )
        } else {
            (State::Copying, self.silence(partition, lag_time_ms))
        }
    }

    /// What to think of a partition in which nothing moves although something could: the ledger names the last owner
    /// of a lane, whether or not it is still there.
    fn silence(&self, partition: &SourcePartition, lag_time_ms: Option<u64>) -> Option<String> {
        if lag_time_ms? < SILENCE_MIN_MS {
            return None;
        }
        let Some(entry) = self.ledger.entry(partition) else {
            return Some("nothing settled yet: is an instance running?".into());
        };
        let silent = u64::try_from(self.now.0.saturating_sub(entry.settled_at.0)).unwrap_or(0);
        (SILENCE_MIN_MS <= silent)
            .then(|| format!("nothing settled for {}: is an instance running?", age(silent)))
    }
}

/// Names the producers of open transactions as far as they are known.
fn held_back_by(open: &[OpenTransaction]) -> String {
    let producer = |open: &OpenTransaction| {
        let id = open.producer_id?;
        Some(match open.first {
            Some(first) => format!("producer id {id} since offset {first}"),
            None => format!("producer id {id}"),
        })
    };
    let producers: Vec<String> = open.iter().filter_map(producer).collect();
    match producers.as_slice() {
        [] => "a source transaction is open".into(),
        known => format!("a source transaction is open: {}", known.join(", ")),
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
