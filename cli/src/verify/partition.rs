//! One partition: how it can be compared, and what comes of it.

use super::compacted::{self, Deleted, Sides};
use super::compare::{self, Skip};
use super::report::{Difference, Kind, Method, PartitionReport};
use crate::clusters::{Clusters, Extent, Record, Records};
use kafka_types::{SourceOffset, SourcePartition, TargetOffset, TargetPartition};
use verbatim_core::failure::{Side, Trouble};
use verbatim_core::ledger::Entry;

type Failure = (Side, Trouble);

/// All that is known of a partition before its records are read.
#[derive(Clone, Debug)]
pub(super) struct Subject<'a> {
    pub source: &'a SourcePartition,
    pub entry: &'a Entry,
    /// Absent where the source topic is gone or is another one of the same name.
    pub source_extent: Option<Extent<SourceOffset>>,
    pub target_extent: Extent<TargetOffset>,
    /// By each side's `cleanup.policy`.
    pub source_compacted: bool,
    pub target_compacted: bool,
}

impl Subject<'_> {
    pub(super) fn target(&self) -> TargetPartition {
        TargetPartition { topic: self.entry.target_topic.clone(), partition: self.source.partition }
    }

    /// Where the mirror's records end, as far as is known.
    fn target_to(&self) -> TargetOffset {
        self.entry.target_end.unwrap_or(self.target_extent.last_stable)
    }

    fn target_from(&self) -> TargetOffset {
        self.entry.target_start.max(self.target_extent.start)
    }

    fn target_deleted(&self) -> bool {
        self.entry.target_start < self.target_extent.start
    }

    /// What the source still has of what was copied, if anything.
    fn source_range(&self) -> Option<(SourceOffset, SourceOffset)> {
        let extent = self.source_extent?;
        let from = self.entry.start.max(extent.start);
        (from < self.entry.next || self.entry.start == self.entry.next).then_some((from, self.entry.next))
    }

    fn source_deleted(&self) -> bool {
        self.source_extent.is_none_or(|extent| self.entry.start < extent.start)
    }
}

/// Compares what the ledger says was copied; strays after it are not looked for here.
pub(super) fn verify(
    clusters: &impl Clusters,
    subject: &Subject<'_>,
    report: &mut PartitionReport,
) -> Result<(), Failure> {
    if let Some(difference) = cut_back(subject) {
        report.difference = Some(difference);
        return Ok(());
    }
    let Some(range) = subject.source_range() else {
        report.method = Method::DigestOnly;
        report.notes.push("the source no longer has any of what was copied".into());
        return digest_only(clusters, subject, report);
    };
    if subject.source_compacted || subject.target_compacted {
        report.method = Method::LastPerKey;
        return last_per_key(clusters, subject, range, report);
    }
    if subject.source_deleted() || subject.target_deleted() {
        report.method = Method::Suffix;
        note_deleted(subject, report);
    } else {
        report.method = Method::Records;
    }
    records(clusters, subject, range, report)
}

/// A side whose log ends before what the ledger says has lost records.
fn cut_back(subject: &Subject<'_>) -> Option<Difference> {
    let Subject { entry, source_extent, target_extent, .. } = subject;
    let end = target_extent.high_watermark;
    if let Some(settled) = entry.target_end.filter(|settled| end < *settled) {
        let detail = format!("the target ends here, but the ledger settled up to {settled}: it lost its end");
        return Some(Difference {
            kind: Kind::Target,
            source_offset: None,
            target_offset: Some(end),
            detail,
        });
    }
    let end = source_extent.as_ref().map(|extent| extent.high_watermark)?;
    (end < entry.next).then(|| Difference {
        kind: Kind::Source,
        source_offset: Some(end),
        target_offset: None,
        detail: format!("the source ends here, but was copied up to {}: its log was cut back", entry.next),
    })
}

fn note_deleted(subject: &Subject<'_>, report: &mut PartitionReport) {
    if let Some(extent) = subject.source_extent.filter(|_| subject.source_deleted()) {
        report.notes.push(format!(
            "the source no longer has {} to {}; compared from there, the rest by digest",
            subject.entry.start, extent.start
        ));
    }
    if subject.target_deleted() {
        report.notes.push(format!(
            "the target no longer has {} to {}; compared from there, no digest",
            subject.entry.target_start, subject.target_extent.start
        ));
    }
}

fn records(
    clusters: &impl Clusters,
    subject: &Subject<'_>,
    range: (SourceOffset, SourceOffset),
    report: &mut PartitionReport,
) -> Result<(), Failure> {
    let skip =
        if report.method == Method::Suffix { skip(clusters, subject, range)? } else { Skip::default() };
    let ours = source(clusters, subject, range)?;
    let theirs = target(clusters, subject)?;
    let compared = compare::compare(ours, theirs, skip)?;
    report.records = compared.records;
    report.difference = compared.difference;
    if report.difference.is_none() && !subject.target_deleted() {
        settle_digest(compared.digest == subject.entry.digest, subject, compared.digest, report);
    }
    Ok(())
}

