//! Records come from the source and go out to the target within one transaction.

use super::{Arrival, Careful, Lane, Poison, Share, Stage, Transaction};
use crate::batch::{Acknowledged, Batch, BatchId};
use crate::command::LaneCommand;
use crate::event::{Refused, SourceStop, Step};
use crate::failure::{Failure, Refusal, Trouble};
use crate::fault::{Faults, Mutant};
use crate::ledger::{Halt, HaltReason};
use crate::mirror::{Context, Knowledge};
use kafka_types::{OffsetAndEpoch, SourceOffset, SourcePartition, TargetPartition};

/// Into how many parts a refused batch is cut. Each refusal costs a retake of the lane, each part a request.
const PARTS: u64 = 8;

impl Arrival {
    pub(super) fn partition(&self) -> &SourcePartition {
        match self {
            Arrival::Batch(batch) => &batch.partition,
            Arrival::Caught(partition, _) | Arrival::Stopped(partition, _) => partition,
        }
    }

    pub(super) fn weight(&self) -> u64 {
        match self {
            Arrival::Batch(batch) => batch.weight(),
            Arrival::Caught(..) | Arrival::Stopped(..) => 0,
        }
    }
}

impl Lane {
    pub(super) fn fetched(&mut self, ctx: &mut Context<'_, impl Faults>, batch: Batch) {
        let Some(Share::Reading { next }) = self.shares.get_mut(&batch.partition) else {
            // It crossed an `Unassign`, with which the World has dropped the batch.
            return self.intake.discarded(batch.weight());
        };
        if batch.first < *next || batch.next <= batch.first {
            let text = format!("records of {} came out of order: {batch:?} at {next}", batch.partition);
            return self.failed(ctx, Step::Assign, Failure::Unknown(text));
        }
        if ctx.plants(Mutant::HolesAreGaps) && *next < batch.first {
            let (from, to) = (*next, batch.first.0 - 1);
            let detail = format!("the source deleted offsets {from} to {to} uncopied");
            return self.halt(ctx, &batch.partition, HaltReason::Gap, Some(from), detail);
        }
        *next = batch.next;
        self.intake.fetched(batch.weight());
        self.backlog.push_back(Arrival::Batch(batch));
    }

    pub(super) fn caught(
        &mut self,
        ctx: &Context<'_, impl Faults>,
        partition: SourcePartition,
        position: SourceOffset,
    ) {
        if let Some(Share::Reading { next }) = self.shares.get_mut(&partition)
            && *next <= position
            && !ctx.plants(Mutant::MarkersAreNotPassed)
        {
            *next = position;
            self.backlog.push_back(Arrival::Caught(partition, position));
        }
    }

    pub(super) fn stopped(&mut self, partition: SourcePartition, stop: SourceStop) {
        if let Some(Share::Reading { .. }) = self.shares.get(&partition) {
            self.backlog.push_back(Arrival::Stopped(partition, stop));
        }
    }

    /// Produces what has arrived, as far as the run may grow.
    pub(super) fn pump(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        while self.stage == Stage::Mirroring(Transaction::Collecting)
            && (self.leaving.is_none() || ctx.plants(Mutant::ProducesWhatIsGivenUp))
            && !self.run.is_full(&self.pace)
        {
            match self.backlog.pop_front() {
                None => break,
                Some(Arrival::Batch(batch)) => self.produce(ctx, know, batch),
                Some(Arrival::Caught(partition, position)) => {
                    self.reach(ctx, know, &partition, position);
                }
                Some(Arrival::Stopped(partition, stop)) => self.source_stopped(ctx, know, &partition, stop),
            }
        }
        if self.is_mirroring() {
            self.grant(ctx);
        }
        self.cut_if_due(ctx, know);
    }

    /// Lets the World bring more, as far as memory allows.
    pub(super) fn grant(&mut self, ctx: &mut Context<'_, impl Faults>) {
        if self.leaving.is_some() {
            return;
        }
        let (bytes, batch_max) = (self.intake.grant(), self.batch_max());
        if bytes.is_some() || batch_max != self.batch_max {
            self.batch_max = batch_max;
            let bytes = bytes.unwrap_or(0);
            ctx.out.lane(self.id, self.attempt, LaneCommand::Credit { bytes, batch_max });
        }
    }

    /// No larger than what a slow target takes, nor than what goes together while a refused record is searched for.
    fn batch_max(&self) -> u64 {
        let together = self.careful.values().map(|careful| careful.together);
        together.chain(self.pace.batch_max()).min().unwrap_or(u64::MAX)
    }

    pub(super) fn acked(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &Knowledge,
        id: BatchId,
        outcome: Result<Acknowledged, Refused>,
    ) {
        match outcome {
            Ok(acknowledged) => match self.run.acknowledge(id, acknowledged) {
                Ok(batch) => self.intake.released(batch.weight()),
                Err(_) => self.abort(ctx, &format!("batch {id} was not acknowledged whole")),
            },
            Err(Refused { refusal, record }) if !ctx.plants(Mutant::RefusalsAreNotCounted) => {
                self.refused(ctx, know, id, refusal, record);
            }
            Err(_) => {
                drop(self.run.acknowledge(id, Acknowledged { accepted: 0, acknowledged: 0, run: None }))
            }
        }
    }

