//! Looking at both clusters without changing anything: what `verify`, `status` and `check` share with the
//! World.

use crate::cluster::{Cluster, Place};
use crate::ffi::AssignedConsumer;
use crate::ffi::admin::{Isolation, Spec, ToldOffset};
use crate::open_transactions;
use crate::reading::{PATIENCE, ReadError, RecordView, Span, consumer, read};
use crate::settings::Settings;
use crate::world::StartError;
use kafka_types::{Partition, SourcePartition, TargetOffset, TopicName};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use verbatim_core::LaneId;
use verbatim_core::command::Topics;
use verbatim_core::event::{LedgerRecord, Listing, OpenTransaction, TopicConfig};
use verbatim_core::failure::{Side, Trouble};

/// Where a partition begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub log_start: i64,
    /// Where a read_committed reader's view ends.
    pub last_stable: i64,
    pub high_watermark: i64,
}

/// Two clusters, asked one blocking question at a time; to be shared by threads that ask several at once.
pub struct Reader {
    settings: Settings,
    source: Cluster,
    target: Cluster,
    /// Consumers that nobody reads with just now, by side.
    idle: Mutex<BTreeMap<Side, Vec<AssignedConsumer>>>,
}

impl Reader {
    /// Makes the clients. Whether anybody answers shows with the first question.
    pub fn connect(settings: &Settings) -> Result<Reader, StartError> {
        let connect = |side| Cluster::connect(settings, side, None).map_err(StartError::on(side));
        Ok(Reader {
            settings: settings.clone(),
            source: connect(Side::Source)?,
            target: connect(Side::Target)?,
            idle: Mutex::default(),
        })
    }

