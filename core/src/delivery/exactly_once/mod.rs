//! Exactly once: a lane copies its partitions in transactions that carry the records and their progress.
//!
//! ```text
//! Opening -> Claiming -> Replaying -> Inspecting -> Mirroring(Collecting -> Flushing -> Proving -> Settling -> ...)
//!    ^                                                  |  abort and rewind: Aborting -> Mirroring
//!    +--- Pausing <--- unknown outcome, failure --------+
//!                      fenced: ReadingClaims -> Pausing (own time-out) or Closing (another's claim)
//! ```
//!
//! Invariants, each the cure of a hazard in its comment:
//! A. Positions come from the ledger alone, read back to the lane's own claim after fencing (H2).
//! B. Ledger records follow only once all records of the run are acknowledged and counted (H1, H10).
//! C. A run settles only if topic ids asked for after its cut are still the same (H6).
//! D. After an unknown outcome nothing in memory is believed: the lane is taken again (H1).
//! E. What carries an older attempt is dropped.
//! F. Under one attempt a partition is read from one position on; to read it again takes a new attempt.

mod collecting;
mod halting;
mod joining;
mod pace;
mod recovering;
mod releasing;
mod run;
mod settling;
mod share;
mod taking;

use crate::backoff::Backoff;
use crate::batch::Batch;
use crate::event::{Ask, LaneEvent, SourceStop};
use crate::failure::Side;
use crate::fault::{Faults, Mutant};
use crate::lane::{Attempt, LaneId};
use crate::ledger::{Halt, HaltReason, LaneLedger, Record};
use crate::mirror::{Context, Knowledge};
use crate::source::Intake;
use crate::time::Instant;
use kafka_types::{LeaderEpoch, OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TopicName};
use pace::{Course, Pace};
use run::Run;
use share::Share;
use std::collections::{BTreeMap, VecDeque};

/// Failures without a settle between them after which an owner leaves the lane to others (S6). With pauses
/// that double from a tenth of a second to five, about a minute.
const FAILURES_MAX: u32 = 16;

/// One lane that this instance owns, or owned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    id: LaneId,
    attempt: Attempt,
    stage: Stage,
    /// Set while the lane is to be given up, with the deadline for settling what is open.
    leaving: Option<Instant>,
    /// Set when another instance's claim was found; with the time by which the group must have said so.
    displaced: Option<Instant>,
    /// Questions asked before this are too old to prove that the ledger is sound.
    taken_after: Ask,
    /// Since when the lane has made no progress although it should.
    unable_since: Option<Instant>,
    backoff: Backoff,
    ledger: LaneLedger,
    shares: BTreeMap<SourcePartition, Share>,
    /// Who was known to lead a source partition before the reading of it began that goes on.
    began_under: BTreeMap<SourcePartition, LeaderEpoch>,
    /// Something changed that may let waiting partitions join; or when to look again by itself.
    join_due: bool,
    join_at: Option<Instant>,
    /// Topics that seem to be gone or others, and since when an answer to the contrary counts.
    suspects: BTreeMap<(Side, TopicName), Ask>,
    /// Partitions whose reading stopped under this attempt, with what that means if the topic is still the same.
    /// They are read again under a later attempt only: what is still on its way could not be told from what will
    /// be read anew.
    stopped: BTreeMap<SourcePartition, Option<Verdict>>,
    run: Run,
    pace: Pace,
    /// What the run had come to whose producer was last fenced, or timed out.
    outlasted: Option<Course>,
    backlog: VecDeque<Arrival>,
    intake: Intake,
    /// Most records of a batch, as the World was told last.
    batch_max: u64,
    /// Partitions in which a batch was refused (H11).
    careful: BTreeMap<SourcePartition, Careful>,
    /// Records that were refused alone: their partitions are read up to them, then halt. Kept until the lane is given
    /// up: each refusal has the lane taken anew, so two that were forgotten with it would take turns for ever.
    poison: BTreeMap<SourcePartition, Poison>,
    /// Halts that the ledger does not show yet; absent ones for partitions that it still shows as halted.
    halts: BTreeMap<SourcePartition, Option<Halt>>,
    /// Lane 0: topic records that the ledger does not hold yet.
    notes: Vec<Record>,
    settled: Settled,
    /// A run was given up, and since then nothing was read that would tell what became of it.
    gave_up_run: bool,
    /// Closed with a run that was not settled.
    left_unsettled: bool,
}

