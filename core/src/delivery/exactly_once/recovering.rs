//! What follows a failure: abort and rewind where the producer is sound, else take the lane again.

use super::{Lane, Retry, Share, Stage, Transaction};
use crate::command::LaneCommand;
use crate::event::{LedgerRecord, Step};
use crate::exit::Exit;
use crate::failure::{Failure, Side, Trouble};
use crate::fault::{Faults, Mutant};
use crate::ledger::{Claim, Entry, Halt, LaneLedger, Record};
use crate::mirror::{Context, Knowledge};
use kafka_types::SourcePartition;

/// Failures without a settle between them after which the next one is followed by a pause: an error that
/// comes back at once would have the lane read and produce the same records without end.
const ABORTS_MAX: u32 = 3;

impl Lane {
    pub(super) fn failed(&mut self, ctx: &mut Context<'_, impl Faults>, step: Step, failure: Failure) {
        tracing::warn!(lane = %self.id, attempt = %self.attempt, ?step, %failure, "lane step failed");
        if self.leaving.is_some() {
            let is_open = self.is_mirroring() && !self.run.is_empty();
            return match failure {
                // There may be time to end it, so that readers of the target need not wait for whoever comes next.
                Failure::Retry(text) | Failure::Abort(text) if is_open => self.abort(ctx, &text),
                // Whoever takes the lane next ends its transaction and reads the ledger.
                Failure::Retry(_)
                | Failure::Abort(_)
                | Failure::Fenced(_)
                | Failure::Unknown(_)
                | Failure::Fatal(_) => self.close(ctx),
            };
        }
        self.unable_since.get_or_insert(ctx.now.instant);
        match failure {
            Failure::Fatal(trouble) => self.fatal(ctx, step, trouble),
            Failure::Fenced(_) => self.read_claims(ctx),
            Failure::Unknown(text)
                if ctx.plants(Mutant::UnknownIsAborted) && matches!(step, Step::Produce | Step::Settle) =>
            {
                self.abort(ctx, &text);
            }
            Failure::Unknown(_) => {
                self.slow_down(ctx);
                self.count_as_settled(ctx);
                self.pause(ctx, Retry::Open);
            }
            Failure::Retry(text) | Failure::Abort(text) => match step {
                Step::Open | Step::Replay | Step::Abort | Step::Assign => self.pause(ctx, Retry::Open),
                Step::ReadClaims => self.pause(ctx, Retry::ReadClaims),
                Step::Prepare => self.prepare_again(ctx),
                Step::Produce | Step::Settle => {
                    self.slow_down(ctx);
                    if self.backoff.tries() < ABORTS_MAX {
                        self.backoff.count();
                        self.abort(ctx, &text);
                    } else {
                        self.pause(ctx, Retry::Open);
                    }
                }
            },
        }
    }

    /// Aborts the open transaction; its records are read again from the last settled positions.
    pub(super) fn abort(&mut self, ctx: &mut Context<'_, impl Faults>, why: &str) {
        if self.stage == Stage::Claiming {
            // Nothing was read yet; a claim is simply made again.
            return self.pause(ctx, Retry::Open);
        }
        tracing::info!(lane = %self.id, attempt = %self.attempt, why, "transaction aborted");
        self.restore_unsettled();
        self.doubt_halts_of_run();
        self.attempt = self.attempt.next();
        self.drop_run(ctx);
        self.stage = Stage::Aborting;
        ctx.out.lane(self.id, self.attempt, LaneCommand::Abort);
    }

    pub(super) fn aborted(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        if self.stage != Stage::Aborting {
            return;
        }
        self.stage = Stage::Mirroring(Transaction::Collecting);
        // A lane that is given up reads it no more.
        self.gave_up_run &= self.leaving.is_some();
        let reading: Vec<SourcePartition> = self
            .shares
            .iter()
            .filter(|(_, share)| matches!(share, Share::Reading { .. }))
            .map(|(partition, _)| partition.clone())
            .collect();
        let mut positions = Vec::new();
        for partition in reading {
            match self.base(know, &partition) {
                Some(mut base) => {
                    let stays = ctx.plants(Mutant::RewindsNothing)
                        || (ctx.plants(Mutant::RewindsOnePartition) && !positions.is_empty());
                    if stays && let Some(Share::Reading { next }) = self.shares.get(&partition) {
                        base.next = *next;
                    }
                    positions.push(self.start_reading(ctx, know, &partition, &base));
                }
                None => {
                    self.shares.insert(partition, Share::Waiting);
                }
            }
        }
        // A partition that was being prepared must be prepared anew: its answer has the older attempt.
        self.prepare_again(ctx);
        ctx.out.lane(self.id, self.attempt, LaneCommand::Rewind { positions });
        self.grant(ctx);
    }

