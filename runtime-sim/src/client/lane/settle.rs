//! The ends of a lane's transaction: commit and abort.

use super::LaneOut;
use super::failure::{self, Call};
use super::flight::Flight;
use super::outbox::{END_MAX_MS, LEDGER, Outbox, Work};
use super::transaction::Transaction;
use crate::client::io::Io;
use crate::client::marks::Mark;
use crate::moments::Moment;
use bytes::Bytes;
use kafka_model::Millis;
use kafka_types::{Partition, Record, TargetOffset, TopicPartition};
use verbatim_core::Attempt;
use verbatim_core::command::NewLedgerRecord;
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::Failure;

/// How often the real World looks whether the ledger's records will be acknowledged at all.
const LEDGER_LOOKS_EVERY_MS: Millis = 100;

pub(super) enum Settling {
    /// For a mutant: the run is being committed before its progress is written.
    RunAlone {
        progress: Vec<NewLedgerRecord>,
        since: Millis,
    },
    /// The ledger's records are on their way.
    Ledger {
        until: Millis,
    },
    Committing {
        last: Option<TargetOffset>,
        since: Millis,
    },
}

impl Outbox {
    /// Ledger records, their acknowledgement, then the commit.
    pub(super) fn settle(
        &mut self,
        io: &mut Io,
        out: &mut LaneOut,
        attempt: Attempt,
        records: Vec<NewLedgerRecord>,
    ) {
        if self.transaction.is_none() && records.is_empty() {
            out.emit(attempt, LaneEvent::Settled { last: None });
            return;
        }
        let in_flight = self.flights.iter().find(|(_, flight)| !flight.has_landed());
        if let Some((batch, _)) = in_flight.filter(|_| !io.mutants.settles_in_flight) {
            let text = format!("batch {batch} is not acknowledged yet");
            out.failed(attempt, Step::Settle, Failure::Abort(text));
            return;
        }
        io.wire.mark(Mark::Moment(Moment::RunAcknowledged));
        if io.mutants.progress_follows_alone && self.transaction.is_some() && !records.is_empty() {
            self.producer.commit(io.now, io.now + END_MAX_MS);
            let settling = Settling::RunAlone { progress: records, since: io.now };
            self.work = Work::Settling { attempt, settling };
            return;
        }
        if let Err(failure) = self.begin() {
            out.failed(attempt, Step::Settle, failure);
            return;
        }
        self.write_ledger(io, attempt, records);
        let settling = Settling::Ledger { until: io.now + END_MAX_MS };
        self.work = Work::Settling { attempt, settling };
        self.producer.advance(io);
        io.wire.mark(Mark::Moment(Moment::LedgerSent));
    }

    fn write_ledger(&mut self, io: &mut Io, attempt: Attempt, records: Vec<NewLedgerRecord>) {
        let topic = self.place.ledger.clone();
        let partition =
            TopicPartition { topic: topic.clone(), partition: Partition(self.place.lane.0.cast_signed()) };
        let mut flight = Flight::new(attempt, topic.clone(), records.len() as u64);
        for NewLedgerRecord { key, value } in records {
            // The library stamps what has no time of its own.
            let record = Record::new(io.wall, Some(Bytes::from(key)), Some(Bytes::from(value)));
            match self.producer.produce(io.now, &partition, record, LEDGER) {
                Ok(()) => flight.accepted(),
                Err(error) => {
                    flight.not_queued(self.refusal(&error, &topic));
                    break;
                }
            }
            if let Some(transaction) = &mut self.transaction {
                transaction.accepted(&topic);
            }
        }
        self.ledger = Some(flight);
    }

    pub(super) fn settling(
        &mut self,
        io: &mut Io,
        out: &mut LaneOut,
        attempt: Attempt,
        settling: Settling,
    ) -> bool {
        match settling {
            Settling::RunAlone { progress, since } => match self.producer.ended() {
                None => {
                    self.work = Work::Settling { attempt, settling: Settling::RunAlone { progress, since } };
                    false
                }
                Some(Ok(())) => {
                    self.transaction = None;
                    self.settle(io, out, attempt, progress);
                    true
                }
                Some(failed) => {
                    self.committed(io, out, attempt, (None, since), failed);
                    true
                }
            },
            Settling::Ledger { until } => {
                let has_landed = self.ledger.as_ref().is_none_or(Flight::has_landed);
                if !has_landed && io.is_due(until) {
                    self.ledger = None;
                    let text = "ledger records were not acknowledged in time".into();
                    out.failed(attempt, Step::Settle, Failure::Abort(text));
                    return true;
                }
                if !has_landed && let Some(cause) = self.given_up(io, LEDGER_LOOKS_EVERY_MS) {
                    self.ledger = None;
                    out.failed(attempt, Step::Settle, cause);
                    return true;
                }
                if !has_landed {
                    self.work = Work::Settling { attempt, settling: Settling::Ledger { until } };
                    return false;
                }
                let outcome = self.ledger.take().map(Flight::outcome);
                match outcome {
                    Some(Err(refused)) => {
                        out.failed(attempt, Step::Settle, failure::of_ledger(refused.refusal));
                    }
                    Some(Ok(acknowledged)) => {
                        self.commit(io, attempt, acknowledged.run.map(|run| run.last));
                    }
                    None => self.commit(io, attempt, None),
                }
                true
            }
            Settling::Committing { last, since } => match self.producer.ended() {
                None => {
                    self.work = Work::Settling { attempt, settling: Settling::Committing { last, since } };
                    false
                }
                Some(committed) => {
                    self.committed(io, out, attempt, (last, since), committed);
                    true
                }
            },
        }
    }

