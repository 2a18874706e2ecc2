//! InitProducerId (KIP-98, KIP-360): a producer id, and with a transactional id the epoch that fences others.
//!
//! Modelled: everything of [`crate::transaction`]'s initialisation; PRODUCER_FENCED under its old name for
//! versions below 4.
//! Not modelled: two-phase commit (KIP-939).

use crate::{Cluster, Millis, RequestHeader, Resource, TransactionalId};
use kafka_types::{ErrorCode, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InitProducerIdRequest {
    pub transactional_id: Option<TransactionalId>,
    pub transaction_timeout_ms: Millis,
    /// What the producer has been using, minus one for nothing.
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InitProducerIdResponse {
    pub error_code: ErrorCode,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
}

impl Cluster {
    pub(crate) fn init_producer_id(
        &mut self,
        header: &RequestHeader,
        request: &InitProducerIdRequest,
    ) -> InitProducerIdResponse {
        let result = match &request.transactional_id {
            None => self.check_access(&Resource::Cluster).map(|()| self.init_idempotent_producer()),
            Some(id) => self.check_transaction_coordinator(id, header.broker).and_then(|()| {
                let is_known = request.producer_id != NO_PRODUCER_ID;
                let expected = is_known.then_some((request.producer_id, request.producer_epoch));
                self.init_transactional_producer(id, request.transaction_timeout_ms, expected)
            }),
        };
        match result {
            Ok((producer_id, producer_epoch)) => {
                InitProducerIdResponse { error_code: ErrorCode::None, producer_id, producer_epoch }
            }
            Err(error) => InitProducerIdResponse {
                error_code: fenced_under_its_old_name(error, header.api_version < 4),
                producer_id: NO_PRODUCER_ID,
                producer_epoch: NO_PRODUCER_EPOCH,
            },
        }
    }
}

/// Older clients do not know PRODUCER_FENCED (KafkaApis.scala).
pub(crate) fn fenced_under_its_old_name(error: ErrorCode, is_old: bool) -> ErrorCode {
    if is_old && error == ErrorCode::ProducerFenced { ErrorCode::InvalidProducerEpoch } else { error }
}
