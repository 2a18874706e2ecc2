//! `verbatim check --connect`: asks both clusters, without changing anything, whether the flow would run.

mod settings;

use crate::clusters::Clusters;
use crate::exit_code::Code;
use crate::ledger::{self, FlowLedger};
use crate::matching::{Matched, taken};
use crate::table::count;
use kafka_types::{SourcePartition, TopicName};
use serde::Serialize;
use settings::{holds_less, stamps};
use std::collections::BTreeMap;
use std::fmt::Write;
use verbatim_core::command::Topics;
use verbatim_core::config::Flow;
use verbatim_core::event::{Listing, TopicConfig};
use verbatim_core::failure::{Side, Trouble};
use verbatim_core::ledger::{Terms, check_settings};
use verbatim_core::route::find_loop;

type Configs = BTreeMap<TopicName, TopicConfig>;

/// What was looked at, in order; the JSON form of it is relied on by users' scripts.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Findings {
    pub ok: bool,
    pub findings: Vec<Finding>,
    #[serde(skip)]
    problems: Vec<Code>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub subject: String,
    pub ok: bool,
    /// Nothing that stops the flow, but likely not what was meant.
    pub warning: bool,
    pub detail: String,
}

impl Findings {
    /// What can be said without asking anybody: a configuration that was read is valid.
    pub(crate) fn of_configuration() -> Findings {
        let mut findings = Findings { ok: true, ..Findings::default() };
        findings.good("configuration", "valid; --connect asks the clusters too");
        findings
    }

    fn good(&mut self, subject: impl ToString, detail: impl Into<String>) {
        let (subject, detail) = (subject.to_string(), detail.into());
        self.findings.push(Finding { subject, ok: true, warning: false, detail });
    }

    fn doubtful(&mut self, subject: impl ToString, detail: impl Into<String>) {
        let (subject, detail) = (subject.to_string(), detail.into());
        self.findings.push(Finding { subject, ok: true, warning: true, detail });
    }

    fn bad(&mut self, code: Code, subject: impl ToString, detail: impl Into<String>) {
        self.problems.push(code);
        let (subject, detail) = (subject.to_string(), detail.into());
        self.findings.push(Finding { subject, ok: false, warning: false, detail });
    }

    fn trouble(&mut self, side: Side, subject: impl ToString, trouble: &Trouble) {
        let detail = match trouble {
            Trouble::NotAuthorized { resource, operation } => {
                format!("the {side} needs an ACL: allow {operation} on {resource}")
            }
            other => other.to_string(),
        };
        self.bad(Code::from(trouble), subject, detail);
    }

    /// What must be mended first decides.
    pub(crate) fn code(&self) -> Code {
        Code::first(self.problems.iter().copied())
    }
}