    /// Waits a little, then tries the step. What is under way belongs to an older attempt from now on.
    pub(super) fn pause(&mut self, ctx: &mut Context<'_, impl Faults>, then: Retry) {
        self.notes.clear();
        self.attempt = self.attempt.next();
        self.drop_run(ctx);
        let until = self.backoff.after_failure(ctx.now.instant, &ctx.flow.limits);
        self.stage = Stage::Pausing { until, then };
    }

    /// The run is given up, perhaps because it was too large.
    pub fn slow_down(&mut self, ctx: &Context<'_, impl Faults>) {
        if !self.run.is_empty() && !ctx.plants(Mutant::KeepsItsSize) {
            self.pace.failed(&self.run.course(ctx.now.instant));
        }
    }

    /// Fenced and timed out look the same; the lane's last claim tells (H9).
    pub(super) fn read_claims(&mut self, ctx: &mut Context<'_, impl Faults>) {
        self.notes.clear();
        self.attempt = self.attempt.next();
        if !self.run.is_empty() {
            self.outlasted = Some(self.run.course(ctx.now.instant));
        }
        self.drop_run(ctx);
        self.stage = Stage::ReadingClaims;
        ctx.out.lane(self.id, self.attempt, LaneCommand::ReadClaims);
    }

    pub(super) fn claims_read(&mut self, ctx: &mut Context<'_, impl Faults>, records: &[LedgerRecord]) {
        if self.stage != Stage::ReadingClaims {
            return;
        }
        let last = match LaneLedger::replay(records) {
            Ok(ledger) => ledger.claim,
            Err(bad) => return ctx.out.end(Exit::Configuration(bad.to_string())),
        };
        match last {
            Some(Claim { incarnation, .. })
                if incarnation != ctx.flow.incarnation && !ctx.plants(Mutant::RetakesWhenFenced) =>
            {
                tracing::warn!(lane = %self.id, owner = incarnation, "fenced: another instance has the lane");
                self.displaced = Some(ctx.now.instant + ctx.flow.limits.regroup_max);
                self.close(ctx);
            }
            Some(_) | None => {
                tracing::warn!(lane = %self.id, "the transaction timed out; shorter ones from now on");
                if let Some(run) = self.outlasted.take().filter(|_| !ctx.plants(Mutant::KeepsItsSize)) {
                    self.pace.outlasted(&run);
                }
                self.pause(ctx, Retry::Open);
            }
        }
    }

    /// For tests: what a planted bug makes of a commit whose outcome is unknown.
    fn count_as_settled(&mut self, ctx: &Context<'_, impl Faults>) {
        if ctx.plants(Mutant::UnknownIsSettled)
            && let Stage::Mirroring(Transaction::Settling { records }) = &mut self.stage
        {
            std::mem::take(records).into_iter().for_each(|record| self.ledger.apply(record));
        }
    }

    fn fatal(&mut self, ctx: &mut Context<'_, impl Faults>, step: Step, trouble: Trouble) {
        let side = if step == Step::Assign { Side::Source } else { Side::Target };
        match trouble {
            Trouble::NotAuthorized { .. } | Trouble::Authentication(_) => {
                ctx.out.end(Exit::NotAuthorized(side, trouble));
            }
            Trouble::Refused(text) => {
                ctx.out.end(Exit::Configuration(format!("lane {}: the {side} refuses: {text}", self.id)));
            }
            Trouble::Unreachable(_) | Trouble::Passing(_) => self.pause(ctx, Retry::Open),
        }
    }

    fn prepare_again(&mut self, ctx: &Context<'_, impl Faults>) {
        for share in self.shares.values_mut() {
            if *share == Share::Preparing {
                *share = Share::Waiting;
            }
        }
        self.join_soon(ctx);
    }

    /// A partition that halted where the run had come to stands before that again: what there is to say of it is found
    /// anew, or not, when it is read anew.
    fn doubt_halts_of_run(&mut self) {
        for partition in self.run.parts().keys() {
            let is_of_place = |halt: &Option<Halt>| halt.as_ref().is_some_and(|halt| halt.offset.is_some());
            if self.halts.get(partition).is_some_and(is_of_place) {
                self.halts.remove(partition);
                self.shares.insert(partition.clone(), Share::Waiting);
            }
        }
    }

    /// The abort is clean, so what was to be settled was not: topic records and halts wait for the next
    /// settle, entries are made anew from what is read anew.
    fn restore_unsettled(&mut self) {
        if let Stage::Mirroring(Transaction::Settling { records }) = &mut self.stage {
            for record in std::mem::take(records) {
                match record {
                    Record::Topic(..) | Record::FlowStart(_) => self.notes.push(record),
                    Record::Entry(partition, Entry { halted: Some(halt), .. }) => {
                        self.halts.entry(partition).or_insert(Some(halt));
                    }
                    Record::Entry(..) | Record::Claim(_) => {}
                }
            }
        }
    }
}
