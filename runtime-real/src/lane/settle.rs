//! The ends of a lane's transaction: commit and abort.

use super::failure::{self, Call};
use super::flight::Flight;
use super::outbox::{Outbox, Over, PACE};
use super::tag::Tag;
use crate::ffi::Code;
use kafka_types::TargetOffset;
use std::time::{Duration, Instant};
use verbatim_core::Attempt;
use verbatim_core::command::NewLedgerRecord;
use verbatim_core::event::{LaneEvent, Step};
use verbatim_core::failure::Failure;

impl Outbox {
    /// Ledger records, their acknowledgement, then the commit.
    pub(super) fn settle(&mut self, attempt: Attempt, records: Vec<NewLedgerRecord>) -> Result<(), Over> {
        if self.transaction.is_none() && records.is_empty() {
            self.emitter.emit(attempt, LaneEvent::Settled { last: None });
            return Ok(());
        }
        let last = match self.write_ledger(attempt, records)? {
            Ok(last) => last,
            Err(failure) => return self.fail(attempt, Step::Settle, failure),
        };
        let transaction = self.transaction.as_ref().expect("begun");
        let (before, accepted_any) = (transaction.end_txn_sent_before, !transaction.topics.is_empty());
        let end_max = self.settings.end_max;
        let commit = || self.producer.commit(end_max);
        let committed = self.watchdog.guard(attempt, Step::Settle, end_max, commit);
        let committed = committed.ok_or(Over)?;
        let (sent, unanswered) = self.producer.end_txns();
        let end_txn_sent = sent - before;
        match committed {
            Ok(()) if unanswered == 0 && (0 < end_txn_sent || !accepted_any) => {
                self.transaction = None;
                self.emitter.emit(attempt, LaneEvent::Settled { last });
                Ok(())
            }
            Ok(()) => self.fail(attempt, Step::Settle, unclean("commit", end_txn_sent)),
            Err(error) => {
                let failure = self.failure(Call::Commit { end_txn_sent }, &error);
                self.fail(attempt, Step::Settle, failure)
            }
        }
    }

    /// Says that a step failed. After most failures this producer is of no more use, and ends: what librdkafka
    /// begins after an EndTxn that may still be under way, that very EndTxn could commit (H1).
    fn fail(&mut self, attempt: Attempt, step: Step, failure: Failure) -> Result<(), Over> {
        let goes_on = leaves_sound(&failure);
        self.emitter.failed(attempt, step, failure);
        if goes_on { Ok(()) } else { Err(Over) }
    }

    /// Produces the ledger records and awaits their acknowledgement; the last one's offset. Whatever fails
    /// here, no EndTxn was asked for.
    fn write_ledger(
        &mut self,
        attempt: Attempt,
        records: Vec<NewLedgerRecord>,
    ) -> Result<Result<Option<TargetOffset>, Failure>, Over> {
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
            match self.producer.produce_bytes(&topic, partition, key, value, Tag::Ledger.to_number()) {
                Ok(()) => flight.accepted(),
                Err(error) => {
                    flight.not_queued(self.refusal(&error, &topic));
                    break;
                }
            }
            self.transaction.as_mut().expect("begun").accepted(&topic);
        }
        self.ledger = Some(flight);
        let until = Instant::now() + self.settings.end_max;
        while self.awaits_ledger() {
            if until < Instant::now() {
                self.ledger = None;
                let text = "ledger records were not acknowledged in time".into();
                return Ok(Err(Failure::Abort(text)));
            }
            self.producer.flush(PACE);
            self.count_deliveries();
            if self.emitter.is_abandoned() {
                return Err(Over);
            }
            if self.awaits_ledger()
                && let Some(cause) = self.given_up()
                && self.awaits_ledger()
            {
                self.ledger = None;
                return Ok(Err(cause));
            }
        }
        let outcome = self.ledger.take().expect("it was there to land").outcome();
        let last = outcome.map(|acknowledged| acknowledged.run.map(|run| run.last));
        Ok(last.map_err(|refused| failure::of_ledger(refused.refusal)))
    }

    fn awaits_ledger(&self) -> bool {
        self.ledger.as_ref().is_some_and(|flight| !flight.has_landed())
    }

    /// Purges what is in flight, of which nothing more is said, and aborts.
    pub(super) fn abort(&mut self, attempt: Attempt) -> Result<(), Over> {
        self.lineup.clear();
        self.flights.clear();
        self.ledger = None;
        let Some(end_txn_sent_before) = self.transaction.as_ref().map(|open| open.end_txn_sent_before) else {
            self.emitter.emit(attempt, LaneEvent::Aborted);
            return Ok(());
        };
        let until = Instant::now() + self.settings.end_max;
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
        let aborted = self.watchdog.guard(attempt, Step::Abort, self.settings.end_max, abort);
        let aborted = aborted.ok_or(Over)?;
        self.count_deliveries();
        let (sent, unanswered) = self.producer.end_txns();
        match aborted {
            Ok(()) if unanswered != 0 => {
                self.fail(attempt, Step::Abort, unclean("abort", sent - end_txn_sent_before))
            }
            Ok(()) if self.transaction.as_ref().is_some_and(|transaction| transaction.has_gap) => {
                let text = "aborted, but a refused record has left a gap in the producer's sequence numbers";
                self.fail(attempt, Step::Abort, Failure::Unknown(text.into()))
            }
            Ok(()) => {
                self.transaction = None;
                self.emitter.emit(attempt, LaneEvent::Aborted);
                Ok(())
            }
            Err(error) => {
                let failure = self.failure(Call::Abort, &error);
                self.fail(attempt, Step::Abort, failure)
            }
        }
    }
}

fn unclean(what: &str, end_txn_sent: u64) -> Failure {
    Failure::Unknown(format!(
        "the {what} was asked for {end_txn_sent} times and not answered each time: a lost request may still \
         arrive and end the next transaction"
    ))
}

/// Whether a failure of settling or aborting leaves a producer that further commands may be given to.
fn leaves_sound(failure: &Failure) -> bool {
    match failure {
        Failure::Retry(_) | Failure::Abort(_) => true,
        Failure::Fenced(_) | Failure::Unknown(_) | Failure::Fatal(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_core::failure::Trouble;

    #[test]
    fn only_what_can_be_aborted_or_tried_again_leaves_a_sound_producer() {
        assert!(leaves_sound(&Failure::Retry("later".into())));
        assert!(leaves_sound(&Failure::Abort("purged".into())));
        assert!(!leaves_sound(&unclean("commit", 2)));
        assert!(!leaves_sound(&Failure::Fenced("fenced".into())));
        assert!(!leaves_sound(&Failure::Fatal(Trouble::Refused("no".into()))));
    }
}
