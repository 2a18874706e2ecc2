//! The records that a lane holds: read from the source, not yet handed to the producer.

use crate::ffi::OwnedMessage;
use kafka_types::SourcePartition;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use verbatim_core::Attempt;
use verbatim_core::batch::BatchId;

/// A batch's records. `M` is what carries a record.
pub(super) struct Held<M = OwnedMessage> {
    pub(super) attempt: Attempt,
    pub(super) partition: SourcePartition,
    pub(super) records: Vec<M>,
    /// Of all records together.
    pub(super) bytes: u64,
}

/// Shared by a lane's two threads: one fills it, the other empties it.
pub(super) struct BatchStore<M = OwnedMessage>(Mutex<BTreeMap<BatchId, Held<M>>>);

impl<M> Default for BatchStore<M> {
    fn default() -> BatchStore<M> {
        BatchStore(Mutex::new(BTreeMap::new()))
    }
}

impl<M> BatchStore<M> {
    /// An id that no other batch of this process ever has.
    pub(super) fn new_id(&self) -> BatchId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        BatchId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(super) fn insert(&self, id: BatchId, held: Held<M>) {
        self.lock().insert(id, held);
    }

    pub(super) fn take(&self, id: BatchId) -> Option<Held<M>> {
        self.lock().remove(&id)
    }

    pub(super) fn drop_older_than(&self, attempt: Attempt) {
        self.drop_where(|held| held.attempt < attempt);
    }

    pub(super) fn drop_partitions(&self, partitions: &[SourcePartition]) {
        self.drop_where(|held| partitions.contains(&held.partition));
    }

    pub(super) fn clear(&self) {
        self.drop_where(|_| true);
    }

    fn drop_where(&self, unwanted: impl Fn(&Held<M>) -> bool) {
        // Freed only once the lock is released.
        let dropped: Vec<_> = self.lock().extract_if(.., |_, held| unwanted(held)).collect();
        drop(dropped);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<BatchId, Held<M>>> {
        self.0.lock().expect("no panic while locked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_go_by_attempt_and_by_partition() {
        let store: BatchStore<&str> = BatchStore::default();
        let insert = |attempt, partition| {
            let (id, partition) = (store.new_id(), SourcePartition::new("orders", partition));
            store.insert(id, Held { attempt: Attempt(attempt), partition, records: vec!["r"], bytes: 1 });
            id
        };
        let (old, new, other) = (insert(1, 0), insert(2, 0), insert(2, 1));
        store.drop_older_than(Attempt(2));
        assert!(store.take(old).is_none());
        store.drop_partitions(&[SourcePartition::new("orders", 1)]);
        assert!(store.take(other).is_none());
        assert_eq!(store.take(new).unwrap().records, ["r"]);
        assert!(store.take(new).is_none());
    }
}
