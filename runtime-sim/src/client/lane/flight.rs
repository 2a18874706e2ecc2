//! Batches between `Produce` and `Acked`: which delivery reports are in, and what they add up to.

use super::failure::worse;
use kafka_types::{OffsetAndEpoch, TargetOffset, TopicName};
use verbatim_core::Attempt;
use verbatim_core::batch::{Acknowledged, TargetRun};
use verbatim_core::event::Refused;
use verbatim_core::failure::{Failure, Refusal};

pub(super) struct Flight {
    pub(super) attempt: Attempt,
    pub(super) topic: TopicName,
    records: u64,
    accepted: u64,
    acknowledged: u64,
    refused: u64,
    run: Option<TargetRun>,
    /// An acknowledgement came without its offset.
    is_offset_unknown: bool,
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
            is_offset_unknown: false,
            refusal: None,
            record: None,
        }
    }

    pub(super) fn accepted(&mut self) {
        self.accepted += 1;
    }

    pub(super) fn acknowledged(&mut self, offset: i64) {
        self.acknowledged += 1;
        if offset < 0 {
            self.is_offset_unknown = true;
            return;
        }
        let here = TargetOffset(offset);
        self.run = Some(match self.run {
            None => TargetRun { first: here, last: here },
            Some(run) => TargetRun { first: run.first.min(here), last: run.last.max(here) },
        });
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.refused += 1;
        self.not_queued(refusal);
    }

    /// The client would not even queue a record, so none after it is offered.
    pub(super) fn not_queued(&mut self, refusal: Refusal) {
        self.refusal = Some(match self.refusal.take() {
            None => refusal,
            Some(before) => worse(before, refusal),
        });
    }

    /// For a mutant: what was not queued counts as if it had been acknowledged.
    pub(super) fn overlook(&mut self) {
        self.accepted += 1;
        self.acknowledged += 1;
    }

    pub(super) fn name_record(&mut self, record: OffsetAndEpoch) {
        self.record = Some(record);
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    pub(super) fn has_landed(&self) -> bool {
        self.acknowledged + self.refused == self.accepted
    }

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
        let run = self.run.filter(|_| !self.is_offset_unknown);
        Ok(Acknowledged { accepted: self.accepted, acknowledged: self.acknowledged, run })
    }
}
