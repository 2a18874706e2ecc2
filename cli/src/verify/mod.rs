//! `verbatim verify`: reads both sides and compares what the ledger says was copied.
//!
//! It trusts no running instance: for each partition the ledger names the source offsets that were copied and
//! the target offsets of their copies. Whatever is committed on either side within those must be equal.

mod compacted;
mod compare;
mod coverage;
mod partition;
mod report;

pub(crate) use report::{Report, text};

use crate::clusters::{Clusters, Extent, Extents};
use crate::exit_code::Code;
use crate::failed::Failed;
use crate::ledger::{self, FlowLedger};
use crate::matching::Matched;
use crate::parallel;
use crate::status::{describe, describe_known, exists, partitions, refuse_unknown};
use kafka_types::{Partition, SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicName};
use partition::Subject;
use report::{Difference, Kind, PartitionReport, Unread};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use verbatim_core::config::Flow;
use verbatim_core::event::{Listing, TopicInfo};
use verbatim_core::failure::{Side, Trouble};
use verbatim_core::ledger::Entry;

/// Partitions compared at once: each reads two clusters.
const PARALLEL: usize = 4;
/// Retention may delete what is being read; then it is read again from where the log begins by then.
const TRIES: u32 = 3;

/// How long to wait for what is on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For markers that make settled records readable (S2).
    pub visible: Duration,
    /// For the ledger to account for records that a running instance has just settled.
    pub accounted: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { visible: Duration::from_secs(30), accounted: Duration::from_secs(10) }
    }
}

/// Everything that partitions are judged by, as of one moment.
struct Scene<'a, C> {
    clusters: &'a C,
    flow: &'a Flow,
    patience: Patience,
    source: Listing,
    target: Listing,
    ledger: FlowLedger,
    source_extents: Extents<SourcePartition, SourceOffset>,
    /// Read before the ledger, so that the ledger accounts for all records of the mirror's below them.
    target_extents: Extents<TargetPartition, TargetOffset>,
    compacted: BTreeSet<(Side, TopicName)>,
    /// Whether a cluster has become unreachable: then no other partition is waited for.
    gone: AtomicBool,
}

pub(crate) fn verify<C: Clusters>(
    clusters: &C,
    flow: &Flow,
    topics: &[String],
    patience: Patience,
) -> Result<Report, Failed> {
    let (scene, partitions) = prepare(clusters, flow, topics, patience)?;
    let partitions: Vec<SourcePartition> = partitions.into_iter().collect();
    let matched = Matched::of(flow, &scene.source);
    let reports = parallel::map(PARALLEL, &partitions, |partition| scene.partition(partition));
    Ok(Report::new(flow.name.to_string(), matched, reports))
}

fn prepare<'a, C: Clusters>(
    clusters: &'a C,
    flow: &'a Flow,
    topics: &[String],
    patience: Patience,
) -> Result<(Scene<'a, C>, BTreeSet<SourcePartition>), Failed> {
    let mut source = describe(clusters, Side::Source)?;
    let mut target = describe(clusters, Side::Target)?;
    let no_ledger = || {
        Failed::new(Code::Configuration, format!("the target has no ledger of a flow named {}", flow.name))
            .help("has `verbatim run` been started with this configuration?")
    };
    let before = ledger::read(clusters, &flow.name, &target)?.ok_or_else(no_ledger)?;
    describe_known(clusters, Side::Target, &mut target, &before)?;
    let targets = targets(&before, &target);
    let target_extents = clusters.target_extents(&targets);
    let ledger = ledger::read(clusters, &flow.name, &target)?.ok_or_else(no_ledger)?;
    describe_known(clusters, Side::Source, &mut source, &ledger)?;
    let partitions = partitions(flow, &source, &ledger, topics);
    refuse_unknown(topics, &partitions)?;
    let existing: Vec<SourcePartition> = partitions.iter().filter(|p| exists(&source, p)).cloned().collect();
    let source_extents = clusters.source_extents(&existing);
    let source_topics: BTreeSet<TopicName> = existing.iter().map(|p| p.topic.clone()).collect();
    let target_topics: BTreeSet<TopicName> = targets.iter().map(|p| p.topic.clone()).collect();
    let mut compacted = compacted_topics(clusters, Side::Source, source_topics)?;
    compacted.append(&mut compacted_topics(clusters, Side::Target, target_topics)?);
    let scene = Scene {
        clusters,
        flow,
        patience,
        source,
        target,
        ledger,
        source_extents,
        target_extents,
        compacted,
        gone: AtomicBool::new(false),
    };
    Ok((scene, partitions))
}

