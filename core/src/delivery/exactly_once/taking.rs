//! Taking a lane: fence, claim, replay, inspect.

use super::pace::Pace;
use super::{Lane, Retry, Stage, Transaction};
use crate::command::LaneCommand;
use crate::event::LedgerRecord;
use crate::exit::Exit;
use crate::fault::{Faults, Mutant};
use crate::ledger::{Claim, LaneLedger, Record};
use crate::mirror::{Context, Knowledge};
use kafka_types::TargetOffset;

impl Lane {
    /// The group has given this lane to us.
    pub fn take(&mut self, ctx: &mut Context<'_, impl Faults>) {
        self.leaving = None;
        self.displaced = None;
        self.unable_since = Some(ctx.now.instant);
        self.backoff.reset();
        self.notes.clear();
        self.left_unsettled = false;
        self.gave_up_run = false;
        self.open(ctx);
    }

    /// Step 1: initialising the transactional id fences former owners and ends their transactions.
    pub(super) fn open(&mut self, ctx: &mut Context<'_, impl Faults>) {
        self.attempt = self.attempt.next();
        self.pace.restart();
        self.batch_max = u64::MAX;
        if ctx.plants(Mutant::KeepsItsSize) {
            self.pace = Pace::reckless(&ctx.flow.limits, ctx.flow.commit_interval);
        }
        self.taken_after = ctx.out.asked();
        let memory = std::mem::take(&mut self.ledger);
        self.forget_progress(ctx);
        if believes_memory(ctx) {
            self.ledger = memory;
        }
        self.stage = Stage::Opening;
        ctx.out.lane(self.id, self.attempt, LaneCommand::Open);
    }

    /// Step 2: a claim, committed alone.
    pub(super) fn opened(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        if self.stage != Stage::Opening {
            return;
        }
        let claim = Record::Claim(Claim {
            incarnation: ctx.flow.incarnation.clone(),
            attempt: self.attempt,
            terms: know.terms.clone(),
        });
        self.stage = Stage::Claiming;
        ctx.out.lane(self.id, self.attempt, LaneCommand::Settle { records: vec![claim.encode()] });
    }

    /// Step 3: read back to that very claim (H2).
    pub(super) fn claimed(&mut self, ctx: &mut Context<'_, impl Faults>, last: Option<TargetOffset>) {
        let Some(until) = last else {
            // An acknowledgement without offset names no end to read to: claim again.
            return self.pause(ctx, Retry::Open);
        };
        let deadline = ctx.now.instant + ctx.flow.limits.replay_max;
        self.stage = Stage::Replaying { until, deadline };
        ctx.out.lane(self.id, self.attempt, LaneCommand::Replay { until });
    }

    /// Step 4: believe what was read, unless it was written under other terms.
    pub(super) fn replayed(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        log_start: TargetOffset,
        records: &[LedgerRecord],
    ) {
        if !matches!(self.stage, Stage::Replaying { .. }) {
            return;
        }
        if log_start != TargetOffset::ZERO {
            return ctx.out.end(Exit::Configuration(format!(
                "records of {} partition {} below offset {log_start} were deleted; progress may be lost, so \
                 nothing can be copied safely under this flow name",
                ctx.flow.name.ledger(),
                self.id,
            )));
        }
        let ledger = match LaneLedger::replay(records) {
            Ok(ledger) => ledger,
            Err(bad) => return ctx.out.end(Exit::Configuration(bad.to_string())),
        };
        let claims = [&ledger.claim_before, &ledger.claim].into_iter().flatten();
        if let Some(mismatch) = claims.filter_map(|claim| claim.check(&know.terms).err()).next() {
            return ctx.out.end(Exit::Configuration(mismatch.to_string()));
        }
        if !ledger.claim.as_ref().is_some_and(|claim| self.is_own(ctx, claim)) {
            // Somebody claimed after us and so has fenced us already: find out who.
            return self.read_claims(ctx);
        }
        tracing::info!(lane = %self.id, attempt = %self.attempt, entries = ledger.entries.len(), "lane taken");
        if !believes_memory(ctx) || self.ledger.entries.is_empty() {
            self.ledger = ledger;
        }
        self.stage = Stage::Inspecting;
        know.ledger_guard.want(ctx);
    }

    /// Step 5: the ledger itself must be sound, by an answer newer than the take.
    pub(super) fn poll_inspection(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        if self.stage == Stage::Inspecting && know.ledger_guard.is_sound_since(self.taken_after) {
            self.stage = Stage::Mirroring(Transaction::Collecting);
            self.unable_since = None;
            self.gave_up_run = false;
            self.join_due = true;
            self.grant(ctx);
        }
    }

    fn is_own(&self, ctx: &Context<'_, impl Faults>, claim: &Claim) -> bool {
        claim.incarnation == ctx.flow.incarnation && claim.attempt == self.attempt
    }

    /// All that was read from the ledger or came of it. What the target refused is kept: a refusal makes the
    /// abort after it unclean, so without it the lane, taken again, would produce the same for ever.
    pub(super) fn forget_progress(&mut self, ctx: &Context<'_, impl Faults>) {
        self.drop_run(ctx);
        self.shares.clear();
        self.suspects.clear();
        self.halts.clear();
        self.ledger = LaneLedger::default();
    }
}

/// For tests: whether a planted bug goes on from memory where only the ledger can be believed.
fn believes_memory(ctx: &Context<'_, impl Faults>) -> bool {
    ctx.plants(Mutant::UnknownIsNotSettled) || ctx.plants(Mutant::UnknownIsSettled)
}
