//! `commit_transaction` and `abort_transaction`.

use super::super::error::{Code, LibraryError};
use super::super::io::Io;
use super::super::marks::Mark;
use super::super::wire::{Lost, Pending};
use super::{Producer, State};
use crate::moments::Moment;
use kafka_model::api::end_txn::EndTxnRequest;
use kafka_model::{Millis, Response};
use kafka_types::{ErrorCode, TransactionResult};

const RETRY_MS: Millis = 100;

/// A call that has begun.
pub(super) struct Ending {
    result: TransactionResult,
    /// When the call gives up.
    until: Millis,
    pending: Option<Pending>,
    may_ask_at: Millis,
    outcome: Option<Result<(), LibraryError>>,
}

impl Producer {
    /// Begins to commit, if that is possible; [`Producer::ended`] tells the outcome.
    pub(in crate::client) fn commit(&mut self, now: Millis, until: Millis) {
        let refused = match (self.state, &self.error) {
            (State::InTransaction, _) => None,
            (State::Fatal | State::Failed, Some(error)) => Some(error.clone()),
            _ => Some(LibraryError::new(Code::State)),
        };
        self.start_ending(now, until, TransactionResult::Commit, refused);
    }

    /// Purges what is queued, waits for what is in flight, and aborts.
    pub(in crate::client) fn abort(&mut self, now: Millis, until: Millis) {
        let refused = match (self.state, &self.error) {
            (State::InTransaction | State::Failed, _) => None,
            (State::Fatal, Some(error)) => Some(error.clone()),
            _ => Some(LibraryError::new(Code::State)),
        };
        let begins = refused.is_none();
        self.start_ending(now, until, TransactionResult::Abort, refused);
        if begins {
            self.purge_queued(Code::PurgedFromQueue);
        }
    }

    fn start_ending(
        &mut self,
        now: Millis,
        until: Millis,
        result: TransactionResult,
        refused: Option<LibraryError>,
    ) {
        let outcome = refused.map(Err);
        self.ending = Some(Ending { result, until, pending: None, may_ask_at: now, outcome });
    }

