//! A lane's open transaction.

use super::failure;
use crate::ffi::{Begun, TransactionalProducer};
use kafka_types::TopicName;
use std::collections::BTreeSet;
use verbatim_core::failure::Failure;

pub(super) struct Transaction {
    begun: Begun,
    /// EndTxn requests sent before it began.
    pub(super) end_txn_sent_before: u64,
    /// Whether a refused record has left a gap in the producer's sequence numbers.
    pub(super) has_gap: bool,
    /// Where the records go that the client took. With none, the coordinator need not be asked to end it.
    pub(super) topics: BTreeSet<TopicName>,
}

impl Transaction {
    pub(super) fn new(begun: Begun, end_txn_sent_before: u64) -> Transaction {
        Transaction { begun, end_txn_sent_before, has_gap: false, topics: BTreeSet::new() }
    }

    pub(super) fn accepted(&mut self, topic: &TopicName) {
        if !self.topics.contains(topic) {
            self.topics.insert(topic.clone());
        }
    }

    /// Why it can only be aborted as a whole, if librdkafka has decided that.
    pub(super) fn doomed(&self, producer: &TransactionalProducer, id: &str) -> Option<Failure> {
        let cause = producer.abort_cause(&self.begun)?;
        Some(failure::of_transaction(&cause, &self.topics, id))
    }
}
