//! Giving a lane up: settle what is open if there is time, then close.

use super::{Lane, Stage, Transaction};
use crate::command::LaneCommand;
use crate::fault::Faults;
use crate::mirror::Context;
use crate::time::Instant;

impl Lane {
    /// The lane goes to somebody else, or the mirror ends: settle by `deadline`, or leave it unsettled.
    pub fn release(&mut self, deadline: Instant) {
        if self.is_closed() {
            // What became of it then has long been somebody else's to settle.
            self.left_unsettled = false;
            return;
        }
        let before = self.leaving.unwrap_or(deadline);
        self.leaving = Some(before.min(deadline));
    }

    /// Nothing more is settled: aborts what is open, so that readers of the target need not wait for its time-out.
    /// A commit that is under way cannot be called back.
    pub fn drop_open(&mut self, ctx: &mut Context<'_, impl Faults>, deadline: Instant) {
        let is_open = !self.run.is_empty();
        match self.stage {
            Stage::Mirroring(
                Transaction::Collecting | Transaction::Flushing { .. } | Transaction::Proving { .. },
            ) if is_open => self.abort(ctx, "stopped at once"),
            Stage::Mirroring(Transaction::Settling { .. }) | Stage::Aborting | Stage::Closing => {}
            Stage::Mirroring(_)
            | Stage::Opening
            | Stage::Claiming
            | Stage::Replaying { .. }
            | Stage::Inspecting
            | Stage::ReadingClaims
            | Stage::Pausing { .. }
            | Stage::Closed => return self.lose(ctx),
        }
        self.leaving = Some(deadline);
    }

    /// The lane is somebody else's already: nothing of ours may be committed any more.
    pub fn lose(&mut self, ctx: &mut Context<'_, impl Faults>) {
        if !self.is_closed() {
            self.close(ctx);
        }
    }

    pub(super) fn leave_if_settled(&mut self, ctx: &mut Context<'_, impl Faults>) {
        if self.leaving.is_none() {
            return;
        }
        let open = match &self.stage {
            Stage::Mirroring(Transaction::Collecting) => !self.run.is_empty() || !self.halts.is_empty(),
            Stage::Mirroring(
                Transaction::Flushing { .. } | Transaction::Proving { .. } | Transaction::Settling { .. },
            ) => true,
            // Its outcome decides nothing that the next owner does not decide anew, but until it is known readers of
            // the target wait.
            Stage::Aborting => true,
            Stage::Closing | Stage::Closed => return,
            Stage::Opening
            | Stage::Claiming
            | Stage::Replaying { .. }
            | Stage::Inspecting
            | Stage::ReadingClaims
            | Stage::Pausing { .. } => false,
        };
        if !open {
            self.close(ctx);
        }
    }

    pub(super) fn close(&mut self, ctx: &mut Context<'_, impl Faults>) {
        if matches!(self.stage, Stage::Closing | Stage::Closed) {
            return;
        }
        let open = self.gave_up_run || !self.run.is_empty();
        // A lane that was lost is somebody else's to settle.
        self.left_unsettled = open && self.leaving.is_some();
        if self.left_unsettled {
            tracing::warn!(lane = %self.id, "lane given up unsettled; its next owner goes on from the ledger");
        }
        self.attempt = self.attempt.next();
        self.forget_progress(ctx);
        self.careful.clear();
        self.poison.clear();
        self.notes.clear();
        self.stage = Stage::Closing;
        ctx.out.lane(self.id, self.attempt, LaneCommand::Close);
    }
}
