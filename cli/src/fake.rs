//! Two clusters in memory, for tests of the commands that only look.

use crate::clusters::{Clusters, Extent, Extents, Record, Records};
use kafka_types::{
    OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicId, TopicName,
};
use std::collections::{BTreeMap, BTreeSet};
use verbatim_core::LaneId;
use verbatim_core::command::Topics;
use verbatim_core::config::{Flow, FlowName, Limits, Start};
use verbatim_core::digest::Digest;
use verbatim_core::event::{ConfigValue, LedgerRecord, Listing, OpenTransaction, TopicConfig, TopicInfo};
use verbatim_core::failure::{Side, Trouble};
use verbatim_core::lane::{Attempt, lane_of};
use verbatim_core::ledger::{
    Claim, Entry, Record as LedgerEntry, TargetPin, Terms, TopicRecord, wanted_settings,
};
use verbatim_core::route::{Rename, TopicFilter};

pub(crate) type Log = Vec<Record<i64>>;

#[derive(Default)]
pub(crate) struct Fake {
    pub source: Listing,
    pub target: Listing,
    pub source_logs: BTreeMap<SourcePartition, Log>,
    pub target_logs: BTreeMap<TargetPartition, Log>,
    /// Log starts that are not the first record's offset.
    pub source_starts: BTreeMap<SourcePartition, i64>,
    pub ledger: Vec<LedgerRecord>,
    pub configs: BTreeMap<(Side, TopicName), TopicConfig>,
    pub trouble: BTreeMap<Side, Trouble>,
    /// Topics that may be described but not read.
    pub unreadable: Vec<TopicName>,
    /// Topics that may not be described, and so are in no listing.
    pub hidden: BTreeSet<(Side, TopicName)>,
    /// Topics whose leaders do not answer, by side.
    pub silent: BTreeSet<(Side, TopicName)>,
    /// Source partitions with a transaction that is open from this offset on.
    pub open_from: BTreeMap<SourcePartition, i64>,
}

pub(crate) fn flow() -> Flow {
    Flow {
        name: FlowName::new("f").unwrap(),
        incarnation: String::new(),
        filter: TopicFilter::new(&[".*".into()], &[]).unwrap(),
        rename: Rename::identity(),
        refresh: std::time::Duration::from_secs(30),
        replication_factor: None,
        start: Start::Earliest,
        commit_interval: std::time::Duration::from_millis(500),
        lanes: 2,
        ledger_replication_factor: None,
        intake_bytes_max: 1 << 20,
        until: None,
        wait_open: std::time::Duration::from_secs(60),
        limits: Limits::default(),
    }
}

pub(crate) fn record(offset: i64, key: &str, value: &str) -> Record<i64> {
    Record {
        offset,
        key: Some(key.into()),
        value: Some(value.into()),
        headers: Vec::new(),
        timestamp: 1_000 + offset,
    }
}

fn info(id: u128, partitions: u32) -> TopicInfo {
    TopicInfo { id: TopicId(id), partitions, internal: false }
}

impl Fake {
    /// Two clusters, a ledger that lane 0 of two has claimed, and nothing else.
    pub(crate) fn new() -> Fake {
        let cluster = |id: &str| Listing { cluster_id: id.into(), brokers: 1, ..Listing::default() };
        let (source, target) = (cluster("source-id"), cluster("target-id"));
        let mut fake = Fake { source, target, ..Fake::default() };
        let ledger = flow().name.ledger();
        fake.target.topics.insert(ledger.clone(), info(99, 2));
        fake.set_configs(Side::Target, &ledger, wanted_settings(1));
        let terms = Terms::new(2, "source-id", "target-id", "{topic}".into());
        for lane in 0..2 {
            let incarnation = format!("instance-{lane}");
            let claim = Claim { incarnation, attempt: Attempt(1), terms: terms.clone() };
            fake.append(LaneId(lane), LedgerEntry::Claim(claim));
        }
        fake
    }

