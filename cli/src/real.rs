//! The two real clusters, as the commands that only look see them.

use crate::clusters::{Clusters, Extent, Extents, Record, Records};
use crate::config::Config;
use crate::exit_code::Code;
use crate::failed::Failed;
use kafka_types::{Partition, SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicName};
use runtime_real::{Ends, ReadError, Reader, RecordView, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use verbatim_core::command::Topics;
use verbatim_core::event::{LedgerRecord, Listing, OpenTransaction, TopicConfig};
use verbatim_core::failure::{Side, Trouble};

/// What lies between a reading thread and who asked for records: two batches of at most this.
const BATCH_RECORDS: usize = 1_000;
const BATCH_BYTES: usize = 1 << 20;

pub(crate) struct Real(Arc<Reader>);

/// What runtime-real must know of the configuration.
pub(crate) fn settings(config: &Config) -> Settings {
    Settings {
        source: BTreeMap::clone(&config.source),
        target: BTreeMap::clone(&config.target),
        flow: config.flow.name.clone(),
        lanes: config.flow.lanes,
        instance: config.instance.clone(),
        memory_bytes: config.memory,
    }
}

impl Real {
    pub(crate) fn connect(config: &Config) -> Result<Real, Failed> {
        let reader = Reader::connect(&settings(config))
            .map_err(|error| Failed::new(Code::Configuration, error.to_string()))?;
        Ok(Real(Arc::new(reader)))
    }

    fn extents<P: Ord + Clone, O>(
        &self,
        side: Side,
        partitions: &[P],
        place: impl Fn(&P) -> (TopicName, Partition),
        offset: fn(i64) -> O,
    ) -> Extents<P, O> {
        let places: BTreeSet<_> = partitions.iter().map(&place).collect();
        let mut answers = self.0.ends(side, &places);
        let mut answer = |partition: &P| {
            let silent = || Err(Trouble::Passing("no answer about its ends".into()));
            answers.remove(&place(partition)).unwrap_or_else(silent)
        };
        partitions
            .iter()
            .map(|partition| (partition.clone(), answer(partition).map(|ends| extent(ends, offset))))
            .collect()
    }
}

fn extent<O>(ends: Ends, offset: fn(i64) -> O) -> Extent<O> {
    Extent {
        start: offset(ends.log_start),
        last_stable: offset(ends.last_stable),
        high_watermark: offset(ends.high_watermark),
    }
}

impl Clusters for Real {
    fn describe(&self, side: Side, topics: &Topics) -> Result<Listing, Trouble> {
        self.0.describe(side, topics)
    }

    fn configs(&self, side: Side, topics: &[TopicName]) -> Result<BTreeMap<TopicName, TopicConfig>, Trouble> {
        self.0.configs(side, topics)
    }

    fn source_extents(&self, partitions: &[SourcePartition]) -> Extents<SourcePartition, SourceOffset> {
        let place = |it: &SourcePartition| (it.topic.clone(), it.partition);
        self.extents(Side::Source, partitions, place, SourceOffset)
    }

    fn target_extents(&self, partitions: &[TargetPartition]) -> Extents<TargetPartition, TargetOffset> {
        let place = |it: &TargetPartition| (it.topic.clone(), it.partition);
        self.extents(Side::Target, partitions, place, TargetOffset)
    }

    fn open_transactions(
        &self,
        partitions: &[SourcePartition],
    ) -> BTreeMap<SourcePartition, Vec<OpenTransaction>> {
        self.0.open_transactions(partitions)
    }

    fn survey(&self) -> Result<Vec<LedgerRecord>, Trouble> {
        self.0.ledger()
    }

    fn source_records(
        &self,
        partition: &SourcePartition,
        from: SourceOffset,
        to: SourceOffset,
    ) -> Result<Records<SourceOffset>, Trouble> {
        let place = (partition.topic.clone(), partition.partition);
        Ok(stream(&self.0, Side::Source, place, from.0..to.0, SourceOffset))
    }

    fn target_records(
        &self,
        partition: &TargetPartition,
        from: TargetOffset,
        to: TargetOffset,
    ) -> Result<Records<TargetOffset>, Trouble> {
        let place = (partition.topic.clone(), partition.partition);
        Ok(stream(&self.0, Side::Target, place, from.0..to.0, TargetOffset))
    }
}

type Batch<O> = Result<Vec<Record<O>>, Trouble>;

/// Reads on a thread of its own, a few batches ahead; dropping the iterator ends it.
fn stream<O: Send + 'static>(
    reader: &Arc<Reader>,
    side: Side,
    place: (TopicName, Partition),
    offsets: Range<i64>,
    offset: fn(i64) -> O,
) -> Records<O> {
    if offsets.is_empty() {
        return Box::new(std::iter::empty());
    }
    let (sender, receiver) = sync_channel(2);
    let reader = Arc::clone(reader);
    std::thread::spawn(move || fill(&reader, side, &place, offsets, offset, &sender));
    Box::new(Stream { receiver, batch: Vec::new().into_iter() })
}

fn fill<O>(
    reader: &Reader,
    side: Side,
    (topic, partition): &(TopicName, Partition),
    offsets: Range<i64>,
    offset: fn(i64) -> O,
    sender: &SyncSender<Batch<O>>,
) {
    let mut batch = Vec::new();
    let mut bytes = 0;
    // The first record comes at once, for those who want no more than one.
    let mut batch_records = 1;
    let mut unreadable = None;
    let outcome = reader.read_partition(side, topic, *partition, offsets, |view| {
        match record(view, offset) {
            Ok((record, size)) => {
                batch.push(record);
                bytes += size;
            }
            Err(why) => {
                unreadable =
                    Some(Trouble::Refused(format!("{topic}/{partition} offset {}: {why}", view.offset())));
                return ControlFlow::Break(());
            }
        }
        if batch.len() < batch_records && bytes < BATCH_BYTES {
            return ControlFlow::Continue(());
        }
        batch_records = (batch_records * 2).min(BATCH_RECORDS);
        bytes = 0;
        match sender.send(Ok(std::mem::take(&mut batch))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    // Nobody listens any more where sending fails.
    let _ = sender.send(Ok(batch));
    if let Some(trouble) = unreadable.or(outcome.err().map(ReadError::trouble)) {
        let _ = sender.send(Err(trouble));
    }
}

fn record<O>(view: RecordView<'_>, offset: fn(i64) -> O) -> Result<(Record<O>, usize), String> {
    let owned = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
    let headers: Vec<_> = view.headers()?.map(|(name, value)| (name.to_vec(), owned(value))).collect();
    let size = view.key().map_or(0, <[u8]>::len) + view.value().map_or(0, <[u8]>::len);
    let record = Record {
        offset: offset(view.offset()),
        key: owned(view.key()),
        value: owned(view.value()),
        headers,
        timestamp: view.timestamp(),
    };
    Ok((record, size))
}

struct Stream<O> {
    receiver: Receiver<Batch<O>>,
    batch: std::vec::IntoIter<Record<O>>,
}

impl<O> Iterator for Stream<O> {
    type Item = Result<Record<O>, Trouble>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.batch.next() {
                return Some(Ok(record));
            }
            match self.receiver.recv().ok()? {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(trouble) => return Some(Err(trouble)),
            }
        }
    }
}
