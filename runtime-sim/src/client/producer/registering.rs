//! AddPartitionsToTxn: one request at a time, for all partitions that wait.

use super::super::error::{Code, LibraryError};
use super::super::io::Io;
use super::super::wire::Pending;
use super::queue::Registration;
use super::{Producer, State};
use kafka_model::api::add_partitions_to_txn::AddPartitionsToTxnRequest;
use kafka_model::{Millis, Response};
use kafka_types::{ErrorCode, TopicPartition};

const RETRY_MS: Millis = 100;
/// After CONCURRENT_TRANSACTIONS: the markers of the last transaction are still being written.
const RETRY_SOON_MS: Millis = 20;

#[derive(Default)]
pub(super) struct Registering {
    pending: Option<Pending>,
    may_ask_at: Millis,
    /// Whether the coordinator was asked to add anything to the present transaction.
    pub(super) has_asked: bool,
}

impl Producer {
    pub(super) fn register(&mut self, io: &mut Io) {
        if self.state != State::InTransaction || self.registering.pending.is_some() {
            return;
        }
        let wants = |queue: &super::Queue| queue.registration == Registration::Not && queue.has_to_send();
        if !self.queues.values().any(wants) || !io.is_due(self.registering.may_ask_at) {
            return;
        }
        let Some(coordinator) = self.library.coordinator() else { return };
        let mut partitions = Vec::new();
        for (partition, queue) in self.queues.iter_mut().filter(|(_, queue)| wants(queue)) {
            queue.registration = Registration::Asked;
            partitions.push(partition.clone());
        }
        let (producer_id, producer_epoch) = self.identity.current();
        let transactional_id = self.transactional_id.clone();
        let request = AddPartitionsToTxnRequest { transactional_id, producer_id, producer_epoch, partitions };
        self.registering.pending = Some(self.library.send(io, coordinator, request));
        self.registering.has_asked = true;
    }

    pub(super) fn take_registered(&mut self, io: &mut Io) {
        let Some(pending) = self.registering.pending else { return };
        let Some(answer) = io.wire.take(pending) else { return };
        self.registering.pending = None;
        io.look_again = true;
        match answer {
            Ok(Response::AddPartitionsToTxn(response)) => {
                for (partition, error) in response.partitions {
                    let is_the_requests_own = self.registered(io, &partition, error);
                    if is_the_requests_own {
                        break;
                    }
                }
            }
            Ok(_) | Err(_) => {
                self.library.coordinator_moved();
                self.registering.may_ask_at = io.now + RETRY_MS;
            }
        }
        // What has no answer is asked for again.
        for queue in self.queues.values_mut().filter(|it| it.registration == Registration::Asked) {
            queue.registration = Registration::Not;
        }
    }

    /// Books one partition's answer; whether it concerns the whole request, so that the others are ignored.
    fn registered(&mut self, io: &mut Io, partition: &TopicPartition, error: ErrorCode) -> bool {
        match error {
            ErrorCode::None => {
                if let Some(queue) = self.queues.get_mut(partition) {
                    queue.registration = Registration::Done;
                }
                false
            }
            ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => {
                self.library.coordinator_moved();
                self.registering.may_ask_at = io.now + RETRY_MS;
                true
            }
            ErrorCode::ConcurrentTransactions => {
                self.registering.may_ask_at = io.now + RETRY_SOON_MS;
                true
            }
            ErrorCode::CoordinatorLoadInProgress | ErrorCode::UnknownTopicOrPartition => {
                self.registering.may_ask_at = io.now + RETRY_MS;
                true
            }
            ErrorCode::InvalidProducerEpoch | ErrorCode::ProducerFenced => {
                self.fail_for_good(io, LibraryError::new(Code::Fenced));
                true
            }
            ErrorCode::TransactionalIdAuthorizationFailed
            | ErrorCode::InvalidTxnState
            | ErrorCode::ClusterAuthorizationFailed => {
                self.fail_for_good(io, LibraryError::broker(error));
                true
            }
            ErrorCode::UnknownProducerId | ErrorCode::InvalidProducerIdMapping => {
                self.fail_transaction(LibraryError::broker(error), true);
                true
            }
            _ => {
                self.fail_transaction(LibraryError::broker(error), false);
                false
            }
        }
    }

    /// The transaction is over: the next one begins without partitions.
    pub(super) fn forget_registrations(&mut self, io: &mut Io) {
        self.registering.has_asked = false;
        if let Some(late) = self.registering.pending.take() {
            io.wire.forget(late);
        }
        for queue in self.queues.values_mut() {
            queue.registration = Registration::Not;
        }
    }
}