/// Where a lane stands between being offered and being given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Opening,
    Claiming,
    Replaying {
        until: TargetOffset,
        deadline: Instant,
    },
    /// The ledger's settings are being checked (H4).
    Inspecting,
    Mirroring(Transaction),
    Aborting,
    ReadingClaims,
    Pausing {
        until: Instant,
        then: Retry,
    },
    Closing,
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Transaction {
    /// Records are produced as they come.
    Collecting,
    /// Cut: nothing more joins this run, whose records are all read. `cut` is the question number then.
    Flushing { cut: Ask },
    /// All of the run is on the target too, since the question number `acknowledged`.
    Proving { cut: Ask, acknowledged: Ask },
    /// The ledger records are under way, and EndTxn behind them.
    Settling { records: Vec<Record> },
}

/// What a pause is followed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Retry {
    Open,
    ReadClaims,
}

/// What came from the source and waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Arrival {
    Batch(Batch),
    Caught(SourcePartition, SourceOffset),
    Stopped(SourcePartition, SourceStop),
}

/// What a partition halts for, once it is certain that it was said of the right topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Verdict {
    reason: HaltReason,
    /// The record it stands before, where one is to blame.
    offset: Option<SourceOffset>,
    detail: String,
}

/// A refusal speaks of a whole request, so the one record that is to blame is searched for: each time in batches of an
/// eighth, which go alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Careful {
    /// Where the search ends.
    until: SourceOffset,
    /// Records that go together, one or more.
    together: u64,
}

/// A record that the target has refused although it was sent alone, and what its partition halts with before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Poison {
    record: OffsetAndEpoch,
    halt: Halt,
}

/// Counts for whoever watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settled {
    pub records: u64,
    pub bytes: u64,
    pub transactions: u64,
}

impl Lane {
    pub fn new(id: LaneId, ctx: &Context<'_, impl Faults>) -> Lane {
        Lane {
            id,
            attempt: Attempt::default(),
            stage: Stage::Closed,
            leaving: None,
            displaced: None,
            taken_after: Ask::default(),
            unable_since: None,
            backoff: Backoff::default(),
            ledger: LaneLedger::default(),
            shares: BTreeMap::new(),
            began_under: BTreeMap::new(),
            join_due: false,
            join_at: None,
            suspects: BTreeMap::new(),
            stopped: BTreeMap::new(),
            run: Run::default(),
            pace: Pace::new(&ctx.flow.limits, ctx.flow.commit_interval),
            outlasted: None,
            backlog: VecDeque::new(),
            intake: Intake::new(0),
            batch_max: u64::MAX,
            careful: BTreeMap::new(),
            poison: BTreeMap::new(),
            halts: BTreeMap::new(),
            notes: Vec::new(),
            settled: Settled::default(),
            gave_up_run: false,
            left_unsettled: false,
        }
    }

    /// Hands in what happened in this lane.
    pub fn handle(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        know: &mut Knowledge,
        attempt: Attempt,
        event: LaneEvent,
    ) {
        let expected = match self.stage {
            Stage::Closing => event == LaneEvent::Closed,
            Stage::Closed => false,
            _ => true,
        };
        let is_old = attempt != self.attempt && !ctx.plants(Mutant::OlderAttemptsCount);
        if is_old || !expected {
            return;
        }
        match event {
            LaneEvent::Opened => self.opened(ctx, know),
            LaneEvent::Replayed { log_start, records } => self.replayed(ctx, know, log_start, &records),
            LaneEvent::Claims(records) => self.claims_read(ctx, &records),
            LaneEvent::Prepared(states) => self.prepared(ctx, know, states),
            LaneEvent::Fetched(batch) => self.fetched(ctx, batch),
            LaneEvent::Caught(partition, position) => self.caught(ctx, partition, position),
            LaneEvent::Stopped(partition, stop) => self.stopped(partition, stop),
            LaneEvent::Acked(batch, outcome) => self.acked(ctx, know, batch, outcome),
            LaneEvent::Settled { last } => self.on_settled(ctx, know, last),
            LaneEvent::Aborted => self.aborted(ctx, know),
            LaneEvent::Closed => self.stage = Stage::Closed,
            LaneEvent::Failed(step, failure) => self.failed(ctx, step, failure),
        }
        self.poll(ctx, know);
    }