/// How many records at the front only one side has. Both ends are the same, so the longer side has them.
fn skip(
    clusters: &impl Clusters,
    subject: &Subject<'_>,
    range: (SourceOffset, SourceOffset),
) -> Result<Skip, Failure> {
    let ours = count(source(clusters, subject, range)?).map_err(|trouble| (Side::Source, trouble))?;
    let theirs = count(target(clusters, subject)?).map_err(|trouble| (Side::Target, trouble))?;
    let source = if subject.target_deleted() { ours.saturating_sub(theirs) } else { 0 };
    let target = if subject.source_deleted() { theirs.saturating_sub(ours) } else { 0 };
    Ok(Skip { source, target })
}

fn digest_only(
    clusters: &impl Clusters,
    subject: &Subject<'_>,
    report: &mut PartitionReport,
) -> Result<(), Failure> {
    if subject.target_deleted() || subject.target_compacted {
        report.notes.push("nor has the target all of it: nothing can be compared".into());
        return Ok(());
    }
    let mut digest = verbatim_core::digest::Digest::EMPTY;
    for record in target(clusters, subject)? {
        digest = digest.push(record.map_err(|trouble| (Side::Target, trouble))?.hash());
    }
    settle_digest(digest == subject.entry.digest, subject, digest, report);
    Ok(())
}

fn settle_digest(
    equal: bool,
    subject: &Subject<'_>,
    digest: verbatim_core::digest::Digest,
    report: &mut PartitionReport,
) {
    report.digest_equal = Some(equal);
    if !equal {
        let detail = format!(
            "the target's {} records have another digest than the {} that the ledger counted",
            digest.records, subject.entry.records
        );
        report.difference =
            Some(Difference { kind: Kind::Digest, source_offset: None, target_offset: None, detail });
    }
}

fn last_per_key(
    clusters: &impl Clusters,
    subject: &Subject<'_>,
    range: (SourceOffset, SourceOffset),
    report: &mut PartitionReport,
) -> Result<(), Failure> {
    let side = match (subject.source_compacted, subject.target_compacted) {
        (true, true) => "both sides are compacted",
        (true, false) => "the source is compacted",
        (false, _) => "the target is compacted",
    };
    report.notes.push(format!("{side}: the last record of each key was compared"));
    let deleted = Deleted { source: subject.source_deleted(), target: subject.target_deleted() };
    let (keys, difference) = compacted::compare(&Both { clusters, subject, range }, deleted)?;
    report.records = keys;
    report.difference = difference;
    if report.difference.is_none() && !subject.target_compacted && !subject.target_deleted() {
        digest_only(clusters, subject, report)?;
    }
    Ok(())
}

fn source(
    clusters: &impl Clusters,
    subject: &Subject<'_>,
    (from, to): (SourceOffset, SourceOffset),
) -> Result<Records<SourceOffset>, Failure> {
    clusters.source_records(subject.source, from, to).map_err(|trouble| (Side::Source, trouble))
}

/// The mirror's records on the target: up to where the ledger says they end, or as many as it says there are.
fn target(clusters: &impl Clusters, subject: &Subject<'_>) -> Result<Records<TargetOffset>, Failure> {
    let records = clusters
        .target_records(&subject.target(), subject.target_from(), subject.target_to())
        .map_err(|trouble| (Side::Target, trouble))?;
    if subject.entry.target_end.is_some() || subject.target_compacted || subject.target_deleted() {
        return Ok(records);
    }
    let count = usize::try_from(subject.entry.records).unwrap_or(usize::MAX);
    Ok(Box::new(records.take(count)))
}

fn count<O>(records: impl Iterator<Item = Result<Record<O>, Trouble>>) -> Result<u64, Trouble> {
    let mut count = 0;
    for record in records {
        record?;
        count += 1;
    }
    Ok(count)
}

struct Both<'a, C> {
    clusters: &'a C,
    subject: &'a Subject<'a>,
    range: (SourceOffset, SourceOffset),
}

impl<C: Clusters> Sides for Both<'_, C> {
    type Source = Records<SourceOffset>;
    type Target = Records<TargetOffset>;

    fn source(&self) -> Result<Records<SourceOffset>, Trouble> {
        self.clusters.source_records(self.subject.source, self.range.0, self.range.1)
    }

    fn target(&self) -> Result<Records<TargetOffset>, Trouble> {
        target(self.clusters, self.subject).map_err(|(_, trouble)| trouble)
    }

    fn source_later(&self) -> Result<Records<SourceOffset>, Trouble> {
        let end = self.subject.source_extent.map_or(self.range.1, |extent| extent.last_stable);
        self.clusters.source_records(self.subject.source, self.range.1, end.max(self.range.1))
    }

    fn target_later(&self) -> Result<Records<TargetOffset>, Trouble> {
        let from = self.subject.target_to();
        let end = self.subject.target_extent.last_stable.max(from);
        self.clusters.target_records(&self.subject.target(), from, end)
    }
}
