use super::{Decision, DecisionCause, MarkerProgress, TransactionState};
use crate::{Cluster, TransactionalId};
use kafka_types::{ErrorCode, ProducerEpoch, ProducerId, TransactionResult};
use std::collections::BTreeMap;

impl Cluster {
    /// EndTxn. Nothing in the request says which transaction is meant: whatever is open under this epoch ends.
    pub(crate) fn end_transaction(
        &mut self,
        id: &TransactionalId,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        result: TransactionResult,
    ) -> Result<(), ErrorCode> {
        let transaction = self.check_producer(id, producer_id, epoch)?;
        match transaction.state {
            TransactionState::Ongoing => {
                self.decide(id, result, DecisionCause::Producer);
                Ok(())
            }
            TransactionState::Complete(done) if done == result => Ok(()),
            TransactionState::Prepare(decided) if decided == result => Err(ErrorCode::ConcurrentTransactions),
            TransactionState::Empty | TransactionState::Complete(_) | TransactionState::Prepare(_) => {
                Err(ErrorCode::InvalidTxnState)
            }
        }
    }

    /// From here on the outcome stands. Markers follow, each partition's in its own time.
    pub(super) fn decide(&mut self, id: &TransactionalId, result: TransactionResult, cause: DecisionCause) {
        let now = self.now;
        let transactions = &mut self.transactions;
        let Some(transaction) = transactions.by_id.get_mut(id) else { return };
        transaction.state = TransactionState::Prepare(result);
        transaction.updated_at = now;
        transaction.decision = transactions.decisions.push(Decision {
            number: 0,
            decided_at: now,
            transactional_id: id.clone(),
            producer_id: transaction.producer_id,
            producer_epoch: transaction.epoch,
            result,
            cause,
            markers: transaction.partitions.iter().map(|tp| (tp.clone(), None)).collect(),
            completed_at: None,
        });
        let due = |tp| {
            let delay = transactions.marker_delays.get(tp).copied();
            MarkerProgress::Due(now + delay.unwrap_or(self.config.marker_delay_ms))
        };
        let mut markers: BTreeMap<_, _> =
            transaction.partitions.iter().map(|tp| (tp.clone(), due(tp))).collect();
        if self.faults.commit_marker_skips_a_partition
            && result == TransactionResult::Commit
            && 1 < markers.len()
        {
            markers.pop_last();
        }
        transaction.markers = markers;
        self.write_due_markers(id);
    }
}
