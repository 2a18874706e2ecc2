//! Batches between `Produce` and `Acked`: which delivery reports are in, and what they add up to.

use super::failure::worse;
use kafka_types::{OffsetAndEpoch, TargetOffset, TopicName};
use verbatim_core::Attempt;
use verbatim_core::batch::{Acknowledged, TargetRun};
use verbatim_core::event::Refused;
use verbatim_core::failure::{Failure, Refusal};

/// One batch in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) attempt: Attempt,
    /// Where it goes.
    pub(super) topic: TopicName,
    /// The batch's records.
    records: u64,
    accepted: u64,
    acknowledged: u64,
    refused: u64,
    run: Option<TargetRun>,
    /// An acknowledgement came without its offset (S11).
    offset_unknown: bool,
    refusal: Option<Refusal>,
    /// The record that was refused, where it went alone.
    record: Option<OffsetAndEpoch>,
}

impl Flight {
    pub(super) fn new(attempt: Attempt, topic: TopicName, records: u64) -> Flight {
        Flight {
            attempt,
            topic,
            records,
            accepted: 0,
            acknowledged: 0,
            refused: 0,
            run: None,
            offset_unknown: false,
            refusal: None,
            record: None,
        }
    }

    /// The client has queued one more record.
    pub(super) fn accepted(&mut self) {
        self.accepted += 1;
    }

    /// One queued record is in the target, at `offset`, or somewhere if that is negative.
    pub(super) fn acknowledged(&mut self, offset: i64) {
        self.acknowledged += 1;
        if offset < 0 {
            self.offset_unknown = true;
            return;
        }
        let here = TargetOffset(offset);
        self.run = Some(match self.run {
            None => TargetRun { first: here, last: here },
            Some(run) => TargetRun { first: run.first.min(here), last: run.last.max(here) },
        });
    }

    /// One queued record was not taken.
    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.refused += 1;
        self.note(refusal);
    }

    /// The client would not even queue a record, so none after it is offered.
    pub(super) fn not_queued(&mut self, refusal: Refusal) {
        self.note(refusal);
    }

    /// Some queued records' reports will not come.
    pub(super) fn given_up(&mut self, refusal: Refusal) {
        self.note(refusal);
    }

    fn note(&mut self, refusal: Refusal) {
        self.refusal = Some(match self.refusal.take() {
            None => refusal,
            Some(before) => worse(before, refusal),
        });
    }

    /// Names the record that went alone and was refused.
    pub(super) fn name_record(&mut self, record: OffsetAndEpoch) {
        self.record = Some(record);
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// Whether all delivery reports are in that can come.
    pub(super) fn has_landed(&self) -> bool {
        self.acknowledged + self.refused == self.accepted
    }

    /// What to say of the batch, once it has landed.
    pub(super) fn outcome(self) -> Result<Acknowledged, Refused> {
        let record = match self.refusal {
            Some(Refusal::TooLarge(_) | Refusal::Invalid(_)) => self.record,
            Some(Refusal::Collateral(_)) | None => None,
        };
        if let Some(refusal) = self.refusal {
            return Err(Refused { refusal, record });
        }
        if self.accepted != self.records || self.acknowledged != self.records {
            let text = format!("{} of {} records acknowledged", self.acknowledged, self.records);
            return Err(Refused { refusal: Refusal::Collateral(Failure::Abort(text)), record: None });
        }
        let run = self.run.filter(|_| !self.offset_unknown);
        Ok(Acknowledged { accepted: self.accepted, acknowledged: self.acknowledged, run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_types::{LeaderEpoch, SourceOffset};

    const NINE: OffsetAndEpoch = OffsetAndEpoch { offset: SourceOffset(9), epoch: Some(LeaderEpoch(2)) };

    fn flight(records: u64) -> Flight {
        let mut flight = Flight::new(Attempt(1), "orders".into(), records);
        for _ in 0..records {
            flight.accepted();
        }
        flight
    }

    #[test]
    fn all_acknowledged() {
        let mut flight = flight(3);
        for offset in [11, 10, 12] {
            assert!(!flight.has_landed());
            flight.acknowledged(offset);
        }
        assert!(flight.has_landed());
        let run = TargetRun { first: TargetOffset(10), last: TargetOffset(12) };
        let expected = Acknowledged { accepted: 3, acknowledged: 3, run: Some(run) };
        assert_eq!(flight.outcome(), Ok(expected));
    }

    #[test]
    fn one_unknown_offset_makes_the_run_unknown() {
        let mut flight = flight(2);
        flight.acknowledged(10);
        flight.acknowledged(-1001);
        assert_eq!(flight.outcome(), Ok(Acknowledged { accepted: 2, acknowledged: 2, run: None }));
    }

    #[test]
    fn a_refusal_waits_for_the_rest_and_its_cause_wins() {
        let mut flight = flight(3);
        flight.refused(Refusal::Collateral(Failure::Abort("purged".into())));
        flight.refused(Refusal::TooLarge("large".into()));
        assert!(!flight.has_landed());
        flight.acknowledged(5);
        assert!(flight.has_landed());
        let refused = Refused { refusal: Refusal::TooLarge("large".into()), record: None };
        assert_eq!(flight.outcome(), Err(refused));
    }

    #[test]
    fn what_was_given_up_is_refused_though_its_reports_are_not_in() {
        let mut flight = flight(2);
        flight.acknowledged(5);
        flight.given_up(Refusal::Collateral(Failure::Abort("doomed".into())));
        assert!(flight.is_refused() && !flight.has_landed());
        let refusal = Refusal::Collateral(Failure::Abort("doomed".into()));
        assert_eq!(flight.outcome(), Err(Refused { refusal, record: None }));
    }

    #[test]
    fn a_record_is_named_only_for_its_own_fault() {
        let refused = |refusal: Refusal| {
            let mut flight = flight(1);
            flight.refused(refusal);
            flight.name_record(NINE);
            flight.outcome().unwrap_err().record
        };
        assert_eq!(refused(Refusal::TooLarge("large".into())), Some(NINE));
        assert_eq!(refused(Refusal::Invalid("bad".into())), Some(NINE));
        assert_eq!(refused(Refusal::Collateral(Failure::Abort("purged".into()))), None);
    }

    #[test]
    fn a_record_that_was_never_queued_is_no_success() {
        let mut short = Flight::new(Attempt(1), "orders".into(), 2);
        short.accepted();
        short.acknowledged(1);
        assert!(short.has_landed());
        assert!(short.outcome().is_err());

        let mut refused = Flight::new(Attempt(1), "orders".into(), 2);
        refused.not_queued(Refusal::Collateral(Failure::Abort("unknown partition".into())));
        assert!(refused.has_landed() && refused.is_refused());
        assert!(refused.outcome().is_err());
    }
}