    fn produce(&mut self, ctx: &mut Context<'_, impl Faults>, know: &Knowledge, batch: Batch) {
        let Some(base) = self.base(know, &batch.partition) else { return };
        let target =
            TargetPartition { topic: base.target_topic.clone(), partition: batch.partition.partition };
        // Invariant F, checked again where its breach would become a duplicate.
        let stands = self.run.parts().get(&batch.partition).map_or(base.next, |part| part.next);
        if batch.first < stands {
            let text = format!("records of {} from below {stands}: {batch:?}", batch.partition);
            return self.failed(ctx, Step::Produce, Failure::Unknown(text));
        }
        let alone = self.is_searched(&batch);
        let command = LaneCommand::Produce { batch: batch.id, target, alone };
        self.run.add(ctx.now.instant, batch);
        if alone {
            self.run.count_alone();
        }
        ctx.out.lane(self.id, self.attempt, command);
    }

    /// Whether it belongs to a stretch that is searched for a record that the target refuses.
    fn is_searched(&self, batch: &Batch) -> bool {
        self.careful.get(&batch.partition).is_some_and(|careful| batch.first < careful.until)
    }

    /// A position without records, unless the ledger has it already.
    fn reach(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &Knowledge,
        partition: &SourcePartition,
        position: SourceOffset,
    ) {
        let in_run = self.run.parts().get(partition).map(|part| part.next);
        let settled = || self.ledger.entries.get(partition).map(|entry| entry.next);
        let before = in_run.or_else(settled);
        let start = || self.base(know, partition).map(|base| base.next);
        if before.or_else(start).is_none_or(|before| before < position) {
            self.run.add_caught(ctx.now.instant, partition, position);
        }
        // Reading comes through to here, so whatever had halted the partition is over.
        if self.ledger.entries.get(partition).is_some_and(|entry| entry.halted.is_some()) {
            self.halts.entry(partition.clone()).or_insert(None);
        }
    }

    /// What comes next is the record that the target has refused.
    pub(super) fn at_refused(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        partition: &SourcePartition,
        offset: SourceOffset,
    ) {
        self.reach(ctx, know, partition, offset);
        if let Some(after) = self.skips_to(ctx, partition, offset) {
            self.poison.remove(partition);
            return self.read_on(ctx, know, partition, after);
        }
        if let Some(Poison { halt: Halt { reason, detail, .. }, .. }) = self.poison.get(partition).cloned() {
            self.halt(ctx, partition, reason, Some(offset), detail);
        }
    }

    /// For tests: where a planted bug goes on after a record that the target does not take.
    fn skips_to(
        &self,
        ctx: &Context<'_, impl Faults>,
        partition: &SourcePartition,
        offset: SourceOffset,
    ) -> Option<SourceOffset> {
        let batch_end = || self.careful.get(partition).map_or(offset.next(), |careful| careful.until);
        let record = ctx.plants(Mutant::SkipsOversizedRecords).then(|| offset.next());
        record.or_else(|| ctx.plants(Mutant::SkipsOversizedBatches).then(batch_end))
    }

    /// The target did not take a batch.
    fn refused(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &Knowledge,
        id: BatchId,
        refusal: Refusal,
        record: Option<OffsetAndEpoch>,
    ) {
        let Some(batch) = self.run.unacknowledged(id).cloned() else {
            return self.abort(ctx, "a batch was refused that is not part of the run");
        };
        let (reason, text) = match refusal {
            Refusal::TooLarge(text) => (HaltReason::Oversized, text),
            Refusal::Invalid(text) => (HaltReason::Refused, text),
            Refusal::Collateral(Failure::Fatal(Trouble::NotAuthorized { resource, operation })) => {
                return self.denied(ctx, know, &resource, &operation);
            }
            Refusal::Collateral(failure) => {
                return self.failed(ctx, Step::Produce, failure);
            }
        };
        match record {
            None => {
                if ctx.plants(Mutant::SkipsOversizedBatches) {
                    let record = OffsetAndEpoch { offset: batch.first, epoch: None };
                    let halt =
                        Halt { reason, offset: Some(batch.first), detail: text.clone(), at: ctx.now.wall };
                    self.poison.insert(batch.partition.clone(), Poison { record, halt });
                }
                // What was read beyond it is likely to be as large, and each refusal costs a retake.
                let read = match self.shares.get(&batch.partition) {
                    Some(Share::Reading { next }) => batch.next.max(*next),
                    Some(Share::Waiting | Share::Preparing | Share::Halted(_)) | None => batch.next,
                };
                // At first the whole stretch is searched, then the part that was refused.
                let is_part = self.is_searched(&batch);
                let searched = if is_part { batch.records } else { read.distance_from(batch.first) };
                let together = (searched / PARTS).max(1);
                self.careful.insert(batch.partition, Careful { until: read, together });
            }
            Some(record) => {
                let offset = Some(record.offset);
                let halt = Halt { reason, offset, detail: text.clone(), at: ctx.now.wall };
                self.poison.insert(batch.partition, Poison { record, halt });
            }
        }
        self.abort(ctx, &text);
    }

    /// The target cluster denies something. A transaction is refused as a whole, so the batch that was the first to
    /// hear of it need not be one for the topic that is meant.
    fn denied(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &Knowledge,
        resource: &str,
        operation: &str,
    ) {
        let detail = format!("the target cluster refuses {operation} on {resource}");
        let is_meant = |partition: &&SourcePartition| {
            let base = self.base(know, partition);
            base.is_some_and(|base| resource == format!("Topic {}", base.target_topic))
        };
        let meant: Vec<SourcePartition> = self.run.parts().keys().filter(is_meant).cloned().collect();
        if meant.is_empty() {
            return self.failed(ctx, Step::Produce, Failure::Abort(detail));
        }
        for partition in meant {
            self.halt(ctx, &partition, HaltReason::NotAuthorized, None, detail.clone());
        }
        self.abort(ctx, &detail);
    }
}