    /// Does what has become due or possible.
    pub fn poll(&mut self, ctx: &mut Context<'_, impl Faults>, know: &mut Knowledge) {
        if ctx.out.exit().is_some() {
            return;
        }
        self.poll_timers(ctx);
        self.poll_inspection(ctx, know);
        self.join(ctx, know);
        self.pump(ctx, know);
        self.try_settle(ctx, know);
        self.leave_if_settled(ctx);
    }

    /// Something is known that may let waiting partitions join.
    pub fn note_news(&mut self) {
        self.join_due = true;
    }

    pub fn set_budget(&mut self, bytes: u64) {
        self.intake.set_budget(bytes);
    }

    /// When something becomes due, past deadlines included.
    pub fn deadlines(&self) -> impl Iterator<Item = Instant> {
        let stage = match &self.stage {
            Stage::Replaying { deadline, .. } => Some(*deadline),
            Stage::Pausing { until, .. } => Some(*until),
            Stage::Mirroring(Transaction::Collecting) => self.run.cut_at(self.pace.interval_max()),
            Stage::Mirroring(
                Transaction::Flushing { .. } | Transaction::Proving { .. } | Transaction::Settling { .. },
            )
            | Stage::Opening
            | Stage::Claiming
            | Stage::Inspecting
            | Stage::Aborting
            | Stage::ReadingClaims
            | Stage::Closing
            | Stage::Closed => None,
        };
        let join_at = if self.is_mirroring() { self.join_at } else { None };
        [stage, join_at, self.leaving].into_iter().flatten()
    }

    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// Whether records noted for the ledger are neither settled nor dropped.
    pub fn has_notes(&self) -> bool {
        !self.notes.is_empty() || matches!(self.stage, Stage::Mirroring(Transaction::Settling { .. }))
    }

    /// Whether the lane was last given up with a transaction open.
    pub fn left_unsettled(&self) -> bool {
        self.left_unsettled
    }

    pub fn is_mirroring(&self) -> bool {
        matches!(self.stage, Stage::Mirroring(_))
    }

    pub fn displaced(&self) -> Option<Instant> {
        self.displaced
    }

    /// The group is asked anew, so nothing is left to wait for.
    pub fn forget_displacement(&mut self) {
        self.displaced = None;
    }

    pub fn unable_since(&self) -> Option<Instant> {
        self.unable_since
    }

    /// Whether this lane was taken again and again, each time to fail before anything was settled.
    pub fn keeps_failing(&self) -> bool {
        FAILURES_MAX <= self.backoff.tries()
    }

    pub fn ledger(&self) -> &LaneLedger {
        &self.ledger
    }

    pub fn totals(&self) -> Settled {
        self.settled
    }

    /// Whether this partition stands still.
    pub fn has_halted(&self, partition: &SourcePartition) -> bool {
        matches!(self.shares.get(partition), Some(Share::Halted(_)))
    }

    /// The partitions that stand still, with the reason.
    pub fn halted(&self) -> impl Iterator<Item = (&SourcePartition, &Halt)> {
        self.shares.iter().filter_map(|(partition, share)| match share {
            Share::Halted(halt) => Some((partition, halt)),
            Share::Waiting | Share::Preparing | Share::Reading { .. } => None,
        })
    }

    fn poll_timers(&mut self, ctx: &mut Context<'_, impl Faults>) {
        let now = ctx.now.instant;
        if self.join_at.is_some_and(|at| at <= now) {
            self.join_at = None;
            self.join_due = true;
        }
        if self.leaving.is_some_and(|deadline| deadline <= now) && !self.is_closed() {
            self.close(ctx);
            return;
        }
        match &mut self.stage {
            Stage::Pausing { until, then } if *until <= now => match then {
                Retry::Open => self.open(ctx),
                Retry::ReadClaims => self.read_claims(ctx),
            },
            Stage::Replaying { deadline, until } if *deadline <= now => {
                tracing::error!(
                    lane = %self.id,
                    claim = %until,
                    "the ledger is blocked: this lane's claim cannot be read back; an open transaction in \
                     the ledger partition, by whatever producer, hides it"
                );
                *deadline = now + ctx.flow.limits.replay_max;
            }
            _ => {}
        }
    }
}
