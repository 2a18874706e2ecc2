//! Which batches of the mirror's open transactions were sent, and which of them the target has stored.

use kafka_model::api::produce::ProduceRequest;
use kafka_model::{Cluster, LogEvent};
use kafka_types::{ProducerEpoch, ProducerId, RecordBatch, TopicPartition};
use std::collections::{BTreeMap, BTreeSet};

/// A batch, however often it is sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Batch {
    place: TopicPartition,
    epoch: ProducerEpoch,
    base_sequence: i32,
}

#[derive(Default)]
struct Transaction {
    sent: BTreeSet<Batch>,
    stored: BTreeSet<Batch>,
}

#[derive(Default)]
pub(crate) struct Sends {
    open: BTreeMap<ProducerId, Transaction>,
    next_decision: u64,
}

impl Sends {
    pub(crate) fn sent(&mut self, request: &ProduceRequest) {
        if request.transactional_id.is_none() {
            return;
        }
        for asked in &request.partitions {
            let transaction = self.open.entry(asked.batch.producer_id).or_default();
            transaction.sent.insert(batch(&asked.topic_partition, &asked.batch));
        }
    }

    /// Takes in what the target has done; how many of the transactions that it has decided about had some of their
    /// batches stored and others not.
    pub(crate) fn look(&mut self, target: &Cluster) -> u64 {
        if target.history().partitions().next().is_some() {
            self.take_stored(target);
        }
        let mut partial = 0;
        for decision in target.decisions().since(self.next_decision) {
            let Some(transaction) = self.open.remove(&decision.producer_id) else { continue };
            let some_stored = !transaction.stored.is_empty();
            let is_partial = some_stored && !transaction.sent.is_subset(&transaction.stored);
            partial += u64::from(is_partial);
        }
        self.next_decision = target.decisions().next_number();
        partial
    }

    fn take_stored(&mut self, target: &Cluster) {
        let names: BTreeMap<_, _> = target.topic_names().map(|(name, id, _)| (id, name)).collect();
        for (id, partition, events) in target.history().partitions() {
            let Some(topic) = names.get(&id) else { continue };
            for event in events {
                let LogEvent::Appended(appended) = event else { continue };
                if appended.is_control() {
                    continue;
                }
                let Some(transaction) = self.open.get_mut(&appended.producer_id) else { continue };
                let place = TopicPartition { topic: (*topic).clone(), partition };
                transaction.stored.insert(batch(&place, appended));
            }
        }
    }
}

fn batch(place: &TopicPartition, batch: &RecordBatch) -> Batch {
    Batch { place: place.clone(), epoch: batch.producer_epoch, base_sequence: batch.base_sequence }
}
