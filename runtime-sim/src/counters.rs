//! What was injected into a run, and what happened in it.

use kafka_types::ErrorCode;
use std::collections::BTreeMap;
use verbatim_core::failure::Side;

/// A class of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A request or answer took long.
    Slow,
    RequestLost,
    ResponseLost,
    Disconnected,
    /// An error answered in place of doing what was asked.
    Refused,
    /// An error answered although it was done.
    RefusedAfterApply,
    Throttled,
    /// A request that no broker could be reached with.
    CutOff,
    /// A connection on which requests arrive late although their client is gone.
    Outlived,
    /// A step of a client took long.
    SlowStep,
    /// An instance stood still for longer than a transaction may stay open.
    LongPause,
    /// A mirror heard of nothing for a while, though its clients went on.
    WorkerStalled,
    /// A tool removed a member from the group.
    MemberRemoved,
    /// A tool initialised a lane's transactional id.
    LaneFenced,
    LedgerCompacted,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub requests: u64,
    pub starts: u64,
    pub crashes: u64,
    /// Of the crashes, those at a [`crate::moments::Moment`].
    pub crashes_at_moments: u64,
    /// Target brokers that died at such a moment of an instance.
    pub broker_crashes_at_moments: u64,
    pub restarts: u64,
    pub pauses: u64,
    /// Generations of groups that began, whoever heard of it.
    pub rebalances: u64,
    /// Producers that learned that they were fenced.
    pub fencings: u64,
    /// Commits that were reported as of unknown outcome.
    pub unknown_commits: u64,
    /// Of these, the commits whose transaction the coordinator had committed by then.
    pub unknown_commits_applied: u64,
    /// Transactions of the mirror that were decided about with some of the batches sent stored, and others refused or
    /// lost.
    pub partial_sends: u64,
    /// Commits reported as settled.
    pub settled: u64,
    pub aborts: u64,
    pub faults: BTreeMap<Fault, u64>,
    /// Errors that brokers answered to anybody.
    pub errors: BTreeMap<(Side, ErrorCode), u64>,
}

impl Counters {
    pub(crate) fn fault(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
    }

    pub(crate) fn error(&mut self, side: Side, code: ErrorCode) {
        *self.errors.entry((side, code)).or_default() += 1;
    }

    /// Adds another run's, so that a sweep can say what it saw.
    pub fn add(&mut self, other: &Counters) {
        let pairs = [
            (&mut self.requests, other.requests),
            (&mut self.starts, other.starts),
            (&mut self.crashes, other.crashes),
            (&mut self.crashes_at_moments, other.crashes_at_moments),
            (&mut self.broker_crashes_at_moments, other.broker_crashes_at_moments),
            (&mut self.restarts, other.restarts),
            (&mut self.pauses, other.pauses),
            (&mut self.rebalances, other.rebalances),
            (&mut self.fencings, other.fencings),
            (&mut self.unknown_commits, other.unknown_commits),
            (&mut self.unknown_commits_applied, other.unknown_commits_applied),
            (&mut self.partial_sends, other.partial_sends),
            (&mut self.settled, other.settled),
            (&mut self.aborts, other.aborts),
        ];
        for (mine, others) in pairs {
            *mine += others;
        }
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        for (error, count) in &other.errors {
            *self.errors.entry(*error).or_default() += count;
        }
    }
}