    pub(super) fn is_aborting(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.result == TransactionResult::Abort)
    }

    /// The outcome of the commit or abort that was begun, once.
    pub(in crate::client) fn ended(&mut self) -> Option<Result<(), LibraryError>> {
        self.ending.as_ref()?.outcome.as_ref()?;
        self.ending.take()?.outcome
    }

    pub(super) fn advance_ending(&mut self, io: &mut Io) {
        let Some(mut ending) = self.ending.take() else { return };
        if ending.outcome.is_none() {
            self.work_on(io, &mut ending);
        }
        if ending.outcome.is_none() && io.is_due(ending.until) {
            ending.outcome = Some(Err(LibraryError::new(Code::TimedOut).retriable()));
        }
        if ending.outcome.is_some() {
            io.look_again = true;
        }
        self.ending = Some(ending);
    }

    fn work_on(&mut self, io: &mut Io, ending: &mut Ending) {
        if self.state == State::Fatal {
            ending.outcome = self.error.clone().map(Err);
            return;
        }
        if let Some(pending) = ending.pending {
            let Some(answer) = io.wire.take(pending) else { return };
            ending.pending = None;
            ending.may_ask_at = io.now + RETRY_MS;
            match answer {
                Ok(Response::EndTxn(response)) => {
                    self.end_txns_answered += 1;
                    self.end_txn_answered(io, ending, response.error_code);
                }
                Err(Lost::NeverSent) => self.end_txns_sent -= 1,
                // The library sends it again by itself, and the first may still arrive (H1).
                Ok(_) | Err(Lost::TimedOut | Lost::Disconnected) => self.library.coordinator_moved(),
            }
            if ending.outcome.is_some() {
                return;
            }
        }
        if self.has_outstanding() {
            return;
        }
        match ending.result {
            TransactionResult::Commit if self.state == State::Failed || 0 < self.undelivered => {
                let inconsistent = || LibraryError::new(Code::Inconsistent).requiring_abort();
                ending.outcome = Some(Err(self.error.clone().unwrap_or_else(inconsistent)));
                return;
            }
            TransactionResult::Abort if self.needs_epoch => {
                // A new epoch aborts at the coordinator as well.
                self.identity.wants_epoch = true;
                self.needs_epoch = false;
                self.advance_identity(io);
                return;
            }
            TransactionResult::Abort if self.identity.wants_epoch => return,
            TransactionResult::Abort if self.took_new_epoch(ending) => {
                self.complete(io, ending);
                return;
            }
            TransactionResult::Commit | TransactionResult::Abort => {}
        }
        if !self.registering.has_asked {
            self.complete(io, ending);
            return;
        }
        self.send_end_txn(io, ending);
    }

    /// Whether the new epoch that an abort asked for has come: sequence numbers begin anew with it.
    fn took_new_epoch(&self, ending: &Ending) -> bool {
        ending.result == TransactionResult::Abort
            && self.registering.has_asked
            && self.identity.epoch_taken_in_abort
    }

    fn send_end_txn(&mut self, io: &mut Io, ending: &mut Ending) {
        let Some(coordinator) = self.library.coordinator() else { return };
        if !io.is_due(ending.may_ask_at) {
            return;
        }
        let (producer_id, producer_epoch) = self.identity.current();
        let request = EndTxnRequest {
            transactional_id: self.transactional_id.clone(),
            producer_id,
            producer_epoch,
            result: ending.result,
        };
        ending.pending = Some(self.library.send(io, coordinator, request));
        self.end_txns_sent += 1;
        io.wire.mark(Mark::Moment(Moment::EndTxnSent));
    }

    fn end_txn_answered(&mut self, io: &mut Io, ending: &mut Ending, error: ErrorCode) {
        match error {
            ErrorCode::None => {
                io.wire.mark(Mark::Moment(Moment::EndTxnAnswered));
                self.complete(io, ending);
            }
            ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => {
                self.library.coordinator_moved();
            }
            ErrorCode::CoordinatorLoadInProgress | ErrorCode::ConcurrentTransactions => {}
            ErrorCode::UnknownProducerId | ErrorCode::InvalidProducerIdMapping
                if ending.result == TransactionResult::Abort =>
            {
                self.needs_epoch = true;
            }
            ErrorCode::InvalidProducerEpoch | ErrorCode::ProducerFenced => {
                self.fail_for_good(io, LibraryError::new(Code::Fenced));
                ending.outcome = self.error.clone().map(Err);
            }
            ErrorCode::InvalidTxnState if io.mutants.invalid_state_is_abortable => match ending.result {
                TransactionResult::Abort => self.complete(io, ending),
                TransactionResult::Commit => {
                    let error = LibraryError::new(Code::State);
                    self.fail_transaction(error.clone(), false);
                    ending.outcome = Some(Err(error.requiring_abort()));
                }
            },
            ErrorCode::TransactionalIdAuthorizationFailed
            | ErrorCode::ClusterAuthorizationFailed
            | ErrorCode::InvalidTxnState => {
                self.fail_for_good(io, LibraryError::broker(error));
                ending.outcome = self.error.clone().map(Err);
            }
            ErrorCode::UnknownServerError if io.mutants.unknown_server_error_is_success => {
                self.complete(io, ending);
            }
            other => {
                self.fail_transaction(LibraryError::broker(other), false);
                ending.outcome = Some(Err(LibraryError::broker(other).requiring_abort()));
            }
        }
    }

    fn complete(&mut self, io: &mut Io, ending: &mut Ending) {
        self.state = State::Ready;
        self.error = None;
        self.undelivered = 0;
        self.identity.epoch_taken_in_abort = false;
        self.forget_registrations(io);
        ending.outcome = Some(Ok(()));
    }
}
