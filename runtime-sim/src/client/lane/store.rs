use super::super::fetcher::ReadRecord;
use kafka_types::SourcePartition;
use std::collections::BTreeMap;
use verbatim_core::Attempt;
use verbatim_core::batch::BatchId;

/// A batch's records, read and not yet handed to the producer.
pub(super) struct Held {
    pub(super) attempt: Attempt,
    pub(super) partition: SourcePartition,
    pub(super) records: Vec<ReadRecord>,
}

/// Filled by the source, emptied by the outbox.
#[derive(Default)]
pub(super) struct BatchStore(BTreeMap<BatchId, Held>);

impl BatchStore {
    pub(super) fn insert(&mut self, id: BatchId, held: Held) {
        self.0.insert(id, held);
    }

    pub(super) fn take(&mut self, id: BatchId) -> Option<Held> {
        self.0.remove(&id)
    }

    pub(super) fn drop_older_than(&mut self, attempt: Attempt) {
        self.0.retain(|_, held| attempt <= held.attempt);
    }

    pub(super) fn drop_partitions(&mut self, partitions: &[SourcePartition]) {
        self.0.retain(|_, held| !partitions.contains(&held.partition));
    }
}
