//! What `verify` found, for people and for scripts.

use super::coverage::{Coverage, left_out};
use crate::exit_code::Code;
use crate::matching::Matched;
use crate::table::{cell, count, table};
use kafka_types::{Partition, SourceOffset, TargetOffset, TopicName};
use serde::Serialize;

/// The whole answer; the JSON form of it is relied on by users' scripts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    pub flow: String,
    /// No difference was found in what was compared.
    pub equal: bool,
    /// Everything that the flow takes of the source was compared: something matches, and no partition is behind,
    /// halted, not begun or unreadable.
    pub complete: bool,
    /// Compared on both sides, over all partitions.
    pub records: u64,
    pub partitions: Vec<PartitionReport>,
    #[serde(skip)]
    pub matched: Matched,
}

impl Report {
    pub(super) fn new(flow: String, matched: Matched, partitions: Vec<PartitionReport>) -> Report {
        let is_whole = |partition: &PartitionReport| partition.coverage() == Coverage::Whole;
        Report {
            flow,
            equal: partitions.iter().all(|partition| partition.difference.is_none()),
            complete: 0 < matched.topics && partitions.iter().all(is_whole),
            records: partitions.iter().map(|partition| partition.records).sum(),
            partitions,
            matched,
        }
    }

    /// A difference is the answer, whatever else could not be read. Without one, what must be mended first decides.
    pub(crate) fn code(&self) -> Code {
        if !self.equal {
            return Code::Data;
        }
        Code::first(self.partitions.iter().filter_map(|partition| Some(partition.unread.as_ref()?.code)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PartitionReport {
    pub topic: TopicName,
    pub partition: Partition,
    pub target_topic: Option<TopicName>,
    /// Everything below it was compared.
    pub position: Option<SourceOffset>,
    pub source_end: Option<SourceOffset>,
    pub lag: Option<u64>,
    pub records: u64,
    pub method: Method,
    /// Whether the target's digest is the ledger's; absent where it could not be computed.
    pub digest_equal: Option<bool>,
    pub difference: Option<Difference>,
    /// Why the partition stands still, if it does.
    pub halted: Option<String>,
    /// Why comparing did not come to its end, if it did not.
    pub unread: Option<Unread>,
    /// Whether the topic rules take the topic; what they leave out now may have been copied before.
    pub taken: bool,
    /// What was not or not fully compared, and why.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    /// Every record with its counterpart.
    Records,
    /// One side no longer has its first records: those that both have were compared.
    Suffix,
    /// A side is compacted: the last record of each key was compared.
    LastPerKey,
    /// The source has nothing left to compare with: only the ledger's digest.
    DigestOnly,
    /// Nothing was copied yet.
    Nothing,
}

/// Why a partition could not be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Unread {
    #[serde(skip)]
    pub code: Code,
    pub why: String,
}

/// The first thing that differs in a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub kind: Kind,
    pub source_offset: Option<SourceOffset>,
    pub target_offset: Option<TargetOffset>,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Key,
    Value,
    Headers,
    Timestamp,
    /// The source has a record that the target lacks.
    Missing,
    /// The target has a record that the source lacks, or has it twice.
    Extra,
    /// The target has a record that the mirror did not write.
    Stray,
    /// The target's records are not those that the ledger counted.
    Digest,
    /// The target topic is gone or was made anew, or lost its end.
    Target,
    /// The source's log ends before the position: it was cut back.
    Source,
}

impl PartitionReport {
    pub(crate) fn new(topic: TopicName, partition: Partition) -> PartitionReport {
        PartitionReport {
            topic,
            partition,
            target_topic: None,
            position: None,
            source_end: None,
            lag: None,
            records: 0,
            method: Method::Nothing,
            digest_equal: None,
            difference: None,
            halted: None,
            unread: None,
            taken: true,
            notes: Vec::new(),
        }
    }

    /// To be called once the source's end is known, if it ever is.
    pub(super) fn stands_at(&mut self, position: SourceOffset) {
        self.position = Some(position);
        self.lag = self.source_end.map(|end| end.distance_from(position));
    }

    /// Whether neither side has anything left of what was copied that could be compared.
    pub(super) fn has_nothing_left(&self) -> bool {
        self.method == Method::DigestOnly && self.digest_equal.is_none()
    }

    fn result(&self) -> &'static str {
        match (&self.difference, &self.unread, self.method) {
            (Some(difference), _, _) => difference.kind.name(),
            (None, Some(_), _) => "unread",
            (None, None, Method::Nothing) => "-",
            (None, None, Method::DigestOnly) if self.has_nothing_left() => "-",
            (None, None, Method::Records | Method::Suffix | Method::LastPerKey | Method::DigestOnly) => {
                "equal"
            }
        }
    }

    /// One line that says what to know about the partition.
    fn detail(&self) -> String {
        let mut parts = Vec::new();
        if let Some(Difference { source_offset, target_offset, detail, .. }) = &self.difference {
            let source = source_offset.map(|offset| format!("source offset {offset}"));
            let target = target_offset.map(|offset| format!("target offset {offset}"));
            let place: Vec<String> = [source, target].into_iter().flatten().collect();
            let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) };
            parts.push(format!("{place}{detail}"));
        }
        parts.extend(self.unread.iter().map(|unread| unread.why.clone()));
        parts.extend(self.halted.iter().map(|reason| format!("halted: {reason}")));
        parts.extend(self.notes.iter().cloned());
        if parts.is_empty() { "-".into() } else { parts.join("; ") }
    }
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Records => "records",
            Method::Suffix => "suffix",
            Method::LastPerKey => "last-per-key",
            Method::DigestOnly => "digest-only",
            Method::Nothing => "-",
        }
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Key => "key",
            Kind::Value => "value",
            Kind::Headers => "headers",
            Kind::Timestamp => "timestamp",
            Kind::Missing => "missing",
            Kind::Extra => "extra",
            Kind::Stray => "stray",
            Kind::Digest => "digest",
            Kind::Target => "target",
            Kind::Source => "source",
        }
    }
}

pub(crate) fn text(report: &Report) -> String {
    const HEADER: [&str; 9] =
        ["FLOW", "TOPIC", "PARTITION", "POSITION", "LAG", "RECORDS", "COMPARED-BY", "RESULT", "DETAIL"];
    let rows: Vec<[String; 9]> = report
        .partitions
        .iter()
        .map(|partition| {
            [
                report.flow.clone(),
                partition.topic.to_string(),
                partition.partition.to_string(),
                cell(partition.position),
                cell(partition.lag),
                partition.records.to_string(),
                partition.method.name().into(),
                partition.result().into(),
                partition.detail(),
            ]
        })
        .collect();
    format!("{}{}\n", table(HEADER, &rows), verdict(report))
}

/// The closing line: it claims no more than was compared.
fn verdict(report: &Report) -> String {
    let partitions = count(report.partitions.len(), "partition");
    let different = report.partitions.iter().filter(|partition| partition.difference.is_some()).count();
    let records = count(report.records, "record");
    let left_out = match left_out(&report.partitions) {
        list if list.is_empty() => String::new(),
        list => format!("; not compared to the end: {list}"),
    };
    if report.matched.topics == 0 && report.partitions.is_empty() {
        return "nothing matches: the topic rules take no source topic, so nothing was compared".into();
    }
    match (different, report.complete) {
        (0, true) => format!("equal: {records} in {partitions}"),
        (0, false) => format!("equal as far as compared: {records} in {partitions}{left_out}"),
        _ => format!("DIFFERENT: {different} of {partitions}{left_out}"),
    }
}