    pub(crate) fn set_configs(&mut self, side: Side, topic: &TopicName, configs: BTreeMap<String, String>) {
        let config = configs.into_iter().map(|(key, value)| (key, ConfigValue { value, overridden: true }));
        self.configs.insert((side, topic.clone()), config.collect());
    }

    pub(crate) fn append(&mut self, lane: LaneId, record: LedgerEntry) {
        let offset = TargetOffset(i64::try_from(self.ledger.len()).unwrap());
        let encoded = record.encode();
        self.ledger.push(LedgerRecord { lane, offset, key: encoded.key, value: encoded.value });
    }

    /// A topic of one partition on both sides, pinned, of which `copied` records are settled.
    pub(crate) fn topic(&mut self, name: &str, log: Log, copied: usize) -> SourcePartition {
        let partition = SourcePartition::new(name, 0);
        self.source.topics.insert(name.into(), info(1, 1));
        self.target.topics.insert(name.into(), info(2, 1));
        for side in [Side::Source, Side::Target] {
            let delete = BTreeMap::from([("cleanup.policy".to_string(), "delete".to_string())]);
            self.set_configs(side, &name.into(), delete);
        }
        let target =
            TargetPin { topic: name.into(), id: TopicId(2), ends: vec![TargetOffset(0)], unfit: None };
        let pinned = TopicRecord {
            source_id: TopicId(1),
            starts: vec![OffsetAndEpoch { offset: SourceOffset(0), epoch: None }],
            target: Some(target),
        };
        self.append(LaneId(0), LedgerEntry::Topic(name.into(), pinned));
        let copy: Log =
            log.iter().take(copied).cloned().zip(0..).map(|(r, offset)| Record { offset, ..r }).collect();
        if copied != 0 {
            let next = log.get(copied).map_or_else(|| log[copied - 1].offset + 1, |next| next.offset);
            self.settle(&partition, next, &copy);
        }
        self.source_logs.insert(partition.clone(), log);
        self.target_logs.insert(TargetPartition::new(name, 0), copy);
        partition
    }

    pub(crate) fn settle(&mut self, partition: &SourcePartition, next: i64, copy: &Log) -> Entry {
        let topic = partition.topic.clone();
        let first = Entry::first(
            OffsetAndEpoch { offset: SourceOffset(0), epoch: None },
            TopicId(1),
            topic,
            TopicId(2),
            TargetOffset(0),
        );
        let entry = Entry {
            next: SourceOffset(next),
            target_end: Some(TargetOffset(copy.last().map_or(0, |last| last.offset + 1))),
            records: copy.len() as u64,
            digest: copy.iter().fold(Digest::EMPTY, |digest, record| digest.push(record.hash())),
            ..first
        };
        self.put(partition, entry.clone());
        entry
    }

    pub(crate) fn put(&mut self, partition: &SourcePartition, entry: Entry) {
        self.append(lane_of(partition, 2), LedgerEntry::Entry(partition.clone(), entry));
    }

    fn check(&self, side: Side) -> Result<(), Trouble> {
        self.trouble.get(&side).map_or(Ok(()), |trouble| Err(trouble.clone()))
    }

    /// A partition's log, if its leader answers.
    fn log<'a>(&self, side: Side, topic: &TopicName, log: Option<&'a Log>) -> Result<&'a Log, Trouble> {
        let is_silent = self.silent.contains(&(side, topic.clone()));
        log.filter(|_| !is_silent).ok_or_else(|| Trouble::Passing(format!("{topic} has no leader")))
    }
}

fn extent<O>(log: &Log, start: Option<i64>, offset: fn(i64) -> O) -> Extent<O> {
    let end = log.last().map_or(0, |last| last.offset + 1);
    let start = start.unwrap_or_else(|| log.first().map_or(end, |first| first.offset));
    Extent {
        start: offset(start),
        last_stable: offset(end.max(start)),
        high_watermark: offset(end.max(start)),
    }
}

fn records<O: 'static + Send>(log: &Log, from: i64, to: i64, offset: fn(i64) -> O) -> Records<O> {
    let records: Vec<_> = log
        .iter()
        .filter(|record| (from..to).contains(&record.offset))
        .map(|record| {
            let Record { key, value, headers, timestamp, .. } = record.clone();
            Ok(Record { offset: offset(record.offset), key, value, headers, timestamp })
        })
        .collect();
    Box::new(records.into_iter())
}

