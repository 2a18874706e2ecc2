//! AddPartitionsToTxn, as clients send it: before the first produce to each partition.
//!
//! Modelled: all or nothing when a topic is missing (OPERATION_NOT_ATTEMPTED), the coordinator's checks,
//! PRODUCER_FENCED under its old name for versions below 2.
//! Not modelled: the batched form that brokers send to each other (its check is a call here).

use crate::api::init_producer_id::fenced_under_its_old_name;
use crate::{Cluster, RequestHeader, TransactionalId};
use kafka_types::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddPartitionsToTxnRequest {
    pub transactional_id: TransactionalId,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub partitions: Vec<TopicPartition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddPartitionsToTxnResponse {
    pub partitions: Vec<(TopicPartition, ErrorCode)>,
}

impl Cluster {
    pub(crate) fn add_partitions_to_txn(
        &mut self,
        header: &RequestHeader,
        request: AddPartitionsToTxnRequest,
    ) -> AddPartitionsToTxnResponse {
        let refused: Vec<ErrorCode> = request
            .partitions
            .iter()
            .map(|tp| match self.topics.partition(tp) {
                _ if self.topics.denied.contains(&tp.topic) => ErrorCode::TopicAuthorizationFailed,
                Some(_) => ErrorCode::None,
                None => ErrorCode::UnknownTopicOrPartition,
            })
            .collect();
        if refused.iter().any(|error| error.is_error()) {
            let attempted = |error: ErrorCode| match error {
                ErrorCode::None => ErrorCode::OperationNotAttempted,
                error => error,
            };
            let partitions = request.partitions.into_iter().zip(refused);
            return AddPartitionsToTxnResponse {
                partitions: partitions.map(|(tp, error)| (tp, attempted(error))).collect(),
            };
        }
        let result = self.check_transaction_coordinator(&request.transactional_id, header.broker);
        let result = result.and_then(|()| {
            let partitions = request.partitions.iter().cloned().collect();
            let (producer_id, epoch) = (request.producer_id, request.producer_epoch);
            self.add_to_transaction(&request.transactional_id, producer_id, epoch, partitions)
        });
        let error = result.err().unwrap_or(ErrorCode::None);
        let error = fenced_under_its_old_name(error, header.api_version < 2);
        AddPartitionsToTxnResponse {
            partitions: request.partitions.into_iter().map(|tp| (tp, error)).collect(),
        }
    }
}