/// Every target partition that holds, or is to hold, copies.
fn targets(ledger: &FlowLedger, target: &Listing) -> Vec<TargetPartition> {
    let settled = ledger.entries().map(|(partition, entry)| TargetPartition {
        topic: entry.target_topic.clone(),
        partition: partition.partition,
    });
    let pinned = ledger.topics().filter_map(|(_, record)| record.target.as_ref()).flat_map(|pin| {
        let partitions = target.topics.get(&pin.topic).map_or(0, |info| info.partitions);
        Partition::all(partitions).map(|partition| TargetPartition { topic: pin.topic.clone(), partition })
    });
    let targets: BTreeSet<TargetPartition> = settled.chain(pinned).collect();
    targets.into_iter().filter(|partition| target.topics.contains_key(&partition.topic)).collect()
}

fn compacted_topics(
    clusters: &impl Clusters,
    side: Side,
    topics: BTreeSet<TopicName>,
) -> Result<BTreeSet<(Side, TopicName)>, Failed> {
    let topics: Vec<TopicName> = topics.into_iter().collect();
    if topics.is_empty() {
        return Ok(BTreeSet::new());
    }
    let configs = clusters.configs(side, &topics).map_err(|trouble| Failed::trouble(side, &trouble))?;
    let is_compacted = |config: &verbatim_core::event::TopicConfig| {
        config.get("cleanup.policy").is_some_and(|policy| policy.value.contains("compact"))
    };
    Ok(configs
        .into_iter()
        .filter(|(_, config)| is_compacted(config))
        .map(|(topic, _)| (side, topic))
        .collect())
}