    fn cluster(&self, side: Side) -> &Cluster {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    /// Cluster id, number of brokers, and topics with their ids and partition counts.
    pub fn describe(&self, side: Side, topics: &Topics) -> Result<Listing, Trouble> {
        self.cluster(side).listing(topics)
    }

    /// Effective configurations. Topics that are not there are left out; one that may not be described fails
    /// all.
    pub fn configs(
        &self,
        side: Side,
        topics: &[TopicName],
    ) -> Result<BTreeMap<TopicName, TopicConfig>, Trouble> {
        self.cluster(side).configs(topics)
    }

    /// Whether records may be written to each of these target topics. Those of which nothing is known are left out.
    pub fn writable(&self, topics: &[TopicName]) -> Result<BTreeMap<TopicName, bool>, Trouble> {
        self.target.writable(topics)
    }

    /// Both ends of many partitions, in three requests to each leader.
    pub fn ends(
        &self,
        side: Side,
        partitions: &BTreeSet<(TopicName, Partition)>,
    ) -> BTreeMap<(TopicName, Partition), Result<Ends, Trouble>> {
        let cluster = self.cluster(side);
        // In this order no end lies before the one read earlier.
        let starts = cluster.offsets(partitions, Spec::Earliest, Isolation::ReadUncommitted);
        let mut stable = cluster.offsets(partitions, Spec::Latest, Isolation::ReadCommitted);
        let mut high = cluster.offsets(partitions, Spec::Latest, Isolation::ReadUncommitted);
        let known = |told: Option<Result<Option<ToldOffset>, Trouble>>| {
            let unnamed = || Trouble::Passing("the broker named no offset".into());
            told.unwrap_or(Ok(None))?.map(|told| told.offset).ok_or_else(unnamed)
        };
        starts
            .into_iter()
            .map(|(place, start)| {
                let ends = known(Some(start)).and_then(|log_start| {
                    let last_stable = known(stable.remove(&place))?;
                    Ok(Ends { log_start, last_stable, high_watermark: known(high.remove(&place))? })
                });
                (place, ends)
            })
            .collect()
    }

    /// Who holds back the last stable offset of source partitions.
    pub fn open_transactions(
        &self,
        partitions: &[SourcePartition],
    ) -> BTreeMap<SourcePartition, Vec<OpenTransaction>> {
        open_transactions::find(&self.source, &self.settings, partitions)
    }

    /// The ledger's committed records, all partitions, each from its beginning to its end as it is now. None
    /// where there is no ledger yet.
    pub fn ledger(&self) -> Result<Vec<LedgerRecord>, Trouble> {
        let ledger = self.settings.flow.ledger();
        let mut listing = self.describe(Side::Target, &Topics::Named(vec![ledger.clone()]))?;
        if let Some(trouble) = listing.trouble.remove(&ledger) {
            return Err(trouble);
        }
        let Some(topic) = listing.topics.get(&ledger) else { return Ok(Vec::new()) };
        let places: BTreeSet<Place> =
            Partition::all(topic.partitions).map(|partition| (ledger.clone(), partition)).collect();
        let mut spans = Vec::new();
        for ((topic, partition), ends) in self.ends(Side::Target, &places) {
            let ends = ends?;
            if ends.log_start < ends.last_stable {
                spans.push(Span { topic, partition, from: None, to: ends.last_stable });
            }
        }
        let mut records = Vec::new();
        self.read(Side::Target, &spans, |span, record| {
            records.push(LedgerRecord {
                lane: LaneId(u32::try_from(span.partition.0).unwrap_or(u32::MAX)),
                offset: TargetOffset(record.offset()),
                key: record.key().unwrap_or_default().to_vec(),
                value: record.value().unwrap_or_default().to_vec(),
            });
            ControlFlow::Continue(())
        })
        .map_err(ReadError::trouble)?;
        records.sort_by_key(|record| (record.lane, record.offset));
        Ok(records)
    }

    /// Hands every committed record whose offset lies in `offsets` to `each`, in order, until the position
    /// has reached the range's end or `each` breaks off. Markers, aborted records and holes are passed over.
    pub fn read_partition(
        &self,
        side: Side,
        topic: &TopicName,
        partition: Partition,
        offsets: Range<i64>,
        each: impl FnMut(RecordView<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.read_partition_within(PATIENCE, side, topic, partition, offsets, each)
    }

    /// The same, given up once nothing has come for as long as `patience`.
    pub fn read_partition_within(
        &self,
        patience: Duration,
        side: Side,
        topic: &TopicName,
        partition: Partition,
        offsets: Range<i64>,
        mut each: impl FnMut(RecordView<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let span = Span { topic: topic.clone(), partition, from: Some(offsets.start), to: offsets.end };
        self.read_within(patience, side, &[span], |_, record| each(record))
    }

    /// The same for several partitions at once, which is faster than one after the other. Records come in
    /// order within a span, and the spans, which must be of different partitions, interleave. Every thread
    /// that reads has connections of its own.
    pub fn read(
        &self,
        side: Side,
        spans: &[Span],
        each: impl FnMut(&Span, RecordView<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.read_within(PATIENCE, side, spans, each)
    }

    fn read_within(
        &self,
        patience: Duration,
        side: Side,
        spans: &[Span],
        each: impl FnMut(&Span, RecordView<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).entry(side).or_default().pop();
        let consumer = match idle {
            Some(consumer) => consumer,
            None => consumer(&self.settings, side, "reader").map_err(ReadError::Trouble)?,
        };
        let outcome = read(&consumer, spans, patience, each);
        // After a failure the client is not used again: it may be the cause.
        if outcome.is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.entry(side).or_default().push(consumer);
        }
        outcome.map_err(|error| self.explained(side, error))
    }

    /// librdkafka does not say that a topic is absent or forbidden: it only brings nothing.
    fn explained(&self, side: Side, error: ReadError) -> ReadError {
        let ReadError::Short { topic, .. } = &error else { return error };
        match self.describe(side, &Topics::Named(vec![topic.clone()])) {
            Err(trouble) => ReadError::Trouble(trouble),
            Ok(mut listing) => match listing.trouble.remove(topic) {
                Some(trouble) => ReadError::Trouble(trouble),
                None if listing.topics.contains_key(topic) => error,
                None => ReadError::Trouble(Trouble::Passing(format!("the cluster knows no topic {topic}"))),
            },
        }
    }
}
