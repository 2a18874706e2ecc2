//! How a partition stops: what a source that gives no more means, and the halt that says so.

use super::{Lane, Retry, Share, Verdict};
use crate::command::LaneCommand;
use crate::event::SourceStop;
use crate::fault::{Faults, Mutant};
use crate::ledger::{Halt, HaltReason};
use crate::mirror::Context;
use kafka_types::{SourceOffset, SourcePartition};

impl Lane {
    /// Stops a partition for good, to be written to the ledger with the next settle.
    pub(super) fn halt(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        partition: &SourcePartition,
        reason: HaltReason,
        offset: Option<SourceOffset>,
        detail: String,
    ) {
        if ctx.plants(Mutant::OneHaltRestartsAll) {
            return self.pause(ctx, Retry::Open);
        }
        let halt = Halt { reason, offset, detail, at: ctx.now.wall };
        tracing::error!(lane = %self.id, %partition, %halt, "partition halted");
        if let Some(Share::Reading { .. }) = self.shares.get(partition) {
            self.unassign(ctx, partition);
        }
        self.careful.remove(partition);
        self.halts.insert(partition.clone(), Some(halt.clone()));
        self.shares.insert(partition.clone(), Share::Halted(halt));
    }

    pub(super) fn halt_for(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        partition: &SourcePartition,
        verdict: Verdict,
    ) {
        self.halt(ctx, partition, verdict.reason, verdict.offset, verdict.detail);
    }

    /// Reads no more of a partition, and drops what of it was not produced.
    pub(super) fn unassign(&mut self, ctx: &mut Context<'_, impl Faults>, partition: &SourcePartition) {
        let (intake, backlog) = (&mut self.intake, &mut self.backlog);
        backlog.retain(|arrival| {
            let stays = arrival.partition() != partition;
            if !stays {
                intake.released(arrival.weight());
            }
            stays
        });
        self.stopped.insert(partition.clone(), None);
        let partitions = vec![partition.clone()];
        ctx.out.lane(self.id, self.attempt, LaneCommand::Unassign { partitions });
    }
}

/// What a source that gives no more means for the partition. Absent where only reading on can tell.
pub(super) fn verdict_on(partition: &SourcePartition, stop: SourceStop) -> Option<Verdict> {
    let (reason, offset, detail) = match stop {
        SourceStop::OutOfRange { position, log_start: Some(start), .. } if position < start => {
            let lost = format!("the source deleted offsets {position} to {} uncopied", start.0 - 1);
            (HaltReason::Gap, Some(position), lost)
        }
        SourceStop::OutOfRange { position, log_end: Some(end), .. } if end < position => {
            let cut = format!("the source log ends at {end}, below the position {position}");
            (HaltReason::Truncated, Some(position), cut)
        }
        // Out of a range that nobody could tell, or that has the position in it by now.
        SourceStop::OutOfRange { .. } => return None,
        SourceStop::Truncated { position, diverges_at } => {
            let place = diverges_at.map_or(String::new(), |offset| format!(" from offset {offset} on"));
            let detail = format!("the source log was cut back, and differs from what was read{place}");
            (HaltReason::Truncated, Some(position), detail)
        }
        SourceStop::Unsendable { offset, why } => (HaltReason::Unsendable, Some(offset), why),
        SourceStop::Unreadable { offset, why } => (HaltReason::Unreadable, offset, why),
        SourceStop::NotAuthorized => {
            let detail = format!("the source cluster refuses Read on Topic {}", partition.topic);
            (HaltReason::NotAuthorized, None, detail)
        }
        SourceStop::AtRefused { .. } | SourceStop::Gone => return None,
    };
    Some(Verdict { reason, offset, detail })
}
