//! AddOffsetsToTxn: makes the group's partition of `__consumer_offsets` part of the transaction.
//!
//! Modelled: the coordinator's checks, PRODUCER_FENCED under its old name for versions below 2.
//! Not modelled: nothing more.

use crate::api::init_producer_id::fenced_under_its_old_name;
use crate::{Cluster, GroupId, RequestHeader, TransactionalId};
use kafka_types::{ErrorCode, ProducerEpoch, ProducerId};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddOffsetsToTxnRequest {
    pub transactional_id: TransactionalId,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub group_id: GroupId,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddOffsetsToTxnResponse {
    pub error_code: ErrorCode,
}

impl Cluster {
    pub(crate) fn add_offsets_to_txn(
        &mut self,
        header: &RequestHeader,
        request: &AddOffsetsToTxnRequest,
    ) -> AddOffsetsToTxnResponse {
        let result = self.check_transaction_coordinator(&request.transactional_id, header.broker);
        let result = result.and_then(|()| {
            let partitions = BTreeSet::from([self.coordinators.offsets_partition(&request.group_id)]);
            let (producer_id, epoch) = (request.producer_id, request.producer_epoch);
            self.add_to_transaction(&request.transactional_id, producer_id, epoch, partitions)
        });
        let error = result.err().unwrap_or(ErrorCode::None);
        AddOffsetsToTxnResponse { error_code: fenced_under_its_old_name(error, header.api_version < 2) }
    }
}