impl Clusters for Fake {
    fn describe(&self, side: Side, topics: &Topics) -> Result<Listing, Trouble> {
        self.check(side)?;
        let all = match side {
            Side::Source => self.source.clone(),
            Side::Target => self.target.clone(),
        };
        let is_hidden = |topic: &TopicName| self.hidden.contains(&(side, topic.clone()));
        let mut shown = Listing { topics: BTreeMap::new(), ..all.clone() };
        let names: Vec<TopicName> = match topics {
            Topics::All => all.topics.keys().filter(|topic| !is_hidden(topic)).cloned().collect(),
            Topics::Named(names) => names.clone(),
        };
        for name in names {
            match all.topics.get(&name) {
                Some(_) if is_hidden(&name) => {
                    let resource = format!("Topic {name}");
                    let trouble = Trouble::NotAuthorized { resource, operation: "Describe".into() };
                    shown.trouble.insert(name, trouble);
                }
                Some(info) => {
                    shown.topics.insert(name, info.clone());
                }
                None => shown.unknown.push(name),
            }
        }
        Ok(shown)
    }

    fn configs(&self, side: Side, topics: &[TopicName]) -> Result<BTreeMap<TopicName, TopicConfig>, Trouble> {
        let config =
            |topic: &TopicName| self.configs.get(&(side, topic.clone())).cloned().unwrap_or_default();
        Ok(topics.iter().map(|topic| (topic.clone(), config(topic))).collect())
    }

    fn source_extents(&self, partitions: &[SourcePartition]) -> Extents<SourcePartition, SourceOffset> {
        let found = |partition: &SourcePartition| {
            let log = self.log(Side::Source, &partition.topic, self.source_logs.get(partition))?;
            let start = self.source_starts.get(partition).copied();
            let extent = extent(log, start, SourceOffset);
            let open_from = self.open_from.get(partition).map(|offset| SourceOffset(*offset));
            Ok(Extent { last_stable: open_from.unwrap_or(extent.last_stable), ..extent })
        };
        partitions.iter().map(|partition| (partition.clone(), found(partition))).collect()
    }

    fn target_extents(&self, partitions: &[TargetPartition]) -> Extents<TargetPartition, TargetOffset> {
        let found = |partition: &TargetPartition| {
            let log = self.log(Side::Target, &partition.topic, self.target_logs.get(partition))?;
            Ok(extent(log, None, TargetOffset))
        };
        partitions.iter().map(|partition| (partition.clone(), found(partition))).collect()
    }

    fn open_transactions(
        &self,
        partitions: &[SourcePartition],
    ) -> BTreeMap<SourcePartition, Vec<OpenTransaction>> {
        let open = |partition: &SourcePartition| {
            let first = self.open_from.get(partition).map(|offset| SourceOffset(*offset));
            first.map(|first| OpenTransaction { first: Some(first), producer_id: Some(4711) })
        };
        partitions.iter().map(|it| (it.clone(), open(it).into_iter().collect())).collect()
    }

    fn survey(&self) -> Result<Vec<LedgerRecord>, Trouble> {
        Ok(self.ledger.clone())
    }

    fn source_records(
        &self,
        partition: &SourcePartition,
        from: SourceOffset,
        to: SourceOffset,
    ) -> Result<Records<SourceOffset>, Trouble> {
        if self.unreadable.contains(&partition.topic) {
            let resource = format!("Topic {}", partition.topic);
            return Err(Trouble::NotAuthorized { resource, operation: "Read".into() });
        }
        Ok(records(&self.source_logs[partition], from.0, to.0, SourceOffset))
    }

    fn target_records(
        &self,
        partition: &TargetPartition,
        from: TargetOffset,
        to: TargetOffset,
    ) -> Result<Records<TargetOffset>, Trouble> {
        Ok(records(&self.target_logs[partition], from.0, to.0, TargetOffset))
    }
}
