//! The producer id and its epoch: `init_transactions`, and a new epoch after a gap in the sequence numbers.

use super::super::error::{Code, LibraryError};
use super::super::io::Io;
use super::super::marks::Mark;
use super::super::wire::Pending;
use super::{Producer, State};
use crate::moments::Moment;
use kafka_model::api::init_producer_id::InitProducerIdRequest;
use kafka_model::{Millis, Response};
use kafka_types::{ErrorCode, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId};

const RETRY_MS: Millis = 100;

#[derive(Default)]
pub(super) struct Identity {
    pub(super) assigned: Option<(ProducerId, ProducerEpoch)>,
    pending: Option<Pending>,
    may_ask_at: Millis,
    /// A new epoch is wanted although there is one.
    pub(super) wants_epoch: bool,
    /// An abort has taken a new epoch, which aborted the transaction at the coordinator.
    pub(super) epoch_taken_in_abort: bool,
}

impl Identity {
    pub(super) fn current(&self) -> (ProducerId, ProducerEpoch) {
        self.assigned.unwrap_or((NO_PRODUCER_ID, NO_PRODUCER_EPOCH))
    }
}

impl Producer {
    pub(super) fn advance_identity(&mut self, io: &mut Io) {
        if let Some(pending) = self.identity.pending {
            let Some(answer) = io.wire.take(pending) else { return };
            self.identity.pending = None;
            self.identity.may_ask_at = io.now + RETRY_MS;
            match answer {
                Ok(Response::InitProducerId(it)) if it.error_code == ErrorCode::None => {
                    self.identified(io, it.producer_id, it.producer_epoch);
                }
                Ok(Response::InitProducerId(it)) => self.not_identified(io, it.error_code),
                Ok(_) | Err(_) => self.library.coordinator_moved(),
            }
        }
        let wanted = match self.state {
            State::Initialising => true,
            State::Ready | State::InTransaction | State::Failed => self.identity.wants_epoch,
            State::Fatal => false,
        };
        if !wanted || self.identity.pending.is_some() || !io.is_due(self.identity.may_ask_at) {
            return;
        }
        let Some(coordinator) = self.library.coordinator() else { return };
        let (producer_id, producer_epoch) = self.identity.current();
        let request = InitProducerIdRequest {
            transactional_id: Some(self.transactional_id.clone()),
            transaction_timeout_ms: self.transaction_timeout_ms,
            producer_id,
            producer_epoch,
        };
        self.identity.pending = Some(self.library.send(io, coordinator, request));
        io.wire.mark(Mark::Moment(Moment::InitSent));
    }

    fn identified(&mut self, io: &mut Io, id: ProducerId, epoch: ProducerEpoch) {
        self.identity.assigned = Some((id, epoch));
        self.identity.epoch_taken_in_abort = self.identity.wants_epoch;
        self.identity.wants_epoch = false;
        self.queues.values_mut().for_each(super::Queue::reset_sequence);
        if self.state == State::Initialising {
            self.state = State::Ready;
        }
        io.look_again = true;
    }

    fn not_identified(&mut self, io: &mut Io, error: ErrorCode) {
        match error {
            ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => {
                self.library.coordinator_moved();
            }
            ErrorCode::InvalidProducerEpoch | ErrorCode::ProducerFenced => {
                self.fail_for_good(io, LibraryError::new(Code::Fenced));
            }
            ErrorCode::TransactionalIdAuthorizationFailed
            | ErrorCode::ClusterAuthorizationFailed
            | ErrorCode::InvalidTransactionTimeout
            | ErrorCode::UnsupportedVersion => self.fail_for_good(io, LibraryError::broker(error)),
            ErrorCode::UnknownProducerId | ErrorCode::InvalidProducerIdMapping => {
                self.identity.assigned = None;
            }
            // CONCURRENT_TRANSACTIONS, COORDINATOR_LOAD_IN_PROGRESS and whatever else passes.
            _ => {}
        }
    }
}
