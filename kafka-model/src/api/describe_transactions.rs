//! DescribeTransactions (KIP-664).
//!
//! Modelled: everything that the response holds.
//! Not modelled: ListTransactions.

use crate::transaction::TransactionState;
use crate::{Cluster, Millis, RequestHeader, TransactionalId};
use kafka_types::{ErrorCode, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribeTransactionsRequest {
    pub transactional_ids: Vec<TransactionalId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribeTransactionsResponse {
    pub transactions: Vec<DescribedTransaction>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedTransaction {
    pub transactional_id: TransactionalId,
    pub error_code: ErrorCode,
    pub state: Option<TransactionState>,
    pub transaction_timeout_ms: Millis,
    /// None without an open transaction.
    pub transaction_start_time: Option<Millis>,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub partitions: Vec<TopicPartition>,
}

impl Cluster {
    pub(crate) fn describe_transactions(
        &self,
        header: &RequestHeader,
        request: DescribeTransactionsRequest,
    ) -> DescribeTransactionsResponse {
        let describe = |id: TransactionalId| {
            let found = self
                .check_transaction_coordinator(&id, header.broker)
                .and_then(|()| self.transactions.by_id.get(&id).ok_or(ErrorCode::TransactionalIdNotFound));
            let error_code = found.err().unwrap_or(ErrorCode::None);
            let found = found.ok();
            DescribedTransaction {
                transactional_id: id,
                error_code,
                state: found.map(|it| it.state),
                transaction_timeout_ms: found.map_or(0, |it| it.timeout_ms),
                transaction_start_time: found.and_then(|it| it.started_at),
                producer_id: found.map_or(NO_PRODUCER_ID, |it| it.producer_id),
                producer_epoch: found.map_or(NO_PRODUCER_EPOCH, |it| it.epoch),
                partitions: found.map_or(Vec::new(), |it| it.partitions.iter().cloned().collect()),
            }
        };
        let transactions = request.transactional_ids.into_iter().map(describe).collect();
        DescribeTransactionsResponse { transactions }
    }
}
