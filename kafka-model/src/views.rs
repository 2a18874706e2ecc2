//! What an oracle may know and no client can: the truth behind the answers.

use crate::transaction::Decisions;
use crate::{BrokerId, Cluster, History, LogEvent, Offset};
use kafka_types::{LeaderEpoch, Record, RecordBatch, TopicId, TopicName, TopicPartition, TransactionResult};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// Outside any transaction.
    Plain,
    /// Its transaction is decided so, whether or not the marker is in this log yet.
    Committed,
    Aborted,
    /// Its transaction is open.
    Undecided,
    Marker,
}

/// A record that readers of committed records see, now or once all decided markers are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommittedRecord {
    pub offset: Offset,
    pub record: Record,
    pub batch: Arc<RecordBatch>,
}

/// Where a partition stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionView {
    pub topic_id: TopicId,
    pub leader: Option<BrokerId>,
    pub leader_epoch: LeaderEpoch,
    pub in_sync: BTreeSet<BrokerId>,
    pub log_start_offset: Offset,
    pub last_stable_offset: Offset,
    pub high_watermark: Offset,
    /// Where the high watermark will be once the leader knows what its followers have.
    pub replicated_offset: Offset,
    pub log_end_offset: Offset,
    /// As retention counts it: whole segments.
    pub size_bytes: u64,
}

impl Cluster {
    pub fn topic_names(&self) -> impl Iterator<Item = (&TopicName, TopicId, usize)> {
        self.topics.iter().map(|(name, topic)| (name, topic.id, topic.partitions.len()))
    }

    pub fn topic_id(&self, topic: &TopicName) -> Option<TopicId> {
        self.topics.get(topic).map(|topic| topic.id)
    }

    pub fn broker_ids(&self) -> impl Iterator<Item = (BrokerId, bool)> {
        self.brokers.ids().map(|id| (id, self.brokers.is_alive(id)))
    }

    /// Who leads a partition, dead or alive, as the controller sees it.
    pub fn leader(&self, tp: &TopicPartition) -> Option<BrokerId> {
        self.topics.partition(tp)?.leader
    }

    pub fn partition_view(&self, tp: &TopicPartition) -> Option<PartitionView> {
        let topic = self.topics.get(&tp.topic)?;
        let partition = self.topics.partition(tp)?;
        Some(PartitionView {
            topic_id: topic.id,
            leader: partition.leader,
            leader_epoch: partition.leader_epoch,
            in_sync: partition.in_sync.clone(),
            log_start_offset: partition.log.start_offset(),
            last_stable_offset: partition.last_stable_offset(),
            high_watermark: partition.high_watermark,
            replicated_offset: partition.replicated_offset(),
            log_end_offset: partition.log.end_offset(),
            size_bytes: partition.log.size_bytes(),
        })
    }

    /// The batches of the leader's log from the one that holds `from`, each with its fate.
    pub fn fates(&self, tp: &TopicPartition, from: Offset) -> Vec<(Arc<RecordBatch>, Fate)> {
        let Some(partition) = self.topics.partition(tp) else { return Vec::new() };
        let mut batches: Vec<(Arc<RecordBatch>, Fate)> = Vec::new();
        // Places of each producer's batches that no marker has decided yet.
        let mut open: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for batch in partition.log.batches_from(from.max(partition.log.start_offset())) {
            let fate = match batch.marker {
                Some(marker) => {
                    let fate = fate_of(marker.result);
                    for place in open.remove(&batch.producer_id).unwrap_or_default() {
                        batches[place].1 = fate;
                    }
                    Fate::Marker
                }
                None if batch.is_transactional => {
                    open.entry(batch.producer_id).or_default().push(batches.len());
                    Fate::Undecided
                }
                None => Fate::Plain,
            };
            batches.push((Arc::clone(batch), fate));
        }
        for (producer_id, places) in open {
            if let Some(result) = self.decided_without_marker(tp, producer_id) {
                for place in places {
                    batches[place].1 = fate_of(result);
                }
            }
        }
        batches
    }

    /// What a reader of committed records finds from `from` on once every decided marker is written, in order:
    /// up to the first record of an open transaction, and only what all in-sync replicas have.
    pub fn committed(&self, tp: &TopicPartition, from: Offset) -> Vec<CommittedRecord> {
        let Some(partition) = self.topics.partition(tp) else { return Vec::new() };
        let from = from.max(partition.log.start_offset());
        let end = partition.replicated_offset();
        let mut committed = Vec::new();
        for (batch, fate) in self.fates(tp, from) {
            match fate {
                Fate::Undecided => break,
                _ if end <= batch.last_offset() => break,
                Fate::Aborted | Fate::Marker => {}
                Fate::Plain | Fate::Committed => {
                    let records = batch.records.iter().filter(|record| from <= batch.offset_of(record));
                    committed.extend(records.map(|record| CommittedRecord {
                        offset: batch.offset_of(record),
                        record: record.clone(),
                        batch: Arc::clone(&batch),
                    }));
                }
            }
        }
        committed
    }

    /// Transactions in the order in which their outcome came to stand.
    pub fn decisions(&self) -> &Decisions {
        &self.transactions.decisions
    }

    pub fn decisions_mut(&mut self) -> &mut Decisions {
        &mut self.transactions.decisions
    }

    /// What happened to a partition's log since the beginning, or since the last [`History::take`].
    pub fn log_events(&self, tp: &TopicPartition) -> &[LogEvent] {
        self.topic_id(&tp.topic).map_or(&[], |id| self.history.events(id, tp.partition))
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }
}

fn fate_of(result: TransactionResult) -> Fate {
    match result {
        TransactionResult::Commit => Fate::Committed,
        TransactionResult::Abort => Fate::Aborted,
    }
}
