//! The ends of a lane's transaction: commit and abort.

use super::failure::{self, Call};
use super::flight::Flight;
use super::producer::{CalledOff, LEDGER, Outbox, PACE, Transaction};
use crate::ffi::Code;
use kafka_types::TargetOffset;
use std::time::{Duration, Instant};
use verbatim_core::Attempt;
use verbatim_core::command::NewLedgerRecord;
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::Failure;

impl Outbox {
    /// Ledger records, their acknowledgement, then the commit.
    pub(super) fn settle(
        &mut self,
        attempt: Attempt,
        records: Vec<NewLedgerRecord>,
    ) -> Result<(), CalledOff> {
        if self.transaction.is_none() && records.is_empty() {
            self.emitter.emit(attempt, LaneEvent::Settled { last: None });
            return Ok(());
        }
        let last = match self.write_ledger(attempt, records)? {
            Ok(last) => last,
            Err(failure) => {
                self.emitter.failed(attempt, Step::Settle, failure);
                return Ok(());
            }
        };
        let transaction = self.transaction.as_ref().expect("begun");
        let (before, accepted_any) = (transaction.end_txn_sent_before, !transaction.topics.is_empty());
        let commit = || self.producer.commit(self.end_max);
        let committed = self.watchdog.guard(attempt, Step::Settle, self.end_max, commit);
        let committed = committed.ok_or(CalledOff)?;
        let (sent, unanswered) = self.producer.end_txns();
        let end_txn_sent = sent - before;
        match committed {
            Ok(()) if unanswered == 0 && (0 < end_txn_sent || !accepted_any) => {
                self.transaction = None;
                self.emitter.emit(attempt, LaneEvent::Settled { last });
            }
            Ok(()) => {
                let failure = unclean("commit", end_txn_sent);
                self.emitter.failed(attempt, Step::Settle, failure);
            }
            Err(error) => {
                let failure = self.failure(Call::Commit { end_txn_sent }, &error);
                self.emitter.failed(attempt, Step::Settle, failure);
            }
        }
        Ok(())
    }

    /// Produces the ledger records and awaits their acknowledgement; the last one's offset. Whatever fails
    /// here, no EndTxn was asked for.
    fn write_ledger(
        &mut self,
        attempt: Attempt,
        records: Vec<NewLedgerRecord>,
    ) -> Result<Result<Option<TargetOffset>, Failure>, CalledOff> {
        self.count_deliveries();
        let in_flight = self.flights.iter().find(|(_, flight)| !flight.has_landed()).map(|(batch, _)| *batch);
        if let Some(batch) = in_flight.or(self.lineup.waiting()) {
            return Ok(Err(Failure::Abort(format!("batch {batch} is not acknowledged yet"))));
        }
        if let Err(failure) = self.begin() {
            return Ok(Err(failure));
        }
        let (topic, partition) = (self.settings.ledger.clone(), self.emitter.lane().0.cast_signed());
        let mut flight = Flight::new(attempt, topic.clone(), records.len() as u64);
        for NewLedgerRecord { key, value } in &records {
            match self.producer.produce_bytes(&topic, partition, key, value, LEDGER) {
                Ok(()) => flight.accepted(),
                Err(error) => {
                    flight.not_queued(self.refusal(&error, &topic));
                    break;
                }
            }
            self.transaction.as_mut().expect("begun").accepted(&topic);
        }
        self.ledger = Some(flight);
        let until = Instant::now() + self.end_max;
        while self.ledger.as_ref().is_some_and(|flight| !flight.has_landed()) {
            if until < Instant::now() {
                self.ledger = None;
                let text = "ledger records were not acknowledged in time".into();
                return Ok(Err(Failure::Abort(text)));
            }
            self.producer.flush(PACE);
            self.count_deliveries();
            if self.emitter.is_abandoned() {
                return Err(CalledOff);
            }
        }
        let outcome = self.ledger.take().expect("it was there to land").outcome();
        let last = outcome.map(|acknowledged| acknowledged.run.map(|run| run.last));
        Ok(last.map_err(|refused| failure::of_ledger(refused.refusal)))
    }

    /// Purges what is in flight, of which nothing more is said, and aborts.
    pub(super) fn abort(&mut self, attempt: Attempt) -> Result<(), CalledOff> {
        self.lineup.clear();
        self.flights.clear();
        self.ledger = None;
        let Some(Transaction { end_txn_sent_before, .. }) = self.transaction else {
            self.emitter.emit(attempt, LaneEvent::Aborted);
            return Ok(());
        };
        let until = Instant::now() + self.end_max;
        let abort = || loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.producer.abort(left) {
                // Records in flight are waited for in steps of the remaining time.
                Err(error)
                    if error.retriable
                        && error.code != Code::RD_KAFKA_RESP_ERR__TIMED_OUT
                        && !left.is_zero() =>
                {
                    std::thread::sleep(Duration::from_millis(50));
                }
                ended => return ended,
            }
        };
        let aborted = self.watchdog.guard(attempt, Step::Abort, self.end_max, abort);
        let aborted = aborted.ok_or(CalledOff)?;
        self.count_deliveries();
        let (sent, unanswered) = self.producer.end_txns();
        match aborted {
            Ok(()) if unanswered != 0 => {
                let failure = unclean("abort", sent - end_txn_sent_before);
                self.emitter.failed(attempt, Step::Abort, failure);
            }
            Ok(()) if self.transaction.as_ref().is_some_and(|transaction| transaction.has_gap) => {
                let text = "aborted, but a refused record has left a gap in the producer's sequence numbers";
                self.emitter.failed(attempt, Step::Abort, Failure::Unknown(text.into()));
            }
            Ok(()) => {
                self.transaction = None;
                self.emitter.emit(attempt, LaneEvent::Aborted);
            }
            Err(error) => {
                let failure = self.failure(Call::Abort, &error);
                self.emitter.failed(attempt, Step::Abort, failure);
            }
        }
        Ok(())
    }
}

fn unclean(what: &str, end_txn_sent: u64) -> Failure {
    Failure::Unknown(format!(
        "the {what} was asked for {end_txn_sent} times and not answered each time: a lost request may still \
         arrive and end the next transaction"
    ))
}
