use kafka_types::TopicName;
use std::collections::BTreeSet;

/// A lane's open transaction, as far as its outbox must know of it.
pub(super) struct Transaction {
    pub(super) end_txn_sent_before: u64,
    pub(super) accepted_any: bool,
    pub(super) has_gap: bool,
    /// For a mutant: EndTxn requests without an answer are forgotten.
    pub(super) forgets_unanswered: bool,
    /// Where its records go.
    pub(super) topics: BTreeSet<TopicName>,
}

impl Transaction {
    pub(super) fn begun(end_txn_sent_before: u64) -> Transaction {
        Transaction {
            end_txn_sent_before,
            accepted_any: false,
            has_gap: false,
            forgets_unanswered: false,
            topics: BTreeSet::new(),
        }
    }

    pub(super) fn accepted(&mut self, topic: &TopicName) {
        self.accepted_any = true;
        if !self.topics.contains(topic) {
            self.topics.insert(topic.clone());
        }
    }
}