    fn commit(&mut self, io: &mut Io, attempt: Attempt, last: Option<TargetOffset>) {
        io.wire.mark(Mark::Moment(Moment::LedgerAcknowledged));
        self.producer.commit(io.now, io.now + END_MAX_MS);
        self.work = Work::Settling { attempt, settling: Settling::Committing { last, since: io.now } };
    }

    fn committed(
        &mut self,
        io: &mut Io,
        out: &mut LaneOut,
        attempt: Attempt,
        (last, since): (Option<TargetOffset>, Millis),
        committed: Result<(), crate::client::error::LibraryError>,
    ) {
        let (sent, answered) = self.producer.end_txns();
        let (before, accepted_any) =
            self.transaction.as_ref().map_or((sent, false), |it| (it.end_txn_sent_before, it.accepted_any));
        let end_txn_sent = sent - before;
        let failure = match committed {
            Ok(()) => {
                let is_answered = sent == answered && (0 < end_txn_sent || !accepted_any);
                (!is_answered && !io.mutants.retried_commit_is_clean).then(|| unclean("commit", end_txn_sent))
            }
            Err(error)
                if io.mutants.invalid_state_is_abortable
                    && error.requires_abort
                    && error.code == crate::client::error::Code::State =>
            {
                if let Some(transaction) = &mut self.transaction {
                    transaction.forgets_unanswered = true;
                }
                Some(Failure::Abort(error.to_string()))
            }
            Err(error) => Some(self.failure(Call::Commit { end_txn_sent }, &error)),
        };
        match failure {
            None => {
                self.transaction = None;
                io.wire.mark(Mark::Settled);
                out.emit(attempt, LaneEvent::Settled { last });
            }
            Some(failure) => {
                if matches!(failure, Failure::Unknown(_)) && 0 < end_txn_sent {
                    let transactional_id = self.place.transactional_id.clone();
                    io.wire.mark(Mark::UnknownCommit { transactional_id, since });
                }
                out.failed(attempt, Step::Settle, failure);
            }
        }
    }

    /// Purges what is in flight, of which nothing more is said, and aborts.
    pub(super) fn abort(&mut self, io: &mut Io, out: &mut LaneOut, attempt: Attempt) {
        self.flights.clear();
        self.ledger = None;
        let Some(Transaction { end_txn_sent_before, .. }) = self.transaction else {
            out.emit(attempt, LaneEvent::Aborted);
            return;
        };
        self.producer.abort(io.now, io.now + END_MAX_MS);
        self.work = Work::Aborting { attempt, end_txn_sent_before };
    }

    pub(super) fn aborting(&mut self, out: &mut LaneOut, attempt: Attempt, end_txn_sent_before: u64) -> bool {
        let Some(aborted) = self.producer.ended() else {
            self.work = Work::Aborting { attempt, end_txn_sent_before };
            return false;
        };
        self.count_deliveries();
        let (sent, answered) = self.producer.end_txns();
        let forgets = self.transaction.as_ref().is_some_and(|transaction| transaction.forgets_unanswered);
        match aborted {
            Ok(()) if sent != answered && !forgets => {
                out.failed(attempt, Step::Abort, unclean("abort", sent - end_txn_sent_before));
            }
            Ok(()) if self.transaction.as_ref().is_some_and(|transaction| transaction.has_gap) => {
                let text = "aborted, but a refused record has left a gap in the producer's sequence numbers";
                out.failed(attempt, Step::Abort, Failure::Unknown(text.into()));
            }
            Ok(()) => {
                self.transaction = None;
                out.mark(Mark::Aborted);
                out.emit(attempt, LaneEvent::Aborted);
            }
            Err(error) => {
                let failure = self.failure(Call::Abort, &error);
                out.failed(attempt, Step::Abort, failure);
            }
        }
        true
    }
}

fn unclean(what: &str, end_txn_sent: u64) -> Failure {
    Failure::Unknown(format!(
        "the {what} was asked for {end_txn_sent} times and not answered each time: a lost request may still \
         arrive and end the next transaction"
    ))
}
