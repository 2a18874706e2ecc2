//! EndTxn.
//!
//! Modelled: version 1 of the transaction protocol. It answers when the outcome is decided; markers come
//! later. It is not bound to one transaction (KAFKA-17754). PRODUCER_FENCED has its old name below version 2.
//! Not modelled: version 2 of the protocol (KIP-890 part 2: versions 5 and up).

use crate::api::init_producer_id::fenced_under_its_old_name;
use crate::{Cluster, RequestHeader, TransactionalId};
use kafka_types::{ErrorCode, ProducerEpoch, ProducerId, TransactionResult};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndTxnRequest {
    pub transactional_id: TransactionalId,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub result: TransactionResult,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndTxnResponse {
    pub error_code: ErrorCode,
}

impl Cluster {
    pub(crate) fn end_txn(&mut self, header: &RequestHeader, request: &EndTxnRequest) -> EndTxnResponse {
        let EndTxnRequest { transactional_id: id, producer_id, producer_epoch, result } = request;
        let ended = self
            .check_transaction_coordinator(id, header.broker)
            .and_then(|()| self.end_transaction(id, *producer_id, *producer_epoch, *result));
        let error = ended.err().unwrap_or(ErrorCode::None);
        EndTxnResponse { error_code: fenced_under_its_old_name(error, header.api_version < 2) }
    }
}