impl<C: Clusters> Scene<'_, C> {
    /// What keeps one partition from being compared must not hide what is found in the others.
    fn partition(&self, partition: &SourcePartition) -> PartitionReport {
        let mut report = PartitionReport::new(partition.topic.clone(), partition.partition);
        report.taken = self.flow.filter.takes(&partition.topic);
        report.source_end = self.seen(partition).map(|seen| seen.high_watermark);
        if self.gone.load(Ordering::Relaxed) {
            let why = "not looked at, since a cluster has stopped answering".into();
            report.unread = Some(Unread { code: Code::Unreachable, why });
            return report;
        }
        let outcome = match self.ledger.entry(partition) {
            Some(entry) => self.copied(partition, entry, &mut report),
            None => self.untouched(partition, &mut report),
        };
        if let Err(failed) = outcome {
            self.gone.fetch_or(failed.code == Code::Unreachable, Ordering::Relaxed);
            report.unread = Some(Unread { code: failed.code, why: failed.message().into() });
        }
        report
    }

    /// The source partition's ends as they were seen at first, if its leader answered.
    fn seen(&self, partition: &SourcePartition) -> Option<&Extent<SourceOffset>> {
        self.source_extents.get(partition)?.as_ref().ok()
    }

    fn copied(
        &self,
        partition: &SourcePartition,
        entry: &Entry,
        report: &mut PartitionReport,
    ) -> Result<(), Failed> {
        report.target_topic = Some(entry.target_topic.clone());
        report.stands_at(entry.next);
        report.halted = entry.halted.as_ref().map(ToString::to_string);
        match self.other_target(entry)? {
            Some(difference) => report.difference = Some(difference),
            None => self.compare(partition, entry, report)?,
        }
        Ok(())
    }

    /// Nothing was copied, so nothing of the mirror's time may stand in the target partition.
    fn untouched(&self, partition: &SourcePartition, report: &mut PartitionReport) -> Result<(), Failed> {
        report.notes.push("nothing copied yet".into());
        let Some(record) = self.ledger.topic(&partition.topic) else {
            // The mirror has nothing to do with what holds nothing.
            let is_empty = self.seen(partition).is_some_and(|seen| seen.start == seen.high_watermark);
            report.lag = is_empty.then_some(0);
            return Ok(());
        };
        report.stands_at(record.start(partition.partition).offset);
        if let Some(pin) = &record.target {
            report.target_topic = Some(pin.topic.clone());
            let same = self.known(Side::Target, &pin.topic)?.is_some_and(|info| info.id == pin.id);
            if same {
                report.difference = self.stray(partition, &pin.topic, Some(pin.end(partition.partition)))?;
            }
        }
        Ok(())
    }

    /// A target topic that is gone, or another one of the same name, holds none of the copies.
    fn other_target(&self, entry: &Entry) -> Result<Option<Difference>, Failed> {
        let detail = match self.known(Side::Target, &entry.target_topic)? {
            None => format!("the target topic {} is gone", entry.target_topic),
            Some(info) if info.id != entry.target_id => {
                format!("the target topic {} was deleted and made again", entry.target_topic)
            }
            Some(_) => return Ok(None),
        };
        Ok(Some(Difference { kind: Kind::Target, source_offset: None, target_offset: None, detail }))
    }

    /// What a topic is, if it is there. One that could not be described is neither there nor gone.
    fn known(&self, side: Side, topic: &TopicName) -> Result<Option<&TopicInfo>, Failed> {
        let listing = match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        };
        match listing.trouble.get(topic) {
            Some(trouble) => Err(Failed::trouble(side, trouble)),
            None => Ok(listing.topics.get(topic)),
        }
    }

    fn compare(
        &self,
        partition: &SourcePartition,
        entry: &Entry,
        report: &mut PartitionReport,
    ) -> Result<(), Failed> {
        let same_source =
            self.known(Side::Source, &partition.topic)?.is_some_and(|info| info.id == entry.source_id);
        if !same_source {
            report.notes.push("the source topic is gone or was made again".into());
        }
        let before = report.clone();
        let mut tries = 1;
        loop {
            let target =
                TargetPartition { topic: entry.target_topic.clone(), partition: partition.partition };
            let target_extent = self.visible(&target, entry)?;
            let source_extent = same_source.then(|| self.source_extent(partition)).transpose()?;
            let subject = Subject {
                source: partition,
                entry,
                source_extent,
                target_extent,
                source_compacted: self.compacted.contains(&(Side::Source, partition.topic.clone())),
                target_compacted: self.compacted.contains(&(Side::Target, entry.target_topic.clone())),
            };
            match partition::verify(self.clusters, &subject, report) {
                Ok(()) => break,
                Err((_, Trouble::Passing(_))) if tries < TRIES => {
                    *report = before.clone();
                    tries += 1;
                }
                Err((side, trouble)) => return Err(Failed::trouble(side, &trouble)),
            }
        }
        if report.difference.is_none() {
            report.difference = self.stray(partition, &entry.target_topic, entry.target_end)?;
        }
        Ok(())
    }

    /// A leader that does not answer leaves the partition uncompared. It must not look like a source that has
    /// nothing left.
    fn source_extent(&self, partition: &SourcePartition) -> Result<Extent<SourceOffset>, Failed> {
        let extent = self.clusters.source_extents(std::slice::from_ref(partition)).remove(partition);
        let silent = || Err(Trouble::Passing(format!("no answer about {partition}")));
        extent.unwrap_or_else(silent).map_err(|trouble| Failed::trouble(Side::Source, &trouble))
    }

    fn target_extent(&self, target: &TargetPartition) -> Result<Extent<TargetOffset>, Failed> {
        let extent = self.clusters.target_extents(std::slice::from_ref(target)).remove(target);
        let silent = || Err(Trouble::Passing(format!("no answer about {target}")));
        extent.unwrap_or_else(silent).map_err(|trouble| Failed::trouble(Side::Target, &trouble))
    }

    /// The target's ends once all that the ledger settled can be read (S2).
    fn visible(&self, target: &TargetPartition, entry: &Entry) -> Result<Extent<TargetOffset>, Failed> {
        let deadline = Instant::now() + self.patience.visible;
        loop {
            let extent = self.target_extent(target)?;
            let settled = entry.target_end.unwrap_or(TargetOffset::ZERO);
            // A log that ends too early will not grow back: that is for the comparison to say.
            if settled <= extent.last_stable || extent.high_watermark < settled {
                return Ok(extent);
            }
            if deadline <= Instant::now() {
                return Err(Failed::new(
                    Code::TryAgain,
                    format!(
                        "target partition {target} can be read up to {} only, of {settled} settled",
                        extent.last_stable
                    ),
                )
                .help("a transaction there is still open"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The first committed record after the mirror's that the ledger does not account for, even after a
    /// while: an instance may be running, and its ledger entries may become readable after its records.
    fn stray(
        &self,
        partition: &SourcePartition,
        topic: &TopicName,
        mut settled: Option<TargetOffset>,
    ) -> Result<Option<Difference>, Failed> {
        let target = TargetPartition { topic: topic.clone(), partition: partition.partition };
        let end = match self.target_extents.get(&target) {
            // The mirror began with it after the ends were read, so it holds nothing below them.
            None => return Ok(None),
            Some(Err(trouble)) => return Err(Failed::trouble(Side::Target, trouble)),
            Some(Ok(extent)) => extent.last_stable,
        };
        let deadline = Instant::now() + self.patience.accounted;
        loop {
            let Some(from) = settled.filter(|from| *from < end) else { return Ok(None) };
            let mut records = self
                .clusters
                .target_records(&target, from, end)
                .map_err(|trouble| Failed::trouble(Side::Target, &trouble))?;
            let Some(record) = records.next() else { return Ok(None) };
            let record = record.map_err(|trouble| Failed::trouble(Side::Target, &trouble))?;
            if deadline <= Instant::now() {
                return Ok(Some(Difference {
                    kind: Kind::Stray,
                    source_offset: None,
                    target_offset: Some(record.offset),
                    detail: "a record that the mirror did not write".into(),
                }));
            }
            std::thread::sleep(Duration::from_millis(200));
            let ledger = ledger::read(self.clusters, &self.flow.name, &self.target)?.unwrap_or_default();
            if let Some(entry) = ledger.entry(partition) {
                settled = entry.target_end;
            }
        }
    }
}

#[cfg(test)]
mod tests;