pub(crate) fn text(findings: &Findings) -> String {
    let width = findings.findings.iter().map(|finding| finding.subject.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { subject, ok, warning, detail } in &findings.findings {
        let mark = match (ok, warning) {
            (true, false) => "ok  ",
            (true, true) => "warn",
            (false, _) => "FAIL",
        };
        let _ = writeln!(text, "{mark}  {subject:width$}  {detail}");
    }
    text
}

/// Looks at everything, also after a first problem, so that one look shows all there is to mend.
/// `include` is what the configuration says, to be shown where it matches nothing.
pub(crate) fn connect(clusters: &impl Clusters, flow: &Flow, include: &[String]) -> Findings {
    let mut findings = Findings::default();
    findings.good("configuration", "valid");
    let source = listing(clusters, Side::Source, &mut findings);
    let target = listing(clusters, Side::Target, &mut findings);
    if let (Some(source), Some(target)) = (&source, &target) {
        distinct(flow, source, target, &mut findings);
        let configs = source_topics(clusters, flow, include, source, &mut findings);
        target_topics(clusters, flow, source, target, &configs, &mut findings);
        ledger(clusters, flow, source, target, &mut findings);
        replication(flow, target, &mut findings);
    }
    findings.ok = findings.problems.is_empty();
    findings
}

fn listing(clusters: &impl Clusters, side: Side, findings: &mut Findings) -> Option<Listing> {
    match clusters.describe(side, &Topics::All) {
        Ok(listing) => {
            findings
                .good(side, format!("cluster {}, {}", listing.cluster_id, count(listing.brokers, "broker")));
            Some(listing)
        }
        Err(trouble) => {
            findings.trouble(side, side, &trouble);
            None
        }
    }
}

fn distinct(flow: &Flow, source: &Listing, target: &Listing, findings: &mut Findings) {
    if source.cluster_id != target.cluster_id {
        return findings.good("clusters", "source and target are two clusters");
    }
    match find_loop(&flow.filter, &flow.rename, source.topics.keys()) {
        Some(found) => findings.bad(
            Code::Configuration,
            "clusters",
            format!("source and target are the same cluster, and {found}"),
        ),
        None => findings.good("clusters", "source and target are the same cluster, under other names"),
    }
}

/// What was found out about the settings of the topics that the flow takes.
fn source_topics(
    clusters: &impl Clusters,
    flow: &Flow,
    include: &[String],
    source: &Listing,
    findings: &mut Findings,
) -> Configs {
    for (topic, trouble) in source.trouble.iter().filter(|(topic, _)| flow.filter.takes(topic)) {
        findings.trouble(Side::Source, format!("topic {topic}"), trouble);
    }
    let matched = Matched::of(flow, source);
    if matched.topics != 0 {
        findings.good("topics", format!("{} matched", matched.text()));
    }
    for warning in matched.warnings(include) {
        findings.doubtful("topics", warning);
    }
    let topics: Vec<TopicName> = names_taken(flow, source).cloned().collect();
    if topics.is_empty() {
        return Configs::new();
    }
    let configs = clusters.configs(Side::Source, &topics).unwrap_or_else(|trouble| {
        findings.trouble(Side::Source, "topic settings", &trouble);
        Configs::new()
    });
    readable(clusters, &topics, findings);
    for topic in topics.iter().filter(|topic| !flow.rename.target(topic).is_legal()) {
        let detail = format!("{} is not a legal topic name on the target", flow.rename.target(topic));
        findings.bad(Code::Configuration, format!("topic {topic}"), detail);
    }
    configs
}

fn names_taken<'a>(flow: &'a Flow, source: &'a Listing) -> impl Iterator<Item = &'a TopicName> {
    taken(flow, source).map(|(topic, _)| topic)
}

/// Reads one record of each topic that has one: only a fetch shows whether READ is allowed.
fn readable(clusters: &impl Clusters, topics: &[TopicName], findings: &mut Findings) {
    let firsts: Vec<SourcePartition> =
        topics.iter().map(|topic| SourcePartition::new(topic.clone(), 0)).collect();
    for (partition, extent) in clusters.source_extents(&firsts) {
        let topic = format!("topic {}", partition.topic);
        let extent = match extent {
            Ok(extent) if extent.start < extent.last_stable => extent,
            Ok(_) => continue,
            Err(trouble) => {
                findings.trouble(Side::Source, topic, &trouble);
                continue;
            }
        };
        let first = clusters
            .source_records(&partition, extent.start, extent.last_stable)
            .and_then(|mut records| records.next().transpose());
        if let Err(trouble @ (Trouble::NotAuthorized { .. } | Trouble::Authentication(_))) = first {
            findings.trouble(Side::Source, topic, &trouble);
        }
    }
}

/// Target topics that exist already must be able to hold exact copies.
fn target_topics(
    clusters: &impl Clusters,
    flow: &Flow,
    source: &Listing,
    target: &Listing,
    source_configs: &Configs,
    findings: &mut Findings,
) {
    let copies: BTreeMap<TopicName, &TopicName> =
        names_taken(flow, source).map(|topic| (flow.rename.target(topic), topic)).collect();
    for (copy, trouble) in copies.keys().filter_map(|copy| Some((copy, target.trouble.get(copy)?))) {
        findings.trouble(Side::Target, format!("topic {copy}"), trouble);
    }
    let existing: Vec<TopicName> =
        copies.keys().filter(|copy| target.topics.contains_key(copy)).cloned().collect();
    if existing.is_empty() {
        return;
    }
    findings.good("target topics", format!("{} already", count_exist(existing.len())));
    let configs = match clusters.configs(Side::Target, &existing) {
        Ok(configs) => configs,
        Err(trouble) => return findings.trouble(Side::Target, "target topic settings", &trouble),
    };
    for (copy, config) in configs {
        let subject = format!("target topic {copy}");
        if let Some(detail) = stamps(&config) {
            findings.bad(Code::Configuration, &subject, detail);
        }
        let of_source = copies.get(&copy).and_then(|topic| source_configs.get(*topic));
        for doubt in of_source.into_iter().flat_map(|source| holds_less(source, &config)) {
            findings.doubtful(&subject, doubt);
        }
    }
}

fn count_exist(number: usize) -> String {
    if number == 1 { "1 exists".into() } else { format!("{number} exist") }
}

fn ledger(
    clusters: &impl Clusters,
    flow: &Flow,
    source: &Listing,
    target: &Listing,
    findings: &mut Findings,
) {
    let name = flow.name.ledger();
    if let Some(trouble) = target.trouble.get(&name) {
        return findings.trouble(Side::Target, "ledger", trouble);
    }
    let Some(info) = target.topics.get(&name) else {
        return findings.good("ledger", format!("{name} does not exist yet; `run` creates it"));
    };
    if info.partitions != flow.lanes {
        let detail = format!(
            "{name} has {} partitions, but delivery.lanes is {}: lanes are fixed when the ledger is created",
            info.partitions, flow.lanes
        );
        return findings.bad(Code::Configuration, "ledger", detail);
    }
    match clusters.configs(Side::Target, std::slice::from_ref(&name)) {
        Err(trouble) => return findings.trouble(Side::Target, "ledger", &trouble),
        Ok(configs) => match configs.get(&name).map(check_settings) {
            Some(Ok(())) => {}
            Some(Err(unsafe_ledger)) => {
                return findings.bad(Code::Configuration, "ledger", unsafe_ledger.to_string());
            }
            None => return findings.bad(Code::TryAgain, "ledger", format!("{name} has no settings yet")),
        },
    }
    let records = match clusters.survey() {
        Ok(records) => records,
        Err(trouble) => return findings.trouble(Side::Target, "ledger", &trouble),
    };
    match ledger::replay(records) {
        Ok(ledger) => terms(flow, source, target, &ledger, findings),
        Err(bad) => findings.bad(Code::Configuration, "ledger", bad.message()),
    }
}

fn terms(flow: &Flow, source: &Listing, target: &Listing, ledger: &FlowLedger, findings: &mut Findings) {
    let rename = flow.rename.fingerprint();
    let ours = Terms::new(flow.lanes, &source.cluster_id, &target.cluster_id, rename);
    match ledger.claims().find_map(|(_, claim)| claim.check(&ours).err()) {
        Some(mismatch) => findings.bad(Code::Configuration, "ledger", mismatch.to_string()),
        None => findings.good(
            "ledger",
            format!("{}, {} settled", flow.name.ledger(), count(ledger.entries().count(), "partition")),
        ),
    }
}

fn replication(flow: &Flow, target: &Listing, findings: &mut Findings) {
    let wanted = [
        ("topics.replication.factor", flow.replication_factor),
        ("delivery.ledger.replication.factor", flow.ledger_replication_factor),
    ];
    for (key, factor) in wanted.into_iter().filter_map(|(key, factor)| Some((key, factor?))) {
        if i64::from(target.brokers) < i64::from(factor) {
            let detail = format!("is {factor}, but the target has {}", count(target.brokers, "broker"));
            findings.bad(Code::Configuration, key, detail);
        }
    }
}

#[cfg(test)]
mod tests;
